//! How a run ended.

use super::refusal::Refusal;
use super::reporter::{Reported, ReporterError};
use crate::domain::BatchKey;
use crate::engine;

/// How a run ended, and how each job stands.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended early if it did, and what went badly in it.
    pub run: engine::Outcome,
    /// For how many videos the program of `--exec` failed.
    pub unexecuted: usize,
    /// The other batches of the same name that were looked after.
    pub collected: Vec<Collected>,
    /// How each job stands now. Where that can't be told, the ledger still holds what was paid for.
    pub reported: Result<Reported, ReporterError>,
}

/// Another batch of the same name that was looked after.
#[derive(Debug)]
pub struct Collected {
    /// The batch.
    pub batch: BatchKey,
    /// How its jobs stand now, by the ledger.
    pub reported: Result<Reported, Refusal>,
}
