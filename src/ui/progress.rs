//! A run as it goes: one bar on a terminal, plain lines elsewhere, events as JSON where the log is JSON.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::command::Again;
use super::event_log::log;
use super::lines::{count, size, span, without_prompt};
use super::live;
use super::page::Page;
use super::progress_state::{ProgressState, SILENCE};
use super::terminal::Terminal;
use crate::domain::{Job, JobId, NoticeCode};
use crate::engine::{LeaveReason, RunEvent, Settings, StopReason};
use crate::plan::Plan;

/// How often the same trouble is told again.
const REPEAT: Duration = Duration::from_secs(30);
/// How often it is said how far the run is, where no bar shows it.
const MINUTE: Duration = Duration::from_mins(1);
/// How often the picture is drawn.
const FRAME: Duration = Duration::from_millis(200);

/// Shows a run.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: Terminal,
    /// For commands to copy.
    again: Again,
    state: Mutex<ProgressState>,
    last_trouble: Mutex<Option<Instant>>,
    named: AtomicUsize,
    /// What no line of a JSON log may hold.
    prompts: HashMap<JobId, Arc<Job>>,
}

impl Progress {
    /// Shows the run of a plan; `again` is what leads back to it.
    #[must_use]
    pub(crate) fn new(terminal: &Terminal, again: &Again, plan: &Plan, settings: &Settings) -> Self {
        let state = ProgressState::new(Instant::now());
        // Without a terminal nobody looks at single tasks, and ten thousand need not be kept for it.
        let state =
            if terminal.shows_bar { state.with_tasks(plan, settings.concurrency, settings.speed) } else { state };
        let jobs = plan.jobs.iter().filter(|_| terminal.logs_json).map(|planned| &planned.job);
        let prompts = jobs.map(|job| (job.id.clone(), Arc::clone(job))).collect();
        let (terminal, again) = (terminal.clone(), again.clone());
        let (state, named) = (Mutex::new(state), AtomicUsize::new(0));
        Self { terminal, again, state, last_trouble: Mutex::default(), named, prompts }
    }

    /// Takes in something that happened, and shows it.
    pub(crate) fn tell(&self, event: &RunEvent) {
        self.state().note(event, Instant::now());
        let told = self.is_worth_telling(event);
        if self.terminal.logs_json {
            if !self.terminal.is_quiet || is_bad(event) {
                log(&self.without_prompts(event));
            }
        } else if told {
            self.say(event);
        }
    }

    /// Goes on showing how far the run is: as a picture where there is a terminal, and elsewhere in a line a minute. Never
    /// returns.
    pub(crate) async fn keep_telling(&self) -> std::convert::Infallible {
        if self.terminal.shows_bar {
            again_and_again(FRAME, || self.draw()).await
        } else {
            again_and_again(MINUTE, || self.say_how_far()).await
        }
    }

    /// An event as a log may hold it: a service may repeat what it was asked for.
    fn without_prompts(&self, event: &RunEvent) -> RunEvent {
        let prompt_of = |job: &JobId| self.prompts.get(job).and_then(|job| job.spec.prompt.as_deref());
        let mut event = event.clone();
        match &mut event {
            RunEvent::NotSent { job, reason: said }
            | RunEvent::Rejected { job, message: said }
            | RunEvent::InDoubt { job, message: said, .. }
            | RunEvent::NotFetched { job, message: said }
            | RunEvent::Failed { job, message: said }
            | RunEvent::TaskLeft { job, said: Some(said), .. } => *said = without_prompt(said, prompt_of(job)),
            RunEvent::Stopping { message, .. } => {
                for job in self.prompts.values() {
                    *message = without_prompt(message, job.spec.prompt.as_deref());
                }
            }
            _ => {}
        }
        event
    }

    fn draw(&self) {
        let (width, height) = live::size();
        // In the last column some terminals begin a new line.
        // With room behind them: a terminal shows ^C there, and breaks a line that has none.
        let lines = self.state().lines(width.saturating_sub(3), height, Instant::now());
        live::draw(lines);
    }

    fn say_how_far(&self) {
        let sentence = self.state().sentence(Instant::now());
        if self.terminal.logs_json {
            tracing::info!(code = NoticeCode::Progress.code(), message = sentence);
        } else {
            self.terminal.note(NoticeCode::Progress, &sentence);
        }
    }

    fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same trouble again and again is told once in a while.
    fn is_worth_telling(&self, event: &RunEvent) -> bool {
        if !matches!(event, RunEvent::RequestFailed { .. } | RunEvent::Waiting { .. }) {
            return true;
        }
        let mut last = self.last_trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| last.elapsed() >= REPEAT);
        if due {
            *last = Some(Instant::now());
        }
        due
    }

    /// Takes the picture away; what comes next is the summary.
    pub(crate) fn finish(&self) {
        live::draw(Vec::new());
        let named = self.named.load(Ordering::Relaxed);
        if named > 1 {
            self.terminal.note(NoticeCode::TaskAlias, &format!("the service uses a second ID for {named} tasks"));
        }
    }

    fn say(&self, event: &RunEvent) {
        let (terminal, again, code) = (&self.terminal, &self.again, event.code());
        match event {
            RunEvent::Started { submit, resume, planned, fetch } => {
                let mut text = format!("{} to submit for ${planned}", count(*submit, "job"));
                if *fetch > 0 {
                    text = format!("{text}, {} to download, already paid for", count(*fetch, "video"));
                }
                if *resume > 0 {
                    text = format!("{text}, {}", count(*resume, "active task"));
                }
                self.detail(code, &text);
            }
            RunEvent::Submitted { job, task, price } => {
                if terminal.verbosity > 0 {
                    self.detail(code, &format!("submitted {job} (${price}) as {task}"));
                }
            }
            RunEvent::Completed { job } => self.detail(code, &format!("completed {job}")),
            RunEvent::Progressed { .. } | RunEvent::ToFetch { .. } => {}
            RunEvent::Fetched(video) => {
                if terminal.verbosity > 0 {
                    let (bytes, path) = (size(video.file.bytes), &video.file.path);
                    terminal.note(code, &format!("downloaded {}, {bytes}: {path}", video.job));
                }
            }
            RunEvent::Executed { job, error: None } => {
                if terminal.verbosity > 0 {
                    terminal.note(code, &format!("ran `--exec` for {job}"));
                }
            }
            RunEvent::Executed { job, error: Some(error) } => {
                let text = format!("`--exec` failed for {job}; the next run with `--exec` repeats it: {error}");
                terminal.failure(code, &text);
            }
            RunEvent::NotFetched { job, message } => {
                let text = format!("can't download {job}; the next run tries again, free of charge: {message}");
                terminal.failure(code, &text);
            }
            RunEvent::Failed { job, message } => terminal.failure(code, &format!("{job} failed: {message}")),
            RunEvent::Retrying { job, price } => terminal.note(code, &format!("retrying {job} for another ${price}")),
            RunEvent::NotSent { job, reason } => {
                terminal.failure(code, &format!("{job} was not sent, and costs nothing: {reason}"));
            }
            RunEvent::Rejected { job, message } => {
                terminal.failure(code, &format!("{job} was rejected, and costs nothing: {message}"));
            }
            RunEvent::InDoubt { job, message, price } => terminal.error(
                Some(code.code()),
                &format!("{job} is in doubt: {message}"),
                Some(&format!(
                    "look it up at the service; if it has a task: `{}`; if it has none: `{}`",
                    again.command("resolve", &[job.as_str(), "--task", "ID"]),
                    again.command("resolve", &[job.as_str(), "--never-created"])
                )),
                Some(&format!("${price} at risk; shotlist never sends the job again by itself")),
            ),
            RunEvent::TaskAlias { job, task } => {
                // A gateway does so for each task; the JSON log has them all.
                if self.named.fetch_add(1, Ordering::Relaxed) == 0 {
                    terminal.warning(code, &format!("the service uses a second ID for the task of {job}: {task}"));
                }
            }
            RunEvent::TaskLeft { job, why, said, is_endless } => match why {
                LeaveReason::Deadline => self.say_late(job, said.as_deref(), *is_endless),
                LeaveReason::Interrupted => self.detail(code, &format!("left the task of {job} active")),
                LeaveReason::KeyRefused => {
                    terminal.failure(code, &format!("the task of {job} stays active: the service refuses the key"));
                }
            },
            RunEvent::Waiting { wait, message } => {
                let wait = if wait.as_secs() == 0 { String::new() } else { format!(" {}", span(*wait)) };
                terminal.note(code, &format!("waiting{wait}: {message}"));
            }
            RunEvent::RequestFailed { message } => {
                terminal.warning(code, &format!("no usable response, trying again: {message}"));
            }
            RunEvent::WaitingForRunners { open, alive } => {
                let (tasks, runners) = (count(*open as usize, "task"), count(*alive as usize, "other runner"));
                terminal.note(code, &format!("waiting for {tasks} of {runners}; this run takes over orphaned tasks"));
            }
            RunEvent::Warned { message, .. } => terminal.warning(code, message),
            RunEvent::ServiceRecovered { after } => {
                if *after >= SILENCE {
                    terminal.note(code, &format!("the service responds again, after {}", span(*after)));
                }
            }
            RunEvent::UnknownStatus { status } => {
                terminal.warning(code, &format!("the service reports the unknown state `{status}`; polling continues"));
            }
            RunEvent::TaskNotRecorded { job, task, .. } => {
                let line = format!("RESCUE: the task of {job} is {task}, and the ledger does not have it yet");
                let command = again.command("resolve", &[job.as_str(), "--task", task.id.as_str()]);
                let help = format!("keep this line; when the ledger is writable, run `{command}`");
                terminal.error(Some(code.code()), &line, Some(&help), Some("the task is paid for"));
                // On both streams: one of them may go to the very disk that is full.
                let mut page = Page::new();
                page.line(&line);
                terminal.result(&page);
            }
            RunEvent::Stopping { reason, message } => self.say_stop(*reason, message),
        }
    }

    fn say_late(&self, job: &JobId, said: Option<&str>, is_endless: bool) {
        let late = format!("{job} passed its deadline; its task stays active, and the next run polls it");
        let text = match said {
            None => late,
            Some(said) if !is_endless => format!("{late}; last state: {said}"),
            Some(said) => {
                let give_up = self.again.command("resolve", &[job.as_str(), "--abandon"]);
                format!(
                    "{late}; last state: {said}; if the task never ends, run `{give_up}` (if it is still running, a retry pays twice)"
                )
            }
        };
        self.terminal.failure(NoticeCode::TaskLeft, &text);
    }

    fn say_stop(&self, reason: StopReason, message: &str) {
        let what = match reason {
            StopReason::TooManyFailures => "too many failures",
            StopReason::TooManyDoubts => "too many jobs in doubt",
            StopReason::TimeBox => "the time limit is reached",
            StopReason::SpendLimit => "a spend limit is reached",
            StopReason::Unreachable => "the service can't be reached",
            StopReason::KeyRefused => {
                "the service refuses the key (correct `SHOTLIST_API_KEY`, or the file of `--api-key-file`)"
            }
            StopReason::FilesFailed => "videos can't be written",
            StopReason::Frozen => "purchases are frozen",
            StopReason::PaidElsewhere => "another run paid for the same request",
            StopReason::LedgerFailed => "the ledger can't be written",
            StopReason::Signal(_) => "interrupted",
        };
        let text = format!("stopped submitting, {what}: {message}");
        if matches!(reason, StopReason::Signal(_)) {
            self.terminal.warning(NoticeCode::Stopping, &text);
        } else {
            self.terminal.failure(NoticeCode::Stopping, &text);
        }
    }

    /// A line that a bar makes superfluous.
    fn detail(&self, code: NoticeCode, text: &str) {
        if !self.terminal.shows_bar || self.terminal.verbosity > 0 {
            self.terminal.note(code, text);
        }
    }
}

/// Whether a person has to know of it, also of a quiet run.
fn is_bad(event: &RunEvent) -> bool {
    match event {
        RunEvent::NotSent { .. }
        | RunEvent::Rejected { .. }
        | RunEvent::InDoubt { .. }
        | RunEvent::NotFetched { .. }
        | RunEvent::Failed { .. }
        | RunEvent::Executed { error: Some(_), .. }
        | RunEvent::TaskNotRecorded { .. }
        | RunEvent::Stopping { .. } => true,
        RunEvent::TaskLeft { why, .. } => *why != LeaveReason::Interrupted,
        _ => false,
    }
}

/// Does something after each pause. Never returns.
async fn again_and_again(pause: Duration, act: impl Fn()) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(pause).await;
        act();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn without_a_terminal_there_is_a_line_a_minute() {
        let said = Cell::new(0);
        let telling = again_and_again(MINUTE, || said.set(said.get() + 1));
        tokio::select! {
            never = telling => match never {},
            () = tokio::time::sleep(Duration::from_secs(3 * 60 + 30)) => {}
        }
        assert_eq!(said.get(), 3);
    }
}
