//! The places at the service: how many tasks may be outstanding, and whose submission is next.
//!
//! A slot is a task outstanding at the service, from the intent until its final word; there are as many as
//! `--concurrency` says. The service may take fewer. While it has refused nothing, whoever has a slot may submit. Once it
//! says that it is full, or can't be reached, submissions go one at a time, in their order: as soon as there are fewer
//! tasks than when it was full, and otherwise, as a probe, after a wait that doubles each time that it is full with as
//! many. Once that wait is over, each submission that is accepted raises what is thought possible by one and an eighth,
//! until it is the user's own number again.
//!
//! A service that refuses without a word of how long may be full, or asked too fast. It is asked once more after a moment:
//! if it then takes as many tasks as it refused, it was not full.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as FairMutex, MutexGuard as FairGuard, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The shortest wait before a probe, where the service itself says "in no time", and the longest that it did not ask for.
const LEAST_PROBE_WAIT: Duration = Duration::from_millis(250);
const LONGEST_PROBE_WAIT: Duration = Duration::from_mins(2);

/// The slots of a run. Tasks that are at the service already have theirs at once. There may be more of them than slots; then the surplus has
/// to end before anything new is submitted.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    state: Mutex<State>,
    /// Whoever holds it submits alone.
    alone: FairMutex<()>,
    changed: Notify,
    longest_wait: Duration,
}

#[derive(Debug)]
struct State {
    most: usize,
    surplus: usize,
    /// Tasks outstanding at the service.
    tasks: usize,
    /// Submissions under way.
    sending: usize,
    /// How many tasks the service takes, as far as it has said so.
    capacity: Option<usize>,
    /// With how many tasks it was last full, and how often in a row with just as many.
    full_with: usize,
    refusals: u32,
    probe_at: Instant,
    /// When it refused without a word of how long, as one does that is asked too fast; nothing once that is settled.
    too_fast_at: Option<Instant>,
    /// When the service last took something, or a task of it ended.
    moved_at: Instant,
}

/// A slot, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Slot<'r> {
    slots: &'r Slots,
    permit: Option<OwnedSemaphorePermit>,
    has_task: bool,
}

/// A submission's leave to be sent, asked for before each try.
#[derive(Debug)]
pub(super) struct Turn<'r> {
    slots: &'r Slots,
    alone: Option<FairGuard<'r, ()>>,
    is_sending: bool,
    ready_at: Instant,
}

impl Slots {
    /// This many. At `speed` times the documented speed, probes come as much sooner.
    pub(super) fn new(most: usize, speed: f64) -> Self {
        let now = Instant::now();
        let state = State {
            most,
            surplus: 0,
            tasks: 0,
            sending: 0,
            capacity: None,
            full_with: usize::MAX,
            refusals: 0,
            probe_at: now,
            too_fast_at: None,
            moved_at: now,
        };
        Self {
            free: Arc::new(Semaphore::new(most)),
            state: Mutex::new(state),
            alone: FairMutex::new(()),
            changed: Notify::new(),
            longest_wait: LONGEST_PROBE_WAIT.div_f64(speed),
        }
    }

    /// The next free slot, in the order of asking.
    pub(super) async fn take(&self) -> Slot<'_> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        Slot { slots: self, permit, has_task: false }
    }

    /// The slot of a task that is at the service already. Where none is free, the task is surplus: one more has to end before anything new is
    /// submitted.
    pub(super) fn of_resumed(&self) -> Slot<'_> {
        let mut state = self.lock();
        state.tasks += 1;
        let permit = Arc::clone(&self.free).try_acquire_owned().ok();
        state.surplus += usize::from(permit.is_none());
        Slot { slots: self, permit, has_task: true }
    }

    /// A turn to be waited for.
    pub(super) fn turn(&self) -> Turn<'_> {
        Turn { slots: self, alone: None, is_sending: false, ready_at: Instant::now() }
    }

    /// For how long the service has taken nothing although it has no task of this run; zero while it has one.
    pub(super) fn idle_for(&self) -> Duration {
        let state = self.lock();
        if state.tasks > 0 { Duration::ZERO } else { state.moved_at.elapsed() }
    }

    /// New work ends a pause in which there was nothing to submit.
    pub(super) fn end_pause(&self) {
        self.lock().moved_at = Instant::now();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the wait after the last refusal is over.
    fn may_probe(&self) -> bool {
        self.probe_at <= Instant::now()
    }
}

impl Slot<'_> {
    /// There is a task in this slot now. True if it was taken where one was refused a moment ago: not for want of a place.
    pub(super) fn occupy(&mut self, turn: &Turn<'_>) -> bool {
        let mut state = self.slots.lock();
        if !std::mem::replace(&mut self.has_task, true) {
            state.tasks += 1;
        }
        state.moved_at = Instant::now();
        // It takes something: what it was full with before says nothing of how long it will be full next.
        state.refusals = 0;
        // What was sent before that refusal says nothing of it.
        let was_too_fast = state.too_fast_at.is_some_and(|at| turn.ready_at > at);
        if was_too_fast {
            (state.capacity, state.too_fast_at) = (None, None);
        }
        if let Some(capacity) = state.capacity.filter(|&capacity| state.tasks > capacity || state.may_probe()) {
            let capacity = capacity.max(state.tasks);
            let more = capacity + 1 + capacity / 8;
            state.capacity = (more < state.most).then_some(more);
        }
        was_too_fast
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        if self.has_task {
            state.tasks -= 1;
            // Whether it was full can't be told any more.
            state.too_fast_at = None;
            state.moved_at = Instant::now();
        }
        match (state.surplus.checked_sub(1), self.permit.take()) {
            (Some(surplus), permit) => {
                state.surplus = surplus;
                permit.into_iter().for_each(OwnedSemaphorePermit::forget);
            }
            (None, Some(permit)) => drop(permit),
            (None, None) => self.slots.free.add_permits(1),
        }
        drop(state);
        self.slots.changed.notify_waiters();
    }
}

impl Turn<'_> {
    /// Returns when this submission may be sent.
    pub(super) async fn ready(&mut self) {
        loop {
            let changed = self.slots.changed.notified();
            let probe_at = {
                let mut state = self.slots.lock();
                match state.capacity {
                    None => {
                        self.alone = None;
                        return self.begin(&mut state);
                    }
                    Some(capacity) if self.alone.is_some() => {
                        if state.tasks + state.sending < capacity || state.may_probe() {
                            return self.begin(&mut state);
                        }
                        Some(state.probe_at)
                    }
                    Some(_) => None,
                }
            };
            match probe_at {
                None => self.alone = Some(self.slots.alone.lock().await),
                Some(probe_at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(probe_at) => {}
                    }
                }
            }
        }
    }

    /// Whether the service has not said meanwhile that it is full, or this submission goes alone.
    pub(super) fn is_still_ready(&self) -> bool {
        self.alone.is_some() || self.slots.lock().capacity.is_none()
    }

    /// It was ready, and waits anew.
    pub(super) fn steps_back(&mut self) {
        let mut state = self.slots.lock();
        self.end(&mut state);
        drop(state);
        // Whoever goes alone may have waited for this one.
        self.slots.changed.notify_waiters();
    }

    /// Whether a refusal without a word of how long may mean that requests came too fast: the first one does, and those
    /// that were under way with it.
    pub(super) fn may_have_been_too_fast(&self) -> bool {
        self.slots.lock().too_fast_at.is_none_or(|at| self.ready_at <= at)
    }

    /// The service refused without a word of how long, perhaps because requests came too fast: one is sent in a moment.
    pub(super) fn was_perhaps_too_fast(&mut self) {
        let mut state = self.slots.lock();
        state.too_fast_at.get_or_insert_with(Instant::now);
        self.hold_back(state, LEAST_PROBE_WAIT);
    }

    /// The service said that it is full, and to wait this long.
    pub(super) fn was_refused(&mut self, wait: Duration) {
        let mut state = self.slots.lock();
        let wait = wait.max(LEAST_PROBE_WAIT);
        // Submissions that were under way together are all refused: that is one refusal.
        if state.may_probe() {
            state.refusals = if state.full_with == state.tasks { state.refusals.saturating_add(1) } else { 0 };
        }
        state.full_with = state.tasks;
        let wait = wait.max((wait * 2_u32.saturating_pow(state.refusals.min(16))).min(self.slots.longest_wait));
        self.hold_back(state, wait);
    }

    /// The service was not reached; it is tried again after this long.
    pub(super) fn was_not_sent(&mut self, wait: Duration) {
        let state = self.slots.lock();
        self.hold_back(state, wait);
    }

    /// There is an answer that says no more about the service's places.
    pub(super) fn is_over(&mut self) {
        let mut state = self.slots.lock();
        self.end(&mut state);
        self.alone = None;
        state.moved_at = Instant::now();
        drop(state);
        self.slots.changed.notify_waiters();
    }

    fn hold_back(&mut self, mut state: MutexGuard<'_, State>, wait: Duration) {
        self.end(&mut state);
        state.capacity = Some(state.tasks);
        state.probe_at = state.probe_at.max(Instant::now() + wait);
    }

    fn begin(&mut self, state: &mut State) {
        if !std::mem::replace(&mut self.is_sending, true) {
            state.sending += 1;
            self.ready_at = Instant::now();
        }
    }

    fn end(&mut self, state: &mut State) {
        if std::mem::replace(&mut self.is_sending, false) {
            state.sending -= 1;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        self.end(&mut state);
        drop(state);
        self.slots.changed.notify_waiters();
    }
}
