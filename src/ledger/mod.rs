//! The truth about what was bought. Reports are views of it.
//!
//! # What it promises
//!
//! An intent to submit is durable before the first byte of the request leaves, and a task id is durable before the
//! first look at the task. If the intent can't be written, nothing is sent. SQLite in WAL mode with
//! `synchronous=FULL` makes a commit survive the loss of power, not only of the process.
//!
//! # The crash argument
//!
//! One attempt passes these instants. Wherever the process, the machine or the disk dies, the next start finds the
//! attempt in the state of the last commit, and concludes:
//!
//! | it dies | the ledger says | the next start concludes |
//! |---|---|---|
//! | before the intent is committed | nothing | nothing was sent: the job is due |
//! | after the intent, before the request leaves | intended | **in doubt**: it can't be told from the next line |
//! | after the request leaves, before the answer is committed | intended | **in doubt**: it may have been charged |
//! | while the service asks to wait | void | nothing was bought: due again; the next request has its own intent |
//! | after a task id is committed | queued | the task is at the service: polled on |
//! | after a refusal is committed | rejected or void | no task exists: due again |
//! | after the final word arrived, before it is committed | queued or in progress | polled again, same answer |
//! | after the final word is committed | completed or failed | nothing is due |
//! | while a video is fetched | completed, without a file | the video is fetched, from where its part ends |
//! | while the ledger is first made | nothing, beside a hidden file | a new one is made: nothing was sent before it had its name |
//! | after a video got its name, before that is committed | completed, without a file | fetched again, found to be there, and written down |
//!
//! Only the runner that holds the batch's [`RunLock`] may draw the conclusion of lines two and three
//! ([`Ledger::conclude`]): the kernel drops the lock with the process, so an intent that is found under the lock has
//! nobody left who waits for its answer.
//!
//! A disk that is full is the same argument without a crash: an intent that can't be written is not sent, an id that
//! can't be written is told to the person, and submitting stops. [`store`] refuses a second open attempt of a job
//! also where the lock is of no use, as on some network file systems.
//!
//! # The rooms inside
//!
//! [`event`] is the life of an attempt as a pure state machine. [`schema`] makes and recognises the tables, [`mod@open`] the
//! file. [`store`] is the SQL of one batch, [`books`] that of sums over all of them, [`purchases`] that of who bought what.
//! [`writer`] groups commits on a thread of its own, so that a slow disk never stalls the stream. [`lock`] lets one runner
//! at a batch, and [`witness`] notices a ledger that went back in time. [`backup`](mod@backup) copies and verifies. [`crash`] holds the
//! places at which the tests kill. Everything outside speaks to the [`Ledger`]
//! trait in the words of the domain, because a second store for runners on several machines is to come.

mod backup;
mod books;
mod crash;
mod event;
mod lock;
mod open;
mod purchases;
mod schema;
mod store;
mod witness;
mod writer;

use std::future::Future;
use std::sync::Arc;

use jiff::Timestamp;

use crate::domain::{Account, AttemptId, BatchKey, Charging, Fingerprint, JobId, TaskId, TaskNames, Usd};

pub use backup::{CheckError, Contents, backup, check};
pub use books::{Spending, read_spending, used_since};
pub use event::{Event, IllegalEvent};
pub use lock::{LockError, RunLock};
#[cfg(test)]
use open::open;
pub use open::{OWN_FOLDER, OpenError};
pub use purchases::{
    BoughtElsewhere, OpenElsewhere, read_bought_under_other_names, read_known_tasks, read_open_elsewhere, read_owner,
};
pub use schema::Kind;
pub use store::read_history;
pub use writer::SqliteLedger;

/// What is about to be submitted.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The batch that it belongs to.
    pub batch: BatchKey,
    /// The job.
    pub job: JobId,
    /// What is asked for.
    pub fingerprint: Fingerprint,
    /// The exact body.
    pub request: String,
    /// The model.
    pub model: String,
    /// What it costs.
    pub price: Usd,
    /// When the family charges.
    pub charging: Charging,
    /// The family's typical generation time in seconds, shortest and longest.
    pub typical_s: (u32, u32),
    /// Whose task it will be.
    pub account: Account,
    /// The newest attempt that was known when the job was found to be due. A newer one of this job is another run's.
    pub known: Option<AttemptId>,
    /// Limits over all batches of the ledger, which the ledger itself keeps.
    pub caps: Vec<Cap>,
}

/// A limit on what all batches of a ledger may spend together since a moment.
///
/// The ledger checks it in the transaction that writes the intent, so that neither concurrency nor another run of
/// another batch can overshoot. What is unknown counts in full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cap {
    /// `budget.day` or `budget.month`.
    pub name: &'static str,
    /// When the day or the month began.
    pub since: Timestamp,
    /// The amount.
    pub limit: Usd,
}

/// Why something could not be written down.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store refused: a full disk, a read-only folder, a broken file.
    #[error("the ledger can't be written")]
    Store(#[source] Arc<rusqlite::Error>),
    /// The intent would pass a limit over all batches; nothing was written.
    #[error("{name} of ${limit} would be passed: ${used} is spent or at risk already")]
    OverCap {
        /// `budget.day` or `budget.month`.
        name: &'static str,
        /// The limit.
        limit: Usd,
        /// What is spent, or may be.
        used: Usd,
    },
    /// Another attempt of the job is open; nothing was written.
    #[error("{0} was submitted by another run meanwhile")]
    Claimed(JobId),
    /// Another attempt at the same service has this task; nothing was written.
    #[error("the service named the task {task}, which is that of {job} in {batch} already")]
    TaskTaken {
        /// The task.
        task: TaskId,
        /// Whose it is.
        job: String,
        /// The batch of that job.
        batch: BatchKey,
    },
    /// The event does not fit the attempt's state.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// Another write of the same commit failed so badly that the whole commit was undone.
    #[error("the ledger can't be written: the commit was rolled back")]
    RolledBack,
    /// The writer is gone.
    #[error("the ledger is closed")]
    Closed,
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// Where attempts are written down. Each call returns when what it wrote is durable.
pub trait Ledger: Sync {
    /// Writes the intent to submit.
    fn intend(&self, intent: Intent) -> impl Future<Output = Result<AttemptId, LedgerError>> + Send;

    /// Writes the task that the service made for an attempt. Gives the names that were written: a second one that is another
    /// task's is left out.
    fn accept(
        &self,
        attempt: AttemptId,
        task: TaskNames,
    ) -> impl Future<Output = Result<TaskNames, LedgerError>> + Send;

    /// Writes what happened to an attempt.
    fn record(&self, attempt: AttemptId, event: Event) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Puts every intent of the batch that has no answer in doubt, and says how many there were. Only for the holder
    /// of the batch's lock.
    fn conclude(&self, batch: &BatchKey) -> impl Future<Output = Result<usize, LedgerError>> + Send;

    /// Says that the tasks of a batch that can still be asked about belong to this account, after a key was changed.
    fn adopt(&self, batch: &BatchKey, account: &Account) -> impl Future<Output = Result<(), LedgerError>> + Send;
}

#[cfg(test)]
impl Intent {
    /// An intent of a job on alpha-2, for tests.
    fn of_job(job: &str) -> Self {
        Self {
            batch: BatchKey { name: "n".into(), batch: String::new() },
            job: JobId::new(job).expect("an id"),
            fingerprint: Fingerprint::stored("f".into()),
            request: "{}".into(),
            model: "alpha-2".into(),
            price: Usd::from_micros(900_000),
            charging: Charging::AtSubmission,
            typical_s: (60, 180),
            account: Account { service: "s".into(), key: "k".into() },
            known: None,
            caps: Vec::new(),
        }
    }
}
