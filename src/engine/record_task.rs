//! The record of a task that was made: tried again, and shown to you if the ledger does not take it.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::poll;

use super::event::RunEvent;
use super::slow_start::Permit;
use super::submit::Submitter;
use crate::domain::{AttemptId, Job, TaskNames};
use crate::ledger::LedgerError;
use crate::service::VideoService;

/// The tries to record a task ID, and the wait between two of them.
const WRITE_TRIES: usize = 3;
const WRITE_PAUSE: Duration = Duration::from_millis(500);
/// The longest wait for a ledger to record a task ID before you get the ID: a process that is killed then would lose it.
const RESCUE_AFTER: Duration = Duration::from_secs(10);

impl<S: VideoService> Submitter<'_, S> {
    /// Records a task ID. If that fails or takes too long, shows the ID at once and tries again. The next submission need not wait: its
    /// intent is recorded after this task, or not at all.
    pub(super) async fn write_task(
        &self,
        job: &Job,
        attempt: AttemptId,
        task: &TaskNames,
        permit: Permit<'_>,
    ) -> Result<TaskNames, LedgerError> {
        let mut writing = pin!(self.ledger.accept(attempt, task.clone()));
        // The first poll hands it to the ledger.
        let polled = poll!(writing.as_mut());
        drop(permit);
        let rescue = || {
            (self.gateway.emit)(RunEvent::TaskNotRecorded {
                job: job.id.clone(),
                task: task.clone(),
                price: job.price,
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
            written = self.ledger.accept(attempt, task.clone()).await;
        }
        written
    }
}
