//! Slow start and circuit breaker for submissions. They limit the jobs that one crash or outage can put in doubt.
//!
//! A submission is in flight from its durable intent until its response is recorded. A crash, a cut cable, or a service that fails puts each of
//! them in doubt. At first, one submission is in flight. Each acceptance allows three more, up to a sixteenth of the slots and at least four. A
//! doubt starts this anew. Several doubts in a row, without an acceptance in between, open the circuit breaker: each further submission would cost.
//!
//! The writer of the ledger records a task ID before any later intent, so a response that was sent to it counts as recorded.

use parking_lot::Mutex;
use tokio::sync::{Mutex as FairMutex, Notify, Semaphore, SemaphorePermit};

/// The bound on submissions in flight: at least this many, or this share of the slots (spec §3).
const MIN_LIMIT: usize = 4;
const SHARE: usize = 16;
/// The submissions that each acceptance adds. With one, a thousand slots fill so late that a run takes 1.023 of the ideal; the bound is the same.
const GROWTH: usize = 3;

/// The rejections before the first acceptance that stop submitting, and the rejections in a row for insufficient funds.
const MAX_REJECTED: usize = 20;
const MAX_UNPAID: usize = 3;

/// The submissions that a run may have in flight.
#[derive(Debug)]
pub(super) struct SlowStart {
    most: usize,
    most_doubts: usize,
    state: Mutex<State>,
    /// Its holder gets the next permit.
    head: FairMutex<()>,
    changed: Notify,
    /// Turns to wait for a permit.
    turns: Semaphore,
}

#[derive(Debug)]
struct State {
    allowed: usize,
    open: usize,
    /// Doubts since the last acceptance.
    doubts: usize,
    /// Rejections since the last acceptance, and those for insufficient funds.
    rejected: usize,
    unpaid: usize,
    has_accepted: bool,
}

/// Permission for one submission in flight, from before its intent until its response is sent to the ledger.
#[derive(Debug)]
pub(super) struct Permit<'t>(&'t SlowStart);

impl SlowStart {
    /// Starts with one submission in flight. The circuit breaker opens after this many doubts in a row.
    pub(super) fn new(slots: usize, most_doubts: usize) -> Self {
        Self {
            most: MIN_LIMIT.max(slots / SHARE),
            most_doubts,
            state: Mutex::new(State { allowed: 1, open: 0, doubts: 0, rejected: 0, unpaid: 0, has_accepted: false }),
            head: FairMutex::new(()),
            changed: Notify::new(),
            turns: Semaphore::new(2 * MIN_LIMIT.max(slots / SHARE)),
        }
    }

    /// A turn to wait for a permit, held until it is dropped. Few jobs hold one, because each waiting submission takes memory.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.turns.acquire().await.ok()
    }

    /// The next permit, in the order of asking.
    pub(super) async fn permit(&self) -> Permit<'_> {
        let _first_in_line = self.head.lock().await;
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock();
                if state.open < state.allowed {
                    state.open += 1;
                    return Permit(self);
                }
            }
            changed.await;
        }
    }

    /// Records an acceptance after its task is in the ledger.
    pub(super) fn record_accepted(&self) {
        let mut state = self.state.lock();
        (state.doubts, state.rejected, state.unpaid, state.has_accepted) = (0, 0, 0, true);
        state.allowed = (state.allowed + GROWTH).min(self.most);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Records a submission that the service was too busy for, or that did not reach it: one at a time until the next
    /// acceptance.
    pub(super) fn record_rejected_for_now(&self) {
        self.state.lock().allowed = 1;
    }

    /// Records a rejection. Returns the number of rejections once there are too many before the first acceptance: then the jobs are not the cause.
    pub(super) fn record_rejected(&self) -> Option<usize> {
        let mut state = self.state.lock();
        state.rejected += 1;
        (state.rejected >= MAX_REJECTED && !state.has_accepted).then_some(state.rejected)
    }

    /// Returns whether the service accepted a submission in this run.
    pub(super) fn has_accepted(&self) -> bool {
        self.state.lock().has_accepted
    }

    /// Records a rejection for insufficient funds. Returns their number in a row once submitting must stop: immediately before the first acceptance,
    /// and otherwise after a few, because the funds may cover a cheaper job.
    pub(super) fn record_unpaid(&self) -> Option<usize> {
        let mut state = self.state.lock();
        // One at a time until the next acceptance.
        state.allowed = 1;
        state.unpaid += 1;
        (state.unpaid >= MAX_UNPAID || !state.has_accepted).then_some(state.unpaid)
    }

    /// Records a doubt. Returns the number of doubts in a row once they open the circuit breaker.
    pub(super) fn record_in_doubt(&self) -> Option<usize> {
        let mut state = self.state.lock();
        state.allowed = 1;
        state.doubts += 1;
        (state.doubts >= self.most_doubts).then_some(state.doubts)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.state.lock().open -= 1;
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use futures::StreamExt as _;
    use futures::stream::FuturesUnordered;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// The maximum number of open submissions in each second. Each one takes a second and ends with `end`.
    async fn open_by_second(slots: usize, submissions: usize, end: impl Fn(&SlowStart, usize)) -> Vec<usize> {
        let (slow_start, start, open) = (SlowStart::new(slots, 3), Instant::now(), Cell::new(0));
        let all: FuturesUnordered<_> = (0..submissions)
            .map(|number| {
                let (slow_start, open, end) = (&slow_start, &open, &end);
                async move {
                    let permit = slow_start.permit().await;
                    open.set(open.get() + 1);
                    let second = start.elapsed().as_secs();
                    let now_open = open.get();
                    sleep(Duration::from_secs(1)).await;
                    end(slow_start, number);
                    open.set(open.get() - 1);
                    drop(permit);
                    (second, now_open)
                }
            })
            .collect();
        let mut most = vec![0; submissions];
        for (second, open) in all.collect::<Vec<_>>().await {
            let second = usize::try_from(second).expect("few");
            most[second] = most[second].max(open);
        }
        most.retain(|open| *open > 0);
        most
    }

    #[tokio::test(start_paused = true)]
    async fn trust_begins_with_one_and_grows_fourfold_up_to_its_bound() {
        let taken = |slow_start: &SlowStart, _| slow_start.record_accepted();
        assert_eq!(open_by_second(1000, 200, taken).await[..4], [1, 4, 16, 62]);
        assert_eq!(open_by_second(8, 30, taken).await[..4], [1, 4, 4, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn rejection_adds_no_permits_and_doubt_resets_them() {
        assert_eq!(open_by_second(1000, 5, |_, _| {}).await, [1; 5]);
        let doubted_at = |bad: usize| {
            move |slow_start: &SlowStart, number: usize| {
                if number == bad {
                    slow_start.record_in_doubt();
                } else {
                    slow_start.record_accepted();
                }
            }
        };
        // The last of the sixteen that are open in the third second.
        assert_eq!(open_by_second(1000, 24, doubted_at(20)).await[..4], [1, 4, 16, 1]);
    }

    #[test]
    fn rejections_stop_a_run_without_an_acceptance() {
        let slow_start = SlowStart::new(8, 3);
        assert!((1..MAX_REJECTED).all(|_| slow_start.record_rejected().is_none()));
        assert_eq!(slow_start.record_rejected(), Some(MAX_REJECTED));
        assert!(!slow_start.has_accepted());
        slow_start.record_accepted();
        assert!((0..2 * MAX_REJECTED).all(|_| slow_start.record_rejected().is_none()) && slow_start.has_accepted());
    }

    #[test]
    fn missing_funds_stop_a_run_at_once_or_in_a_row() {
        assert_eq!(SlowStart::new(8, 3).record_unpaid(), Some(1), "nothing was accepted");
        let slow_start = SlowStart::new(8, 3);
        slow_start.record_accepted();
        assert_eq!([slow_start.record_unpaid(), slow_start.record_unpaid()], [None, None]);
        assert_eq!(slow_start.record_unpaid(), Some(MAX_UNPAID));
        slow_start.record_accepted();
        assert_eq!(slow_start.record_unpaid(), None);
    }

    #[test]
    fn doubts_count_until_something_is_taken() {
        let slow_start = SlowStart::new(8, 3);
        assert_eq!([slow_start.record_in_doubt(), slow_start.record_in_doubt()], [None, None]);
        slow_start.record_accepted();
        assert_eq!(
            [slow_start.record_in_doubt(), slow_start.record_in_doubt(), slow_start.record_in_doubt()],
            [None, None, Some(3)]
        );
    }
}
