//! Data that runners of a shared ledger exchange.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::domain::{Account, AttemptId, Digest, SendBy};

/// A plan that a runner begins to buy by, so that all runners of a batch buy by the same.
#[derive(Clone, Debug)]
pub struct Joining {
    /// The digest of all jobs of the manifest, each with its request and price.
    pub digest: Digest,
    /// The most tasks that this runner wants at the service.
    pub concurrency: i32,
    /// The account that it buys for.
    pub account: Account,
    /// True if the user says that every base URL and key in use belong to this account.
    pub is_same_account: bool,
}

/// The work of other runners in a batch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OtherRunners {
    /// The digest of the plan that live ones buy by.
    pub plan: Option<Digest>,
    /// The number of live runners.
    pub alive: u32,
    /// Tasks that they poll, and intents whose answer they wait for.
    pub assigned: u32,
    /// Tasks without a live runner: active ones, and completed ones whose video was never downloaded if that was asked.
    pub orphans: u32,
}

/// The state that a store shares with its locked batches.
#[derive(Debug, Default)]
pub(super) struct SharedState {
    /// Cancelled once the run is to end: a database that can't be reached is waited for only seconds.
    pub(super) hurry: CancellationToken,
    /// Jobs that other runners took of each batch, as far as this one has seen, each with their newest attempt.
    pub(super) taken: Mutex<HashMap<usize, HashMap<String, AttemptId>>>,
    /// Until when the submissions of new intents may leave.
    pub(super) send_by: Mutex<HashMap<AttemptId, SendBy>>,
}

/// The name of this machine, for people: `SHOTLIST_MACHINE`, or what the system calls it.
pub fn this_machine() -> String {
    let name = std::env::var("SHOTLIST_MACHINE").ok().filter(|name| !name.trim().is_empty());
    #[cfg(unix)]
    let name = name.or_else(|| Some(rustix::system::uname().nodename().to_string_lossy().into_owned()));
    #[cfg(not(unix))]
    let name = name.or_else(|| std::env::var("COMPUTERNAME").ok());
    name.unwrap_or_else(|| "unnamed".to_owned())
}
