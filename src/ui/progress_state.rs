//! State of a run as text: counts, money, time, and some active tasks.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::table::{shortened, shortened_inside, span};
use crate::domain::count;
use crate::domain::{JobId, Usd};
use crate::engine::RunEvent;
use crate::plan::Plan;

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
            Some(format!("${} of ${} reserved", self.reserved, self.planned)),
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
        lines.extend(self.last_doubt.iter().map(|(job, price)| line(job, &format!("in doubt, ${price} at risk"))));
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

    fn id(name: &str) -> JobId {
        JobId::new(name).expect("an id")
    }

    fn task() -> crate::domain::TaskNames {
        crate::domain::TaskId::new("t").expect("an id").into()
    }

    fn state(total: usize) -> (ProgressState, Instant) {
        let now = Instant::now();
        let mut progress = ProgressState::new(now);
        let planned = "120".parse().expect("money");
        progress.note(&RunEvent::Started { submit: total, resume: 0, planned, fetch: 0 }, now);
        (progress, now)
    }

    #[test]
    fn every_job_is_counted_once_whatever_happens_to_it() {
        let (mut progress, now) = state(6);
        let price: Usd = "3.75".parse().expect("money");
        let submitted = |name| RunEvent::Submitted { job: id(name), task: task(), price };
        let failed = |name| RunEvent::Failed { job: id(name), task: task(), message: "no".into() };
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
    fn the_bar_shows_what_is_done_and_not_what_was_left() {
        let (mut progress, now) = state(4);
        progress.note(&RunEvent::Completed { job: id("a"), task: task() }, now);
        for job in ["b", "c", "d"] {
            let why = crate::engine::LeaveReason::Interrupted;
            progress.note(&RunEvent::TaskLeft { job: id(job), task: task(), why, said: None, is_endless: false }, now);
        }
        assert_eq!(progress.bar(8), "██░░░░░░");
    }

    #[test]
    fn it_fits_every_terminal() {
        let (mut progress, now) = state(12_345);
        progress
            .note(&RunEvent::Failed { job: id(&"x".repeat(128)), task: task(), message: "n\no\t".repeat(400) }, now);
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
