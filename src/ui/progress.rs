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
use crate::domain::{Job, JobId};
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
            | RunEvent::Left { job, said: Some(said), .. } => *said = without_prompt(said, prompt_of(job)),
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
            tracing::info!(event = "progress", message = sentence);
        } else {
            self.terminal.note(&sentence);
        }
    }

    fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same trouble again and again is told once in a while.
    fn is_worth_telling(&self, event: &RunEvent) -> bool {
        if !matches!(event, RunEvent::Trouble { .. } | RunEvent::Waiting { .. }) {
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
            self.terminal.note(&format!("the service uses a second ID for {named} tasks"));
        }
    }

    fn say(&self, event: &RunEvent) {
        let (terminal, again) = (&self.terminal, &self.again);
        match event {
            RunEvent::Started { submit, resume, planned, fetch } => {
                let mut text = format!("{} to submit for ${planned}", count(*submit, "job"));
                if *fetch > 0 {
                    text = format!("{text}, {} of earlier runs to fetch", count(*fetch, "video"));
                }
                if *resume > 0 {
                    text = format!("{text}, {} at the service already", count(*resume, "task"));
                }
                self.detail(&text);
            }
            RunEvent::Submitted { job, task, price } => {
                if terminal.verbosity > 0 {
                    self.detail(&format!("submitted {job} (${price}) as {task}"));
                }
            }
            RunEvent::Completed { job } => self.detail(&format!("completed {job}")),
            RunEvent::Progressed { .. } | RunEvent::ToFetch { .. } => {}
            RunEvent::Fetched(video) => {
                if terminal.verbosity > 0 {
                    terminal.note(&format!("fetched {}, {}: {}", video.job, size(video.file.bytes), video.file.path));
                }
            }
            RunEvent::Executed { job, error: None } => {
                if terminal.verbosity > 0 {
                    terminal.note(&format!("the program is done with the video of {job}"));
                }
            }
            RunEvent::Executed { job, error: Some(error) } => terminal.failure(&format!(
                "the program failed for the video of {job}, and the next run with --exec starts it again: {error}"
            )),
            RunEvent::NotFetched { job, message } => terminal.failure(&format!(
                "the video of {job} could not be fetched, and the next run tries again without a charge: {message}"
            )),
            RunEvent::Failed { job, message } => terminal.failure(&format!("{job} failed: {message}")),
            RunEvent::Retrying { job, price } => terminal.note(&format!("{job} is tried again, for ${price} more")),
            RunEvent::NotSent { job, reason } => {
                terminal.failure(&format!("{job} was not sent, and costs nothing: {reason}"));
            }
            RunEvent::Rejected { job, message } => {
                terminal.failure(&format!("{job} was rejected, without a charge: {message}"));
            }
            RunEvent::InDoubt { job, message, price } => terminal.error(
                None,
                &format!("{job} is in doubt: {message}"),
                Some(&format!(
                    "it is never sent again by itself. If the service has a task for it: `{}`; if it has none: `{}`",
                    again.command("resolve", &[job.as_str(), "--task", "ID"]),
                    again.command("resolve", &[job.as_str(), "--never-created"])
                )),
                Some(&format!("${price} at risk: it may have been charged")),
            ),
            RunEvent::Named { job, task } => {
                // A gateway does so for each task; the JSON log has them all.
                if self.named.fetch_add(1, Ordering::Relaxed) == 0 {
                    terminal.warning(&format!("the service uses a second ID for the task of {job}: {task}"));
                }
            }
            RunEvent::Left { job, why, said, is_endless } => match why {
                LeaveReason::Deadline => self.say_late(job, said.as_deref(), *is_endless),
                LeaveReason::Interrupted => self.detail(&format!("left {job} at the service")),
                LeaveReason::KeyRefused => {
                    terminal.failure(&format!("{job} stays at the service: the key is refused"));
                }
            },
            RunEvent::Waiting { wait, message } => {
                let wait = if wait.as_secs() == 0 { String::new() } else { format!(" {}", span(*wait)) };
                terminal.note(&format!("waiting{wait}: {message}"));
            }
            RunEvent::Trouble { message } => terminal.warning(&format!("no answer, asking again: {message}")),
            RunEvent::Others { open, alive } => {
                let (tasks, runners) = (count(*open as usize, "task"), count(*alive as usize, "other runner"));
                terminal.note(&format!("waiting for {tasks} of {runners}; what one of them leaves is taken over"));
            }
            RunEvent::Warned { message } => terminal.warning(message),
            RunEvent::Back { after } => {
                if *after >= SILENCE {
                    terminal.note(&format!("the service answers again, after {}", span(*after)));
                }
            }
            RunEvent::UnknownStatus { status } => terminal.warning(&format!(
                "the service says `{status}`, which its interface does not know; the task is asked about again"
            )),
            RunEvent::Rescue { job, task, .. } => {
                let line = format!("RESCUE: the task of {job} is {task}, and the ledger does not have it yet");
                let command = again.command("resolve", &[job.as_str(), "--task", task.id.as_str()]);
                let help = format!("keep this line; when the ledger can be written: `{command}`");
                terminal.error(None, &line, Some(&help), Some("the task is paid for"));
                // On both streams: one of them may go to the very disk that is full.
                let mut page = Page::new();
                page.line(&line);
                terminal.result(&page);
            }
            RunEvent::Stopping { reason, message } => self.say_stop(*reason, message),
        }
    }

    fn say_late(&self, job: &JobId, said: Option<&str>, is_endless: bool) {
        let late =
            format!("{job} took longer than the deadline: it stays at the service, and the next run goes on with it");
        self.terminal.failure(&match said {
            None => late,
            Some(said) if !is_endless => format!("{late}. The last poll brought: {said}"),
            Some(said) => {
                let give_up = self.again.command("resolve", &[job.as_str(), "--lost"]);
                format!(
                    "{late}. The last poll brought: {said}. If its task will certainly never end, give it up: `{give_up}` (if it is \
                     still running, buying the job again pays twice)"
                )
            }
        });
    }

    fn say_stop(&self, reason: StopReason, message: &str) {
        let what = match reason {
            StopReason::TooManyFailures => "too much goes wrong",
            StopReason::TooManyDoubts => "nobody knows what the service does with them",
            StopReason::TimeBox => "the run's time is over",
            StopReason::SpendLimit => "the limit on spending is reached",
            StopReason::Unreachable => "the service can't be reached",
            StopReason::KeyRefused => {
                "the key is refused (mend SHOTLIST_API_KEY, or the file that --api-key-file names)"
            }
            StopReason::FilesFailed => "videos can't be kept",
            StopReason::Frozen => "the ledger allows none",
            StopReason::PaidElsewhere => "another run paid for the same",
            StopReason::LedgerFailed => "what is bought can't be written down",
            StopReason::Signal(_) => "interrupted",
        };
        let text = format!("no more submissions, {what}: {message}");
        if matches!(reason, StopReason::Signal(_)) {
            self.terminal.warning(&text);
        } else {
            self.terminal.failure(&text);
        }
    }

    /// A line that a picture makes superfluous.
    fn detail(&self, text: &str) {
        if !self.terminal.shows_bar || self.terminal.verbosity > 0 {
            self.terminal.note(text);
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
        | RunEvent::Rescue { .. }
        | RunEvent::Stopping { .. } => true,
        RunEvent::Left { why, .. } => *why != LeaveReason::Interrupted,
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
