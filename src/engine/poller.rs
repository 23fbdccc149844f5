//! Polls of active tasks, each to its end.
//!
//! Each task waits separately. They share the schedule and the requests in flight. Polls run concurrently, a bounded number
//! in flight, and never block submissions. [`watched`](super::watched) decides what a response means for its task.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::event::{LeaveReason, RunEvent};
use super::gateway::Gateway;
use super::schedule::Schedule;
use super::settings::StopReason;
use super::watched::{Effect, Ending, GRACE, Moment, Next, Pause, PolledTask};
use crate::domain::{AttemptId, NoticeCode, Purchase, TaskId};
use crate::ledger::{Event, LedgerError};
use crate::service::{PollAnswer, TaskReport, VideoService};

/// The maximum number of polls in flight. A process may usually open 1,024 files.
const MAX_IN_FLIGHT: usize = 256;

/// A task, as its job knows it.
pub(super) struct Bought<'j> {
    pub(super) purchase: &'j Purchase,
    pub(super) attempt: AttemptId,
    /// The time since its submission.
    pub(super) age: Duration,
    /// True if this run bought it.
    pub(super) is_new: bool,
}

/// The poller of a run.
pub(super) struct Poller<'e, S> {
    gateway: &'e Gateway<'e, S>,
    in_flight: Semaphore,
    state: Mutex<State>,
}

struct State {
    /// The unknown states that were reported.
    unknown: HashSet<String>,
    /// Tasks past their deadline.
    overdue: usize,
    has_ended: bool,
}

impl<'e, S: VideoService> Poller<'e, S> {
    /// A poller without tasks.
    pub(super) fn new(gateway: &'e Gateway<'e, S>) -> Self {
        let state = Mutex::new(State { unknown: HashSet::new(), overdue: 0, has_ended: false });
        Self { gateway, in_flight: Semaphore::new(MAX_IN_FLIGHT), state }
    }

    /// The schedule at the speed that the service has reported.
    fn schedule(&self) -> Schedule {
        Schedule::new(self.gateway.settings, self.gateway.service.speed())
    }

    /// Polls a task until it ends, or the run leaves it.
    pub(super) async fn watch(&self, bought: &Bought<'_>, watched: &mut PolledTask) -> Ending {
        tokio::select! {
            biased;
            () = self.gateway.stop.aborting() => Ending::Left(LeaveReason::Interrupted),
            ending = self.poll_to_the_end(bought, watched) => ending,
        }
    }

    fn poll_to_the_end(&self, bought: &Bought<'_>, watched: &mut PolledTask) -> impl Future<Output = Ending> {
        let (start, deadline) = (Instant::now(), self.gateway.settings.deadline);
        async move {
            if !bought.is_new {
                // Without an answer in time, the tasks are polled as those of the real service.
                let _answered = tokio::time::timeout(deadline, Box::pin(self.gateway.service.learn_speed())).await;
            }
            let mut wait = self.schedule().first_wait(bought.purchase.typical_s, bought.age, fastrand::f64());
            loop {
                let left = deadline.saturating_sub(start.elapsed());
                tokio::time::sleep(wait.min(left)).await;
                // Polling ends only after a poll that started at the deadline, also with a slow ledger.
                let is_last = start.elapsed() >= deadline;
                // Boxed: ten thousand tasks wait for a poll, and few are in one.
                match Box::pin(self.poll(bought, watched, start)).await {
                    ControlFlow::Break(ending) => return ending,
                    ControlFlow::Continue(_) if is_last => return self.overdue(),
                    ControlFlow::Continue(next) => wait = next,
                }
            }
        }
    }

    /// Polls a task once, and acts on the response. Returns the wait before the next poll.
    async fn poll(
        &self,
        bought: &Bought<'_>,
        watched: &mut PolledTask,
        start: Instant,
    ) -> ControlFlow<Ending, Duration> {
        let answer = self.ask(watched.identity.polled_id(), start + self.gateway.settings.deadline).await;
        let now = Moment { age: bought.age + start.elapsed(), at: self.gateway.now() };
        let (mut next, mut effects) = watched.next(answer, now, GRACE);
        loop {
            self.apply(effects, bought).await;
            (next, effects) = match next {
                Next::Poll(pause) => return ControlFlow::Continue(self.wait(pause, bought, watched, now.age)),
                Next::End(ending) => {
                    self.state.lock().has_ended |= !matches!(ending, Ending::Left(_));
                    return ControlFlow::Break(ending);
                }
                Next::AskContent(ended_at) => {
                    let has_content = self.gateway.service.has_content(watched.identity.polled_id()).await;
                    let completed = Next::End(Ending::Completed { video_url: None, ended_at });
                    (if has_content { completed } else { Next::Poll(Pause::Usual) }, Vec::new())
                }
                Next::Claim(name, report) => self.claim(bought.attempt, watched, name, *report, now).await,
            };
        }
    }

    /// Sends a poll, after any pause. At the deadline also during one: a paid task is never left unseen.
    async fn ask(&self, task: &TaskId, deadline: Instant) -> PollAnswer {
        loop {
            let is_last = Instant::now() >= deadline;
            if let Some(pause) = self.gateway.pace.pending()
                && !is_last
            {
                tokio::time::sleep_until(deadline.min(Instant::now() + pause)).await;
                continue;
            }
            // The semaphore is never closed.
            let _permit = self.in_flight.acquire().await;
            if self.gateway.pace.turn_to_poll().await || is_last {
                return self.gateway.service.poll(task).await;
            }
        }
    }

    /// Continues once the ledger accepted or refused an alias.
    async fn claim(
        &self,
        attempt: AttemptId,
        watched: &mut PolledTask,
        name: TaskId,
        report: TaskReport,
        now: Moment,
    ) -> (Next, Vec<Effect>) {
        match self.gateway.ledger.record(attempt, Event::AlsoNamed(name.clone())).await {
            Ok(()) => watched.accept_alias(name, report, now),
            Err(taken @ LedgerError::TaskTaken { .. }) => watched.refuse_alias(&taken.to_string()),
            Err(error) => {
                self.gateway.ledger_failed(&error);
                (Next::Poll(Pause::Usual), Vec::new())
            }
        }
    }

    /// Applies effects.
    async fn apply(&self, effects: Vec<Effect>, bought: &Bought<'_>) {
        let (gateway, job) = (self.gateway, || bought.purchase.job.clone());
        let request = bought.purchase.request.body();
        for effect in effects {
            match effect {
                Effect::NotLimited => gateway.pace.record_accepted(),
                Effect::Reached => gateway.record_reached(),
                Effect::Transient(message) => gateway.record_unanswered(message),
                Effect::KeyRefused(message) => gateway.stop_because(StopReason::KeyRefused, message),
                Effect::Denied(message) => {
                    (gateway.emit)(RunEvent::Warned { code: NoticeCode::TaskDenied, message });
                }
                Effect::UnknownWord(status) => {
                    if self.state.lock().unknown.insert(status.clone()) {
                        (gateway.emit)(RunEvent::UnknownStatus { status });
                    }
                }
                Effect::Started => _ = gateway.record(bought.attempt, Event::Started).await,
                Effect::Progress(percent) => (gateway.emit)(RunEvent::Progressed { job: job(), percent }),
                Effect::Made(echo) => {
                    gateway.compare(request, &echo, bought.is_new);
                    if let Some(usd) = echo.cost {
                        gateway.record_cost(bought.attempt, request, usd).await;
                    }
                }
                Effect::Alias(task) => (gateway.emit)(RunEvent::TaskAlias { job: job(), task }),
            }
        }
    }

    /// Returns the wait before the next poll of a task of this age.
    fn wait(&self, pause: Pause, bought: &Bought<'_>, watched: &PolledTask, age: Duration) -> Duration {
        match pause {
            Pause::Usual => {
                self.schedule().next_wait(bought.purchase.typical_s, &watched.progress, age, fastrand::f64())
            }
            Pause::AfterFailures(failures) => self.schedule().backoff(failures, fastrand::f64()),
            Pause::Asked(wait, message) => {
                let wait = wait.max(self.schedule().floor);
                self.gateway.pace.pause(wait);
                (self.gateway.emit)(RunEvent::Waiting { wait, message });
                wait
            }
            Pause::TooFast(message) => self.gateway.slow_down(&message).max(self.schedule().floor),
        }
    }

    /// Counts a task past its deadline, and leaves it. Stops submitting once there are too many.
    fn overdue(&self) -> Ending {
        let mut state = self.state.lock();
        state.overdue += 1;
        if state.overdue >= self.gateway.settings.max_doubts && !state.has_ended {
            let message = format!("{} tasks passed their deadline, and none has ended in this run", state.overdue);
            self.gateway.stop_because(StopReason::TooManyFailures, message);
        }
        Ending::Left(LeaveReason::Deadline)
    }
}
