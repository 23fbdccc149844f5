//! Errors of reading, locking, and writing, the same for every store.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::record::IllegalEvent;
use crate::domain::{
    BatchKey, Freeze, JobId, MovedOnto, RUN_AGAIN, SHOW_PLAN, TaskId, Usd, WRITABLE, displayed, explained,
};

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
        let help = "too many processes or threads run on this machine: close some programs, and try again";
        Self::caused_by(source, "can't start the ledger's thread", help)
    }
}

explained!(Unavailable(it) => LedgerUnavailable, it.help);

displayed!(Unavailable(it): it.what);

impl Error for Unavailable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.what.source()
    }
}

/// The help for a batch that another run has.
const WAIT: &str =
    "wait for the other run, `run` with `--lock-wait 5m`; on PostgreSQL, the lease of a killed run ends after 60 s";
/// The help for a submission whose runner may still receive the response.
pub(crate) const RUNNER_MAY_LIVE: &str =
    "wait until that run has ended, or until `shotlist status` has shown it as expired for 3 min";
/// The help for a damaged ledger.
pub(super) const BRING_BACK: &str =
    "restore a copy that `shotlist ledger check` finds whole; without its ledger, shotlist can't know what is paid for";

explained! {
    /// The reason why a batch can't be locked now.
    #[expect(missing_docs, reason = "fields are named after what they hold")]
    pub enum HoldError from {
        /// The ledger can't be used.
        Unavailable(Unavailable),
    } or {
        /// Another runner holds it.
        #[error("batch `{batch}` is locked by another run{holder}")]
        Busy { batch: BatchKey, holder: String } => BatchLocked, WAIT;
    }
}

explained! {
    /// The reason why something could not be recorded.
    #[derive(Clone)]
    #[expect(missing_docs, reason = "fields are named after what they hold")]
    pub enum LedgerError from {
        /// The ledger can't be used.
        Unavailable(Unavailable),
        /// Both IDs of a move have submissions; nothing was written.
        MovedOnto(MovedOnto),
        /// Purchases are frozen; nothing was written.
        Frozen(Freeze),
        /// The event does not fit the attempt's state.
        Illegal(IllegalEvent),
    } or {
        /// The store refused: a full disk, a read-only directory, a broken file.
        #[error("can't write the ledger")]
        Store(#[source] StoreError) => NotWritable, WRITABLE;
        /// The intent would pass a limit over all batches; nothing was written.
        #[error("`{name}` allows {limit:#}, but {used:#} is already spent or at risk")]
        OverLimit { name: Arc<str>, limit: Usd, used: Usd } => OverLimit, "raise the limit, or choose fewer jobs";
        /// Another attempt of the job is open; nothing was written.
        #[error("another run has submitted `{0}`")]
        Claimed(JobId) => LedgerRefuses, SHOW_PLAN;
        /// The approval allows no further submission of it; nothing was written.
        #[error("the approval allows no further submission of `{0}`")]
        Approved(JobId) => LedgerRefuses, SHOW_PLAN;
        /// Another batch paid for the same request since the plan; nothing was written.
        #[error("the request of `{job}` was paid for in {other} since the plan was made")]
        PaidElsewhere { job: JobId, other: BatchKey } => AlreadyPaid, SHOW_PLAN;
        /// Another attempt at the same service has this task; nothing was written.
        #[error("task `{task}` belongs to `{job}` of `{batch}`")]
        TaskTaken { task: TaskId, job: String, batch: BatchKey } => TaskTaken, "check the task ID";
        /// The database was restored meanwhile, and lacks the write.
        #[error("can't write the ledger: the database lost the commit")]
        RolledBack => NotWritable, Freeze::LOOK_FIRST;
        /// Another try is due after this time: no slot is free, the service asked to wait, or a task ID must be written first; nothing was written.
        #[error("submission deferred")]
        Deferred(Duration) => LedgerRefuses, RUN_AGAIN;
        /// Other runners of the account have its slots; nothing was written. Another try is due after this time.
        #[error("other runners have the slots of this account, which `shotlist limit set --slots` sets")]
        SlotsTaken(Duration) => LedgerRefuses, RUN_AGAIN;
        /// This runner stalled, and another one may lock its batch; nothing was written.
        #[error("this runner's lease expired; its purchases are in the ledger")]
        LeaseExpired => LedgerRefuses, RUN_AGAIN;
        /// Another runner has the batch; nothing was written.
        #[error("the batch is locked by another run ({0})")]
        Locked(String) => BatchLocked, WAIT;
        /// The sender may still get a response, so it can't be declared never created; nothing was written.
        #[error("runner {runner}, which sent `{job}`, may still wait for the response")]
        SenderMayLive { job: String, runner: String } => RunnerMayLive, RUNNER_MAY_LIVE;
        /// The writer is gone.
        #[error("the ledger is closed")]
        Closed => NotWritable, RUN_AGAIN;
    }
}

explained! {
    /// The reason why a ledger can't be verified or copied. Nothing was written.
    #[expect(missing_docs, reason = "fields are named after what they hold")]
    pub enum CopyError from {
        /// A ledger can't be used.
        Unavailable(Unavailable),
    } or {
        /// A run uses the ledger to copy.
        #[error("a run uses the ledger to copy: {0}")]
        Busy(String) => BatchLocked, "wait for that run to end; the copy would lack its purchases";
        /// The ledger to read is damaged.
        #[error("ledger `{ledger}` is damaged: {what}")]
        Damaged { ledger: String, what: String } => LedgerDamaged, BRING_BACK;
        /// There is no ledger to read.
        #[error("found no ledger at `{0}`")]
        Missing(String) => LedgerMissing, "name the ledger with `--ledger`; it is in `.shotlist` beside the manifest";
        /// The target ledger is not empty.
        #[error("ledger `{0}` must be empty")]
        NotEmpty(String) => LedgerNotEmpty, "name a new file, or a database without a ledger";
        /// The response to the commit of the copy was lost: the copy may be complete.
        #[error("lost the response to the last write of the copy, which may be whole")]
        Unknown(#[source] Unavailable) => LedgerUnavailable,
            "look at the copy with `shotlist spend`; purchases stay frozen here until you choose one of the two";
        /// The source could not be read to its end.
        #[error("the copy is not whole")]
        CutOff => LedgerUnavailable, "run the command again";
        /// The copy can't be written.
        #[error("can't write the copy `{}`", path.display())]
        NotWritable { path: PathBuf, source: std::io::Error } => NotWritable,
            "name a new file in a writable directory, on a disk with space";
    }
}

impl From<HoldError> for CopyError {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Unavailable(error) => Self::Unavailable(error),
            busy @ HoldError::Busy { .. } => Self::Busy(busy.to_string()),
        }
    }
}

/// The reason why a URL can't be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressError {
    /// No text, for example of a variable that is not set.
    #[error("the ledger must be a path or a URL, found an empty string")]
    Empty,
    /// A URL of another kind, or a misspelled one.
    #[error("the ledger must be a path or a PostgreSQL URL")]
    OtherUrl,
    /// Not the URL of a database.
    #[error("the ledger must be a PostgreSQL URL: {0}")]
    NotOne(String),
    /// Other users can read the password file. PostgreSQL's own tools refuse it, too.
    #[error("other users can read password file `{}`", .0.display())]
    OpenPasswordFile(PathBuf),
}

impl AddressError {
    /// The advice for the user.
    pub fn help(&self) -> String {
        match self {
            Self::OtherUrl => {
                "write `postgres://USER@HOST:PORT/DATABASE`, or `./NAME` for a file of that name".to_owned()
            }
            Self::Empty => "name a ledger, or leave out `--ledger`".to_owned(),
            Self::NotOne(_) => "write `postgres://USER@HOST:PORT/DATABASE`".to_owned(),
            Self::OpenPasswordFile(path) => format!("run `chmod 600 {}`", path.display()),
        }
    }
}
