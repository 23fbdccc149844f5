//! How fast the service may be asked: a pause that it asked for, holding for everybody, and the gap between requests.
//!
//! A pause is shared by submissions and looks. What comes after it does not come at once: requests start with a gap
//! between them, which shrinks with each one, and is twice as long after the next pause. So a service that asks to wait
//! finds the rate that it can take, and one that does not is never slowed down. `--rps` is a least gap of the user's own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The gap between requests after a pause, at first and at the most.
const FIRST_GAP: Duration = Duration::from_millis(50);
const LONGEST_GAP: Duration = Duration::from_secs(1);
/// What is left of the gap after each request.
const SHRINKS_TO: f64 = 0.8;
/// A gap below this is none.
const NO_GAP: Duration = Duration::from_millis(1);

/// When the service may be asked again.
#[derive(Debug)]
pub struct Pace {
    least_gap: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    until: Instant,
    gap: Duration,
    /// The gap that the last pause began with; nothing before the first one.
    began_with: Duration,
    next: Instant,
}

impl Pace {
    /// At most this many requests a second, or as many as the service takes.
    pub fn new(rps: Option<f64>) -> Self {
        let now = Instant::now();
        let least_gap = rps.map_or(Duration::ZERO, |rps| Duration::from_secs_f64(1.0 / rps));
        let state = State { until: now, gap: Duration::ZERO, began_with: Duration::ZERO, next: now };
        Self { least_gap, state: Mutex::new(state) }
    }

    /// Nobody asks for this long. A shorter wait never ends a longer one.
    pub fn pause(&self, wait: Duration) {
        let mut state = self.lock();
        let now = Instant::now();
        // Requests that were under way together are all refused: that is one refusal.
        if state.until <= now {
            let longer = if state.gap.is_zero() { FIRST_GAP } else { state.began_with * 2 };
            state.began_with = longer.min(LONGEST_GAP);
        }
        state.gap = state.began_with;
        state.until = state.until.max(now + wait);
    }

    /// Returns when it is this request's turn: after a pause, and a gap after the request before.
    pub async fn turn(&self) {
        loop {
            let at = self.lock().reserve(self.least_gap);
            sleep_until(at).await;
            if self.pending().is_none() {
                return;
            }
        }
    }

    /// Returns once the gap after the last request is over, whether there is a pause or not.
    pub async fn gap(&self) {
        let next = self.lock().next;
        sleep_until(next).await;
    }

    /// Notes a request that starts now.
    pub fn start(&self) {
        self.lock().reserve(self.least_gap);
    }

    /// How long nobody may ask yet; nothing if there is no pause.
    pub fn pending(&self) -> Option<Duration> {
        let left = self.lock().until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tokio's timers count whole milliseconds: even a moment that is over would cost one, for each request.
async fn sleep_until(at: Instant) {
    if at > Instant::now() {
        tokio::time::sleep_until(at).await;
    }
}

impl State {
    /// Takes the next moment at which a request may start.
    fn reserve(&mut self, least_gap: Duration) -> Instant {
        let at = self.next.max(self.until).max(Instant::now());
        self.next = at + self.gap.max(least_gap);
        self.gap = self.gap.mul_f64(SHRINKS_TO);
        if self.gap < NO_GAP {
            self.gap = Duration::ZERO;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use futures::stream::FuturesUnordered;

    use super::*;

    /// When each of so many requests that come at once may start, after the given moment.
    async fn starts(pace: &Pace, requests: usize, since: Instant) -> Vec<Duration> {
        let turns: FuturesUnordered<_> = (0..requests)
            .map(|_| async {
                pace.turn().await;
                since.elapsed()
            })
            .collect();
        turns.collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_for_everybody_and_the_longest_counts() {
        let pace = Pace::new(None);
        let start = Instant::now();
        assert_eq!(starts(&pace, 100, start).await, [Duration::ZERO; 100]);
        pace.pause(Duration::from_secs(30));
        pace.pause(Duration::from_secs(5));
        for at in starts(&pace, 2, start).await {
            assert!(at >= Duration::from_secs(30) && at <= Duration::from_secs(31), "{at:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_herd_comes_after_a_pause_and_the_gap_closes_again() {
        let pace = Pace::new(None);
        pace.pause(Duration::from_secs(10));
        let end = Instant::now() + Duration::from_secs(10);
        let starts = starts(&pace, 200, end).await;
        let within = |seconds| starts.iter().filter(|at| **at < Duration::from_secs_f64(seconds)).count();
        assert!((2..=10).contains(&within(0.2)), "{} at once", within(0.2));
        assert_eq!(within(1.0), 200, "the gap never closes: {:?}", starts.last());
        // A service that asks again is asked more slowly.
        pace.pause(Duration::from_secs(1));
        pace.start();
        pace.pause(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let first = self::starts(&pace, 2, Instant::now()).await;
        assert!(first[1] >= FIRST_GAP, "{first:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_of_the_users_own_is_kept() {
        let (pace, start) = (Pace::new(Some(4.0)), Instant::now());
        let starts = starts(&pace, 9, start).await;
        assert_eq!(starts.last(), Some(&Duration::from_secs(2)));
        pace.start();
        pace.gap().await;
        assert!(start.elapsed() >= Duration::from_millis(2250), "{:?}", start.elapsed());
    }
}
