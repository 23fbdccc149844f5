//! The events of a run as lines of the JSON log.

use crate::engine::RunEvent;

/// Logs an event.
pub(super) fn log(event: &RunEvent) {
    match event {
        RunEvent::Started { submit, resume, planned, fetch } => {
            tracing::info!(event = "started", submit, resume, fetch, usd = %planned);
        }
        RunEvent::Submitted { job, task, price } => {
            tracing::info!(event = "submitted", %job, %task, usd = %price);
        }
        RunEvent::Progressed { job, percent } => tracing::debug!(event = "progressed", %job, percent),
        RunEvent::Completed { job } => tracing::info!(event = "completed", %job),
        RunEvent::ToFetch { job } => tracing::debug!(event = "to_fetch", %job),
        RunEvent::Fetched(video) => {
            tracing::info!(event = "fetched", job = %video.job, file = %video.file.path, bytes = video.file.bytes);
        }
        RunEvent::Executed { job, error: None } => tracing::info!(event = "executed", %job),
        RunEvent::Executed { job, error: Some(error) } => tracing::warn!(event = "not_executed", %job, error),
        RunEvent::NotFetched { job, message } => tracing::warn!(event = "not_fetched", %job, error = message),
        RunEvent::Failed { job, message } => tracing::warn!(event = "failed", %job, error = message),
        RunEvent::Retrying { job, price } => tracing::warn!(event = "retrying", %job, usd = %price),
        RunEvent::NotSent { job, reason } => tracing::warn!(event = "not_sent", %job, error = reason),
        RunEvent::Rejected { job, message } => tracing::warn!(event = "rejected", %job, error = message),
        RunEvent::InDoubt { job, message, price } => {
            tracing::error!(event = "in_doubt", %job, error = message, usd = %price);
        }
        RunEvent::Named { job, task } => tracing::warn!(event = "named", %job, %task),
        RunEvent::Left { job, why, said, .. } => tracing::warn!(event = "left", %job, why = ?why, said),
        RunEvent::Waiting { wait, message } => {
            tracing::warn!(event = "waiting", seconds = wait.as_secs_f64(), error = message);
        }
        RunEvent::Trouble { message } => tracing::warn!(event = "trouble", error = message),
        RunEvent::Others { open, alive } => tracing::info!(event = "others", open, alive),
        RunEvent::Warned { message } => tracing::warn!(event = "warned", message),
        RunEvent::Back { after } => tracing::info!(event = "back", seconds = after.as_secs_f64()),
        RunEvent::UnknownStatus { status } => tracing::warn!(event = "unknown_status", status),
        RunEvent::Rescue { job, task, .. } => tracing::error!(event = "rescue", %job, %task),
        RunEvent::Stopping { reason, message } => tracing::warn!(event = "stopping", reason = ?reason, error = message),
    }
}
