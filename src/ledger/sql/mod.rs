//! SQL that every store understands.
//!
//! [`medium`] has statements with values, and the few questions that each medium answers in its own way. [`questions`] are about many batches,
//! and [`copying`] reads and writes everything, and records that are no attempts.

mod copying;
mod medium;
mod questions;

pub(super) use copying::{ensure_batch, keep_retake, note_unsent, set_limit};
pub(super) use copying::{is_empty, receive_all, send_all};
pub(super) use medium::{Line, Sql, attempt, key};
pub(super) use questions::{
    batches, bought_elsewhere, from_json, limits, names, newest_delivery, open_elsewhere, paid, spending, submissions,
    sums, unsent, used,
};
