//! The one door: what a ledger is asked, and what only the holder of a batch may write.

use std::collections::HashSet;
use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;

use super::{
    BoughtElsewhere, Event, HoldError, Intent, Joining, LedgerError, LedgerLimit, OpenElsewhere, Others, Spending,
    Unavailable,
};
use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, Fingerprint, Freeze, History, JobId, Label, Move, RunnerSeen,
    SendBy, TaskId, TaskNames, UnfinishedRetake, Usd,
};

/// The books of many batches. What is read here needs no lock, changes nothing, and is what was durable a moment ago.
/// Where there is no ledger yet, it is empty.
///
/// Displayed, it is where the ledger is, for a person.
pub trait Ledger: Clone + Display + Send + Sync + 'static {
    /// A batch of it that is held.
    type Held: HeldBatch;

    /// Whether the simulator's tasks are in it, which were never bought.
    fn is_simulated(&self) -> bool;

    /// Takes a batch for one runner, and makes the ledger if there is none. Never waits for another runner.
    ///
    /// An intent of the batch that has no answer is put in doubt: its runner is gone, and nobody waits for the answer.
    fn hold(&self, batch: &BatchKey) -> impl Future<Output = Result<Self::Held, HoldError>> + Send;

    /// Everything that is known of a batch.
    fn history(&self, batch: &BatchKey) -> impl Future<Output = Result<History, Unavailable>> + Send;

    /// The job and the state of each attempt of a batch, oldest first: all that a shell needs, and much faster than the rest.
    fn states(&self, batch: &BatchKey) -> impl Future<Output = Result<Vec<(JobId, AttemptState)>, Unavailable>> + Send;

    /// What all batches spent since a moment, or may have spent: for everything, or for what has a label.
    fn used_since(
        &self,
        since: Timestamp,
        label: Option<Label>,
    ) -> impl Future<Output = Result<Usd, Unavailable>> + Send;

    /// What every batch bought since a moment, oldest first, summed up by quarters of an hour.
    fn spending(&self, since: Timestamp) -> impl Future<Output = Result<Vec<Spending>, Unavailable>> + Send;

    /// Everything that was submitted since a moment in any batch, oldest first.
    fn submitted_since(
        &self,
        since: Timestamp,
    ) -> impl Future<Output = Result<Vec<(BatchKey, Attempt)>, Unavailable>> + Send;

    /// What is open in other batches of the same name: first those with tasks at the service, and of each kind the newest first.
    fn open_elsewhere(&self, batch: &BatchKey) -> impl Future<Output = Result<Vec<OpenElsewhere>, Unavailable>> + Send;

    /// Attempts for one of these normalized requests in batches that this batch [may repeat](BatchKey::may_repeat), unless they cost nothing.
    /// Calls `requests` only if there is such a batch: to normalize many requests takes time.
    fn bought_elsewhere(
        &self,
        batch: &BatchKey,
        requests: impl Fn() -> Vec<Fingerprint> + Send + Sync + 'static,
    ) -> impl Future<Output = Result<Vec<BoughtElsewhere>, Unavailable>> + Send;

    /// The freeze, if purchases are frozen.
    fn frozen(&self) -> impl Future<Output = Result<Option<Freeze>, Unavailable>> + Send;

    /// Whether several runners may be at a batch at once.
    fn is_shared(&self) -> bool {
        false
    }

    /// The moment that it is by the ledger's own clock: the day and the month that limits are about are the same for everybody.
    fn now(&self) -> impl Future<Output = Result<Timestamp, Unavailable>> + Send {
        std::future::ready(Ok(Timestamp::now()))
    }

    /// The owner's limits.
    fn owner_limits(&self) -> impl Future<Output = Result<Vec<LedgerLimit>, Unavailable>> + Send;

    /// Sets one of the owner's limits in the place of an earlier one, or takes it away. Makes the ledger if there is none.
    fn set_owner_limit(
        &self,
        limit: LedgerLimit,
        is_kept: bool,
    ) -> impl Future<Output = Result<(), Unavailable>> + Send;

    /// The runners that live, and those that were declared dead lately, where the ledger knows them.
    fn runners(&self) -> impl Future<Output = Result<Vec<RunnerSeen>, Unavailable>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Whose task this is: the job and its batch.
    fn owner(&self, task: &TaskId) -> impl Future<Output = Result<Option<(JobId, BatchKey)>, Unavailable>> + Send;
}

/// The right to buy: a batch that one runner holds, for as long as this value lives. Each call returns when what it wrote
/// is durable.
///
/// Dropped, it gives the batch back, and leaves in the ledger what a kill at that moment would leave.
pub trait HeldBatch: Sync {
    /// How many intents without an answer an earlier runner left, which are in doubt since this one holds the batch.
    fn concluded(&self) -> usize;

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

    /// Writes why a job was not sent although it was its turn. An intent for it makes that void.
    fn note_unsent(&self, job: &JobId, reason: &str) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Gives what was bought under the old ids to the new ones, in the order of the list. Where something was submitted under a new
    /// one itself, nothing is written. What was bought under no old id is left as it is, so that the list may be given again.
    fn move_jobs(&self, moves: &[Move]) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Remembers a retake that has begun, or forgets it because its run has ended.
    fn keep_retake(&self, retake: Option<UnfinishedRetake>) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// The address that this command gave a picture since a moment, by the SHA-256 of the picture.
    fn picture_address(
        &self,
        sha256: &str,
        command: &str,
        since: Timestamp,
    ) -> impl Future<Output = Result<Option<String>, LedgerError>> + Send;

    /// Keeps the address that this command gave a picture.
    fn keep_picture_address(
        &self,
        sha256: &str,
        command: &str,
        url: &str,
    ) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Says that the batch's tasks that can still be asked about belong to this account, after a key was changed.
    fn adopt(&self, account: &Account) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Begins to buy by a plan. Refused where other runners of the batch buy by another.
    fn join(&self, _joining: Joining) -> impl Future<Output = Result<(), LedgerError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Claims these active tasks, and completed ones whose video was never downloaded; returns those without another live runner.
    fn take_over(
        &self,
        attempts: Vec<AttemptId>,
    ) -> impl Future<Output = Result<HashSet<AttemptId>, LedgerError>> + Send {
        std::future::ready(Ok(attempts.into_iter().collect()))
    }

    /// The tasks of the batch that other runners have; with `videos`, also videos that no live runner downloads.
    fn others(&self, _videos: bool) -> impl Future<Output = Result<Others, LedgerError>> + Send {
        std::future::ready(Ok(Others::default()))
    }

    /// Lets no runner submit for an account for a while: its service asked for that.
    fn pause(&self, _account: &Account, _wait: Duration) -> impl Future<Output = Result<(), LedgerError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Whether other runners may be at the batch, too.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether what is told first is written first: of a task that was told before an intent, something is durable before it, or with it.
    /// [`accept`](Self::accept) tells it when it is polled for the first time. As long as nothing of a task can be written, every intent is
    /// for [`later`](LedgerError::Later).
    fn keeps_order(&self) -> bool {
        false
    }

    /// Where in a list of so many due jobs to begin: runners that all began with the first would get in one another's way.
    fn starting_place(&self, _due: usize) -> usize {
        0
    }

    /// Whether another runner of the batch is known to have taken a job since an attempt: the newest one that the plan knew of. Knows it late,
    /// and never too early. It may have been let go again since: who plans anew knows that.
    fn is_taken(&self, _job: &JobId, _known: Option<AttemptId>) -> bool {
        false
    }

    /// How many runners share the pace of the account, this one included, as far as it is known.
    fn sharing(&self) -> u32 {
        1
    }

    /// The moment until which the submission of a new intent may leave, if others take over from a runner that stands still. Asked once for an
    /// attempt.
    fn send_by(&self, _attempt: AttemptId) -> Option<SendBy> {
        None
    }

    /// From now on, a write waits only seconds for a ledger that can't be reached: the run is to end.
    fn hurry(&self) {}

    /// After how long it is worth looking again what the others have done.
    fn look_again(&self) -> Duration {
        Duration::from_millis(500)
    }
}
