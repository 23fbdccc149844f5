//! Doubts that the service itself settles, because it honors idempotency keys.
//!
//! # Guarantees
//!
//! - Only a submission that left with a key is repeated: the same bytes, by the same account, while the service remembers the key.
//! - Only a task in the response settles a doubt. After any other response, the submission stays in doubt.
//! - A repeated submission buys nothing beyond its attempt, whose price counts as spent already.

use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::connection::Connection;
use super::refusal::Refusal;
use crate::domain::{Attempt, AttemptState, Request, ServiceError};
use crate::ledger::{Event, LedgerError, LockedBatch};
use crate::service::{Submission, VideoService as _};

/// The most repeated submissions at once.
const AT_ONCE: usize = 4;

/// Repeats submissions in doubt, and records the tasks in the responses. Returns the attempts whose task is known now.
pub(super) async fn settle(
    batch: &LockedBatch,
    doubts: &[Attempt],
    connection: &Connection,
) -> Result<Vec<Attempt>, Refusal> {
    // Another key of the API may have other idempotency keys.
    let ours = doubts.iter().filter(|attempt| attempt.account == *connection.account());
    let repeated = ours.map(async |attempt| (attempt, repeat(attempt, connection).await));
    let settled = stream::iter(repeated).buffered(AT_ONCE).map(Ok).try_filter_map(async |(attempt, response)| {
        let Some(Submission::Accepted(task, _)) = response else { return Ok(None) };
        match batch.record(attempt.id, Event::Settled(task.clone())).await {
            Ok(()) => {}
            // The service broke its promise: the IDs stay with the doubt.
            Err(taken @ LedgerError::TaskTaken { .. }) => {
                let message = format!("{taken}; all of its IDs: {task}");
                let error = ServiceError { message, code: None, raw: task.to_string().into() };
                batch.record(attempt.id, Event::Doubted(error)).await?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        let (state, task) = (AttemptState::Queued, Some(task));
        Ok(Some(Attempt { state, task, error: None, ..attempt.clone() }))
    });
    settled.try_collect().await
}

async fn repeat(attempt: &Attempt, connection: &Connection) -> Option<Submission> {
    let request = Request::stored(attempt.request.clone(), attempt.fingerprint.clone());
    let key = attempt.particulars.idempotency.as_deref()?;
    Some(connection.service().submit(&request, Some(key), None).await)
}
