//! All of a ledger, on its way from one store into another: whole or not at all.

use super::owner::LedgerLimit;
use super::stored::Stored;
use super::{Contents, HoldError, Unavailable};
use crate::domain::{AttemptState, BatchKey, Usd};

/// Everything that a ledger knows. Attempts and jobs name their batch by its place in the list.
pub(super) struct Books {
    /// The reason that purchases are frozen in the copy, if they are.
    pub(super) frozen: Option<String>,
    /// Each with its unfinished retake, as JSON.
    pub(super) batches: Vec<(BatchKey, Option<String>)>,
    pub(super) attempts: Vec<(usize, Stored)>,
    /// Why jobs were not sent: the batch, the job, the reason, and when, in microseconds.
    pub(super) unsent: Vec<(usize, String, String, i64)>,
    /// Addresses of pictures: the SHA-256, the command, the address, and when, in microseconds.
    pub(super) addresses: Vec<(String, String, String, i64)>,
    pub(super) limits: Vec<LedgerLimit>,
}

/// Why a ledger could not be carried into another. The other one is as it was.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// One of the two can't be used.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A run is at the one that is read.
    #[error("a run uses the ledger to copy: {0}")]
    Busy(String),
    /// The one that is read is damaged.
    #[error("{0}")]
    Damaged(String),
    /// There is nothing to read.
    #[error("found no ledger at `{0}`")]
    Missing(String),
    /// The one that is to be written has attempts already.
    #[error("ledger `{0}` must be empty")]
    NotEmpty(String),
}

impl CopyError {
    /// How to mend it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Unavailable(error) => error.help(),
            Self::Damaged(_) => "restore a copy that `shotlist ledger check` finds whole",
            Self::Busy(_) => "wait for that run to end; the copy would lack its purchases",
            Self::Missing(_) => "name an existing ledger; it is in `.shotlist` beside the manifest",
            Self::NotEmpty(_) => "name a new file, or a database without a ledger",
        }
    }
}

impl From<HoldError> for CopyError {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Unavailable(error) => Self::Unavailable(error),
            busy @ HoldError::Busy { .. } => Self::Busy(busy.to_string()),
        }
    }
}

impl Books {
    /// What it holds, in numbers.
    pub(super) fn contents(&self) -> Contents {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let is_spent = |row: &&Stored| {
            !AttemptState::named(&row.state).is_some_and(AttemptState::is_free) && row.billed.as_deref() != Some("none")
        };
        let spent = self.attempts.iter().map(|(_, row)| row).filter(is_spent);
        Contents {
            batches: count(self.batches.len()),
            attempts: count(self.attempts.len()),
            price: spent.map(|row| Usd::from_micros(row.price_micros)).sum(),
        }
    }
}
