//! From a YAML file to checked and priced jobs, with a location for each error.
//!
//! [`load`](mod@load) is the entry point. [`source`] reads the text, `serde_yaml` parses it into values, and [`raw`] decodes these key by key, so one pass
//! reports every error. [`tables`] reads the rows of `for_each`, [`template`] renders strings, and [`expand`] makes the jobs, which the catalog checks
//! and prices. [`draft`] writes a manifest for a spreadsheet or a directory of images.
//!
//! Values come from the first parser only, and byte ranges from a second one only. The second one runs if there is an error to show.
//!
//! This module reads the manifest and the files that it names below the manifest's directory or `--root`. It has no network, no clock, and no
//! ledger; the caller passes the date.

pub mod draft {
    //! A draft of a manifest for a spreadsheet: [`sheet`] finds the table, [`written`] the meaning of each column,
    //! [`columns`] compares them, and [`text`] writes the draft.
    //!
    //! Every guess is in the text as a comment, and columns without a meaning are named, not dropped. A guess confirms nothing: the text sets
    //! no limit that a run could take for one.
    mod columns;
    mod sheet;
    mod text;
    pub(super) mod written;

    pub use sheet::{Draft, DraftError, draft, draft_of_images};
}
mod expand {
    //! From entries to jobs: one for each row, combination, and take.
    //!
    //! [`expander`] goes through the entries. [`fields`] compiles the templates of each one once, and reads its files. For each row, [`maker`] chooses between the job's fields and
    //! the defaults, and renders their templates; [`lists`] does so for lists, images, takes, and `extra`.
    //! [`finisher`] checks and prices a job, adds it to the others, and refuses an ID or a file that is in use.
    pub(super) mod expander;
    pub(super) mod fields;
    pub(super) mod finisher;
    mod lists;
    pub(super) mod maker;
}
mod load;
mod raw {
    //! The manifest before templates and defaults.
    //!
    //! [`decode`](mod@decode) has the types of a manifest and fills them from YAML values, key by key with a [`table`], which knows the fields of a job, so one pass
    //! reports every error. [`sections`] decodes the parts with a shape of their own.
    pub(super) mod decode;
    pub(super) mod sections;
    pub(super) mod table;
}
#[cfg(test)]
mod schema;
mod source {
    //! The text of a manifest, and the places of errors in it.
    //!
    //! [`text`] reads a manifest and its files within bounds, and [`reader`] makes values of YAML. A [`diagnostic`] has a symbolic location, which
    //! becomes a byte range only on output. [`syntax`] explains invalid YAML, and limits jobs and requests. [`lints`] are warnings.
    pub(super) mod diagnostic;
    pub(super) mod lints;
    pub(super) mod reader;
    pub(super) mod syntax;
    pub(super) mod text;
}
mod tables {
    //! The rows of `for_each`: [`rows`] reads them from the manifest or from a file, a [`sheet`] of a CSV file, or of a workbook of Excel or
    //! LibreOffice by its [`grid`]. [`parts`] guards the library that reads workbooks, and [`ods`] has the specifics of LibreOffice.
    mod grid;
    mod ods;
    mod parts;
    pub(super) mod rows;
    pub(super) mod sheet;
}
mod template {
    //! Templates: [`engine`] is strict Jinja, [`bounds`] limits time and memory, and [`row`] has the cells of a job's row, with the gaps in prompts.
    pub(super) mod bounds;
    pub(super) mod engine;
    pub(super) mod row;
}

pub use load::{FaceReviews, Loaded, Manifest, Options, Unsound, load, load_text};
pub use raw::sections::{Budget, SpanBudget};
pub(crate) use source::diagnostic::nearest;
pub use source::diagnostic::{Diagnostic, JobLabel, Located, Location, Part, Pointer, Severity, Sources, Step};
pub(crate) use source::text::{home, is_stream};
pub(crate) use tables::rows::is_spreadsheet;
pub(crate) use tables::sheet::WORKBOOK_THREAD;
