//! The events of a run as lines of the JSON log.

use crate::domain::{BatchKey, Usd};
use crate::engine::RunEvent;
use crate::report::{JobState, Report, Totals};

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
        RunEvent::Warned { message, .. } | RunEvent::ModelStopped { message, .. } => tracing::warn!(code, message),
        RunEvent::ServiceRecovered { after } => tracing::info!(code, seconds = after.as_secs_f64()),
        RunEvent::UnknownStatus { status } => tracing::warn!(code, status),
        RunEvent::TaskNotRecorded { job, task, .. } => tracing::error!(code, %job, %task),
        RunEvent::Stopping { reason, message } => tracing::warn!(code, reason = ?reason, error = message),
    }
}

/// Logs the last event of a run: its batch, its exit code with the meaning, and the totals if they are known.
pub(crate) fn log_finished(
    key: Option<&BatchKey>,
    report: Option<&Report>,
    is_simulated: bool,
    exit_code: u8,
    meaning: &str,
) {
    let (name, batch) = (key.map(|key| &*key.name), key.map(|key| &*key.batch));
    let totals = report.map(|report| &report.totals);
    let usd = |sum: fn(&Totals) -> Usd| totals.map(|totals| sum(totals).to_string());
    let (spent_usd, at_risk_usd, unknown_usd) =
        (usd(|totals| totals.spent_usd), usd(|totals| totals.at_risk_usd), usd(|totals| totals.unknown_usd));
    let jobs = totals.map(|totals| totals.jobs);
    let of = |state: JobState| totals.map(|totals| totals.states.get(state.name()).copied().unwrap_or(0));
    let (completed, failed, rejected) = (of(JobState::Completed), of(JobState::Failed), of(JobState::Rejected));
    let (in_doubt, pending, held) = (of(JobState::InDoubt), of(JobState::Pending), of(JobState::Held));
    let (queued, in_progress) = (of(JobState::Queued), of(JobState::InProgress));
    // The level of an event is part of its type.
    macro_rules! finished {
        ($level:ident) => {
            tracing::$level!(
                event = "finished",
                name,
                batch,
                exit_code,
                message = meaning,
                simulated = is_simulated,
                jobs,
                completed,
                failed,
                rejected,
                in_doubt,
                pending,
                held,
                queued,
                in_progress,
                spent_usd,
                at_risk_usd,
                unknown_usd
            )
        };
    }
    if exit_code == 0 { finished!(info) } else { finished!(warn) }
}
