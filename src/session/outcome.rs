//! How a run ended.

use super::reporter::ReporterError;
use crate::engine;
use crate::ledger::Unavailable;
use crate::report::Report;

/// How a run ended, and how each job stands.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended early if it did, and what went badly in it.
    pub run: engine::Outcome,
    /// How each job stands now. Where the ledger can't be read, it still holds what was paid for.
    pub report: Result<Report, Unavailable>,
    /// Whether every report was written. If not, the next run writes them.
    pub reports: Result<(), ReporterError>,
}
