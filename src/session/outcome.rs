//! How a run ended.

use super::reporter::{Reported, ReporterError};
use crate::engine;

/// How a run ended, and how each job stands.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended early if it did, and what went badly in it.
    pub run: engine::Outcome,
    /// How each job stands now. Where that can't be told, the ledger still holds what was paid for.
    pub reported: Result<Reported, ReporterError>,
}
