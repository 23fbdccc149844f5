//! Facts of a ledger that several runners share: its freeze, and its runners.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::codes::RefusalCode;
use super::{AttemptState, BatchKey};

/// A freeze: the ledger allows no purchase until the user unfreezes it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("purchases are frozen: {why}")]
pub struct Freeze {
    /// The reason.
    pub why: Arc<str>,
    /// True if a failover froze it, after which purchases may be missing; false if `shotlist limit set` did.
    pub by_failover: bool,
}

impl Freeze {
    /// The freeze that `shotlist limit set` makes.
    pub fn on_request(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into(), by_failover: false }
    }

    /// The code of a refusal because of it.
    pub fn code(&self) -> RefusalCode {
        if self.by_failover { RefusalCode::FrozenByFailover } else { RefusalCode::Frozen }
    }
}

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
