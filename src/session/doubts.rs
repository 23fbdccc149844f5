//! Doubts that the service itself settles, because it honors idempotency keys.
//!
//! # Guarantees
//!
//! - Only a submission in doubt that left with a key is repeated: the same bytes, by the same account, while the service remembers the key.
//! - The ledger knows of a repetition before it leaves, and denies no task while its response may be on its way.
//! - Only a task in the response settles a doubt. After any other response, the submission stays in doubt.
//! - A repeated submission buys nothing beyond its attempt, whose price counts as spent already. The plan shows it, and consent covers it.
//! - A task ID that can't be recorded is shown, and the doubt keeps its key.

use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};

use super::connection::Connection;
use super::refusal::Refusal;
use crate::domain::{Attempt, AttemptState, Idempotency, Request, ServiceError, TaskNames};
use crate::engine::{RunEvent, Stop};
use crate::ledger::{Event, LedgerError, LockedBatch};
use crate::service::{Submission, VideoService as _};

/// The most repeated submissions at once.
const AT_ONCE: usize = 4;

/// Repeats submissions in doubt.
pub(super) struct Repeater<'r> {
    pub(super) batch: &'r LockedBatch,
    pub(super) connection: &'r Connection,
    pub(super) honored: &'r Idempotency,
    /// The ledger's clock, by this machine's.
    pub(super) clock_offset: SignedDuration,
    pub(super) stop: &'r Stop,
    pub(super) emit: &'r (dyn Fn(RunEvent) + Sync),
}

impl Repeater<'_> {
    /// Repeats submissions, and records the tasks in the responses. Returns the attempts whose task is known now. Each response is recorded, also
    /// after an error.
    pub(super) async fn settle(&self, doubts: &[Attempt]) -> Result<Vec<Attempt>, Refusal> {
        let settled: Vec<_> =
            stream::iter(doubts).map(|attempt| self.settle_one(attempt)).buffered(AT_ONCE).collect().await;
        let settled = settled.into_iter().collect::<Result<Vec<_>, LedgerError>>()?;
        Ok(settled.into_iter().flatten().collect())
    }

    async fn settle_one(&self, attempt: &Attempt) -> Result<Option<Attempt>, LedgerError> {
        let key = attempt.particulars.idempotency.as_deref();
        let Some(key) = key.filter(|key| key.account == *self.connection.account()) else { return Ok(None) };
        let now = Timestamp::now().checked_add(self.clock_offset).unwrap_or(Timestamp::MAX);
        if self.stop.is_stopping() || !self.honored.remembers(key, now) {
            return Ok(None);
        }
        match self.batch.record(attempt.id, Event::Repeated).await {
            Ok(()) => {}
            // It is not in doubt any more: by another runner, or the user.
            Err(LedgerError::Illegal(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        let request = Request::stored(attempt.request.clone(), attempt.fingerprint.clone());
        match self.connection.service().submit(&request, Some(key), None).await {
            Submission::Accepted(task, _) => self.record(attempt, task).await,
            // The part that arrived may contain the task ID.
            Submission::InDoubt(error) if error.has_body() => {
                self.batch.record(attempt.id, Event::Doubted(error)).await?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    async fn record(&self, attempt: &Attempt, task: TaskNames) -> Result<Option<Attempt>, LedgerError> {
        match self.batch.record(attempt.id, Event::Settled(task.clone())).await {
            Ok(()) => {
                let (state, task) = (AttemptState::Queued, Some(task));
                Ok(Some(Attempt { state, task, error: None, ..attempt.clone() }))
            }
            // The service broke its promise: the IDs stay with the doubt.
            Err(taken @ LedgerError::TaskTaken { .. }) => {
                let message = format!("{taken}; all of its IDs: {task}");
                let error = ServiceError { message, code: None, raw: task.to_string().into() };
                self.batch.record(attempt.id, Event::Doubted(error)).await?;
                Ok(None)
            }
            Err(error) => {
                (self.emit)(RunEvent::TaskNotRecorded { job: attempt.job.clone(), task, price: attempt.price });
                Err(error)
            }
        }
    }
}
