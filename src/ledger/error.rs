//! Errors of reading, locking, and writing, the same for every store.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
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

/// An error with a cause.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Caused {
    what: String,
    source: Box<dyn Error + Send + Sync>,
}

impl Unavailable {
    /// An error or a text of a store, with its help.
    pub(super) fn new(what: impl Into<Box<dyn Error + Send + Sync>>, help: &'static str) -> Self {
        Self { what: what.into().into(), help }
    }

    /// An error with its cause and help.
    pub(super) fn caused_by(
        source: impl Into<Box<dyn Error + Send + Sync>>,
        what: impl Into<String>,
        help: &'static str,
    ) -> Self {
        Self::new(Caused { what: what.into(), source: source.into() }, help)
    }

    /// A thread for the ledger can't start, or panicked.
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
        /// The sum that is spent or at risk.
        used: Usd,
    },
    /// Another attempt of the job is open; nothing was written.
    #[error("another run has submitted `{0}`")]
    Claimed(JobId),
    /// The approval allows no further submission of it; nothing was written.
    #[error("the approval allows no further submission of `{0}`")]
    Approved(JobId),
    /// Another batch paid for the same request since the plan; nothing was written.
    #[error("the request of `{job}` was paid for in {other} since the plan was made")]
    PaidElsewhere {
        /// The job.
        job: JobId,
        /// The other batch.
        other: BatchKey,
    },
    /// Both IDs of a move have submissions; nothing was written.
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
    /// The database was restored meanwhile, and lacks the write.
    #[error("can't write the ledger: the database lost the commit")]
    RolledBack,
    /// No slot is free, the service asked to wait, or a task ID must be written first; nothing was written. Another try is due after this time.
    #[error("submission deferred")]
    Deferred(Duration),
    /// Purchases are frozen; nothing was written.
    #[error(transparent)]
    Frozen(Freeze),
    /// This runner stalled, and another one may lock its batch; nothing was written.
    #[error("this runner's lease expired; its purchases are in the ledger")]
    LeaseExpired,
    /// Another runner has the batch; nothing was written.
    #[error("the batch is locked by another run ({0})")]
    Locked(String),
    /// The sender may still get a response, so it can't be declared never created; nothing was written.
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
    /// The target ledger is not empty.
    #[error("ledger `{0}` must be empty")]
    NotEmpty(String),
    /// The response to the commit of the copy was lost: the copy may be complete.
    #[error("lost the response to the last write of the copy, which may be whole")]
    Unknown(#[source] Unavailable),
    /// The source could not be read to its end.
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
