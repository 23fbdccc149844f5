//! A runner that shares a ledger, as others see it.

use std::time::Duration;

use jiff::Timestamp;

use super::{AttemptState, BatchKey};

/// A runner in a shared ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunnerSeen {
    /// Its machine and process.
    pub name: String,
    /// The start of its run.
    pub since: Timestamp,
    /// Time since its last heartbeat.
    pub silent_for: Duration,
    /// True if its lease expired.
    pub is_expired: bool,
    /// The batches that it runs.
    pub batches: Vec<BatchKey>,
    /// Its unfinished attempts by state.
    pub open: Vec<(AttemptState, u32)>,
}
