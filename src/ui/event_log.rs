//! The events of a run as lines of the JSON log.

use crate::engine::RunEvent;

/// Logs an event under its code.
pub(super) fn log(event: &RunEvent) {
    let code = event.code().code();
    match event {
        RunEvent::Started { submit, resume, planned, fetch } => {
            tracing::info!(code, submit, resume, fetch, usd = %planned);
        }
        RunEvent::Submitted { job, task, price } => tracing::info!(code, %job, %task, usd = %price),
        RunEvent::Progressed { job, percent } => tracing::debug!(code, %job, percent),
        RunEvent::Completed { job, task } => tracing::info!(code, %job, %task),
        RunEvent::Executed { job, task, error: None } => tracing::info!(code, %job, %task),
        RunEvent::ToFetch { job } => tracing::debug!(code, %job),
        RunEvent::Fetched(video) => {
            tracing::info!(code, job = %video.job, task = %video.task, file = %video.file.path, bytes = video.file.bytes);
        }
        RunEvent::Executed { job, task, error: Some(message) } | RunEvent::NotFetched { job, task, message } => {
            tracing::warn!(code, %job, %task, error = message);
        }
        RunEvent::NotSent { job, reason: message } | RunEvent::Rejected { job, message } => {
            tracing::warn!(code, %job, error = message);
        }
        RunEvent::Failed { job, task, message } => tracing::warn!(code, %job, %task, error = message),
        RunEvent::Retrying { job, price } => tracing::warn!(code, %job, usd = %price),
        RunEvent::InDoubt { job, message, price } => tracing::error!(code, %job, error = message, usd = %price),
        RunEvent::TaskAlias { job, task } => tracing::warn!(code, %job, %task),
        RunEvent::TaskLeft { job, task, why, said, .. } => tracing::warn!(code, %job, %task, why = ?why, said),
        RunEvent::Waiting { wait, message } => {
            tracing::warn!(code, seconds = wait.as_secs_f64(), error = message);
        }
        RunEvent::RequestFailed { message } => tracing::warn!(code, error = message),
        RunEvent::WaitingForRunners { open, alive } => tracing::info!(code, open, alive),
        RunEvent::Warned { message, .. } | RunEvent::ModelStopped { message, .. } => tracing::warn!(code, message),
        RunEvent::ServiceRecovered { after } => tracing::info!(code, seconds = after.as_secs_f64()),
        RunEvent::UnknownStatus { status } => tracing::warn!(code, status),
        RunEvent::TaskNotRecorded { job, task, .. } => tracing::error!(code, %job, %task),
        RunEvent::Stopping { reason, message } => tracing::warn!(code, reason = ?reason, error = message),
    }
}
