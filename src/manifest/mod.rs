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

pub mod draft;
mod expand;
mod load;
mod raw;
mod source;
mod tables;
mod template;

pub(crate) use load::name_of;
pub use load::{FaceReviews, Loaded, Manifest, Options, Unsound, load, load_text};
pub use raw::sections::{Budget, SpanBudget};
pub use source::diagnostic::{Diagnostic, JobLabel, Located, Severity, Sources};
pub use source::location::{Location, Part, Pointer, Step};
pub(crate) use source::location::{home, is_stream, nearest};
pub(crate) use tables::{WORKBOOK_THREAD, rows::is_spreadsheet};
