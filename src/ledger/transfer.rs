//! All of a ledger, on its way from one store into another: whole or not at all.

use std::path::PathBuf;

use super::limits::LedgerLimit;
use super::{HoldError, Unavailable};
use crate::domain::{BatchKey, Charge, History, Usd};

/// The contents of a ledger. URLs of local images are left out: the asset command returns new ones.
pub(super) struct Dump {
    /// The reason that purchases are frozen in the copy, if they are.
    pub(super) frozen: Option<String>,
    pub(super) batches: Vec<(BatchKey, History)>,
    pub(super) limits: Vec<LedgerLimit>,
}

/// The contents of a ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
        /// The finding.
        what: String,
    },
    /// There is no ledger to read.
    #[error("found no ledger at `{0}`")]
    Missing(String),
    /// The ledger to write has contents already.
    #[error("ledger `{0}` must be empty")]
    NotEmpty(String),
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
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Unavailable(error) => error.help(),
            Self::Damaged { .. } => BRING_BACK,
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

impl Dump {
    /// Counts the contents.
    pub(super) fn contents(&self) -> Contents {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let attempts = || self.batches.iter().flat_map(|(_, history)| history.attempts());
        let spent = attempts().filter(|attempt| attempt.charge() != Charge::None);
        Contents {
            batches: count(self.batches.len()),
            attempts: count(attempts().count()),
            price: spent.map(|attempt| attempt.price).sum(),
        }
    }
}
