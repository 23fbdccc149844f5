//! A draft of a manifest for a spreadsheet: the meaning of its [`columns`], by their cells and their names, and its [`text`].
//!
//! Every guess is in the text as a comment, and columns without a meaning are named, not dropped. A guess confirms nothing: the text sets
//! no limit that a run could take for one.

mod columns;
mod text;

pub use text::{Draft, DraftError, draft};
