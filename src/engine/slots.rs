//! Slots for active tasks, and the order of submissions to a full service.
//!
//! A slot is held from the intent to the terminal state. `--concurrency` sets their number, but the service may accept
//! fewer. Until it rejects a submission, every holder of a slot may submit. Once it is full or unreachable, submissions
//! go one at a time, in order. The next one goes when fewer tasks are active than at the rejection. Otherwise it is a
//! probe, after a wait that doubles with each rejection at the same number. After the wait, each acceptance raises the
//! assumed capacity by an eighth plus one, up to `--concurrency`.
//!
//! A rejection without a time to wait means a full service or too many requests. One more request tells: if the service
//! then accepts as many tasks as it rejected, it was not full.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as FairMutex, MutexGuard as FairGuard, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The shortest wait before a probe, also if the service says zero, and the longest without a time from the service.
const LEAST_PROBE_WAIT: Duration = Duration::from_millis(250);
const LONGEST_PROBE_WAIT: Duration = Duration::from_mins(2);

/// The slots of a run. Active tasks of earlier runs have theirs at once. There may be more of them than slots: then the
/// surplus has to end before a submission.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    state: Mutex<State>,
    /// Its holder is the only one that submits.
    alone: FairMutex<()>,
    changed: Notify,
    longest_wait: Duration,
}

#[derive(Debug)]
struct State {
    most: usize,
    surplus: usize,
    /// Active tasks.
    tasks: usize,
    /// Submissions in flight.
    sending: usize,
    /// The number of tasks that the service accepts, if it has rejected any.
    capacity: Option<usize>,
    /// The number of tasks at the last rejection, and the rejections in a row at that number.
    full_with: usize,
    refusals: u32,
    probe_at: Instant,
    /// The time of a rejection without a time to wait, until its cause is known.
    too_fast_at: Option<Instant>,
    /// The time of the last acceptance or end of a task.
    moved_at: Instant,
}

/// A slot, released on drop.
#[derive(Debug)]
pub(super) struct Slot<'r> {
    slots: &'r Slots,
    permit: Option<OwnedSemaphorePermit>,
    has_task: bool,
}

/// The permission to send a submission, requested before each try.
#[derive(Debug)]
pub(super) struct Turn<'r> {
    slots: &'r Slots,
    alone: Option<FairGuard<'r, ()>>,
    is_sending: bool,
    ready_at: Instant,
}

impl Slots {
    /// Creates this many slots. `speed` divides the waits before probes.
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

    /// Waits for a free slot, in order.
    pub(super) async fn acquire(&self) -> Slot<'_> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        Slot { slots: self, permit, has_task: false }
    }

    /// Returns the slot of an active task of an earlier run. Without a free one, the task is surplus.
    pub(super) fn of_resumed(&self) -> Slot<'_> {
        let mut state = self.lock();
        state.tasks += 1;
        let permit = Arc::clone(&self.free).try_acquire_owned().ok();
        state.surplus += usize::from(permit.is_none());
        Slot { slots: self, permit, has_task: true }
    }

    /// Returns a turn, not yet ready.
    pub(super) fn turn(&self) -> Turn<'_> {
        Turn { slots: self, alone: None, is_sending: false, ready_at: Instant::now() }
    }

    /// Returns the time since the last acceptance or end of a task. Zero while a task is active.
    pub(super) fn idle_for(&self) -> Duration {
        let state = self.lock();
        if state.tasks > 0 { Duration::ZERO } else { state.moved_at.elapsed() }
    }

    /// Ends a time without work, which counts neither for nor against the service.
    pub(super) fn end_pause(&self) {
        self.lock().moved_at = Instant::now();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns whether the wait after the last rejection is over.
    fn may_probe(&self) -> bool {
        self.probe_at <= Instant::now()
    }
}

impl Slot<'_> {
    /// Records a task in this slot. Returns whether it shows that the last rejection was about the rate, and not the
    /// number of tasks.
    pub(super) fn occupy(&mut self, turn: &Turn<'_>) -> bool {
        let mut state = self.slots.lock();
        if !std::mem::replace(&mut self.has_task, true) {
            state.tasks += 1;
        }
        state.moved_at = Instant::now();
        // An acceptance says nothing about the time until the next rejection.
        state.refusals = 0;
        // A request sent before that rejection says nothing about it.
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
            // The cause of the rejection is unknown from now on.
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
    /// Waits until this submission may be sent.
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

    /// Returns whether the service has not become full since, or this submission is the only one.
    pub(super) fn is_still_ready(&self) -> bool {
        self.alone.is_some() || self.slots.lock().capacity.is_none()
    }

    /// Gives up the turn, to wait again.
    pub(super) fn step_back(&mut self) {
        let mut state = self.slots.lock();
        self.release(&mut state);
        drop(state);
        // The only submitter may wait for this one.
        self.slots.changed.notify_waiters();
    }

    /// Returns whether a rejection without a time to wait may be about the rate: the first one may, and those in flight
    /// with it.
    pub(super) fn may_have_been_too_fast(&self) -> bool {
        self.slots.lock().too_fast_at.is_none_or(|at| self.ready_at <= at)
    }

    /// Records a rejection that may be about the rate. A probe follows at once.
    pub(super) fn was_perhaps_too_fast(&mut self) {
        let mut state = self.slots.lock();
        state.too_fast_at.get_or_insert_with(Instant::now);
        self.hold_back(state, LEAST_PROBE_WAIT);
    }

    /// Records a rejection by a full service, with the time to wait.
    pub(super) fn was_refused(&mut self, wait: Duration) {
        let mut state = self.slots.lock();
        let wait = wait.max(LEAST_PROBE_WAIT);
        // Submissions in flight together are rejected together: that counts once.
        if state.may_probe() {
            state.refusals = if state.full_with == state.tasks { state.refusals.saturating_add(1) } else { 0 };
        }
        state.full_with = state.tasks;
        let wait = wait.max((wait * 2_u32.saturating_pow(state.refusals.min(16))).min(self.slots.longest_wait));
        self.hold_back(state, wait);
    }

    /// Records a submission that did not reach the service, with the backoff before the next try.
    pub(super) fn was_not_sent(&mut self, wait: Duration) {
        let state = self.slots.lock();
        self.hold_back(state, wait);
    }

    /// Ends the turn: the response says nothing more about capacity.
    pub(super) fn end(&mut self) {
        let mut state = self.slots.lock();
        self.release(&mut state);
        self.alone = None;
        state.moved_at = Instant::now();
        drop(state);
        self.slots.changed.notify_waiters();
    }

    fn hold_back(&mut self, mut state: MutexGuard<'_, State>, wait: Duration) {
        self.release(&mut state);
        state.capacity = Some(state.tasks);
        state.probe_at = state.probe_at.max(Instant::now() + wait);
    }

    fn begin(&mut self, state: &mut State) {
        if !std::mem::replace(&mut self.is_sending, true) {
            state.sending += 1;
            self.ready_at = Instant::now();
        }
    }

    fn release(&mut self, state: &mut State) {
        if std::mem::replace(&mut self.is_sending, false) {
            state.sending -= 1;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        self.release(&mut state);
        drop(state);
        self.slots.changed.notify_waiters();
    }
}
