//! Owns every outstanding task: decides who is looked at next, and tells each job's future what was seen.
//!
//! One delay queue holds all tasks, so ten thousand of them are one timer. Looks run beside each other in
//! [`lanes`](super::lanes) of their own and never hold up submissions. A look that fails never fails a job: only the
//! service's own final word does, or its denial, for a grace time on end, that it knows the task.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::Either;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::time::DelayQueue;

use super::cadence::{Cadence, Class};
use super::event::{Leaving, RunEvent};
use super::lanes::{Lane, Lanes};
use super::line::Line;
use super::settings::Settings;
use super::stop::StopReason;
use super::submit::with_cause;
use super::watched::{Watch, Watched, Word};
use super::whose::Whose;
use crate::domain::{ServiceError, TaskId};
use crate::ledger::{Event, Ledger, LedgerError};
use crate::service::{Look, Status, TaskReport, VideoService};

/// How long a known task may be denied before it counts as failed.
const GRACE: Duration = Duration::from_mins(2);
/// The code of a task that the service gave out and then denied for longer than that.
pub const DENIED: &str = "not_found";
/// How many looks at a completed task without a URL, before the content endpoint stands in for it.
const URLLESS_LOOKS: u32 = 3;
/// How many refusals of the key on end, before a task is left at the service.
const KEY_REFUSALS: u32 = 3;

/// What is to be done with a task after a look.
enum Next {
    LookAgain(Duration),
    Last(Word),
    /// The report is about it if the ledger takes this name for it.
    Claim(TaskId, Box<TaskReport>),
}

/// What came of something that was begun for a task.
enum Seen {
    /// A look, unless the service asked everybody to wait meanwhile.
    Look(Option<Look>),
    /// The claim of a name, and the report that gave it.
    Claim(TaskId, Box<TaskReport>, Result<(), LedgerError>),
}

/// The poller's own number for a task.
type Number = u64;

/// The shared poller of a run.
pub struct Poller<'e, S, L> {
    line: &'e Line<'e, S>,
    ledger: &'e L,
    lanes: Lanes,
    cadence: Cadence,
    deadline: Duration,
    /// Boxed: the table grows by doubling, and would keep room for many more tasks than there are.
    tasks: HashMap<Number, Box<Watched<'e>>>,
    admitted: Number,
    queue: DelayQueue<Number>,
    unknown: HashSet<String>,
}

impl<'e, S: VideoService, L: Ledger> Poller<'e, S, L> {
    /// With nothing to look after yet.
    pub fn new(line: &'e Line<'e, S>, ledger: &'e L, settings: &Settings) -> Self {
        Self {
            line,
            ledger,
            lanes: Lanes::new(),
            cadence: Cadence::new(settings),
            deadline: settings.deadline,
            tasks: HashMap::new(),
            admitted: 0,
            queue: DelayQueue::new(),
            unknown: HashSet::new(),
        }
    }

    /// Looks after tasks until no more can come and each has had its last word.
    pub async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Watch<'e>>) {
        let mut looks = FuturesUnordered::new();
        let mut open = true;
        while open || !self.tasks.is_empty() {
            tokio::select! {
                () = self.line.stop.leaving() => break,
                watch = inbox.recv(), if open => match watch {
                    Some(watch) => self.admit(watch),
                    None => open = false,
                },
                Some((lane, number)) = due(&self.lanes, &mut self.queue), if !self.queue.is_empty() => {
                    looks.extend(self.look_at(number, lane).map(Either::Left));
                }
                Some((number, seen)) = looks.next(), if !looks.is_empty() => {
                    looks.extend(self.judge(number, seen).map(Either::Right));
                }
            }
        }
        drop(looks);
        for number in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.leave(number, Leaving::Interrupted);
        }
        // Jobs that hand a task over from now on are told the same by the closed channel.
        drop(inbox);
    }

    fn admit(&mut self, watch: Watch<'e>) {
        let wait = self.cadence.first(&watch.class, watch.age, fastrand::f64());
        self.admitted += 1;
        self.tasks.insert(self.admitted, Box::new(Watched::new(watch)));
        self.queue_up(self.admitted, wait);
    }

    /// The next look at a task comes after this wait, or at its deadline; one that is past it is left.
    fn queue_up(&mut self, number: Number, wait: Duration) {
        let Some(watched) = self.tasks.get_mut(&number) else { return };
        let waited = watched.since.elapsed();
        if waited >= self.deadline {
            self.leave(number, Leaving::Deadline);
        } else {
            watched.place = Some(self.queue.insert(number, wait.min(self.deadline.saturating_sub(waited))));
        }
    }

    /// The look at a task did not take place: it is due again at once, and one past its deadline gets its last look.
    fn queue_again(&mut self, number: Number) {
        if let Some(watched) = self.tasks.get_mut(&number) {
            watched.place = Some(self.queue.insert(number, Duration::ZERO));
        }
    }

    /// A look at a task; nothing comes of it if the service asked everybody to wait meanwhile.
    fn look_at(&mut self, number: Number, lane: Lane) -> Option<impl Future<Output = (Number, Seen)> + use<'e, S, L>> {
        let watched = self.tasks.get_mut(&number)?;
        watched.place = None;
        let is_last = watched.since.elapsed() >= self.deadline;
        if let Some(pause) = self.line.pace.pending()
            && !is_last
        {
            // Nobody asks during a pause. The deadline goes on counting, and there is one look at it all the same: a
            // task that is paid for is not given up unseen.
            self.queue_up(number, pause);
            return None;
        }
        let (line, task) = (self.line, watched.identity.asked_by().clone());
        Some(async move {
            let may_look = line.pace.turn_to_look().await || is_last;
            (number, Seen::Look(if may_look { Some(lane.run(line.service.look(&task)).await) } else { None }))
        })
    }

    /// Does what follows from what was seen; what has to be waited for is given back.
    fn judge(&mut self, number: Number, seen: Seen) -> Option<impl Future<Output = (Number, Seen)> + use<'e, S, L>> {
        let mut watched = self.tasks.remove(&number)?;
        let next = match seen {
            Seen::Look(None) => {
                self.tasks.insert(number, watched);
                self.queue_again(number);
                return None;
            }
            Seen::Look(Some(seen)) => {
                watched.polls += 1;
                self.next(&mut watched, seen)
            }
            Seen::Claim(name, report, claimed) => self.was_claimed(&mut watched, name, *report, claimed),
        };
        match next {
            Next::Last(word) => {
                watched.tell(word);
                drop(watched.watch.slot);
                None
            }
            Next::LookAgain(wait) => {
                self.tasks.insert(number, watched);
                self.queue_up(number, wait);
                None
            }
            Next::Claim(name, report) => {
                let (ledger, attempt) = (self.ledger, watched.watch.attempt);
                self.tasks.insert(number, watched);
                Some(async move {
                    let claimed = ledger.record(attempt, Event::AlsoNamed(name.clone())).await;
                    (number, Seen::Claim(name, report, claimed))
                })
            }
        }
    }

    /// The ledger took a strange name for the task's own, or did not.
    fn was_claimed(
        &mut self,
        watched: &mut Watched<'e>,
        name: TaskId,
        report: TaskReport,
        claimed: Result<(), LedgerError>,
    ) -> Next {
        match claimed {
            Ok(()) => {
                watched.identity.adopt(name);
                watched.tell(Word::Named(watched.identity.names().clone()));
                self.read_report(watched, report)
            }
            Err(taken @ LedgerError::TaskTaken { .. }) => self.is_about_another(watched, &taken.to_string()),
            Err(error) => {
                self.line.stop_because(StopReason::LedgerFailed, with_cause(&error));
                self.as_usual(watched)
            }
        }
    }

    /// An answer that is not about this task: it is asked for again.
    fn is_about_another(&mut self, watched: &mut Watched<'e>, why: &str) -> Next {
        let message = format!("asked about the task {}, {why}", watched.identity.names());
        self.had_trouble(watched, message)
    }

    fn had_trouble(&mut self, watched: &mut Watched<'e>, message: String) -> Next {
        watched.troubles += 1;
        watched.said = Some(message.clone());
        self.line.lost(message);
        Next::LookAgain(self.cadence.after_trouble(watched.troubles, fastrand::f64()))
    }

    /// Tasks of this class end sooner than anybody thought: those that wait for their first look get it sooner.
    fn hurry(&mut self, class: &Class) {
        for watched in self.tasks.values_mut().filter(|watched| watched.polls == 0 && watched.watch.class == *class) {
            let Some(place) = &watched.place else { continue };
            let wait = self.cadence.first(class, watched.watch.age + watched.since.elapsed(), fastrand::f64());
            let deadline = self.deadline.saturating_sub(watched.since.elapsed());
            self.queue.reset(place, wait.min(deadline));
        }
    }

    fn leave(&mut self, number: Number, why: Leaving) {
        if let Some(watched) = self.tasks.remove(&number) {
            watched.leave(why);
        }
    }

    fn next(&mut self, watched: &mut Watched<'e>, seen: Look) -> Next {
        if watched.identity.is_asked_by_alias() && matches!(seen, Look::Trouble(_) | Look::KeyRefused(_)) {
            // The service denied its first name, and what it says of the other one is no better: back to the first.
            watched.identity.was_denied();
            return self.as_usual(watched);
        }
        if !matches!(seen, Look::Trouble(_) | Look::Wait(..)) {
            self.line.pace.was_taken();
        }
        if !matches!(seen, Look::Trouble(_) | Look::Report(_)) {
            self.is_heard(watched);
        }
        if !matches!(seen, Look::Missing(_)) {
            watched.missing_since = None;
        }
        if !matches!(seen, Look::KeyRefused(_)) {
            watched.refusals = 0;
        }
        match seen {
            Look::Report(report) => match watched.identity.hear(&report) {
                Whose::Own => self.read_report(watched, report),
                Whose::Renamed(name) => Next::Claim(name, Box::new(report)),
                Whose::Strange(name) => {
                    if watched.identity.is_asked_by_alias() {
                        watched.identity.was_denied();
                    }
                    self.is_about_another(watched, &format!("the service answered about the task {name}"))
                }
            },
            Look::Missing(why) => self.missing(watched, &why),
            Look::KeyRefused(error) => {
                watched.refusals += 1;
                self.line.stop_because(StopReason::KeyRefused, error.message);
                if watched.refusals < KEY_REFUSALS {
                    return self.as_usual(watched);
                }
                Next::Last(Word::Left { why: Leaving::KeyRefused, polls: watched.polls, said: None })
            }
            Look::Wait(Some(wait), message) => {
                let wait = self.cadence.at_least_the_floor(wait);
                self.line.pace.pause(wait);
                (self.line.tell)(RunEvent::Waiting { wait, message });
                Next::LookAgain(wait)
            }
            Look::Wait(None, message) => {
                Next::LookAgain(self.cadence.at_least_the_floor(self.line.slow_down(&message)))
            }
            Look::Trouble(message) => self.had_trouble(watched, message),
        }
    }

    fn is_heard(&self, watched: &mut Watched<'e>) {
        watched.troubles = 0;
        self.line.heard();
    }

    /// The look that the cadence asks for, after one that brought no final word.
    fn as_usual(&mut self, watched: &Watched<'e>) -> Next {
        let age = watched.age();
        Next::LookAgain(self.cadence.next(&watched.watch.class, &watched.sight, age, fastrand::f64()))
    }

    /// What the end of this task says of others.
    fn learn(&mut self, watched: &Watched<'e>, report: &TaskReport) {
        let span = watched.ended_between(report);
        // One that was resumed and is over at the first look may have ended hours ago.
        if span.0.is_zero() && !watched.watch.age.is_zero() {
            return;
        }
        if self.cadence.learn(&watched.watch.class, &watched.sight, span) {
            self.hurry(&watched.watch.class);
        }
    }

    fn read_report(&mut self, watched: &mut Watched<'e>, report: TaskReport) -> Next {
        self.is_heard(watched);
        let (polls, ended_at) = (watched.polls, watched.ended_at(&report));
        match report.status {
            Status::Completed => {
                if watched.urlless == 0 {
                    self.learn(watched, &report);
                }
                let video_url = report.video_url.or_else(|| {
                    watched.urlless += 1;
                    // A service that has no such field will not have it the next time.
                    (watched.urlless >= URLLESS_LOOKS || !report.names_video_url)
                        .then(|| self.line.service.content_url(watched.identity.asked_by()))
                });
                if video_url.is_some() && !report.echo.is_empty() {
                    watched.tell(Word::Made(report.echo));
                }
                match video_url {
                    Some(video_url) => Next::Last(Word::Final(Event::Completed { video_url, ended_at, polls })),
                    None => self.as_usual(watched),
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
                watched.is_unfinished();
                self.as_usual(watched)
            }
            Status::InProgress => {
                watched.is_unfinished();
                watched.sight.see(watched.age(), report.progress);
                let news = !watched.started || watched.progress != report.progress;
                (watched.started, watched.progress) = (true, report.progress);
                if news {
                    watched.tell(Word::Progress(report.progress));
                }
                self.as_usual(watched)
            }
            Status::Unknown(status) => {
                let why = report.error.map(|error| format!(": {}", error.message)).unwrap_or_default();
                watched.said = Some(format!("the service says `{status}`{why}"));
                if self.unknown.insert(status.clone()) {
                    (self.line.tell)(RunEvent::UnknownStatus { status });
                }
                self.as_usual(watched)
            }
        }
    }

    /// A task that the service gave us and now denies: perhaps it is not everywhere yet, so it gets a grace time.
    fn missing(&mut self, watched: &mut Watched<'e>, why: &str) -> Next {
        if watched.identity.was_denied() {
            return Next::LookAgain(self.cadence.after_trouble(0, fastrand::f64()));
        }
        let since = *watched.missing_since.get_or_insert_with(Instant::now);
        let message = format!("asked about the task {}, {why}", watched.identity.names());
        watched.said = Some(message.clone());
        if since.elapsed() < self.cadence.scaled(GRACE) {
            (self.line.tell)(RunEvent::Warned { message });
            return self.as_usual(watched);
        }
        let error = ServiceError { message, code: Some(DENIED.to_owned()), ..ServiceError::default() };
        Next::Last(Word::Final(Event::Failed { error, ended_at: Timestamp::now(), polls: watched.polls }))
    }
}

/// The next task that is due, once a lane is free. Cancelling it loses nothing.
async fn due(lanes: &Lanes, queue: &mut DelayQueue<Number>) -> Option<(Lane, Number)> {
    let lane = lanes.enter().await;
    queue.next().await.map(|due| (lane, due.into_inner()))
}
