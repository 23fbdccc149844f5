//! A run as it goes: one bar on a terminal, plain lines elsewhere, events as JSON where the log is JSON.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::lines::{count, size, span};
use super::log::set_bars;
use super::terminal::Terminal;
use crate::domain::Usd;
use crate::engine::{Leaving, RunEvent, StopReason};

/// How often the same trouble is told again.
const REPEAT: Duration = Duration::from_secs(30);
/// From when on a silence of the service is shown.
const SILENCE: Duration = Duration::from_secs(15);

/// Shows a run.
#[derive(Debug)]
pub struct Progress {
    terminal: Terminal,
    bar: Option<ProgressBar>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    started: Instant,
    total: usize,
    running: usize,
    ended: usize,
    committed: Usd,
    planned: Usd,
    last_trouble: Option<Instant>,
    /// Since when nobody answers.
    silent_since: Option<Instant>,
}

impl Progress {
    /// Nothing yet.
    #[must_use]
    pub fn new(terminal: &Terminal) -> Self {
        let state = State {
            started: Instant::now(),
            total: 0,
            running: 0,
            ended: 0,
            committed: Usd::ZERO,
            planned: Usd::ZERO,
            last_trouble: None,
            silent_since: None,
        };
        let state = Arc::new(Mutex::new(state));
        let bar = terminal.shows_bar.then(|| new_bar(&state));
        Self { terminal: terminal.clone(), bar, state }
    }

    /// Takes in something that happened, and shows it.
    pub fn tell(&self, event: &RunEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count(event);
        let told = state.is_worth_telling(event);
        let (total, ended) = (state.total, state.ended);
        // Drawing the bar asks for the state.
        drop(state);
        if let Some(bar) = &self.bar {
            bar.set_length(total as u64);
            bar.set_position(ended as u64);
        }
        if self.terminal.logs_json {
            log(event);
        } else if told {
            self.say(event);
        }
    }

    /// Takes the bar away; what comes next is the summary.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn say(&self, event: &RunEvent) {
        let terminal = &self.terminal;
        match event {
            RunEvent::Started { submit, resume, planned } => {
                let mut text = format!("{} to submit for ${planned}", count(*submit, "job"));
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
            RunEvent::Progressed { .. } | RunEvent::Fetching { .. } => {}
            RunEvent::Fetched { job, path, bytes } => {
                self.detail(&format!("fetched {job}, {}: {path}", size(*bytes)));
            }
            RunEvent::NotFetched { job, message } => terminal.warning(&format!(
                "the video of {job} could not be fetched, and the next run tries again without a charge: {message}"
            )),
            RunEvent::Failed { job, message } => terminal.warning(&format!("{job} failed: {message}")),
            RunEvent::Retrying { job, price } => terminal.note(&format!("{job} is tried again, for ${price} more")),
            RunEvent::Rejected { job, message } => {
                terminal.warning(&format!("{job} was rejected, without a charge: {message}"));
            }
            RunEvent::InDoubt { job, message, price } => terminal.error(
                &format!("{job} is in doubt: {message}"),
                Some("it is never sent again by itself: look it up at the service, then settle it with `shotlist resolve`"),
                Some(&format!("${price} may have been charged")),
            ),
            RunEvent::Left { job, why } => match why {
                Leaving::Deadline => terminal.warning(&format!(
                    "{job} took longer than the deadline: it stays at the service, and the next run goes on with it"
                )),
                Leaving::Interrupted => self.detail(&format!("left {job} at the service")),
                Leaving::KeyRefused => {
                    terminal.warning(&format!("{job} stays at the service: the key is refused"));
                }
            },
            RunEvent::Waiting { wait, message } => {
                terminal.note(&format!("waiting {}: {message}", span(*wait)));
            }
            RunEvent::Trouble { message } => terminal.warning(&format!("no answer, asking again: {message}")),
            RunEvent::Warned { message } => terminal.warning(message),
            RunEvent::Back { after } => {
                if *after >= SILENCE {
                    terminal.note(&format!("the service answers again, after {}", span(*after)));
                }
            }
            RunEvent::UnknownStatus { status } => terminal.warning(&format!(
                "the service says `{status}`, which its interface does not know; the task is asked about again"
            )),
            RunEvent::Rescue { job, task } => {
                let line = format!("RESCUE: the task of {job} is {task}, and it could not be written down");
                let help = format!("keep this line; when the ledger can be written: shotlist resolve MANIFEST {job} --task {task}");
                terminal.error(&line, Some(&help), Some("the task is paid for"));
                // On both streams: one of them may go to the very disk that is full.
                terminal.result(&format!("{line}\n"));
            }
            RunEvent::Stopping { reason, message } => self.say_stop(*reason, message),
        }
    }

    fn say_stop(&self, reason: StopReason, message: &str) {
        let what = match reason {
            StopReason::TooManyFailures => "too much goes wrong",
            StopReason::TimeBox => "the run's time is over",
            StopReason::SpendLimit => "the limit on spending is reached",
            StopReason::Unreachable => "the service can't be reached",
            StopReason::KeyRefused => "the key is refused",
            StopReason::FilesFailed => "videos can't be kept",
            StopReason::LedgerFailed => "what is bought can't be written down",
            StopReason::Signal(_) => "interrupted",
        };
        self.terminal.warning(&format!("no more submissions, {what}: {message}"));
    }

    /// A line that a bar makes superfluous.
    fn detail(&self, text: &str) {
        if self.bar.is_none() || self.terminal.verbosity > 0 {
            self.terminal.note(text);
        }
    }
}

impl State {
    fn count(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Trouble { .. } => {
                self.silent_since.get_or_insert_with(Instant::now);
            }
            RunEvent::Back { .. } => self.silent_since = None,
            _ => {}
        }
        match event {
            RunEvent::Started { submit, resume, planned } => {
                (self.total, self.running, self.planned) = (submit + resume, *resume, *planned);
            }
            RunEvent::Submitted { price, .. } => {
                self.running += 1;
                self.committed += *price;
            }
            RunEvent::Completed { .. } | RunEvent::Failed { .. } | RunEvent::Left { .. } => {
                self.running = self.running.saturating_sub(1);
                self.ended += 1;
            }
            RunEvent::Retrying { .. } => self.ended = self.ended.saturating_sub(1),
            RunEvent::Rejected { .. } => self.ended += 1,
            RunEvent::InDoubt { price, .. } => {
                self.ended += 1;
                self.committed += *price;
            }
            _ => {}
        }
    }

    fn message(&self) -> String {
        let mut text = format!("{} running · ${} of ${}", self.running, self.committed, self.planned);
        if let Some(silence) = self.silent_since.map(|since| since.elapsed()).filter(|silence| *silence >= SILENCE) {
            return format!("{text} · no answer for {}", span(silence));
        }
        if let Some(left) = self.time_left() {
            text = format!("{text} · about {} left", span(left));
        }
        text
    }

    /// By the pace so far; nothing before there is one.
    fn time_left(&self) -> Option<Duration> {
        let left = u32::try_from(self.total.checked_sub(self.ended)?).ok()?;
        let ended = u32::try_from(self.ended).ok().filter(|&ended| ended > 0)?;
        Some(self.started.elapsed() * left / ended)
    }

    /// The same trouble again and again is told once in a while.
    fn is_worth_telling(&mut self, event: &RunEvent) -> bool {
        if !matches!(event, RunEvent::Trouble { .. } | RunEvent::Waiting { .. }) {
            return true;
        }
        let due = self.last_trouble.is_none_or(|last| last.elapsed() >= REPEAT);
        if due {
            self.last_trouble = Some(Instant::now());
        }
        due
    }
}

/// A bar that asks for the state whenever it is drawn, which is some times a second, however much happens.
fn new_bar(state: &Arc<Mutex<State>>) -> ProgressBar {
    let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8));
    set_bars(bars.clone());
    let state = Arc::clone(state);
    let run = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let text = state.lock().unwrap_or_else(PoisonError::into_inner).message();
        let _infallible = out.write_str(&text);
    };
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} done · {run}");
    let bar = bars.add(ProgressBar::new(0));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("run", run));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// An event as a line of the JSON log.
fn log(event: &RunEvent) {
    match event {
        RunEvent::Started { submit, resume, planned } => {
            tracing::info!(event = "started", submit, resume, planned_usd = %planned);
        }
        RunEvent::Submitted { job, task, price } => {
            tracing::info!(event = "submitted", %job, %task, price_usd = %price);
        }
        RunEvent::Progressed { job, percent } => tracing::debug!(event = "progressed", %job, percent),
        RunEvent::Completed { job } => tracing::info!(event = "completed", %job),
        RunEvent::Fetching { job } => tracing::debug!(event = "fetching", %job),
        RunEvent::Fetched { job, path, bytes } => tracing::info!(event = "fetched", %job, file = %path, bytes),
        RunEvent::NotFetched { job, message } => tracing::warn!(event = "not_fetched", %job, error = message),
        RunEvent::Failed { job, message } => tracing::warn!(event = "failed", %job, error = message),
        RunEvent::Retrying { job, price } => tracing::warn!(event = "retrying", %job, price_usd = %price),
        RunEvent::Rejected { job, message } => tracing::warn!(event = "rejected", %job, error = message),
        RunEvent::InDoubt { job, message, price } => {
            tracing::error!(event = "in_doubt", %job, error = message, at_risk_usd = %price);
        }
        RunEvent::Left { job, why } => tracing::warn!(event = "left", %job, why = ?why),
        RunEvent::Waiting { wait, message } => {
            tracing::warn!(event = "waiting", seconds = wait.as_secs_f64(), error = message);
        }
        RunEvent::Trouble { message } => tracing::warn!(event = "trouble", error = message),
        RunEvent::Warned { message } => tracing::warn!(event = "warned", message),
        RunEvent::Back { after } => tracing::info!(event = "back", seconds = after.as_secs_f64()),
        RunEvent::UnknownStatus { status } => tracing::warn!(event = "unknown_status", status),
        RunEvent::Rescue { job, task } => tracing::error!(event = "rescue", %job, %task),
        RunEvent::Stopping { reason, message } => tracing::warn!(event = "stopping", reason = ?reason, error = message),
    }
}
