//! From a YAML file to checked and priced jobs, with the place of everything that is wrong.
//!
//! The way of a manifest: [`origin`] says where it comes from, and [`text`] reads it within bounds; `serde_yaml` parses it into values; [`raw`] decodes
//! them into a mirror of the file, key by key, so that one pass finds every mistake; [`rows`] reads spreadsheets and lists;
//! [`template`], [`fields`] and [`render`] fill in the templates; [`expand`] makes one job of each row; the catalogue checks and
//! prices it. Places cost nothing while nothing is wrong: a [`Diagnostic`] holds a symbolic [`Place`], and only when
//! there is one to show does [`place`] parse the file a second time for byte ranges. Values come from the first parser
//! alone and marks from the second alone, so the two can't disagree about what a manifest means.
//!
//! [`slips`] are warnings about what no rule forbids. How much a manifest may become is bounded: [`bounds`] holds jobs, text and depth, [`growth`] what templates make.
//!
//! This room reads the manifest and the files that it names in its own folder, and nothing else: no network, no clock (the
//! date is passed in), no ledger.

mod beside;
mod bounds;
mod decode;
mod diagnostic;
mod expand;
mod faces;
mod fields;
mod finish;
mod growth;
mod lines;
mod load;
mod matrix;
mod origin;
mod place;
mod prompts;
mod raw;
mod render;
mod rows;
mod schema;
mod sheet;
mod slips;
mod stream;
mod suggest;
mod surrogates;
mod syntax;
mod taken;
mod template;
mod text;

pub use diagnostic::{Diagnostic, JobLabel, Located, Severity, Sources};
pub use load::{Budget, Loaded, Manifest, Options, Unsound, load};
pub use origin::{home, is_stream};
pub use place::{Part, Place, Pointer, Step};
pub use raw::RawManifest;
pub use suggest::nearest;
