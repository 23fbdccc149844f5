//! One submission: reserve, write the intent, send, write the answer.
//!
//! The order is the promise. Nothing is sent before the intent is durable, and a task id is written before anybody looks
//! at the task. Only an answer that certainly bought nothing is followed by another request, and that under the same
//! intent: if the process dies between the two, the next start finds the intent and puts it in doubt.

use std::time::Duration;

use super::budget::Budget;
use super::event::RunEvent;
use super::pace::Pace;
use super::stop::{Stop, StopReason};
use crate::domain::{AttemptId, BatchKey, Job, TaskId};
use crate::ledger::{Event, Intent, Ledger, LedgerError};
use crate::service::{Submission, VideoService};

/// How often a submission is tried of which not a byte was sent, before the service counts as out of reach.
const CONNECT_TRIES: usize = 5;
/// The pause after the first such try; it doubles, with full jitter.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// The pause where the service asked to wait and gave no time.
const UNSAID_WAIT: Duration = Duration::from_secs(5);

/// Everything that a submission needs.
pub struct Submitter<'e, S, L> {
    /// The service.
    pub service: &'e S,
    /// Its address, for the ledger.
    pub address: &'e str,
    /// The ledger.
    pub ledger: &'e L,
    /// The batch.
    pub batch: &'e BatchKey,
    /// What may be spent.
    pub budget: &'e Budget,
    /// The shared wait.
    pub pace: &'e Pace,
    /// Reasons to submit no more.
    pub stop: &'e Stop,
    /// Where events go.
    pub tell: &'e (dyn Fn(RunEvent) + Sync),
}

impl<S: VideoService, L: Ledger> Submitter<'_, S, L> {
    /// Submits a job at most once; the attempt and its task if there is one now.
    pub async fn submit(&self, job: &Job) -> Option<(AttemptId, TaskId)> {
        if !self.budget.reserve(job.price) {
            self.stop_because(StopReason::SpendLimit, format!("{} would pass the limit on spending", job.id));
            return None;
        }
        let attempt = match self.ledger.intend(self.intent(job)).await {
            Ok(attempt) => attempt,
            Err(error) => {
                self.budget.release(job.price);
                self.ledger_failed(&error);
                return None;
            }
        };
        let submission = self.send(job).await;
        self.write_answer(job, attempt, submission).await
    }

    fn intent(&self, job: &Job) -> Intent {
        Intent {
            batch: self.batch.clone(),
            job: job.id.clone(),
            fingerprint: job.request.fingerprint().clone(),
            request: job.request.body().to_owned(),
            model: job.spec.model.clone(),
            price: job.price,
            charging: job.charging,
            typical_s: job.typical_s,
            service: self.address.to_owned(),
        }
    }

    /// Sends until there is an answer that is more than "wait" or "no connection", or until the run stops.
    async fn send(&self, job: &Job) -> Submission {
        let mut pauses = pauses();
        loop {
            self.pace.ready().await;
            let submission = self.service.submit(&job.request).await;
            match &submission {
                Submission::NotSent(message) => {
                    let Some(pause) = pauses.next() else { return submission };
                    (self.tell)(RunEvent::Trouble { message: message.clone() });
                    if !self.sleep(pause).await {
                        return submission;
                    }
                }
                Submission::Wait(wait, message) => {
                    let wait = wait.unwrap_or(UNSAID_WAIT);
                    self.pace.pause(wait);
                    (self.tell)(RunEvent::Waiting { wait, message: message.clone() });
                    if !self.sleep(wait).await {
                        return submission;
                    }
                }
                _ => return submission,
            }
        }
    }

    /// False if the run stopped meanwhile.
    async fn sleep(&self, pause: Duration) -> bool {
        tokio::select! {
            () = self.stop.stopping() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    async fn write_answer(&self, job: &Job, attempt: AttemptId, submission: Submission) -> Option<(AttemptId, TaskId)> {
        let id = job.id.clone();
        match submission {
            Submission::Accepted(task, _) => {
                if let Err(error) = self.ledger.record(attempt, Event::Accepted(task.clone())).await {
                    (self.tell)(RunEvent::Rescue { job: id, task });
                    self.ledger_failed(&error);
                    return None;
                }
                (self.tell)(RunEvent::Submitted { job: id, task: task.clone(), price: job.price });
                return Some((attempt, task));
            }
            Submission::NotSent(message) => {
                self.stop_because(StopReason::Unreachable, message);
                self.write_void(job, attempt).await;
            }
            // Only a run that stops gives up waiting.
            Submission::Wait(..) => self.write_void(job, attempt).await,
            Submission::KeyRefused(error) => {
                self.stop_because(StopReason::KeyRefused, error.message);
                self.write_void(job, attempt).await;
            }
            Submission::Rejected(error) => {
                self.budget.release(job.price);
                let message = error.message.clone();
                self.write(attempt, Event::Refused(error)).await;
                (self.tell)(RunEvent::Rejected { job: id, message });
            }
            Submission::Unknown(error) => {
                let message = error.message.clone();
                self.write(attempt, Event::Doubted(error)).await;
                (self.tell)(RunEvent::InDoubt { job: id, message, price: job.price });
            }
        }
        None
    }

    async fn write_void(&self, job: &Job, attempt: AttemptId) {
        self.budget.release(job.price);
        self.write(attempt, Event::Withdrawn).await;
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

/// Stops submitting because the ledger can't be written, and says so.
pub fn ledger_failed(stop: &Stop, tell: &(dyn Fn(RunEvent) + Sync), error: &LedgerError) {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let message = format!("{error}{cause}");
    tell(RunEvent::LedgerTrouble { message: message.clone() });
    if stop.because(StopReason::LedgerFailed) {
        tell(RunEvent::Stopping { reason: StopReason::LedgerFailed, message });
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
