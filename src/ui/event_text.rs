//! The events of a run as text, and its state: counts, money, time, and some active tasks.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::table::{shortened, shortened_inside, size, span};
use crate::domain::{Charge, JobId, NoticeCode as C, TaskNames, Usd, count};
use crate::engine::{LeaveReason, RunEvent, StopReason};
use crate::plan::Plan;
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
        RunEvent::Submitted { job, task, price } => Text::Verbose(format!("submitted {job} ({price:#}) as {task}")),
        RunEvent::Completed { job, .. } => Text::Detail(format!("completed {job}")),
        RunEvent::Fetched(video) => {
            let (bytes, path) = (size(video.file.bytes), &video.file.path);
            Text::Verbose(format!("downloaded {}, {bytes}: {path}", video.job))
        }
        RunEvent::Executed { job, error: None, .. } => Text::Verbose(format!("ran `--exec` for {job}")),
        RunEvent::Executed { job, error: Some(error), .. } => {
            Text::Failure(format!("`--exec` failed for {job}; the next run with `--exec` starts it again: {error}"))
        }
        RunEvent::Retrying { job, price } => {
            Text::Note(format!("retrying {job} for another {price:#}, as `--retries` allows"))
        }
        RunEvent::Waiting { wait, message } => {
            let wait = if wait.as_secs() == 0 { String::new() } else { format!(" {}", span(*wait)) };
            Text::Note(format!("waiting{wait}: {message}"))
        }
        RunEvent::WaitingForRunners { message } => Text::Note(format!("waiting for other runners: {message}")),
        RunEvent::ServiceRecovered { after } if *after < SILENCE => Text::Nothing,
        RunEvent::ServiceRecovered { after } => {
            Text::Note(format!("the service responds again, after {}", span(*after)))
        }
        RunEvent::Warned {
            code: C::DeliveryMismatch | C::EchoMismatch | C::ModelMismatch | C::PriceMismatch,
            message,
        } => Text::Failure(message.clone()),
        RunEvent::Warned { message, .. } => Text::Warning(message.clone()),
        RunEvent::RequestFailed { message } => {
            Text::Warning(format!("a request failed, and is repeated free of charge: {message}"))
        }
        RunEvent::TaskAlias { job, task } => {
            Text::Warning(format!("the service has two IDs for the task of {job}, and a bill may use either: {task}"))
        }
        RunEvent::UnknownStatus { status } => {
            Text::Warning(format!("the service reports the unknown state `{status}`; polling continues"))
        }
        RunEvent::Stopping { reason, message } => stopping(*reason, message, again),
        RunEvent::NotFetched { job, message, .. } => {
            Text::Failure(format!("can't download {job}; the next run tries again, free of charge: {message}"))
        }
        RunEvent::Failed { job, message, charge, .. } => {
            let money = match charge {
                Charge::None => "costs nothing",
                Charge::Charged => "is charged",
                Charge::Unknown => "may be charged",
            };
            Text::Failure(format!("{job} failed, and {money}: {message}"))
        }
        RunEvent::NotSent { job, reason } => Text::Failure(format!("{job} was not sent, and costs nothing: {reason}")),
        RunEvent::Rejected { job, message } => {
            Text::Failure(format!("{job} was rejected, and costs nothing: {message}"))
        }
        RunEvent::InDoubt { job, message, price } => in_doubt(job, message, *price, again),
        RunEvent::TaskNotRecorded { job, task, .. } => not_recorded(job, task, again),
        RunEvent::TaskLeft { job, why, said, is_endless, .. } => match why {
            LeaveReason::Interrupted => Text::Detail(format!("left the task of {job} active")),
            LeaveReason::KeyRefused => {
                Text::Failure(format!("the task of {job} is left to the next run: the service refuses the key"))
            }
            LeaveReason::Deadline => Text::Failure(past_deadline(job, said.as_deref(), *is_endless, again)),
        },
    }
}

fn started(submit: usize, resume: usize, planned: Usd, fetch: usize) -> String {
    let parts = [
        (submit > 0).then(|| format!("{} to submit for {planned:#}", count(submit, "job"))),
        (fetch > 0).then(|| format!("{} to download, already paid for", count(fetch, "video"))),
        (resume > 0).then(|| count(resume, "active task")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn in_doubt(job: &JobId, message: &str, price: Usd, again: &NextCommand) -> Text {
    let resolve = |options: &[&str]| again.command("resolve", &[&[job.as_str()], options].concat());
    Text::Error {
        message: format!("{job} is in doubt: {message}"),
        help: format!(
            "look for its task on the service's website or bill; if there is one: `{}`; if there is certainly none: `{}`",
            resolve(&["--task", "ID"]),
            resolve(&["--never-created"])
        ),
        note: format!("{price:#} at risk; shotlist never sends the job again by itself"),
    }
}

fn not_recorded(job: &JobId, task: &TaskNames, again: &NextCommand) -> Text {
    let command = again.command("resolve", &[job.as_str(), "--task", task.id.as_str()]);
    Text::Error {
        message: format!("RESCUE: the task of {job} is {task}, and the ledger does not have it yet"),
        help: format!("keep this line; when the ledger is writable, run `{command}`"),
        note: "the task is paid for; until it is recorded, the job is in doubt, and not sent again".to_owned(),
    }
}

fn past_deadline(job: &JobId, said: Option<&str>, is_endless: bool, again: &NextCommand) -> String {
    let mut text = format!("{job} passed its deadline; its task stays active, and the next run polls it");
    if let Some(said) = said {
        text = format!("{text}; last state: {said}");
        if is_endless {
            let give_up = again.command("resolve", &[job.as_str(), "--abandon"]);
            text = format!(
                "{text}; `{give_up}` gives up a task that never ends, but a retry pays twice if it is still running"
            );
        }
    }
    text
}

fn stopping(reason: StopReason, message: &str, again: &NextCommand) -> Text {
    if let StopReason::Signal(_) = reason {
        return Text::Warning(format!("interrupted: {message}"));
    }
    let help = help_after(reason).replace("shotlist resolve", &again.command("resolve", &[]));
    let note = "active tasks are polled to their end; nothing else is submitted".to_owned();
    Text::Error { message: format!("stopped submitting: {message}"), help, note }
}

/// The help after a run that stopped for this reason.
pub(crate) fn help_after(reason: StopReason) -> &'static str {
    match reason {
        StopReason::TooManyFailures => "correct the cause, and run again",
        StopReason::TooManyDoubts => {
            "list the jobs in doubt with `shotlist resolve`, and resolve them before the next run"
        }
        StopReason::SpendLimit => "raise the limit, or run the rest on another day",
        StopReason::Unreachable => "check the base URL and the network, and for a proxy or login page",
        StopReason::KeyRefused => "check `SHOTLIST_API_KEY`, or the file of `--api-key-file`",
        StopReason::FilesFailed => "make room for the videos, and run again",
        StopReason::Frozen => "find out why, then allow purchases with `shotlist limit set --unfreeze`",
        StopReason::PaidElsewhere => "look at `--plan`: it lists each earlier purchase, and how to use it",
        StopReason::LedgerFailed => "make the ledger writable, record the tasks of `RESCUE` lines, and run again",
        StopReason::LeaseExpired => "run again once the other runner has ended",
        StopReason::Signal(_) => "run again: the next run finishes active tasks",
    }
}

/// The duration after which a silent service is shown.
pub(super) const SILENCE: Duration = Duration::from_secs(15);
/// The maximum and the minimum width of the bar, in columns.
const MAX_BAR: usize = 40;
const MIN_BAR: usize = 6;
/// The maximum number of listed tasks.
const OLDEST: usize = 2;
/// The width of an ID in such a line.
const ID: usize = 20;

/// An active task: its start, and its progress in percent.
type Running = (Instant, Option<u8>);

/// The progress of a run.
#[derive(Debug, Default)]
pub struct ProgressState {
    started: Option<Instant>,
    total: usize,
    running: usize,
    completed: usize,
    failed: usize,
    in_doubt: usize,
    left: usize,
    to_fetch: usize,
    reserved: Usd,
    planned: Usd,
    /// The start of the current silence.
    silent_since: Option<Instant>,
    last_failed: Option<(JobId, String)>,
    last_doubt: Option<(JobId, Usd)>,
    /// The active tasks, where tasks are shown.
    tasks: Option<HashMap<JobId, Running>>,
    /// The duration by the plan, until the first task ends.
    expected: Option<Duration>,
}

impl ProgressState {
    /// The state before the run.
    pub fn new(now: Instant) -> Self {
        Self { started: Some(now), ..Self::default() }
    }

    /// Lists the tasks of a plan, with a speed as a multiple of the documented one.
    #[must_use]
    pub fn with_tasks(mut self, plan: &Plan, speed: f64, now: Instant) -> Self {
        self.tasks = Some(plan.resume.iter().map(|attempt| (attempt.job().clone(), (now, None))).collect());
        self.expected = Some(Duration::from_secs(plan.estimate.wall_s).div_f64(speed));
        self
    }

    /// Records an event.
    pub fn note(&mut self, event: &RunEvent, now: Instant) {
        match event {
            RunEvent::Started { submit, resume, planned, .. } => {
                (self.total, self.running, self.planned) = (submit + resume, *resume, *planned);
            }
            RunEvent::Submitted { price, .. } => {
                self.running += 1;
                self.reserved += *price;
            }
            RunEvent::Completed { .. } => self.completed += 1,
            RunEvent::Failed { job, message, .. } => {
                self.failed += 1;
                self.last_failed = Some((job.clone(), message.clone()));
            }
            RunEvent::Rejected { job, message } => {
                self.failed += 1;
                self.last_failed = Some((job.clone(), format!("rejected: {message}")));
            }
            RunEvent::Retrying { .. } => self.failed = self.failed.saturating_sub(1),
            RunEvent::InDoubt { job, price, .. } => {
                self.in_doubt += 1;
                self.reserved += *price;
                self.last_doubt = Some((job.clone(), *price));
            }
            RunEvent::TaskLeft { .. } => self.left += 1,
            RunEvent::ToFetch { .. } => self.to_fetch += 1,
            RunEvent::Fetched(_) | RunEvent::NotFetched { .. } => self.to_fetch = self.to_fetch.saturating_sub(1),
            RunEvent::RequestFailed { .. } => {
                self.silent_since.get_or_insert(now);
            }
            RunEvent::ServiceRecovered { .. } => self.silent_since = None,
            _ => {}
        }
        if matches!(event, RunEvent::Completed { .. } | RunEvent::Failed { .. } | RunEvent::TaskLeft { .. }) {
            self.running = self.running.saturating_sub(1);
        }
        let Some(tasks) = &mut self.tasks else { return };
        match event {
            RunEvent::Submitted { job, .. } => _ = tasks.insert(job.clone(), (now, None)),
            RunEvent::Progressed { job, percent } => {
                tasks.entry(job.clone()).and_modify(|(_, progress)| *progress = *percent);
            }
            RunEvent::Completed { job, .. } | RunEvent::Failed { job, .. } | RunEvent::TaskLeft { job, .. } => {
                tasks.remove(job);
            }
            _ => {}
        }
    }

    /// The state as lines within these columns and rows.
    pub fn lines(&self, width: usize, height: usize, now: Instant) -> Vec<String> {
        let lines = [self.headline(width, now), self.counts().join(" · ")].into_iter().chain(self.tasks(now));
        // Leaves rows for lines above the bar.
        let most = height.saturating_sub(3).clamp(1, OLDEST + 4);
        lines.take(most).map(|line| shortened(&line, width)).collect()
    }

    /// The state as one line, for a log.
    pub fn sentence(&self, now: Instant) -> String {
        [self.done()].into_iter().chain(self.counts()).chain(self.future(now)).collect::<Vec<_>>().join(", ")
    }

    fn headline(&self, width: usize, now: Instant) -> String {
        let text = [self.done()].into_iter().chain(self.future(now)).collect::<Vec<_>>().join(" · ");
        let room = width.saturating_sub(text.chars().count() + 1).min(MAX_BAR);
        if room < MIN_BAR { text } else { format!("{} {text}", self.bar(room)) }
    }

    fn bar(&self, columns: usize) -> String {
        // An active task is not finished.
        let done = self.ended() - self.left;
        let filled = (columns * done.min(self.total)).checked_div(self.total).unwrap_or(0);
        format!("{}{}", "█".repeat(filled), "░".repeat(columns - filled))
    }

    fn ended(&self) -> usize {
        self.completed + self.failed + self.in_doubt + self.left
    }

    fn done(&self) -> String {
        format!("{}/{} done", self.completed, self.total)
    }

    fn counts(&self) -> Vec<String> {
        let counted = |number: usize, what: &str| (number > 0).then(|| format!("{number} {what}"));
        let counts = [
            Some(format!("{:#} of {:#} reserved", self.reserved, self.planned)),
            counted(self.running, "running"),
            counted(self.failed, "failed"),
            counted(self.in_doubt, "in doubt"),
            counted(self.to_fetch, "to fetch"),
        ];
        counts.into_iter().flatten().collect()
    }

    /// The expected time, or the time since it became unknown.
    fn future(&self, now: Instant) -> Option<String> {
        let silence = self.silent_since.map(|since| now.duration_since(since)).filter(|silence| *silence >= SILENCE);
        if let Some(silence) = silence {
            return Some(format!("no response for {}", span(silence)));
        }
        let left = self.time_left(now).filter(|left| *left >= Duration::from_secs(1))?;
        Some(format!("about {} left", span(left)))
    }

    /// The listed tasks.
    fn tasks(&self, now: Instant) -> Vec<String> {
        let line = |job: &JobId, shown: &str| format!("  {:<ID$}  {shown}", shortened_inside(job.as_str(), ID));
        let mut oldest: Vec<(&JobId, &Running)> = self.tasks.iter().flatten().collect();
        oldest.sort_unstable_by_key(|(job, (since, _))| (*since, *job));
        let shown = |(job, (since, percent)): (&JobId, &Running)| {
            let far = percent.map_or_else(|| "waiting".to_owned(), |percent| format!("{percent} %"));
            line(job, &format!("{far:<8} for {}", span(now.duration_since(*since))))
        };
        let mut lines: Vec<String> = oldest.into_iter().take(OLDEST).map(shown).collect();
        lines.extend(self.last_doubt.iter().map(|(job, price)| line(job, &format!("in doubt, {price:#} at risk"))));
        let more = if self.failed > 1 { format!(" ({} in all)", count(self.failed, "failure")) } else { String::new() };
        lines.extend(self.last_failed.iter().map(|(job, message)| line(job, &format!("failed{more}: {message}"))));
        lines
    }

    /// The remaining time at the pace so far; before the first end, by the plan.
    fn time_left(&self, now: Instant) -> Option<Duration> {
        let elapsed = now.duration_since(self.started?);
        let ended = u32::try_from(self.ended()).ok()?;
        let left = u32::try_from(self.total).ok()?.checked_sub(ended).filter(|&left| left > 0)?;
        if ended > 0 { Some(elapsed * left / ended) } else { self.expected?.checked_sub(elapsed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AttemptId, NoticeCode, OutputPath, TaskId, VideoFile};
    use crate::engine::FetchedVideo;
    use std::path::Path;
    use std::time::Duration;

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
            RunEvent::Failed { job: job(), task: task(), message: message(), charge: Charge::Charged },
            RunEvent::Failed { job: job(), task: task(), message: message(), charge: Charge::Unknown },
            RunEvent::Failed { job: job(), task: task(), message: message(), charge: Charge::None },
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
            RunEvent::WaitingForRunners { message: message() },
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
        let again = NextCommand::without_options(Path::new("m.yaml"));
        let shown = |event: &RunEvent| format!("{}: {:#?}", event.code().code(), text_of(event, &again));
        insta::assert_snapshot!(each_event().iter().map(shown).collect::<Vec<_>>().join("\n"));
    }

    fn id(name: &str) -> JobId {
        JobId::new(name).expect("an id")
    }

    fn task() -> TaskNames {
        TaskId::new("t").expect("an id").into()
    }

    fn state(total: usize) -> (ProgressState, Instant) {
        let now = Instant::now();
        let mut progress = ProgressState::new(now);
        let planned = "120".parse().expect("money");
        progress.note(&RunEvent::Started { submit: total, resume: 0, planned, fetch: 0 }, now);
        (progress, now)
    }

    #[test]
    fn progress_counts_each_job_once() {
        let (mut progress, now) = state(6);
        let price: Usd = "3.75".parse().expect("money");
        let submitted = |name| RunEvent::Submitted { job: id(name), task: task(), price };
        let failed =
            |name| RunEvent::Failed { job: id(name), task: task(), message: "no".into(), charge: Charge::Charged };
        for event in [
            submitted("a"),
            submitted("b"),
            submitted("c"),
            RunEvent::Completed { job: id("a"), task: task() },
            RunEvent::ToFetch { job: id("a") },
            failed("b"),
            RunEvent::Retrying { job: id("b"), price },
            submitted("b"),
            failed("b"),
            RunEvent::Rejected { job: id("d"), message: "no".into() },
            RunEvent::InDoubt { job: id("e"), message: "lost".into(), price },
        ] {
            progress.note(&event, now);
        }
        assert_eq!(
            progress.sentence(now),
            "1/6 done, $18.75 of $120.00 reserved, 1 running, 2 failed, 1 in doubt, 1 to fetch"
        );
        let later = now + Duration::from_secs(100);
        assert!(progress.sentence(later).contains("about 50 s left"), "{}", progress.sentence(later));
        progress.note(&RunEvent::RequestFailed { message: "gone".into() }, now);
        assert!(progress.sentence(later).contains("no response for 2 min"), "{}", progress.sentence(later));
    }

    #[test]
    fn progress_bar_excludes_left_jobs() {
        let (mut progress, now) = state(4);
        progress.note(&RunEvent::Completed { job: id("a"), task: task() }, now);
        for job in ["b", "c", "d"] {
            let why = LeaveReason::Interrupted;
            progress.note(&RunEvent::TaskLeft { job: id(job), task: task(), why, said: None, is_endless: false }, now);
        }
        assert_eq!(progress.bar(8), "██░░░░░░");
    }

    #[test]
    fn it_fits_every_terminal() {
        let (mut progress, now) = state(12_345);
        progress.note(
            &RunEvent::Failed {
                job: id(&"x".repeat(128)),
                task: task(),
                message: "n\no\t".repeat(400),
                charge: Charge::Unknown,
            },
            now,
        );
        progress.note(&RunEvent::InDoubt { job: id("doubt"), message: String::new(), price: Usd::ZERO }, now);
        for (width, height) in [(10, 3), (20, 5), (40, 6), (79, 24), (500, 100)] {
            let lines = progress.lines(width, height, now);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:?}");
            assert!(
                lines.len() < height && !lines.iter().any(|line| line.contains(['\n', '\t'])),
                "{height}: {lines:?}"
            );
        }
    }
}
