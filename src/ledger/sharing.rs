//! Data of a ledger that runners on several machines share.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::domain::{AttemptId, SendBy};

/// The state that a store shares with its locked batches.
#[derive(Debug, Default)]
pub(super) struct SharedState {
    /// Cancelled once the run is to end: a database that can't be reached is waited for only seconds.
    pub(super) hurry: CancellationToken,
    /// Cancelled once the lease of this runner has expired: another runner may have its batches.
    pub(super) expired: CancellationToken,
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
