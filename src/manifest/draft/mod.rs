//! A manifest for a spreadsheet ([`sheet`]): what its columns seem to mean ([`columns`], by how they are [`written`] and by words of [`headers`]), and a text that says so ([`text`]).
//!
//! Every guess is in the text as a comment, and what is not understood is named, not dropped. A guess confirms nothing: the text sets
//! no limit that a run could take for one.

mod columns;
mod headers;
mod sheet;
mod text;
mod written;

pub use sheet::{Draft, DraftError, draft};
