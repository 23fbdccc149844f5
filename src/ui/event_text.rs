//! The events of a run as text.

use super::progress_state::SILENCE;
use super::table::{size, span};
use crate::domain::count;
use crate::domain::{JobId, NoticeCode as C, TaskNames, Usd};
use crate::engine::{LeaveReason, RunEvent, StopReason};
use crate::report::NextCommand;

/// The text of an event, by its importance.
#[derive(Debug)]
pub(super) enum Text {
    Nothing,
    /// Only with `-v`.
    Verbose(String),
    /// Superfluous beside a bar.
    Detail(String),
    Note(String),
    Warning(String),
    /// About a job without a video. Shown with `--quiet`, too.
    Failure(String),
    Error {
        message: String,
        help: String,
        note: String,
    },
}

/// Returns the text of an event. `again` leads back to the run.
pub(super) fn text_of(event: &RunEvent, again: &NextCommand) -> Text {
    match event {
        RunEvent::Progressed { .. } | RunEvent::ToFetch { .. } => Text::Nothing,
        RunEvent::Started { submit, resume, planned, fetch } => {
            Text::Detail(started(*submit, *resume, *planned, *fetch))
        }
        RunEvent::Submitted { job, task, price } => Text::Verbose(format!("submitted {job} (${price}) as {task}")),
        RunEvent::Completed { job, .. } => Text::Detail(format!("completed {job}")),
        RunEvent::Fetched(video) => {
            let (bytes, path) = (size(video.file.bytes), &video.file.path);
            Text::Verbose(format!("downloaded {}, {bytes}: {path}", video.job))
        }
        RunEvent::Executed { job, error: None, .. } => Text::Verbose(format!("ran `--exec` for {job}")),
        RunEvent::Executed { job, error: Some(error), .. } => {
            Text::Failure(format!("`--exec` failed for {job}; the next run with `--exec` repeats it: {error}"))
        }
        RunEvent::Retrying { job, price } => Text::Note(format!("retrying {job} for another ${price}")),
        RunEvent::Waiting { wait, message } => {
            let wait = if wait.as_secs() == 0 { String::new() } else { format!(" {}", span(*wait)) };
            Text::Note(format!("waiting{wait}: {message}"))
        }
        RunEvent::ServiceRecovered { after } if *after < SILENCE => Text::Nothing,
        RunEvent::ServiceRecovered { after } => {
            Text::Note(format!("the service responds again, after {}", span(*after)))
        }
        RunEvent::Warned {
            code: C::DeliveryMismatch | C::EchoMismatch | C::ModelMismatch | C::PriceMismatch,
            message,
        }
        | RunEvent::ModelStopped { message, .. } => Text::Failure(message.clone()),
        RunEvent::Warned { message, .. } => Text::Warning(message.clone()),
        RunEvent::RequestFailed { message } => Text::Warning(format!("no usable response, trying again: {message}")),
        RunEvent::TaskAlias { job, task } => {
            Text::Warning(format!("the service uses a second ID for the task of {job}: {task}"))
        }
        RunEvent::UnknownStatus { status } => {
            Text::Warning(format!("the service reports the unknown state `{status}`; polling continues"))
        }
        RunEvent::Stopping { reason, message } => stopping(*reason, message),
        RunEvent::NotFetched { job, message, .. } => {
            Text::Failure(format!("can't download {job}; the next run tries again, free of charge: {message}"))
        }
        RunEvent::Failed { job, message, .. } => Text::Failure(format!("{job} failed: {message}")),
        RunEvent::NotSent { job, reason } => Text::Failure(format!("{job} was not sent, and costs nothing: {reason}")),
        RunEvent::Rejected { job, message } => {
            Text::Failure(format!("{job} was rejected, and costs nothing: {message}"))
        }
        RunEvent::InDoubt { job, message, price } => in_doubt(job, message, *price, again),
        RunEvent::TaskNotRecorded { job, task, .. } => not_recorded(job, task, again),
        RunEvent::TaskLeft { job, why, said, is_endless, .. } => match why {
            LeaveReason::Interrupted => Text::Detail(format!("left the task of {job} active")),
            LeaveReason::KeyRefused => {
                Text::Failure(format!("the task of {job} stays active: the service refuses the key"))
            }
            LeaveReason::Deadline => Text::Failure(past_deadline(job, said.as_deref(), *is_endless, again)),
        },
    }
}

fn started(submit: usize, resume: usize, planned: Usd, fetch: usize) -> String {
    let mut text = format!("{} to submit for ${planned}", count(submit, "job"));
    if fetch > 0 {
        text = format!("{text}, {} to download, already paid for", count(fetch, "video"));
    }
    if resume > 0 {
        text = format!("{text}, {}", count(resume, "active task"));
    }
    text
}

fn in_doubt(job: &JobId, message: &str, price: Usd, again: &NextCommand) -> Text {
    let resolve = |options: &[&str]| again.command("resolve", &[&[job.as_str()], options].concat());
    Text::Error {
        message: format!("{job} is in doubt: {message}"),
        help: format!(
            "look it up at the service; if it has a task: `{}`; if it has none: `{}`",
            resolve(&["--task", "ID"]),
            resolve(&["--never-created"])
        ),
        note: format!("${price} at risk; shotlist never sends the job again by itself"),
    }
}

fn not_recorded(job: &JobId, task: &TaskNames, again: &NextCommand) -> Text {
    let command = again.command("resolve", &[job.as_str(), "--task", task.id.as_str()]);
    Text::Error {
        message: format!("RESCUE: the task of {job} is {task}, and the ledger does not have it yet"),
        help: format!("keep this line; when the ledger is writable, run `{command}`"),
        note: "the task is paid for".to_owned(),
    }
}

fn past_deadline(job: &JobId, said: Option<&str>, is_endless: bool, again: &NextCommand) -> String {
    let mut text = format!("{job} passed its deadline; its task stays active, and the next run polls it");
    if let Some(said) = said {
        text = format!("{text}; last state: {said}");
        if is_endless {
            let give_up = again.command("resolve", &[job.as_str(), "--abandon"]);
            text =
                format!("{text}; if the task never ends, run `{give_up}` (if it is still running, a retry pays twice)");
        }
    }
    text
}

fn stopping(reason: StopReason, message: &str) -> Text {
    let what = match reason {
        StopReason::TooManyFailures => "too many failures",
        StopReason::TooManyDoubts => "too many jobs in doubt",
        StopReason::SpendLimit => "a spend limit is reached",
        StopReason::Unreachable => "the service can't be reached",
        StopReason::KeyRefused => {
            "the service refuses the key (correct `SHOTLIST_API_KEY`, or the file of `--api-key-file`)"
        }
        StopReason::FilesFailed => "videos can't be written",
        StopReason::Frozen => "purchases are frozen",
        StopReason::PaidElsewhere => "another run paid for the same request",
        StopReason::LedgerFailed => "the ledger can't be written",
        StopReason::LeaseExpired => "another runner may have the batch",
        StopReason::Signal(_) => "interrupted",
    };
    let text = format!("stopped submitting, {what}: {message}");
    if matches!(reason, StopReason::Signal(_)) { Text::Warning(text) } else { Text::Failure(text) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::domain::{AttemptId, NoticeCode, OutputPath, TaskId, VideoFile};
    use crate::engine::FetchedVideo;

    fn each_event() -> Vec<RunEvent> {
        let job = || JobId::new("hero").expect("an ID");
        let task = || TaskNames::from(TaskId::new("task_1").expect("an ID"));
        let price: Usd = "0.90".parse().expect("an amount");
        let message = || "boom".to_owned();
        let left = |why, said: Option<&str>, is_endless| RunEvent::TaskLeft {
            job: job(),
            task: task(),
            why,
            said: said.map(str::to_owned),
            is_endless,
        };
        let file = VideoFile {
            path: OutputPath::new("hero.mp4").expect("a path"),
            sha256: String::new(),
            bytes: 5000,
            footage: None,
        };
        let video = FetchedVideo { job: job(), attempt: AttemptId(1), task: task(), directory: None, file };
        let mut events = vec![
            RunEvent::Started { submit: 1, resume: 0, planned: price, fetch: 0 },
            RunEvent::Started { submit: 2, resume: 3, planned: price, fetch: 1 },
            RunEvent::Submitted { job: job(), task: task(), price },
            RunEvent::Progressed { job: job(), percent: Some(50) },
            RunEvent::Completed { job: job(), task: task() },
            RunEvent::ToFetch { job: job() },
            RunEvent::Fetched(Box::new(video)),
            RunEvent::Executed { job: job(), task: task().id, error: None },
            RunEvent::Executed { job: job(), task: task().id, error: Some(message()) },
            RunEvent::NotFetched { job: job(), task: task().id, message: message() },
            RunEvent::Failed { job: job(), task: task(), message: message() },
            RunEvent::Retrying { job: job(), price },
            RunEvent::NotSent { job: job(), reason: message() },
            RunEvent::Rejected { job: job(), message: message() },
            RunEvent::InDoubt { job: job(), message: message(), price },
            RunEvent::TaskNotRecorded { job: job(), task: task(), price },
            RunEvent::TaskAlias { job: job(), task: task() },
            left(LeaveReason::Interrupted, None, false),
            left(LeaveReason::KeyRefused, None, false),
            left(LeaveReason::Deadline, None, false),
            left(LeaveReason::Deadline, Some("paused"), false),
            left(LeaveReason::Deadline, Some("lost"), true),
            RunEvent::Waiting { wait: Duration::from_secs(90), message: message() },
            RunEvent::RequestFailed { message: message() },
            RunEvent::Warned { code: NoticeCode::EchoMismatch, message: message() },
            RunEvent::ServiceRecovered { after: Duration::from_secs(1) },
            RunEvent::ServiceRecovered { after: Duration::from_mins(10) },
            RunEvent::UnknownStatus { status: "paused".to_owned() },
        ];
        let reasons = [
            StopReason::TooManyFailures,
            StopReason::TooManyDoubts,
            StopReason::SpendLimit,
            StopReason::Unreachable,
            StopReason::KeyRefused,
            StopReason::FilesFailed,
            StopReason::Frozen,
            StopReason::PaidElsewhere,
            StopReason::LedgerFailed,
            StopReason::LeaseExpired,
            StopReason::Signal(2),
        ];
        events.extend(reasons.map(|reason| RunEvent::Stopping { reason, message: message() }));
        events
    }

    #[test]
    fn event_texts_match_the_snapshot() {
        let again = NextCommand::about(Path::new("m.yaml"));
        let shown = |event: &RunEvent| format!("{}: {:#?}", event.code().code(), text_of(event, &again));
        insta::assert_snapshot!(each_event().iter().map(shown).collect::<Vec<_>>().join("\n"));
    }
}
