//! Owns every outstanding task: decides who is looked at next, and tells each job's future what was seen.
//!
//! One delay queue holds all tasks, so ten thousand of them are one timer. Looks run beside each other in
//! [`lanes`](super::lanes) of their own and never hold up submissions. A look that fails never fails a job: only the
//! service's own final word does, or its denial, for a grace time on end, that it knows the task.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::StreamExt as _;
// A channel for each of ten thousand tasks: this one takes no room before something is said.
use futures::channel::mpsc::UnboundedSender;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

use super::cadence::{Cadence, Class, Sight};
use super::event::{Leaving, RunEvent};
use super::lanes::{Lane, Lanes};
use super::line::Line;
use super::settings::Settings;
use super::slots::Slot;
use super::stop::StopReason;
use crate::domain::{ServiceError, TaskId};
use crate::ledger::Event;
use crate::service::{Look, Status, TaskReport, VideoService};

/// How long a known task may be denied before it counts as failed.
const GRACE: Duration = Duration::from_mins(2);
/// The code of a task that the service gave out and then denied for longer than that.
pub const DENIED: &str = "not_found";
/// How many looks at a completed task without a URL, before the content endpoint stands in for it.
const URLLESS_LOOKS: u32 = 3;
/// How many refusals of the key on end, before a task is left at the service.
const KEY_REFUSALS: u32 = 3;

/// A task to look after.
pub struct Watch<'e> {
    /// The task.
    pub task: TaskId,
    /// How long ago it was submitted.
    pub age: Duration,
    /// What tasks take as long as this one.
    pub class: Class,
    /// Its slot, given back at its last word: the next job can go, for what is left to do needs nothing of the service.
    pub slot: Slot<'e>,
    /// Where its job waits.
    pub words: UnboundedSender<Word>,
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
struct Watched<'e> {
    watch: Watch<'e>,
    since: Instant,
    /// Its place in the queue, while no look is under way.
    place: Option<delay_queue::Key>,
    sight: Sight,
    /// Its age at the last look that saw it unfinished.
    unfinished_age: Duration,
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
    line: &'e Line<'e, S>,
    lanes: Lanes,
    cadence: Cadence,
    deadline: Duration,
    /// Boxed: the table grows by doubling, and would keep room for many more tasks than there are.
    tasks: HashMap<Number, Box<Watched<'e>>>,
    admitted: Number,
    queue: DelayQueue<Number>,
    unknown: HashSet<String>,
}

impl Watched<'_> {
    fn age(&self) -> Duration {
        self.watch.age + self.since.elapsed()
    }

    /// A look saw it unfinished.
    fn is_unfinished(&mut self) {
        (self.unfinished_at, self.unfinished_age) = (Timestamp::now(), self.age());
    }
}

impl<'e, S: VideoService> Poller<'e, S> {
    /// With nothing to look after yet.
    pub fn new(line: &'e Line<'e, S>, settings: &Settings) -> Self {
        Self {
            line,
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
                    looks.extend(self.look_at(number, lane));
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

    fn admit(&mut self, watch: Watch<'e>) {
        let wait = self.cadence.first(&watch.class, watch.age, fastrand::f64());
        self.admitted += 1;
        // Nothing was seen of it yet: it may have ended at any time since it was submitted.
        let age = SignedDuration::try_from(watch.age).unwrap_or(SignedDuration::ZERO);
        let unfinished_at = Timestamp::now().checked_sub(age).unwrap_or(Timestamp::UNIX_EPOCH);
        let watched = Watched {
            watch,
            since: Instant::now(),
            place: None,
            sight: Sight::default(),
            unfinished_age: Duration::ZERO,
            unfinished_at,
            polls: 0,
            troubles: 0,
            refusals: 0,
            urlless: 0,
            missing_since: None,
            started: false,
            progress: None,
        };
        self.tasks.insert(self.admitted, Box::new(watched));
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
    fn look_at(
        &mut self,
        number: Number,
        lane: Lane,
    ) -> Option<impl Future<Output = (Number, Option<Look>)> + use<'e, S>> {
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
        let (line, task) = (self.line, watched.watch.task.clone());
        Some(async move {
            let may_look = line.pace.turn_to_look().await || is_last;
            (number, if may_look { Some(lane.run(line.service.look(&task)).await) } else { None })
        })
    }

    fn judge(&mut self, number: Number, seen: Option<Look>) {
        let Some(seen) = seen else { return self.queue_again(number) };
        let Some(mut watched) = self.tasks.remove(&number) else { return };
        watched.polls += 1;
        match self.next(&mut watched, seen) {
            Next::Last(word) => {
                drop(watched.watch.slot);
                // A job that is gone needs no word.
                drop(watched.watch.words.unbounded_send(word));
            }
            Next::LookAgain(wait) => {
                self.tasks.insert(number, watched);
                self.queue_up(number, wait);
            }
        }
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
            drop(watched.watch.words.unbounded_send(Word::Left { why, polls: watched.polls }));
        }
    }

    fn next(&mut self, watched: &mut Watched<'e>, seen: Look) -> Next {
        if !matches!(seen, Look::Trouble(_)) {
            watched.troubles = 0;
            self.line.heard();
        }
        if !matches!(seen, Look::Missing) {
            watched.missing_since = None;
        }
        if !matches!(seen, Look::KeyRefused(_)) {
            watched.refusals = 0;
        }
        match seen {
            Look::Report(report) => self.read_report(watched, report),
            Look::Missing => self.missing(watched),
            Look::KeyRefused(error) => {
                watched.refusals += 1;
                self.line.stop_because(StopReason::KeyRefused, error.message);
                if watched.refusals < KEY_REFUSALS {
                    return self.as_usual(watched);
                }
                Next::Last(Word::Left { why: Leaving::KeyRefused, polls: watched.polls })
            }
            Look::Wait(wait, message) => {
                let wait = self.cadence.asked_to_wait(wait);
                self.line.pace.pause(wait);
                (self.line.tell)(RunEvent::Waiting { wait, message });
                Next::LookAgain(wait)
            }
            Look::Trouble(message) => {
                watched.troubles += 1;
                self.line.lost(message);
                Next::LookAgain(self.cadence.after_trouble(watched.troubles, fastrand::f64()))
            }
        }
    }

    /// The look that the cadence asks for, after one that brought no final word.
    fn as_usual(&mut self, watched: &Watched<'e>) -> Next {
        let age = watched.age();
        Next::LookAgain(self.cadence.next(&watched.watch.class, &watched.sight, age, fastrand::f64()))
    }

    /// What the end of this task says of others.
    fn learn(&mut self, watched: &Watched<'e>, report: &TaskReport) {
        let span = ended_between(report, watched);
        // One that was resumed and is over at the first look may have ended hours ago.
        if span.0.is_zero() && !watched.watch.age.is_zero() {
            return;
        }
        if self.cadence.learn(&watched.watch.class, &watched.sight, span) {
            self.hurry(&watched.watch.class);
        }
    }

    fn read_report(&mut self, watched: &mut Watched<'e>, report: TaskReport) -> Next {
        let (polls, ended_at) = (watched.polls, ended_at(&report, watched.unfinished_at));
        match report.status {
            Status::Completed => {
                if watched.urlless == 0 {
                    self.learn(watched, &report);
                }
                let video_url = report.video_url.or_else(|| {
                    watched.urlless += 1;
                    // A service that has no such field will not have it the next time.
                    (watched.urlless >= URLLESS_LOOKS || !report.names_video_url)
                        .then(|| self.line.service.content_url(&watched.watch.task))
                });
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
                    drop(watched.watch.words.unbounded_send(Word::Progress(report.progress)));
                }
                self.as_usual(watched)
            }
            Status::Unknown(status) => {
                if self.unknown.insert(status.clone()) {
                    (self.line.tell)(RunEvent::UnknownStatus { status });
                }
                self.as_usual(watched)
            }
        }
    }

    /// A task that the service gave us and now denies: perhaps it is not everywhere yet, so it gets a grace time.
    fn missing(&mut self, watched: &mut Watched<'e>) -> Next {
        let since = *watched.missing_since.get_or_insert_with(Instant::now);
        if since.elapsed() < self.cadence.scaled(GRACE) {
            let message = format!("the service does not know the task {} now (HTTP 404)", watched.watch.task);
            (self.line.tell)(RunEvent::Warned { message });
            return self.as_usual(watched);
        }
        let error = ServiceError {
            message: format!("the service no longer knows the task {} (HTTP 404)", watched.watch.task),
            code: Some(DENIED.to_owned()),
            ..ServiceError::default()
        };
        Next::Last(Word::Final(Event::Failed { error, ended_at: Timestamp::now(), polls: watched.polls }))
    }
}

/// The next task that is due, once a lane is free. Cancelling it loses nothing.
async fn due(lanes: &Lanes, queue: &mut DelayQueue<Number>) -> Option<(Lane, Number)> {
    let lane = lanes.enter().await;
    queue.next().await.map(|due| (lane, due.into_inner()))
}

/// Between which ages a task ended that is seen finished now: after the last look that saw it unfinished, and within the
/// second that the service names, if it can be so.
fn ended_between(report: &TaskReport, watched: &Watched<'_>) -> (Duration, Duration) {
    let (from, to) = (watched.unfinished_age, watched.age());
    let said = report.completed_at.and_then(|said| {
        let ago = Duration::try_from(Timestamp::now().duration_since(said)).ok()?;
        Some((from.max(to.checked_sub(ago)?), to.min(to.saturating_sub(ago) + Duration::from_secs(1))))
    });
    said.filter(|(from, to)| from < to).unwrap_or((from, to))
}

/// When generation ended: the service's word where it lies between the last look that saw the task unfinished and now,
/// and otherwise now. Its clock may be off, and it counts in whole seconds.
fn ended_at(report: &TaskReport, unfinished_at: Timestamp) -> Timestamp {
    let now = Timestamp::now();
    let earliest = unfinished_at - SignedDuration::from_secs(1);
    report.completed_at.filter(|said| (earliest..=now).contains(said)).map_or(now, |said| said.max(unfinished_at))
}
