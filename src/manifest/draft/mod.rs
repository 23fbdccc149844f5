//! A draft of a manifest for a spreadsheet: [`sheet`] finds the table, [`written`] the meaning of each column,
//! [`columns`] compares them, and [`text`] writes the draft.
//!
//! Every guess is in the text as a comment, and columns without a meaning are named, not dropped. A guess confirms nothing: the text sets
//! no limit that a run could take for one.

mod columns;
mod sheet;
mod text;
mod written;

pub use sheet::{Draft, DraftError, draft, draft_of_images};
pub(in crate::manifest) use written::Written;
