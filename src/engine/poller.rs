//! The shared poller of all active tasks.
//!
//! One delay queue has all tasks, so ten thousand of them are one timer. Polls run concurrently, a bounded number [in
//! flight](super::in_flight), and never block submissions. [`watched`](super::watched) decides what a response means
//! for its task, and [`reactions`](super::reactions) what follows from it.

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::Either;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

use super::cadence::Class;
use super::event::LeaveReason;
use super::gateway::Gateway;
use super::in_flight::{InFlight, InFlightPermit};
use super::reactions::Reactions;
use super::settings::Settings;
use super::stop::StopReason;
use super::watch::Watch;
use super::watched::{Ending, Moment, Next, Note, Pause, Watched};
use crate::domain::{TaskId, with_causes};
use crate::ledger::{Event, LedgerError, LockedBatch};
use crate::service::{PollAnswer, TaskReport, VideoService};

/// A finished request for a task.
enum Done {
    /// A poll, or `None` if a pause began before it was sent.
    Poll(Option<PollAnswer>),
    /// The content endpoint has a video or none, for a task that may have ended at this time.
    Content(bool, Timestamp),
    /// The claim of an alias, and the report that named it.
    Claim(TaskId, Box<TaskReport>, Result<(), LedgerError>),
}

/// The poller's number for a task.
type Number = u64;

/// A task in the poller.
struct Entry<'e> {
    watch: Watch<'e>,
    watched: Watched,
    since: Instant,
    /// Its key in the queue, unless a request is in flight.
    key: Option<delay_queue::Key>,
}

impl Entry<'_> {
    /// The time since its submission.
    fn age(&self) -> Duration {
        self.watch.age + self.since.elapsed()
    }
}

/// The poller of a run.
pub(super) struct Poller<'e, S> {
    gateway: &'e Gateway<'e, S>,
    ledger: &'e LockedBatch,
    in_flight: InFlight,
    reactions: Reactions<'e, S>,
    deadline: Duration,
    endless: EndlessTasks,
    /// Boxed, because the table grows by doubling.
    tasks: HashMap<Number, Box<Entry<'e>>>,
    admitted: Number,
    queue: DelayQueue<Number>,
}

impl<'e, S: VideoService> Poller<'e, S> {
    /// A poller without tasks.
    pub(super) fn new(gateway: &'e Gateway<'e, S>, ledger: &'e LockedBatch, settings: &Settings) -> Self {
        Self {
            gateway,
            ledger,
            in_flight: InFlight::new(),
            reactions: Reactions::new(gateway, settings),
            deadline: settings.deadline,
            endless: EndlessTasks { most: settings.max_doubts, overdue: 0, has_ended: false },
            tasks: HashMap::new(),
            admitted: 0,
            queue: DelayQueue::new(),
        }
    }

    /// Polls until no more tasks can arrive and each has had its final update.
    pub(super) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Watch<'e>>) {
        let mut under_way = FuturesUnordered::new();
        let mut open = true;
        while open || !self.tasks.is_empty() {
            tokio::select! {
                () = self.gateway.stop.aborting() => break,
                watch = inbox.recv(), if open => match watch {
                    Some(watch) => self.admit(watch),
                    None => open = false,
                },
                Some((permit, number)) = due(&self.in_flight, &mut self.queue), if !self.queue.is_empty() => {
                    under_way.extend(self.poll(number, permit).map(Either::Left));
                }
                Some((number, done)) = under_way.next(), if !under_way.is_empty() => {
                    under_way.extend(self.react(number, done).map(Either::Right));
                }
            }
        }
        drop(under_way);
        for number in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.leave(number, LeaveReason::Interrupted);
        }
        // The closed channel tells jobs that arrive later.
        drop(inbox);
    }

    fn admit(&mut self, watch: Watch<'e>) {
        let wait = self.reactions.cadence.first(&watch.class, watch.age, fastrand::f64());
        let watched = Watched::new(watch.task.clone(), Moment { age: watch.age, at: self.gateway.now() });
        self.admitted += 1;
        self.tasks.insert(self.admitted, Box::new(Entry { watch, watched, since: Instant::now(), key: None }));
        self.queue_up(self.admitted, wait);
    }

    /// Schedules the next poll after this wait, at most at the deadline. Leaves a task past its deadline.
    fn queue_up(&mut self, number: Number, wait: Duration) {
        let Some(entry) = self.tasks.get_mut(&number) else { return };
        let waited = entry.since.elapsed();
        if waited >= self.deadline {
            self.leave(number, LeaveReason::Deadline);
        } else {
            entry.key = Some(self.queue.insert(number, wait.min(self.deadline.saturating_sub(waited))));
        }
    }

    /// Schedules a poll that was not sent, at once. A task past its deadline gets its last poll.
    fn queue_again(&mut self, number: Number) {
        if let Some(entry) = self.tasks.get_mut(&number) {
            entry.key = Some(self.queue.insert(number, Duration::ZERO));
        }
    }

    /// Starts a poll. Its result is `None` if a pause begins before it is sent.
    fn poll(
        &mut self,
        number: Number,
        permit: InFlightPermit,
    ) -> Option<impl Future<Output = (Number, Done)> + use<'e, S>> {
        let entry = self.tasks.get_mut(&number)?;
        entry.key = None;
        let is_last = entry.since.elapsed() >= self.deadline;
        if let Some(pause) = self.gateway.rate_limit.pending()
            && !is_last
        {
            // No polls during a pause. The deadline still counts, and one last poll happens at it: a paid task is never
            // left unseen.
            self.queue_up(number, pause);
            return None;
        }
        let (gateway, task) = (self.gateway, entry.watched.polled_id().clone());
        Some(async move {
            let may_poll = gateway.rate_limit.turn_to_poll().await || is_last;
            let answer = if may_poll { Some(permit.run(gateway.service.poll(&task)).await) } else { None };
            (number, Done::Poll(answer))
        })
    }

    /// Acts on a finished request. Returns the next one, if another must follow.
    fn react(&mut self, number: Number, done: Done) -> Option<impl Future<Output = (Number, Done)> + use<'e, S>> {
        let mut entry = self.tasks.remove(&number)?;
        let now = Moment { age: entry.age(), at: self.gateway.now() };
        let (next, notes) = match done {
            Done::Poll(None) => {
                self.tasks.insert(number, entry);
                self.queue_again(number);
                return None;
            }
            Done::Poll(Some(answer)) => entry.watched.next(answer, now, self.reactions.grace),
            Done::Content(true, ended_at) => (Next::End(Ending::Completed { video_url: None, ended_at }), Vec::new()),
            Done::Content(false, _) => (Next::Poll(Pause::Usual), Vec::new()),
            Done::Claim(name, report, claimed) => self.after_claim(&mut entry, name, *report, claimed, now),
        };
        if let Some(class) = self.reactions.act(notes, &entry.watch, &entry.watched) {
            self.poll_sooner(&class);
        }
        match next {
            Next::AskContent(ended_at) => {
                let (gateway, task) = (self.gateway, entry.watched.polled_id().clone());
                self.tasks.insert(number, entry);
                Some(Either::Left(async move {
                    (number, Done::Content(gateway.service.has_content(&task).await, ended_at))
                }))
            }
            Next::End(ending) => {
                self.endless.has_ended |= !matches!(ending, Ending::Left(_));
                entry.watch.send(self.reactions.final_update(ending, &entry.watched));
                drop(entry.watch.slot);
                None
            }
            Next::Claim(name, report) => {
                let (ledger, attempt) = (self.ledger, entry.watch.attempt);
                self.tasks.insert(number, entry);
                Some(Either::Right(async move {
                    let claimed = ledger.record(attempt, Event::AlsoNamed(name.clone())).await;
                    (number, Done::Claim(name, report, claimed))
                }))
            }
            Next::Poll(pause) => {
                let wait = self.reactions.wait(pause, &entry.watch, &entry.watched, now.age);
                self.tasks.insert(number, entry);
                self.queue_up(number, wait);
                None
            }
        }
    }

    /// Continues after the ledger accepted or refused an alias.
    fn after_claim(
        &self,
        entry: &mut Entry<'e>,
        name: TaskId,
        report: TaskReport,
        claimed: Result<(), LedgerError>,
        now: Moment,
    ) -> (Next, Vec<Note>) {
        match claimed {
            Ok(()) => entry.watched.accept_alias(name, report, now),
            Err(taken @ LedgerError::TaskTaken { .. }) => entry.watched.refuse_alias(&taken.to_string()),
            Err(error) => {
                self.gateway.stop_because(StopReason::LedgerFailed, with_causes(&error));
                (Next::Poll(Pause::Usual), Vec::new())
            }
        }
    }

    /// Polls waiting tasks of this class sooner: the first one ended earlier than expected.
    fn poll_sooner(&mut self, class: &Class) {
        let unseen = |entry: &&mut Box<Entry<'e>>| entry.watched.polls == 0 && entry.watch.class == *class;
        for entry in self.tasks.values_mut().filter(unseen) {
            let Some(key) = &entry.key else { continue };
            let wait = self.reactions.cadence.first(class, entry.age(), fastrand::f64());
            let deadline = self.deadline.saturating_sub(entry.since.elapsed());
            self.queue.reset(key, wait.min(deadline));
        }
    }

    fn leave(&mut self, number: Number, why: LeaveReason) {
        if let Some(entry) = self.tasks.remove(&number) {
            if why == LeaveReason::Deadline
                && let Some(message) = self.endless.note_overdue()
            {
                self.gateway.stop_because(StopReason::TooManyFailures, message);
            }
            entry.watch.send(entry.watched.left(why));
        }
    }
}

/// The circuit breaker for tasks that never end: each one past its deadline would free a slot for another purchase.
struct EndlessTasks {
    /// The maximum number of tasks past their deadline while none has ended in this run.
    most: usize,
    overdue: usize,
    has_ended: bool,
}

impl EndlessTasks {
    /// Counts a task past its deadline. Returns the reason to stop once there are too many.
    fn note_overdue(&mut self) -> Option<String> {
        self.overdue += 1;
        let is_open = self.overdue >= self.most && !self.has_ended;
        is_open.then(|| {
            format!(
                "{} tasks passed their deadline, and none has ended in this run; `--deadline` gives tasks more time",
                self.overdue
            )
        })
    }
}

/// Waits for a permit and the next due task. Cancel safe.
async fn due(in_flight: &InFlight, queue: &mut DelayQueue<Number>) -> Option<(InFlightPermit, Number)> {
    let permit = in_flight.enter().await;
    queue.next().await.map(|due| (permit, due.into_inner()))
}
