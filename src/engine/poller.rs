//! Owns every outstanding task: decides who is looked at next, and tells each job's future what was seen.
//!
//! One delay queue holds all tasks, so ten thousand of them are one timer. Looks run beside each other in
//! [`lanes`](super::lanes) of their own and never hold up submissions. What an answer means for its task is decided in
//! [`judge`](super::judge).

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::Either;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio_util::time::DelayQueue;

use super::cadence::Class;
use super::event::Leaving;
use super::judge::{Judge, Next};
use super::lanes::{Lane, Lanes};
use super::line::Line;
use super::settings::Settings;
use super::watched::{Watch, Watched};
use crate::domain::TaskId;
use crate::ledger::{Event, HeldBatch, LedgerError};
use crate::service::{Look, TaskReport, VideoService};

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
    judge: Judge<'e, S>,
    deadline: Duration,
    /// Boxed: the table grows by doubling, and would keep room for many more tasks than there are.
    tasks: HashMap<Number, Box<Watched<'e>>>,
    admitted: Number,
    queue: DelayQueue<Number>,
}

impl<'e, S: VideoService, L: HeldBatch> Poller<'e, S, L> {
    /// With nothing to look after yet.
    pub fn new(line: &'e Line<'e, S>, ledger: &'e L, settings: &Settings) -> Self {
        Self {
            line,
            ledger,
            lanes: Lanes::new(),
            judge: Judge::new(line, settings),
            deadline: settings.deadline,
            tasks: HashMap::new(),
            admitted: 0,
            queue: DelayQueue::new(),
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
        let wait = self.judge.cadence.first(&watch.class, watch.age, fastrand::f64());
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
                self.judge.next(&mut watched, seen)
            }
            Seen::Claim(name, report, claimed) => self.judge.was_claimed(&mut watched, name, *report, claimed),
        };
        if let Some(class) = self.judge.sooner.take() {
            self.hurry(&class);
        }
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

    /// Tasks of this class end sooner than anybody thought: those that wait for their first look get it sooner.
    fn hurry(&mut self, class: &Class) {
        for watched in self.tasks.values_mut().filter(|watched| watched.polls == 0 && watched.watch.class == *class) {
            let Some(place) = &watched.place else { continue };
            let wait = self.judge.cadence.first(class, watched.watch.age + watched.since.elapsed(), fastrand::f64());
            let deadline = self.deadline.saturating_sub(watched.since.elapsed());
            self.queue.reset(place, wait.min(deadline));
        }
    }

    fn leave(&mut self, number: Number, why: Leaving) {
        if let Some(watched) = self.tasks.remove(&number) {
            watched.leave(why);
        }
    }
}

/// The next task that is due, once a lane is free. Cancelling it loses nothing.
async fn due(lanes: &Lanes, queue: &mut DelayQueue<Number>) -> Option<(Lane, Number)> {
    let lane = lanes.enter().await;
    queue.next().await.map(|due| (lane, due.into_inner()))
}
