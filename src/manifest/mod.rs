//! From a YAML file to checked and priced jobs, with the place of everything that is wrong.
//!
//! [`load`](mod@load) is the way in. A manifest's text comes from [`source`], and `serde_yaml` parses it into values; [`raw`] decodes them into a mirror of
//! the file, so that one pass reports every error; [`tables`] are the rows that jobs are made of; [`template`] is what fills texts in; [`expand`]
//! makes jobs of all that, which the catalog checks and prices. [`draft`] writes a manifest for a sheet. Locations cost nothing while nothing is wrong; values come from the first
//! parser alone and byte ranges from a second one alone, so the two can't disagree about what a manifest means.
//!
//! This module reads the manifest and the files that it names in its own directory, and nothing else: no network, no clock (the
//! date is passed in), no ledger.

pub mod draft;
mod expand;
mod load;
mod raw;
mod source;
mod tables;
mod template;

pub(crate) use load::name_or_stem;
pub use load::{FaceReviews, Loaded, Manifest, Options, Unsound, load, load_text};
pub use raw::sections::{Budget, SpanBudget};
pub use source::diagnostic::{Diagnostic, JobLabel, Located, Severity, Sources};
pub use source::location::{Location, Part, Pointer, Step};
pub(crate) use source::location::{home, is_stream, nearest};
pub(crate) use tables::WORKBOOK_THREAD;
