//! Owns every outstanding task: decides who is looked at next, and tells each job's future what was seen.
//!
//! One delay queue holds all tasks, so ten thousand of them are one timer. Looks run beside each other up to a bound and
//! never hold up submissions. A look that fails never fails a job: only the service's own final word does, or its
//! denial, for a grace time on end, that it knows the task.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::time::DelayQueue;

use super::cadence::Cadence;
use super::event::{Leaving, RunEvent};
use super::pace::Pace;
use super::settings::Settings;
use super::stop::{Stop, StopReason};
use crate::domain::{ServiceError, TaskId};
use crate::ledger::Event;
use crate::service::{Look, Status, TaskReport, VideoService};

/// The most looks under way at once: bounds sockets, whatever the number of tasks.
const MOST_LOOKS: usize = 32;
/// How long a known task may be denied before it counts as failed.
const GRACE: Duration = Duration::from_mins(2);
/// The code of a task that the service gave out and then denied for longer than that.
pub const DENIED: &str = "not_found";
/// How many looks at a completed task without a URL, before the content endpoint stands in for it.
const URLLESS_LOOKS: u32 = 3;
/// How many refusals of the key on end, before a task is left at the service.
const KEY_REFUSALS: u32 = 3;

/// A task to look after.
pub struct Watch {
    /// The task.
    pub task: TaskId,
    /// How long ago it was submitted.
    pub age: Duration,
    /// The shortest time that its family typically needs.
    pub typical_min: Duration,
    /// Where its job waits.
    pub words: mpsc::UnboundedSender<Word>,
}

/// What the poller tells a job.
#[derive(Clone, PartialEq, Debug)]
pub enum Word {
    /// It is being generated, for all that the service says.
    Progress(Option<u8>),
    /// The final word, as the ledger takes it.
    Final(Event),
    /// No final word yet, and nobody waits for it any more.
    Left {
        /// Why.
        why: Leaving,
        /// Looks in this run.
        polls: u32,
    },
}

/// A task, with what was seen of it.
struct Watched {
    watch: Watch,
    since: Instant,
    /// The last moment at which it was certainly not finished.
    unfinished_at: Timestamp,
    polls: u32,
    troubles: u32,
    refusals: u32,
    urlless: u32,
    missing_since: Option<Instant>,
    started: bool,
    progress: Option<u8>,
}

/// What is to be done with a task after a look.
enum Next {
    LookAgain(Duration),
    Last(Word),
}

/// The poller's own number for a task.
type Number = u64;

/// The shared poller of a run.
pub struct Poller<'e, S> {
    service: &'e S,
    cadence: Cadence,
    deadline: Duration,
    pace: &'e Pace,
    stop: &'e Stop,
    tell: &'e (dyn Fn(RunEvent) + Sync),
    tasks: HashMap<Number, Watched>,
    admitted: Number,
    queue: DelayQueue<Number>,
    unknown: HashSet<String>,
}

impl<'e, S: VideoService> Poller<'e, S> {
    /// With nothing to look after yet.
    pub fn new(
        service: &'e S,
        settings: &Settings,
        pace: &'e Pace,
        stop: &'e Stop,
        tell: &'e (dyn Fn(RunEvent) + Sync),
    ) -> Self {
        Self {
            service,
            cadence: Cadence::new(settings),
            deadline: settings.deadline,
            pace,
            stop,
            tell,
            tasks: HashMap::new(),
            admitted: 0,
            queue: DelayQueue::new(),
            unknown: HashSet::new(),
        }
    }

    /// Looks after tasks until no more can come and each has had its last word.
    pub async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Watch>) {
        let mut looks = FuturesUnordered::new();
        let mut open = true;
        let stop = self.stop;
        while open || !self.tasks.is_empty() {
            tokio::select! {
                () = stop.leaving() => break,
                watch = inbox.recv(), if open => match watch {
                    Some(watch) => self.admit(watch),
                    None => open = false,
                },
                Some(due) = self.queue.next(), if looks.len() < MOST_LOOKS && !self.queue.is_empty() => {
                    looks.extend(self.look_at(due.into_inner()));
                }
                Some((number, seen)) = looks.next(), if !looks.is_empty() => self.judge(number, seen),
            }
        }
        drop(looks);
        for number in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.leave(number, Leaving::Interrupted);
        }
        // Jobs that hand a task over from now on are told the same by the closed channel.
        drop(inbox);
    }

    fn admit(&mut self, watch: Watch) {
        let wait = self.cadence.first(watch.typical_min, watch.age, fastrand::f64());
        self.admitted += 1;
        // Nothing was seen of it yet: it may have ended at any time since it was submitted.
        let age = SignedDuration::try_from(watch.age).unwrap_or(SignedDuration::ZERO);
        let unfinished_at = Timestamp::now().checked_sub(age).unwrap_or(Timestamp::UNIX_EPOCH);
        let watched = Watched {
            watch,
            since: Instant::now(),
            unfinished_at,
            polls: 0,
            troubles: 0,
            refusals: 0,
            urlless: 0,
            missing_since: None,
            started: false,
            progress: None,
        };
        self.tasks.insert(self.admitted, watched);
        self.queue.insert(self.admitted, wait.min(self.deadline));
    }

    fn look_at(&mut self, number: Number) -> Option<impl Future<Output = (Number, Look)> + use<'e, S>> {
        let watched = self.tasks.get_mut(&number)?;
        let waited = watched.since.elapsed();
        if let Some(pause) = self.pace.pending() {
            // Nobody asks during a pause; the deadline goes on counting.
            if waited >= self.deadline {
                self.leave(number, Leaving::Deadline);
            } else {
                self.queue.insert(number, pause.min(self.deadline.saturating_sub(waited)));
            }
            return None;
        }
        watched.polls += 1;
        let (service, task) = (self.service, watched.watch.task.clone());
        Some(async move { (number, service.look(&task).await) })
    }

    fn judge(&mut self, number: Number, seen: Look) {
        let Some(mut watched) = self.tasks.remove(&number) else { return };
        let next = self.next(&mut watched, seen);
        let waited = watched.since.elapsed();
        match next {
            // A job that is gone needs no word.
            Next::Last(word) => drop(watched.watch.words.send(word)),
            Next::LookAgain(wait) => {
                self.tasks.insert(number, watched);
                if waited >= self.deadline {
                    self.leave(number, Leaving::Deadline);
                } else {
                    self.queue.insert(number, wait.min(self.deadline.saturating_sub(waited)));
                }
            }
        }
    }

    fn leave(&mut self, number: Number, why: Leaving) {
        if let Some(watched) = self.tasks.remove(&number) {
            drop(watched.watch.words.send(Word::Left { why, polls: watched.polls }));
        }
    }

    fn next(&mut self, watched: &mut Watched, seen: Look) -> Next {
        let usual = self.cadence.next(fastrand::f64());
        if !matches!(seen, Look::Trouble(_)) {
            watched.troubles = 0;
        }
        if !matches!(seen, Look::Missing) {
            watched.missing_since = None;
        }
        if !matches!(seen, Look::KeyRefused(_)) {
            watched.refusals = 0;
        }
        match seen {
            Look::Report(report) => self.read_report(watched, report, usual),
            Look::Missing => self.missing(watched, usual),
            Look::KeyRefused(error) => {
                watched.refusals += 1;
                if self.stop.because(StopReason::KeyRefused) {
                    (self.tell)(RunEvent::Stopping { reason: StopReason::KeyRefused, message: error.message });
                }
                if watched.refusals < KEY_REFUSALS {
                    return Next::LookAgain(usual);
                }
                Next::Last(Word::Left { why: Leaving::KeyRefused, polls: watched.polls })
            }
            Look::Wait(wait, message) => {
                let wait = wait.unwrap_or_else(|| self.cadence.unsaid_wait());
                self.pace.pause(wait);
                (self.tell)(RunEvent::Waiting { wait, message });
                Next::LookAgain(wait.max(usual))
            }
            Look::Trouble(message) => {
                watched.troubles += 1;
                (self.tell)(RunEvent::Trouble { message });
                Next::LookAgain(self.cadence.after_trouble(watched.troubles, fastrand::f64()))
            }
        }
    }

    fn read_report(&mut self, watched: &mut Watched, report: TaskReport, usual: Duration) -> Next {
        let (polls, ended_at) = (watched.polls, ended_at(&report, watched.unfinished_at));
        match report.status {
            Status::Completed => {
                let video_url = report.video_url.or_else(|| {
                    watched.urlless += 1;
                    (watched.urlless >= URLLESS_LOOKS).then(|| self.service.content_url(&watched.watch.task))
                });
                match video_url {
                    Some(video_url) => Next::Last(Word::Final(Event::Completed { video_url, ended_at, polls })),
                    None => Next::LookAgain(usual),
                }
            }
            Status::Failed => {
                let error = report.error.unwrap_or_else(|| ServiceError {
                    message: "the service gave no reason".to_owned(),
                    ..ServiceError::default()
                });
                Next::Last(Word::Final(Event::Failed { error, ended_at, polls }))
            }
            Status::Queued => {
                watched.unfinished_at = Timestamp::now();
                Next::LookAgain(usual)
            }
            Status::InProgress => {
                watched.unfinished_at = Timestamp::now();
                let news = !watched.started || watched.progress != report.progress;
                (watched.started, watched.progress) = (true, report.progress);
                if news {
                    drop(watched.watch.words.send(Word::Progress(report.progress)));
                }
                Next::LookAgain(usual)
            }
            Status::Unknown(status) => {
                if self.unknown.insert(status.clone()) {
                    (self.tell)(RunEvent::UnknownStatus { status });
                }
                Next::LookAgain(usual)
            }
        }
    }

    /// A task that the service gave us and now denies: perhaps it is not everywhere yet, so it gets a grace time.
    fn missing(&self, watched: &mut Watched, usual: Duration) -> Next {
        let since = *watched.missing_since.get_or_insert_with(Instant::now);
        if since.elapsed() < self.cadence.scaled(GRACE) {
            let message = format!("the service does not know the task {} now (HTTP 404)", watched.watch.task);
            (self.tell)(RunEvent::Trouble { message });
            return Next::LookAgain(usual);
        }
        let error = ServiceError {
            message: format!("the service no longer knows the task {} (HTTP 404)", watched.watch.task),
            code: Some(DENIED.to_owned()),
            ..ServiceError::default()
        };
        Next::Last(Word::Final(Event::Failed { error, ended_at: Timestamp::now(), polls: watched.polls }))
    }
}

/// When generation ended: the service's word where it lies between the last look that saw the task unfinished and now,
/// and otherwise now. Its clock may be off, and it counts in whole seconds.
fn ended_at(report: &TaskReport, unfinished_at: Timestamp) -> Timestamp {
    let now = Timestamp::now();
    let earliest = unfinished_at - SignedDuration::from_secs(1);
    report.completed_at.filter(|said| (earliest..=now).contains(said)).map_or(now, |said| said.max(unfinished_at))
}
