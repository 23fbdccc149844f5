//! One submission: reserve, write the intent, send, write the answer.
//!
//! The order is the promise. Nothing is sent before the intent is durable, and a task id is written before anybody looks
//! at the task. Only an answer that certainly bought nothing is followed by another request. Each request has an intent
//! of its own, and none is open while the submission waits: a process that dies while the service is busy leaves no
//! doubt behind. Before each request the run is asked once more whether it is to stop.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::budget::Budget;
use super::event::RunEvent;
use super::pace::Pace;
use super::stop::{Stop, StopReason};
use crate::domain::{Account, AttemptId, BatchKey, Job, TaskId};
use crate::ledger::{Cap, Event, Intent, Ledger, LedgerError};
use crate::service::{Submission, VideoService};

/// How often a submission is tried of which not a byte was sent, before the service counts as out of reach.
const CONNECT_TRIES: usize = 5;
/// The pause after the first such try; it doubles, and at random up to as much again is added.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// The most that a wait is stretched to where the service itself asks for less.
const LONGEST_LEAST_WAIT: Duration = Duration::from_secs(30);
/// How often a task id is tried to be written, and the pause between two tries.
const WRITE_TRIES: usize = 3;
const WRITE_PAUSE: Duration = Duration::from_millis(500);
/// The pause where the service asked to wait and gave no time.
const UNSAID_WAIT: Duration = Duration::from_secs(5);

/// Everything that a submission needs.
pub struct Submitter<'e, S, L> {
    /// The service.
    pub service: &'e S,
    /// Whose tasks they will be.
    pub account: &'e Account,
    /// Limits over all batches, which the ledger keeps.
    pub caps: &'e [Cap],
    /// The ledger.
    pub ledger: &'e L,
    /// The batch.
    pub batch: &'e BatchKey,
    /// What may be spent.
    pub budget: &'e Budget,
    /// The shared wait.
    pub pace: &'e Pace,
    /// How long one submission may be asked to wait altogether.
    pub patience: Duration,
    /// Reasons to submit no more.
    pub stop: &'e Stop,
    /// Where events go.
    pub tell: &'e (dyn Fn(RunEvent) + Sync),
}

/// What came of a submission in the end.
enum Submitted {
    /// There is a task.
    Task(AttemptId, TaskId),
    /// Certainly nothing was bought.
    Nothing,
    /// Perhaps something was bought.
    Doubt,
}

impl<S: VideoService, L: Ledger> Submitter<'_, S, L> {
    /// Submits a job at most once; the attempt and its task if there is one now. `known` is the newest attempt that the
    /// plan knew of.
    pub async fn submit(&self, job: &Job, known: Option<AttemptId>) -> Option<(AttemptId, TaskId)> {
        if !self.budget.reserve(job.price) {
            self.stop_because(StopReason::SpendLimit, format!("{} would pass the limit on spending", job.id));
            return None;
        }
        self.submit_reserved(job, known).await
    }

    /// Submits a job whose task failed once more; nothing if the run stops or there is no money left for retries.
    pub async fn submit_again(&self, job: &Job, failed: AttemptId) -> Option<(AttemptId, TaskId)> {
        if self.stop.is_stopping() || !self.budget.reserve_retry(job.price) {
            return None;
        }
        (self.tell)(RunEvent::Retrying { job: job.id.clone(), price: job.price });
        self.submit_reserved(job, Some(failed)).await
    }

    /// Tries until there is an answer that is more than "wait" or "no connection", or until the run stops.
    async fn submit_reserved(&self, job: &Job, known: Option<AttemptId>) -> Option<(AttemptId, TaskId)> {
        let submitted = self.try_until_answered(job, known).await;
        if matches!(submitted, Submitted::Nothing) {
            self.budget.release(job.price);
        }
        match submitted {
            Submitted::Task(attempt, task) => Some((attempt, task)),
            Submitted::Nothing | Submitted::Doubt => None,
        }
    }

    async fn try_until_answered(&self, job: &Job, known: Option<AttemptId>) -> Submitted {
        let (mut pauses, started) = (pauses(), Instant::now());
        let mut least_wait = FIRST_PAUSE;
        loop {
            if !self.may_send(self.patience.saturating_sub(started.elapsed())).await {
                return Submitted::Nothing;
            }
            let attempt = match self.ledger.intend(self.intent(job, known)).await {
                Ok(attempt) => attempt,
                Err(error) => {
                    self.not_intended(&error);
                    return Submitted::Nothing;
                }
            };
            // Writing took its time, and a signal may have come meanwhile.
            if self.stop.is_stopping() {
                self.write(attempt, Event::Withdrawn).await;
                return Submitted::Nothing;
            }
            let pause = match self.service.submit(&job.request).await {
                Submission::NotSent(message) => {
                    self.write(attempt, Event::Withdrawn).await;
                    let Some(pause) = pauses.next() else {
                        self.stop_because(StopReason::Unreachable, message);
                        return Submitted::Nothing;
                    };
                    (self.tell)(RunEvent::Trouble { message });
                    pause
                }
                Submission::Wait(wait, message) => {
                    self.write(attempt, Event::Withdrawn).await;
                    // A service that says "in no time" again and again is asked less and less often all the same.
                    let wait = wait.unwrap_or(UNSAID_WAIT).max(least_wait);
                    least_wait = (least_wait * 2).min(LONGEST_LEAST_WAIT);
                    if started.elapsed() + wait > self.patience {
                        self.stop_because(StopReason::Unreachable, format!("{message}, longer than the deadline"));
                        return Submitted::Nothing;
                    }
                    self.pace.pause(wait);
                    (self.tell)(RunEvent::Waiting { wait, message });
                    Duration::ZERO
                }
                answer => return self.write_answer(job, attempt, answer).await,
            };
            self.unless_stopping(tokio::time::sleep(pause)).await;
        }
    }

    /// Waits until the service may be asked, also where it was a look that it asked to wait; false if the run stops, or
    /// if that takes longer than there is patience.
    async fn may_send(&self, patience: Duration) -> bool {
        let ready = async {
            if tokio::time::timeout(patience, self.pace.ready()).await.is_err() {
                let message = "the service asked to wait longer than the deadline".to_owned();
                self.stop_because(StopReason::Unreachable, message);
            }
        };
        self.unless_stopping(ready).await;
        !self.stop.is_stopping()
    }

    async fn unless_stopping(&self, wait: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = self.stop.stopping() => {}
            () = wait => {}
        }
    }

    fn not_intended(&self, error: &LedgerError) {
        match error {
            // Another run is at this job; what it does is in the ledger.
            LedgerError::Claimed(_) => (self.tell)(RunEvent::Trouble { message: error.to_string() }),
            LedgerError::OverCap { .. } => self.stop_because(StopReason::SpendLimit, error.to_string()),
            error => self.ledger_failed(error),
        }
    }

    fn intent(&self, job: &Job, known: Option<AttemptId>) -> Intent {
        Intent {
            batch: self.batch.clone(),
            job: job.id.clone(),
            fingerprint: job.request.fingerprint().clone(),
            request: job.request.body().to_owned(),
            model: job.spec.model.clone(),
            price: job.price,
            charging: job.charging,
            typical_s: job.typical_s,
            account: self.account.clone(),
            known,
            caps: self.caps.to_vec(),
        }
    }

    async fn write_answer(&self, job: &Job, attempt: AttemptId, answer: Submission) -> Submitted {
        let id = job.id.clone();
        match answer {
            Submission::Accepted(task, _) => {
                if let Err(error) = self.write_task(job, attempt, &task).await {
                    self.ledger_failed(&error);
                    return Submitted::Doubt;
                }
                (self.tell)(RunEvent::Submitted { job: id, task: task.clone(), price: job.price });
                Submitted::Task(attempt, task)
            }
            Submission::KeyRefused(error) => {
                self.stop_because(StopReason::KeyRefused, error.message);
                self.write(attempt, Event::Withdrawn).await;
                Submitted::Nothing
            }
            Submission::Rejected(error) => {
                let message = error.message.clone();
                self.write(attempt, Event::Refused(error)).await;
                (self.tell)(RunEvent::Rejected { job: id, message });
                Submitted::Nothing
            }
            Submission::Unknown(error) => {
                let message = error.message.clone();
                self.write(attempt, Event::Doubted(error)).await;
                (self.tell)(RunEvent::InDoubt { job: id, message, price: job.price });
                Submitted::Doubt
            }
            // Answered where they are met: no request follows them under this intent.
            Submission::NotSent(_) | Submission::Wait(..) => Submitted::Nothing,
        }
    }

    /// Writes a task id. If that fails it is told at once, before anything else can happen, and tried again for a while.
    async fn write_task(&self, job: &Job, attempt: AttemptId, task: &TaskId) -> Result<(), LedgerError> {
        let mut written = self.ledger.record(attempt, Event::Accepted(task.clone())).await;
        if written.is_err() {
            (self.tell)(RunEvent::Rescue { job: job.id.clone(), task: task.clone() });
        }
        for _ in 1..WRITE_TRIES {
            if written.is_ok() {
                break;
            }
            tokio::time::sleep(WRITE_PAUSE).await;
            written = self.ledger.record(attempt, Event::Accepted(task.clone())).await;
        }
        written
    }

    /// An answer that can't be written leaves the intent behind, which the next start puts in doubt: never too little.
    async fn write(&self, attempt: AttemptId, event: Event) {
        if let Err(error) = self.ledger.record(attempt, event).await {
            self.ledger_failed(&error);
        }
    }

    fn ledger_failed(&self, error: &LedgerError) {
        ledger_failed(self.stop, self.tell, error);
    }

    fn stop_because(&self, reason: StopReason, message: String) {
        if self.stop.because(reason) {
            (self.tell)(RunEvent::Stopping { reason, message });
        }
    }
}

/// Stops submitting because the ledger can't be written, and says so once.
pub fn ledger_failed(stop: &Stop, tell: &(dyn Fn(RunEvent) + Sync), error: &LedgerError) {
    if stop.because(StopReason::LedgerFailed) {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        tell(RunEvent::Stopping { reason: StopReason::LedgerFailed, message: format!("{error}{cause}") });
    }
}

fn pauses() -> impl Iterator<Item = Duration> {
    use backon::BackoffBuilder as _;
    backon::ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_max_times(CONNECT_TRIES - 1)
        .with_jitter()
        .build()
}
