//! How fast the service may be asked: a pause that it asked for, holding for everybody, and the gap between requests.
//!
//! One that refuses without a word of how long is asked at the [`learned_rate`](super::learned_rate) that it takes.
//! A pause is shared by submissions and polls. What comes after it does not come at once: requests start with a gap
//! between them, which shrinks with each one, and is twice as long after the next pause. So a service that asks to wait
//! finds the rate that it can take, and one that does not is never slowed down. `--rps` is a least gap of the user's own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as FairMutex;
use tokio::time::Instant;

use super::learned_rate::Rate;

/// The gap between requests after a pause, at first and at the most.
const FIRST_GAP: Duration = Duration::from_millis(50);
const LONGEST_GAP: Duration = Duration::from_secs(1);
/// What is left of the gap after each request.
const SHRINKS_TO: f64 = 0.8;
/// A gap below this is none.
const NO_GAP: Duration = Duration::from_millis(1);

/// The longest that a submission's refusal keeps polls waiting: only they can see that there is a place again.
const LONGEST_POLL_PAUSE: Duration = Duration::from_mins(1);

/// When the service may be asked again.
#[derive(Debug)]
pub(super) struct RateLimit {
    least_gap: Duration,
    /// How many runners share the pace.
    sharing: AtomicU32,
    state: Mutex<State>,
    /// Whoever holds it is next, so that only one request at a time reserves a moment.
    head: FairMutex<()>,
    /// Submissions wait in a line of their own, of which only the first is beside the polls.
    submissions: FairMutex<()>,
}

#[derive(Debug)]
struct State {
    /// Until when nobody asks, and until when nobody submits.
    until: Instant,
    submissions_until: Instant,
    gap: Duration,
    /// The gap that the last pause began with; nothing before the first one.
    began_with: Duration,
    /// What the service takes, where it refuses without a word of how long.
    rate: Rate,
    next: Instant,
}

impl RateLimit {
    /// Allows this many requests a second, or as many as the service takes.
    pub(super) fn new(rps: Option<f64>) -> Self {
        let now = Instant::now();
        let least_gap = rps.map_or(Duration::ZERO, |rps| Duration::from_secs_f64(1.0 / rps));
        let (gap, began_with) = (Duration::ZERO, Duration::ZERO);
        let state = State { until: now, submissions_until: now, gap, began_with, rate: Rate::default(), next: now };
        let sharing = AtomicU32::new(1);
        Self { least_gap, sharing, state: Mutex::new(state), head: FairMutex::new(()), submissions: FairMutex::new(()) }
    }

    /// So many runners share the requests that were allowed.
    pub(super) fn share(&self, sharing: u32) {
        self.sharing.store(sharing.max(1), Ordering::Relaxed);
    }

    /// Nobody asks for this long. A shorter wait never ends a longer one.
    pub(super) fn pause(&self, wait: Duration) {
        let mut state = self.lock();
        state.pause(wait);
        state.submissions_until = state.submissions_until.max(state.until);
    }

    /// Nobody submits for this long, and nobody asks for the first minute of it.
    pub(super) fn pause_submissions(&self, wait: Duration) {
        let mut state = self.lock();
        state.pause(wait.min(LONGEST_POLL_PAUSE));
        state.submissions_until = state.submissions_until.max(Instant::now() + wait);
    }

    /// The service was asked too fast: nobody asks for as long as is returned, and then less often than before. Requests that
    /// were under way together are one refusal.
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

    /// How many requests a second the service takes, as far as it was learned.
    pub(super) fn per_second(&self) -> Option<f64> {
        self.lock().rate.per_second()
    }

    /// The service took a request.
    pub(super) fn was_taken(&self) {
        self.lock().rate.taken();
    }

    /// Returns when it is a submission's turn: after a pause, and a gap after the request before.
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

    /// Returns when it is a poll's turn; false if a pause began meanwhile.
    pub(super) async fn turn_to_poll(&self) -> bool {
        self.next_moment().await;
        self.pending().is_none()
    }

    /// How long nobody may ask yet; nothing if there is no pause.
    pub(super) fn pending(&self) -> Option<Duration> {
        let left = self.lock().until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Whether nobody may submit now.
    pub(super) fn holds_submissions(&self) -> bool {
        self.lock().submissions_until > Instant::now()
    }

    /// Takes the next moment at which a request may start, and returns when it has come.
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

/// Tokio's timers count whole milliseconds: even a moment that is over would cost one, for each request.
async fn sleep_until(at: Instant) {
    if at > Instant::now() {
        tokio::time::sleep_until(at).await;
    }
}

impl State {
    fn pause(&mut self, wait: Duration) {
        let now = Instant::now();
        // Requests that were under way together are all refused: that is one refusal.
        if self.until <= now {
            let longer = if self.gap.is_zero() { FIRST_GAP } else { self.began_with * 2 };
            self.began_with = longer.min(LONGEST_GAP);
        }
        self.gap = self.began_with;
        self.until = self.until.max(now + wait);
    }

    /// Takes the next moment at which a request may start.
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

    /// When each of so many requests that come at once may start, after the given moment.
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
        // A service that asks again and again is asked more and more slowly.
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
        // A poll is not behind all submissions that wait, but behind those that came before it.
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
