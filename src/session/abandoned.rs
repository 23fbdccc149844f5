//! Abandoned tasks that have completed after all.
//!
//! # Guarantees
//!
//! - Each is polled once. Only a completed task changes its record; after any other response, it stays abandoned.
//! - They are polled before a run plans its purchases: a video that was paid for is never bought again.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;

use super::connection::Connection;
use super::refusal::Refusal;
use crate::domain::{Attempt, Declaration, JobId};
use crate::engine::{Identity, Whose};
use crate::ledger::{Event, LockedBatch};
use crate::service::{PollAnswer, Status, VideoService as _};

/// The most polls at once.
const AT_ONCE: usize = 8;

/// Polls abandoned tasks of the connection's account, and records those that have completed. Returns their jobs.
pub(super) async fn take_completed(
    batch: &LockedBatch,
    abandoned: &[Attempt],
    connection: &Connection,
) -> Result<Vec<JobId>, Refusal> {
    let ours = abandoned.iter().filter(|attempt| connection.check_owner([*attempt].into_iter()).is_ok());
    let polls = ours.map(async |attempt| Ok::<_, Refusal>((attempt, completion(attempt, connection).await)));
    let completed = stream::iter(polls).buffered(AT_ONCE).try_filter_map(async |(attempt, completion)| {
        let Some(completion) = completion else { return Ok(None) };
        batch.record(attempt.id, Event::Undone(Declaration::Lost)).await?;
        batch.record(attempt.id, completion).await?;
        Ok(Some(attempt.job.clone()))
    });
    completed.try_collect().await
}

/// The completion of a task, if one poll shows it.
async fn completion(attempt: &Attempt, connection: &Connection) -> Option<Event> {
    let names = attempt.task.clone()?;
    let PollAnswer::Report(report) = connection.service().poll(&names.id).await else { return None };
    if report.status != Status::Completed || Identity::new(names).identify(&report) != Whose::Own {
        return None;
    }
    let ended_at = report.completed_at.unwrap_or_else(Timestamp::now);
    Some(Event::Completed { video_url: report.video_url?, ended_at, polls: 1 })
}
