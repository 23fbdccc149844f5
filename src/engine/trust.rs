//! How many submissions may be open at once: the most that one bad moment can put in doubt.
//!
//! An open submission is one whose intent is durable and whose answer is not. Where the ledger writes first what it was told
//! first, a task that it was told is as good as written for the one that comes next: its intent is never durable before
//! something of that task is. A crash, a cut cable or a service that fails turns each of them into a doubt that only a
//! person can settle. So trust has to be earned: one submission is open at a time until the service has taken one in this
//! run; then each one that it takes allows three more, which makes four times as many in the time of an answer, up to a
//! sixteenth of the slots and at least four. A doubt takes the trust away again, and so many of them in a row, with nothing
//! taken in between, end submitting: something systematic is wrong, and each further try would cost.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as FairMutex, Notify, Semaphore, SemaphorePermit};

/// The fewest open submissions that full trust allows, and the share of the slots otherwise (spec §3, "Trust grows").
const LEAST_MOST: usize = 4;
const SHARE: usize = 16;
/// How many more are allowed with each that was taken. With one more, a thousand slots are filled so late that a run takes 1.023 of the
/// ideal; the most that can be in doubt is the same.
const GROWTH: usize = 3;

/// How many refusals before anything was taken end submitting, and how many in a row for want of money.
const MOST_REJECTED: usize = 20;
const MOST_UNPAID: usize = 3;

/// The trust in the service, during one run.
#[derive(Debug)]
pub(super) struct Trust {
    most: usize,
    most_doubts: usize,
    state: Mutex<State>,
    /// Whoever holds it is next.
    head: FairMutex<()>,
    changed: Notify,
    /// Turns to wait for a permit.
    turns: Semaphore,
}

#[derive(Debug)]
struct State {
    allowed: usize,
    open: usize,
    /// Doubts since something was taken.
    doubts: usize,
    /// Refusals since something was taken, and those of them for want of money.
    rejected: usize,
    unpaid: usize,
    has_taken: bool,
}

/// Leave to have one submission open, from before its intent until its answer is written down, or sent to the ledger, which keeps the order.
#[derive(Debug)]
pub(super) struct Permit<'t>(&'t Trust);

impl Trust {
    /// None yet, in a run with this many slots that ends submitting after this many doubts in a row.
    pub(super) fn new(slots: usize, most_doubts: usize) -> Self {
        Self {
            most: LEAST_MOST.max(slots / SHARE),
            most_doubts,
            state: Mutex::new(State { allowed: 1, open: 0, doubts: 0, rejected: 0, unpaid: 0, has_taken: false }),
            head: FairMutex::new(()),
            changed: Notify::new(),
            turns: Semaphore::new(2 * LEAST_MOST.max(slots / SHARE)),
        }
    }

    /// A turn to wait for a permit, for as long as it is kept. Few have one at a time: ten thousand jobs that wait would each keep
    /// room for a submission of which only a few can be open.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.turns.acquire().await.ok()
    }

    /// The next permit, in the order of asking.
    pub(super) async fn permit(&self) -> Permit<'_> {
        let _first_in_line = self.head.lock().await;
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                if state.open < state.allowed {
                    state.open += 1;
                    return Permit(self);
                }
            }
            changed.await;
        }
    }

    /// The service took one, and the ledger has the task.
    pub(super) fn was_taken(&self) {
        let mut state = self.lock();
        (state.doubts, state.rejected, state.unpaid, state.has_taken) = (0, 0, 0, true);
        state.allowed = (state.allowed + GROWTH).min(self.most);
        drop(state);
        self.changed.notify_waiters();
    }

    /// The service refused it for good. Returns how many it refused, once so many were and nothing at all was taken: then it is
    /// not the jobs that are wrong. After the first that was taken, it is.
    pub(super) fn was_rejected(&self) -> Option<usize> {
        let mut state = self.lock();
        state.rejected += 1;
        (state.rejected >= MOST_REJECTED && !state.has_taken).then_some(state.rejected)
    }

    /// Whether the service took anything yet in this run.
    pub(super) fn has_taken(&self) -> bool {
        self.lock().has_taken
    }

    /// The service refused it for want of money. Returns how often in a row, once that will not change any more: at once where
    /// nothing was taken before, and otherwise after a few, because a cheaper job may still be paid for.
    pub(super) fn was_unpaid(&self) -> Option<usize> {
        let mut state = self.lock();
        // Others will fare alike: one at a time, until something is taken again.
        state.allowed = 1;
        state.unpaid += 1;
        (state.unpaid >= MOST_UNPAID || !state.has_taken).then_some(state.unpaid)
    }

    /// Nobody knows what came of it. Returns how many doubts there are in a row, once they are too many.
    pub(super) fn was_doubted(&self) -> Option<usize> {
        let mut state = self.lock();
        state.allowed = 1;
        state.doubts += 1;
        (state.doubts >= self.most_doubts).then_some(state.doubts)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
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

    /// The most submissions that are open in each second, each of which takes a second and ends so.
    async fn open_by_second(slots: usize, submissions: usize, end: impl Fn(&Trust, usize)) -> Vec<usize> {
        let (trust, start, open) = (Trust::new(slots, 3), Instant::now(), Cell::new(0));
        let all: FuturesUnordered<_> = (0..submissions)
            .map(|number| {
                let (trust, open, end) = (&trust, &open, &end);
                async move {
                    let permit = trust.permit().await;
                    open.set(open.get() + 1);
                    let second = start.elapsed().as_secs();
                    let now_open = open.get();
                    sleep(Duration::from_secs(1)).await;
                    end(trust, number);
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
        let taken = |trust: &Trust, _| trust.was_taken();
        assert_eq!(open_by_second(1000, 200, taken).await[..4], [1, 4, 16, 62]);
        assert_eq!(open_by_second(8, 30, taken).await[..4], [1, 4, 4, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_earns_nothing_and_a_doubt_takes_it_all_away() {
        assert_eq!(open_by_second(1000, 5, |_, _| {}).await, [1; 5]);
        let doubted_at = |bad: usize| {
            move |trust: &Trust, number: usize| {
                if number == bad {
                    trust.was_doubted();
                } else {
                    trust.was_taken();
                }
            }
        };
        // The last of the sixteen that are open in the third second.
        assert_eq!(open_by_second(1000, 24, doubted_at(20)).await[..4], [1, 4, 16, 1]);
    }

    #[test]
    fn doubts_count_until_something_is_taken() {
        let trust = Trust::new(8, 3);
        assert_eq!([trust.was_doubted(), trust.was_doubted()], [None, None]);
        trust.was_taken();
        assert_eq!([trust.was_doubted(), trust.was_doubted(), trust.was_doubted()], [None, None, Some(3)]);
    }
}
