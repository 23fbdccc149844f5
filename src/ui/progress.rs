//! The progress of a run: a bar on a terminal, plain lines elsewhere, or JSON events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::event_text::{ProgressState, Text, text_of};
use super::log::log;
use super::page::Page;
use super::table::without_prompt;
use super::terminal::{Terminal, draw, size};
use crate::domain::{Job, JobId, NoticeCode};
use crate::engine::RunEvent;
use crate::plan::Plan;
use crate::report::NextCommand;

/// The interval of repeated problems.
const REPEAT: Duration = Duration::from_secs(30);
/// The interval of progress lines without a bar.
const MINUTE: Duration = Duration::from_mins(1);
/// The interval of frames.
const FRAME: Duration = Duration::from_millis(200);

/// Shows a run.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: Terminal,
    /// For printed commands.
    again: NextCommand,
    state: Mutex<ProgressState>,
    last_trouble: Mutex<Option<Instant>>,
    /// The causes for which jobs were not bought.
    causes: Mutex<HashSet<String>>,
    named: AtomicUsize,
    /// The jobs. A JSON log must not contain their prompts.
    prompts: HashMap<JobId, Arc<Job>>,
}

impl Progress {
    /// The progress of a plan's run. `again` makes the printed commands.
    pub(crate) fn new(terminal: &Terminal, again: &NextCommand, plan: &Plan, speed: f64) -> Self {
        let now = Instant::now();
        let state = ProgressState::new(now);
        // Single tasks are shown only on a terminal.
        let state = if terminal.shows_bar { state.with_tasks(plan, speed, now) } else { state };
        let jobs = plan.jobs.iter().filter(|_| terminal.logs_json).map(|planned| &planned.job);
        let prompts = jobs.map(|job| (job.id().clone(), Arc::clone(job))).collect();
        let (terminal, again) = (terminal.clone(), again.clone());
        let (state, named) = (Mutex::new(state), AtomicUsize::new(0));
        Self { terminal, again, state, last_trouble: Mutex::default(), causes: Mutex::default(), named, prompts }
    }

    /// Records and shows an event.
    pub(crate) fn tell(&self, event: &RunEvent) {
        self.state.lock().note(event, Instant::now());
        if self.terminal.logs_json {
            let is_bad = || matches!(text_of(event, &self.again), Text::Failure(_) | Text::Error { .. });
            if !self.terminal.is_quiet || is_bad() || matches!(event, RunEvent::Stopping { .. }) {
                log(&self.without_prompts(event));
            }
        } else if self.is_worth_telling(event) {
            self.say(event);
        }
    }

    /// Updates the progress: a bar on a terminal, or one line per minute elsewhere. Never returns.
    pub(crate) async fn keep_telling(&self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(if self.terminal.shows_bar { FRAME } else { MINUTE }).await;
            if self.terminal.shows_bar { self.draw() } else { self.say_how_far() }
        }
    }

    /// An event for the log, without the prompt, which a service may repeat.
    fn without_prompts(&self, event: &RunEvent) -> RunEvent {
        let prompt_of = |job: &JobId| self.prompts.get(job).and_then(|job| job.spec.prompt.as_deref());
        let mut event = event.clone();
        match &mut event {
            RunEvent::NotSent { job, reason: said }
            | RunEvent::Rejected { job, message: said }
            | RunEvent::InDoubt { job, message: said, .. }
            | RunEvent::NotFetched { job, message: said, .. }
            | RunEvent::Failed { job, message: said, .. }
            | RunEvent::TaskLeft { job, said: Some(said), .. } => *said = without_prompt(said, prompt_of(job)),
            RunEvent::Stopping { message, .. }
            | RunEvent::RequestFailed { message }
            | RunEvent::Warned { message, .. } => {
                for prompt in self.prompts.values().filter_map(|job| job.spec.prompt.as_deref()) {
                    if message.len() >= prompt.trim().len() {
                        *message = without_prompt(message, Some(prompt));
                    }
                }
            }
            _ => {}
        }
        event
    }

    fn draw(&self) {
        let (width, height) = size();
        // Some terminals wrap after the last column.
        // With space for `^C`, which would wrap the line.
        let lines = self.state.lock().lines(width.saturating_sub(3), height, Instant::now());
        draw(&lines);
    }

    fn say_how_far(&self) {
        let sentence = self.state.lock().sentence(Instant::now());
        if self.terminal.logs_json {
            tracing::info!(code = NoticeCode::Progress.code(), message = sentence);
        } else {
            self.terminal.note(NoticeCode::Progress, &sentence);
        }
    }

    /// Returns whether to show an event: repeated problems at an interval, and each alias and cause once. The JSON log has all events.
    fn is_worth_telling(&self, event: &RunEvent) -> bool {
        if matches!(event, RunEvent::TaskAlias { .. }) {
            return self.named.fetch_add(1, Ordering::Relaxed) == 0;
        }
        // The summary has all of their jobs.
        if let RunEvent::Rejected { message: cause, .. } | RunEvent::NotSent { reason: cause, .. } = event {
            return self.causes.lock().insert(cause.clone());
        }
        if !matches!(event, RunEvent::RequestFailed { .. } | RunEvent::Waiting { .. }) {
            return true;
        }
        let mut last = self.last_trouble.lock();
        let due = last.is_none_or(|last| last.elapsed() >= REPEAT);
        if due {
            *last = Some(Instant::now());
        }
        due
    }

    /// Removes the bar before the summary.
    pub(crate) fn finish(&self) {
        draw(&[]);
        let named = self.named.load(Ordering::Relaxed);
        if named > 1 {
            self.terminal.note(NoticeCode::TaskAlias, &format!("the service has two IDs for each of {named} tasks"));
        }
    }

    fn say(&self, event: &RunEvent) {
        let (terminal, code) = (&self.terminal, event.code());
        match text_of(event, &self.again) {
            Text::Verbose(text) if terminal.verbosity > 0 => terminal.note(code, &text),
            Text::Detail(text) if terminal.verbosity > 0 || !terminal.shows_bar => terminal.note(code, &text),
            Text::Nothing | Text::Verbose(_) | Text::Detail(_) => {}
            Text::Note(text) => terminal.note(code, &text),
            Text::Warning(text) => terminal.warning(code, &text),
            Text::Failure(text) => terminal.failure(code, &text),
            Text::Error { message, help, note } => {
                terminal.error(Some(code.code()), &message, Some(&help), Some(&note));
                if matches!(event, RunEvent::TaskNotRecorded { .. }) {
                    // On both streams: one may go to the full disk.
                    let mut page = Page::new();
                    page.line(&message);
                    terminal.result(&page);
                }
            }
        }
    }
}
