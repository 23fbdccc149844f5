//! Errors of reading, locking, and writing, the same for every store.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::event::IllegalEvent;
use crate::domain::{BatchKey, Freeze, JobId, MovedOnto, TaskId, Usd};

/// The error of a store.
type StoreError = Arc<dyn Error + Send + Sync>;

/// A ledger that can't be used now. Nothing was written.
#[derive(Clone, Debug)]
pub struct Unavailable {
    what: StoreError,
    help: &'static str,
}

/// A failure with a cause.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Caused {
    what: String,
    source: Box<dyn Error + Send + Sync>,
}

impl Unavailable {
    /// An error, or a text, with its help: each store has its own.
    pub(super) fn new(what: impl Into<Box<dyn Error + Send + Sync>>, help: &'static str) -> Self {
        Self { what: what.into().into(), help }
    }

    /// A failure with its cause and its help.
    pub(super) fn caused_by(
        source: impl Into<Box<dyn Error + Send + Sync>>,
        what: impl Into<String>,
        help: &'static str,
    ) -> Self {
        Self::new(Caused { what: what.into(), source: source.into() }, help)
    }

    /// A thread that reads or writes the ledger can't be started, or panicked.
    pub(super) fn no_thread(source: std::io::Error) -> Self {
        let help = "too many processes or threads are running; try again with fewer";
        Self::caused_by(source, "can't start the ledger's thread", help)
    }

    /// The help.
    pub fn help(&self) -> &'static str {
        self.help
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)
    }
}

impl Error for Unavailable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.what.source()
    }
}

/// The reason why a batch can't be locked now.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Another runner holds it.
    #[error("batch `{batch}` is locked by another run{holder}")]
    Busy {
        /// The batch.
        batch: BatchKey,
        /// The other runner, if it is known.
        holder: String,
    },
    /// The ledger can't be used.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The reason why something could not be recorded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store refused: a full disk, a read-only directory, a broken file.
    #[error("can't write the ledger")]
    Store(#[source] StoreError),
    /// The intent would pass a limit over all batches; nothing was written.
    #[error("`{name}` allows ${limit}, but ${used} is already spent or at risk")]
    OverLimit {
        /// The limit's name in the manifest.
        name: Arc<str>,
        /// The limit.
        limit: Usd,
        /// The sum that is spent, or may be.
        used: Usd,
    },
    /// Another attempt of the job is open; nothing was written.
    #[error("another run has submitted `{0}`")]
    Claimed(JobId),
    /// The approval allows no further submission of it; nothing was written.
    #[error("the approval allows no further submission of `{0}`")]
    Approved(JobId),
    /// The same request was paid for elsewhere since the plan was made; nothing was written.
    #[error("the request of `{job}` was paid for in {other} since the plan was made")]
    PaidElsewhere {
        /// The job.
        job: JobId,
        /// The other batch.
        other: BatchKey,
    },
    /// Something was submitted under both ids of a move; nothing was written.
    #[error(transparent)]
    MovedOnto(#[from] MovedOnto),
    /// Another attempt at the same service has this task; nothing was written.
    #[error("the service returned task ID `{task}`, which belongs to `{job}` of `{batch}`")]
    TaskTaken {
        /// The task.
        task: TaskId,
        /// The job that owns it.
        job: String,
        /// The batch of that job.
        batch: BatchKey,
    },
    /// The event does not fit the attempt's state.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// The database was restored meanwhile, and lacks what was written.
    #[error("can't write the ledger: the database lost the commit")]
    RolledBack,
    /// There is no place at the service now, or it asked to wait, or something else has to be written first; nothing was written. It may be
    /// asked again after this long.
    #[error("submission deferred")]
    Deferred(Duration),
    /// Purchases are frozen; nothing was written.
    #[error(transparent)]
    Frozen(Freeze),
    /// This runner stalled, and another one may have its batch; nothing was written.
    #[error("this runner's lease expired; its purchases are in the ledger")]
    LeaseExpired,
    /// Another runner has the batch; nothing was written.
    #[error("the batch is locked by another run ({0})")]
    Locked(String),
    /// It is too early to record that it made no task; nothing was written.
    #[error("runner {runner}, which sent `{job}`, may still wait for the response")]
    SenderMayLive {
        /// The job.
        job: String,
        /// The runner.
        runner: String,
    },
    /// The ledger can't be used.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The writer is gone.
    #[error("the ledger is closed")]
    Closed,
}
