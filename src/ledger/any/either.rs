//! A ledger of either store, for whoever is told at run time which one it is.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, Fingerprint, Freeze, History, JobId, Label, Move, RunnerSeen,
    SendBy, TaskId, TaskNames, UnfinishedRetake, Usd,
};
use crate::ledger::{
    BoughtElsewhere, Event, HeldBatch, HoldError, Intent, Joining, Ledger, LedgerError, LedgerLimit, OpenElsewhere,
    Others, PostgresBatch, PostgresLedger, Spending, SqliteBatch, SqliteLedger, Unavailable,
};

/// A ledger in a file of this machine, or in a database.
#[derive(Clone, Debug)]
pub enum AnyLedger {
    /// In a file.
    File(SqliteLedger),
    /// In a database.
    Server(PostgresLedger),
}

/// A batch of either.
#[derive(Debug)]
pub enum AnyBatch {
    /// Of a file.
    File(SqliteBatch),
    /// Of a database.
    Server(PostgresBatch),
}

/// Asks whichever it is.
macro_rules! either {
    ($self:ident, $it:ident => $asked:expr) => {
        match $self {
            Self::File($it) => $asked,
            Self::Server($it) => $asked,
        }
    };
}

impl fmt::Display for AnyLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        either!(self, it => it.fmt(f))
    }
}

impl Ledger for AnyLedger {
    type Held = AnyBatch;

    fn is_simulated(&self) -> bool {
        either!(self, it => it.is_simulated())
    }

    async fn hold(&self, batch: &BatchKey) -> Result<AnyBatch, HoldError> {
        match self {
            Self::File(it) => it.hold(batch).await.map(AnyBatch::File),
            Self::Server(it) => it.hold(batch).await.map(AnyBatch::Server),
        }
    }

    async fn history(&self, batch: &BatchKey) -> Result<History, Unavailable> {
        either!(self, it => it.history(batch).await)
    }

    async fn states(&self, batch: &BatchKey) -> Result<Vec<(JobId, AttemptState)>, Unavailable> {
        either!(self, it => it.states(batch).await)
    }

    async fn used_since(&self, since: Timestamp, label: Option<Label>) -> Result<Usd, Unavailable> {
        either!(self, it => it.used_since(since, label).await)
    }

    async fn spending(&self, since: Timestamp) -> Result<Vec<Spending>, Unavailable> {
        either!(self, it => it.spending(since).await)
    }

    async fn submitted_since(&self, since: Timestamp) -> Result<Vec<(BatchKey, Attempt)>, Unavailable> {
        either!(self, it => it.submitted_since(since).await)
    }

    async fn open_elsewhere(&self, batch: &BatchKey) -> Result<Vec<OpenElsewhere>, Unavailable> {
        either!(self, it => it.open_elsewhere(batch).await)
    }

    async fn bought_elsewhere(
        &self,
        batch: &BatchKey,
        requests: impl Fn() -> Vec<Fingerprint> + Send + Sync + 'static,
    ) -> Result<Vec<BoughtElsewhere>, Unavailable> {
        either!(self, it => it.bought_elsewhere(batch, requests).await)
    }

    async fn frozen(&self) -> Result<Option<Freeze>, Unavailable> {
        either!(self, it => it.frozen().await)
    }

    fn is_shared(&self) -> bool {
        either!(self, it => it.is_shared())
    }

    async fn now(&self) -> Result<Timestamp, Unavailable> {
        either!(self, it => it.now().await)
    }

    async fn owner_limits(&self) -> Result<Vec<LedgerLimit>, Unavailable> {
        either!(self, it => it.owner_limits().await)
    }

    async fn set_owner_limit(&self, limit: LedgerLimit, is_kept: bool) -> Result<(), Unavailable> {
        either!(self, it => it.set_owner_limit(limit, is_kept).await)
    }

    async fn runners(&self) -> Result<Vec<RunnerSeen>, Unavailable> {
        either!(self, it => it.runners().await)
    }

    async fn owner(&self, task: &TaskId) -> Result<Option<(JobId, BatchKey)>, Unavailable> {
        either!(self, it => it.owner(task).await)
    }
}

impl HeldBatch for AnyBatch {
    fn concluded(&self) -> usize {
        either!(self, it => it.concluded())
    }

    async fn intend(&self, intent: Intent) -> Result<AttemptId, LedgerError> {
        either!(self, it => it.intend(intent).await)
    }

    async fn accept(&self, attempt: AttemptId, task: TaskNames) -> Result<TaskNames, LedgerError> {
        either!(self, it => it.accept(attempt, task).await)
    }

    async fn record(&self, attempt: AttemptId, event: Event) -> Result<(), LedgerError> {
        either!(self, it => it.record(attempt, event).await)
    }

    async fn note_unsent(&self, job: &JobId, reason: &str) -> Result<(), LedgerError> {
        either!(self, it => it.note_unsent(job, reason).await)
    }

    async fn move_jobs(&self, moves: &[Move]) -> Result<(), LedgerError> {
        either!(self, it => it.move_jobs(moves).await)
    }

    async fn picture_address(
        &self,
        sha256: &str,
        command: &str,
        since: Timestamp,
    ) -> Result<Option<String>, LedgerError> {
        either!(self, it => it.picture_address(sha256, command, since).await)
    }

    async fn keep_picture_address(&self, sha256: &str, command: &str, url: &str) -> Result<(), LedgerError> {
        either!(self, it => it.keep_picture_address(sha256, command, url).await)
    }

    async fn keep_retake(&self, retake: Option<UnfinishedRetake>) -> Result<(), LedgerError> {
        either!(self, it => it.keep_retake(retake).await)
    }

    async fn adopt(&self, account: &Account) -> Result<(), LedgerError> {
        either!(self, it => it.adopt(account).await)
    }

    async fn join(&self, joining: Joining) -> Result<(), LedgerError> {
        either!(self, it => it.join(joining).await)
    }

    async fn take_over(&self, attempts: Vec<AttemptId>) -> Result<HashSet<AttemptId>, LedgerError> {
        either!(self, it => it.take_over(attempts).await)
    }

    async fn others(&self, videos: bool) -> Result<Others, LedgerError> {
        either!(self, it => it.others(videos).await)
    }

    async fn pause(&self, account: &Account, wait: Duration) -> Result<(), LedgerError> {
        either!(self, it => it.pause(account, wait).await)
    }

    fn is_shared(&self) -> bool {
        either!(self, it => it.is_shared())
    }

    fn keeps_order(&self) -> bool {
        either!(self, it => it.keeps_order())
    }

    fn starting_place(&self, due: usize) -> usize {
        either!(self, it => it.starting_place(due))
    }

    fn is_taken(&self, job: &JobId, known: Option<AttemptId>) -> bool {
        either!(self, it => it.is_taken(job, known))
    }

    fn sharing(&self) -> u32 {
        either!(self, it => it.sharing())
    }

    fn send_by(&self, attempt: AttemptId) -> Option<SendBy> {
        either!(self, it => it.send_by(attempt))
    }

    fn hurry(&self) {
        either!(self, it => it.hurry());
    }

    fn look_again(&self) -> Duration {
        either!(self, it => it.look_again())
    }
}
