//! All of a ledger, on its way from one store into another: whole or not at all.

use std::path::PathBuf;

use super::limits::LedgerLimit;
use super::{HoldError, Unavailable};
use crate::domain::{Attempt, BatchKey, Charge, History, Usd};

/// A part of a ledger. URLs of local images are left out: the asset command returns new ones.
pub(super) enum Part {
    /// A batch.
    Batch(BatchKey, History),
    /// The ledger limits. They come last: without them, a copy is not whole.
    Limits(Vec<LedgerLimit>),
}

/// The contents of a ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// Batches.
    pub batches: u32,
    /// Attempts.
    pub attempts: u32,
    /// The price of all attempts that may have been charged.
    pub price: Usd,
}

/// The reason why a ledger can't be verified or copied. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A ledger can't be used.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A run uses the ledger to copy.
    #[error("a run uses the ledger to copy: {0}")]
    Busy(String),
    /// The ledger to read is damaged.
    #[error("ledger `{ledger}` is damaged: {what}")]
    Damaged {
        /// The ledger.
        ledger: String,
        /// The diagnostic.
        what: String,
    },
    /// There is no ledger to read.
    #[error("found no ledger at `{0}`")]
    Missing(String),
    /// The ledger to write has contents already.
    #[error("ledger `{0}` must be empty")]
    NotEmpty(String),
    /// The response to the commit of the copy was lost: the copy may be whole.
    #[error("lost the response to the last write of the copy, which may be whole")]
    Unknown(#[source] Unavailable),
    /// The ledger to read could not be read to its end.
    #[error("the copy is not whole")]
    CutOff,
    /// The copy can't be written.
    #[error("can't write the copy `{}`", path.display())]
    NotWritable {
        /// The copy.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl CopyError {
    /// The help.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Unavailable(error) => error.help(),
            Self::Damaged { .. } => BRING_BACK,
            Self::Unknown(_) => {
                "look at the copy with `shotlist spend`; purchases stay frozen here until you choose one of the two"
            }
            Self::CutOff => "run the command again",
            Self::Busy(_) => "wait for that run to end; the copy would lack its purchases",
            Self::Missing(_) => "name the ledger with `--ledger`; it is in `.shotlist` beside the manifest",
            Self::NotEmpty(_) => "name a new file, or a database without a ledger",
            Self::NotWritable { .. } => "name a new file in a writable directory, on a disk with space",
        }
    }
}

/// The help for a damaged ledger.
pub(super) const BRING_BACK: &str =
    "restore a copy that `shotlist ledger check` finds whole; without its ledger, shotlist can't know what is paid for";

impl From<HoldError> for CopyError {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Unavailable(error) => Self::Unavailable(error),
            busy @ HoldError::Busy { .. } => Self::Busy(busy.to_string()),
        }
    }
}

impl Contents {
    /// Counts an attempt.
    pub(super) fn count(&mut self, attempt: &Attempt) {
        self.attempts += 1;
        if attempt.charge() != Charge::None {
            self.price += attempt.cost();
        }
    }
}
