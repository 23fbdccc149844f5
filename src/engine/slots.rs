//! Slots for active tasks.
//!
//! A slot is held from the intent to the terminal state. `--concurrency` sets their number. A service that accepts fewer
//! tasks rejects submissions, which then wait for the [`pace`](super::pace).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The slots of a run. Active tasks of earlier runs get one each, also if there are more of them than slots: then the
/// surplus has to end before a submission.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Active tasks, and those of them without a permit.
    tasks: usize,
    surplus: usize,
    /// The time of the last acceptance or end of a task.
    last_progress_at: Instant,
}

/// A slot, released on drop.
#[derive(Debug)]
pub(super) struct Slot<'r> {
    slots: &'r Slots,
    permit: Option<OwnedSemaphorePermit>,
    has_task: bool,
}

impl Slots {
    /// Creates this many slots.
    pub(super) fn new(count: usize) -> Self {
        let state = State { tasks: 0, surplus: 0, last_progress_at: Instant::now() };
        Self { free: Arc::new(Semaphore::new(count)), state: Mutex::new(state) }
    }

    /// Waits for a free slot, in order.
    pub(super) async fn acquire(&self) -> Slot<'_> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        Slot { slots: self, permit, has_task: false }
    }

    /// Returns the slot of an active task of an earlier run. Without a free one, the task is surplus.
    pub(super) fn for_resumed(&self) -> Slot<'_> {
        let mut state = self.state.lock();
        state.tasks += 1;
        let permit = Arc::clone(&self.free).try_acquire_owned().ok();
        state.surplus += usize::from(permit.is_none());
        Slot { slots: self, permit, has_task: true }
    }

    /// Returns the time since the last acceptance or end of a task. Zero while a task is active.
    pub(super) fn idle_time(&self) -> Duration {
        let state = self.state.lock();
        if state.tasks > 0 { Duration::ZERO } else { state.last_progress_at.elapsed() }
    }

    /// Restarts the idle time: after a response, and after a time without work.
    pub(super) fn restart_idle_time(&self) {
        self.state.lock().last_progress_at = Instant::now();
    }
}

impl Slot<'_> {
    /// Records a task in this slot.
    pub(super) fn occupy(&mut self) {
        let mut state = self.slots.state.lock();
        state.tasks += usize::from(!std::mem::replace(&mut self.has_task, true));
        state.last_progress_at = Instant::now();
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.state.lock();
        if self.has_task {
            state.tasks -= 1;
            state.last_progress_at = Instant::now();
        }
        match (state.surplus.checked_sub(1), self.permit.take()) {
            (Some(surplus), permit) => {
                state.surplus = surplus;
                permit.into_iter().for_each(OwnedSemaphorePermit::forget);
            }
            (None, Some(permit)) => drop(permit),
            (None, None) => self.slots.free.add_permits(1),
        }
    }
}
