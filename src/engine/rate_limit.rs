//! Rate limit of all requests: a pause that the service asked for, and the gap between requests.
//!
//! A pause holds for submissions and polls. After it, requests start with a gap that shrinks with each one, and that
//! begins twice as long after the next pause. So a service that asks to wait gets the rate that it accepts, and one
//! that doesn't is never slowed down. After a rejection without a time, the [`learned_rate`](super::learned_rate)
//! applies. `--rps` is a minimum gap.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as FairMutex;
use tokio::time::Instant;

use super::learned_rate::Rate;

/// The gap after the first pause, and the longest.
const FIRST_GAP: Duration = Duration::from_millis(50);
const LONGEST_GAP: Duration = Duration::from_secs(1);
/// The part of the gap that remains after each request.
const SHRINKS_TO: f64 = 0.8;
/// The shortest gap above zero.
const NO_GAP: Duration = Duration::from_millis(1);

/// The longest pause of polls after a rejected submission: only a poll can find a free slot.
const LONGEST_POLL_PAUSE: Duration = Duration::from_mins(1);

/// The rate limit, shared by submissions and polls.
#[derive(Debug)]
pub(super) struct RateLimit {
    least_gap: Duration,
    /// The number of runners that share `--rps`.
    sharing: AtomicU32,
    state: Mutex<State>,
    /// Its holder has the next request: one at a time reserves its moment.
    head: FairMutex<()>,
    /// Submissions have a queue of their own, so that only the first competes with polls.
    submissions: FairMutex<()>,
}

#[derive(Debug)]
struct State {
    /// The end of the pause for all requests, and for submissions.
    until: Instant,
    submissions_until: Instant,
    gap: Duration,
    /// The gap after the last pause; zero before the first one.
    began_with: Duration,
    /// The learned rate.
    rate: Rate,
    next: Instant,
}

impl RateLimit {
    /// Allows this many requests per second, or as many as the service accepts.
    pub(super) fn new(rps: Option<f64>) -> Self {
        let now = Instant::now();
        let least_gap = rps.map_or(Duration::ZERO, |rps| Duration::from_secs_f64(1.0 / rps));
        let (gap, began_with) = (Duration::ZERO, Duration::ZERO);
        let state = State { until: now, submissions_until: now, gap, began_with, rate: Rate::default(), next: now };
        let sharing = AtomicU32::new(1);
        Self { least_gap, sharing, state: Mutex::new(state), head: FairMutex::new(()), submissions: FairMutex::new(()) }
    }

    /// Shares `--rps` between this many runners.
    pub(super) fn share(&self, sharing: u32) {
        self.sharing.store(sharing.max(1), Ordering::Relaxed);
    }

    /// Pauses all requests. A shorter pause never ends a longer one.
    pub(super) fn pause(&self, wait: Duration) {
        let mut state = self.lock();
        state.pause(wait);
        state.submissions_until = state.submissions_until.max(state.until);
    }

    /// Pauses submissions, and polls for at most a minute.
    pub(super) fn pause_submissions(&self, wait: Duration) {
        let mut state = self.lock();
        state.pause(wait.min(LONGEST_POLL_PAUSE));
        state.submissions_until = state.submissions_until.max(Instant::now() + wait);
    }

    /// Pauses all requests after too many, and lowers the rate. Returns the pause. Requests in flight together count
    /// once.
    pub(super) fn slow_down(&self) -> Duration {
        let mut state = self.lock();
        let now = Instant::now();
        if state.until <= now {
            let pause = state.rate.refused();
            state.until = now + pause;
            state.submissions_until = state.submissions_until.max(state.until);
        }
        state.until - now
    }

    /// Returns the learned requests per second, if they are limited.
    pub(super) fn per_second(&self) -> Option<f64> {
        self.lock().rate.per_second()
    }

    /// Records a request that the service did not limit.
    pub(super) fn record_accepted(&self) {
        self.lock().rate.accepted();
    }

    /// Waits for the moment of a submission: after the pause, and a gap after the last request.
    pub(super) async fn turn(&self) {
        let _first_of_submissions = self.submissions.lock().await;
        loop {
            let until = self.lock().submissions_until;
            sleep_until(until).await;
            self.next_moment().await;
            if !self.holds_submissions() {
                return;
            }
        }
    }

    /// Waits for the moment of a poll. Returns false if a pause began meanwhile.
    pub(super) async fn turn_to_poll(&self) -> bool {
        self.next_moment().await;
        self.pending().is_none()
    }

    /// Returns the rest of the pause, if there is one.
    pub(super) fn pending(&self) -> Option<Duration> {
        let left = self.lock().until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Returns whether submissions are paused.
    pub(super) fn holds_submissions(&self) -> bool {
        self.lock().submissions_until > Instant::now()
    }

    /// Reserves the next moment for a request, and waits for it.
    async fn next_moment(&self) {
        let _first_in_line = self.head.lock().await;
        let least_gap = self.least_gap * self.sharing.load(Ordering::Relaxed);
        let at = self.lock().reserve(least_gap);
        sleep_until(at).await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits only for the future: Tokio's timers round up to a millisecond, also for a moment that is over.
async fn sleep_until(at: Instant) {
    if at > Instant::now() {
        tokio::time::sleep_until(at).await;
    }
}

impl State {
    fn pause(&mut self, wait: Duration) {
        let now = Instant::now();
        // Requests in flight together are limited together: that counts once.
        if self.until <= now {
            let longer = if self.gap.is_zero() { FIRST_GAP } else { self.began_with * 2 };
            self.began_with = longer.min(LONGEST_GAP);
        }
        self.gap = self.began_with;
        self.until = self.until.max(now + wait);
    }

    /// Reserves the next moment for a request.
    fn reserve(&mut self, least_gap: Duration) -> Instant {
        let at = self.next.max(Instant::now());
        self.next = at + self.gap.max(least_gap).max(self.rate.gap());
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

    /// The starts of this many concurrent requests, as times after the given moment.
    async fn starts(rate_limit: &RateLimit, requests: usize, since: Instant) -> Vec<Duration> {
        let turns: FuturesUnordered<_> = (0..requests)
            .map(|_| async {
                rate_limit.turn().await;
                since.elapsed()
            })
            .collect();
        turns.collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_for_everybody_and_the_longest_counts() {
        let rate_limit = RateLimit::new(None);
        let start = Instant::now();
        assert_eq!(starts(&rate_limit, 100, start).await, [Duration::ZERO; 100]);
        rate_limit.pause(Duration::from_secs(30));
        rate_limit.pause(Duration::from_secs(5));
        for at in starts(&rate_limit, 2, start).await {
            assert!(at >= Duration::from_secs(30) && at <= Duration::from_secs(31), "{at:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_herd_comes_after_a_pause_and_the_gap_closes_again() {
        let rate_limit = RateLimit::new(None);
        rate_limit.pause(Duration::from_secs(10));
        let end = Instant::now() + Duration::from_secs(10);
        let starts = starts(&rate_limit, 200, end).await;
        let within = |seconds| starts.iter().filter(|at| **at < Duration::from_secs_f64(seconds)).count();
        assert!((2..=10).contains(&within(0.2)), "{} at once", within(0.2));
        assert_eq!(within(1.0), 200, "the gap never closes: {:?}", starts.last());
        // Each further pause doubles the gap.
        for _ in 0..3 {
            rate_limit.pause(Duration::from_secs(1));
            rate_limit.turn().await;
        }
        let first = self::starts(&rate_limit, 2, Instant::now()).await;
        assert!(first[1] >= first[0] + FIRST_GAP * 2, "{first:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_of_the_users_own_is_kept() {
        let (rate_limit, start) = (RateLimit::new(Some(4.0)), Instant::now());
        let submissions = starts(&rate_limit, 100, start);
        // A poll waits only behind the submissions before it.
        let poll = async {
            tokio::time::sleep(Duration::from_millis(1900)).await;
            assert!(rate_limit.turn_to_poll().await);
            start.elapsed()
        };
        let (submissions, poll) = futures::join!(submissions, poll);
        assert_eq!(submissions.last(), Some(&Duration::from_secs(25)));
        assert!(poll <= Duration::from_secs(3), "{poll:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_wait_of_submissions_keeps_polls_for_a_minute_only() {
        let (rate_limit, start) = (RateLimit::new(None), Instant::now());
        rate_limit.pause_submissions(Duration::from_mins(10));
        assert_eq!(rate_limit.pending(), Some(LONGEST_POLL_PAUSE));
        rate_limit.turn().await;
        assert_eq!(start.elapsed(), Duration::from_mins(10));
    }
}
