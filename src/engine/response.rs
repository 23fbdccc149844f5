//! Records a submission's response, and its effects on other submissions.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::poll;

use super::event::RunEvent;
use super::settings::StopReason;
use super::slow_start::Permit;
use super::submit::{Submitted, Submitter};
use crate::domain::{AttemptId, Job, ServiceError, TaskNames};
use crate::ledger::{Event, LedgerError};
use crate::service::{Echo, Submission, VideoService};

/// The tries to record a task ID, and the wait between two of them.
const WRITE_TRIES: usize = 3;
const WRITE_PAUSE: Duration = Duration::from_millis(500);
/// The longest wait for a ledger to record a task ID before you get the ID: a process that is killed then would lose it.
const RESCUE_AFTER: Duration = Duration::from_secs(10);

impl<S: VideoService> Submitter<'_, S> {
    /// Records the response to the request of an attempt. The permit is held until the record is on its way to the ledger.
    pub(super) async fn record(
        &self,
        job: &Job,
        attempt: AttemptId,
        response: Submission,
        permit: Permit<'_>,
    ) -> Submitted {
        match response {
            Submission::Accepted(task, echo) => self.accept(job, attempt, &task, &echo, permit).await,
            Submission::Untrusted(message) | Submission::Moved(message) => {
                self.withdraw(attempt, StopReason::Unreachable, message).await
            }
            Submission::Forbidden(error) if !self.slow_start.has_accepted() => {
                self.withdraw(attempt, StopReason::KeyRefused, error.message).await
            }
            Submission::KeyRefused(error) => self.withdraw(attempt, StopReason::KeyRefused, error.message).await,
            Submission::WrongEndpoint(error) if !self.slow_start.has_accepted() => {
                self.withdraw(attempt, StopReason::Unreachable, error.message).await
            }
            Submission::Rejected(error) | Submission::WrongEndpoint(error) | Submission::Forbidden(error) => {
                let too_many = self.slow_start.record_rejected().map(|rejected| {
                    let (service, last) = (&self.gateway.account.service, &error.message);
                    format!("{service} rejected the first {rejected} submissions; last error: {last}")
                });
                self.reject(job, attempt, error, too_many).await
            }
            Submission::Unpaid(error) => {
                let too_many = self.slow_start.record_unpaid().map(|_| {
                    let last = &error.message;
                    format!("{} reports insufficient funds: {last}", self.gateway.account.service)
                });
                self.reject(job, attempt, error, too_many).await
            }
            Submission::Page(error) => {
                if !self.slow_start.has_accepted() {
                    self.gateway.stop_because(StopReason::Unreachable, error.message.clone());
                }
                self.put_in_doubt(job, attempt, error).await
            }
            Submission::InDoubt(error) => self.put_in_doubt(job, attempt, error).await,
        }
    }

    /// Records an acceptance. A task ID that another attempt has leaves this one in doubt.
    async fn accept(
        &self,
        job: &Job,
        attempt: AttemptId,
        task: &TaskNames,
        echo: &Echo,
        permit: Permit<'_>,
    ) -> Submitted {
        match self.write_task(job, attempt, task, echo, permit).await {
            Ok(task) => {
                self.slow_start.record_accepted();
                if let Some(usd) = echo.cost {
                    self.gateway.record_cost(attempt, job.purchase.request.body(), usd).await;
                }
                let submitted =
                    RunEvent::Submitted { job: job.id().clone(), task: task.clone(), price: job.purchase.price };
                (self.gateway.emit)(submitted);
                Submitted::Task(attempt, task)
            }
            Err(taken @ LedgerError::TaskTaken { .. }) => {
                let message = format!("{taken}; all of its IDs: {task}");
                let error = ServiceError { message, code: None, raw: task.to_string().into() };
                self.put_in_doubt(job, attempt, error).await
            }
            Err(error) => {
                self.gateway.ledger_failed(&error);
                Submitted::InDoubt
            }
        }
    }

    /// Records a task ID. If that fails or takes too long, shows the ID immediately and tries again. The next submission need not wait: its
    /// intent is recorded after this task, or not at all.
    async fn write_task(
        &self,
        job: &Job,
        attempt: AttemptId,
        task: &TaskNames,
        echo: &Echo,
        permit: Permit<'_>,
    ) -> Result<TaskNames, LedgerError> {
        let mut writing = pin!(self.gateway.ledger.accept(attempt, task.clone()));
        // The first poll hands it to the ledger.
        let polled = poll!(writing.as_mut());
        // Before the permit lets the next submission leave: another model or a higher cost stops after the first.
        self.gateway.compare(job.purchase.request.body(), echo, false);
        drop(permit);
        let rescue = || {
            (self.gateway.emit)(RunEvent::TaskNotRecorded {
                job: job.id().clone(),
                task: task.clone(),
                price: job.purchase.price,
            });
        };
        let mut is_late = false;
        let mut written = if let Poll::Ready(written) = polled {
            written
        } else if let Ok(written) = tokio::time::timeout(RESCUE_AFTER, writing.as_mut()).await {
            written
        } else {
            is_late = true;
            rescue();
            writing.await
        };
        // A task of another attempt is already recorded with that one.
        let is_known = |written: &Result<_, _>| matches!(written, Ok(_) | Err(LedgerError::TaskTaken { .. }));
        if !is_known(&written) && !is_late {
            rescue();
        }
        for _ in 1..WRITE_TRIES {
            if is_known(&written) {
                break;
            }
            tokio::time::sleep(WRITE_PAUSE).await;
            written = self.gateway.ledger.accept(attempt, task.clone()).await;
        }
        written
    }

    /// Stops the run and records that the request bought nothing: each further one would have the same response.
    async fn withdraw(&self, attempt: AttemptId, reason: StopReason, message: String) -> Submitted {
        self.gateway.stop_because(reason, message);
        self.gateway.record(attempt, Event::Withdrawn).await;
        Submitted::NotSent
    }

    /// Records a rejection. `too_many` is the reason to stop if the jobs are not the cause.
    async fn reject(&self, job: &Job, attempt: AttemptId, error: ServiceError, too_many: Option<String>) -> Submitted {
        let (job, message) = (job.id().clone(), error.message.clone());
        self.gateway.record(attempt, Event::Refused(error)).await;
        (self.gateway.emit)(RunEvent::Rejected { job, message });
        if let Some(message) = too_many {
            self.gateway.stop_because(StopReason::TooManyFailures, message);
        }
        Submitted::Rejected
    }

    /// Records an in-doubt outcome. Too many in a row open the circuit breaker.
    async fn put_in_doubt(&self, job: &Job, attempt: AttemptId, error: ServiceError) -> Submitted {
        let (message, too_many) = (error.message.clone(), self.slow_start.record_in_doubt());
        self.gateway.record(attempt, Event::Doubted(error)).await;
        (self.gateway.emit)(RunEvent::InDoubt { job: job.id().clone(), message, price: job.purchase.price });
        if let Some(doubts) = too_many {
            let doubts = if doubts == 1 { "1 job".to_owned() } else { format!("{doubts} jobs in a row") };
            self.gateway.stop_because(StopReason::TooManyDoubts, format!("{doubts} in doubt"));
        }
        Submitted::InDoubt
    }
}
