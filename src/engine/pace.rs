//! The pace of requests: pauses, and the gap between two requests.
//!
//! - A pause that the service requests applies to all requests. After a rejected submission, it applies to polls for at most
//!   a minute: only a poll finds a free slot.
//! - A service may reject a submission without a time to wait, because it is full or because requests are too frequent.
//!   Then submissions pause for a time that doubles until the next acceptance.
//! - Each rejection (HTTP 429) widens the gap between requests, and each other response narrows it: fast while far above
//!   the last gap that was too short, and slowly near it. So the rate settles just below the service's limit.
//! - `--rps` is a minimum gap.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Mutex as FairMutex;
use tokio::time::Instant;

/// The gap after the first rejection, and the longest, in seconds. Below the shortest there is none.
const FIRST_GAP: f64 = 0.02;
const MAX_GAP: f64 = 10.0;
const MIN_GAP: f64 = 0.001;
/// The growth of the gap after a rejection, and after each more in a row: then it is far too short.
const GROWTH: f64 = 1.3;
const FAST_GROWTH: f64 = 2.0;
/// The part of the gap that remains after another response: far above the gap that was too short, and near it.
const FAST_SHRINK: f64 = 0.97;
const SLOW_SHRINK: f64 = 0.999;
/// The bound of "near", as a multiple of the gap that was too short.
const NEAR: f64 = 1.15;

/// The pause after a rejection without a time, doubled with each more in a row, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The minimum pause of submissions, also if the service requests zero.
const MIN_SUBMISSION_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause of polls after a rejected submission.
const MAX_POLL_PAUSE: Duration = Duration::from_mins(1);

/// The pace that submissions, polls, and downloads share.
#[derive(Debug)]
pub(super) struct Pace {
    /// The gap by `--rps`.
    least_gap: Duration,
    state: Mutex<State>,
    /// Its holder has the next request: one at a time reserves its moment.
    head: FairMutex<()>,
    /// Submissions have a separate queue, so that only the first one competes with polls.
    submissions: FairMutex<()>,
}

#[derive(Debug)]
struct State {
    /// The end of the pause for all requests, and for submissions.
    until: Instant,
    submissions_until: Instant,
    /// The earliest moment of the next request.
    next: Instant,
    /// The gap between two requests, and the last one that was too short, in seconds.
    gap: f64,
    too_short: f64,
    /// Rejections since the last other response.
    rejections: u32,
    /// Rejected submissions since the last accepted one.
    rejected_submissions: u32,
}

impl Pace {
    /// Allows this many requests per second, or as many as the service accepts.
    pub(super) fn new(rps: Option<f64>) -> Self {
        let now = Instant::now();
        let state = State {
            until: now,
            submissions_until: now,
            next: now,
            gap: 0.0,
            too_short: 0.0,
            rejections: 0,
            rejected_submissions: 0,
        };
        Self {
            least_gap: rps.map_or(Duration::ZERO, |rps| Duration::from_secs_f64(1.0 / rps)),
            state: Mutex::new(state),
            head: FairMutex::new(()),
            submissions: FairMutex::new(()),
        }
    }

    /// Pauses all requests, as the service requests. A shorter pause never ends a longer one.
    pub(super) fn pause(&self, wait: Duration) {
        let mut state = self.state.lock();
        state.widen();
        state.hold(wait, wait);
    }

    /// Pauses all requests after a rejection without a time. Returns the pause. Requests in flight together count once.
    pub(super) fn slow_down(&self) -> Duration {
        let mut state = self.state.lock();
        let wait = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(state.rejections.min(16))).min(MAX_PAUSE);
        if state.widen() {
            state.hold(wait, wait);
        }
        state.until.saturating_duration_since(Instant::now())
    }

    /// Pauses submissions after a rejected one, for the time that the service names or for a growing one. Returns it.
    pub(super) fn reject_submission(&self, named: Option<Duration>) -> Duration {
        let mut state = self.state.lock();
        let is_first = state.submissions_until <= Instant::now();
        // A service that rejects submissions only is full: a gap between requests would not help.
        if is_first && state.rejected_submissions == 0 {
            state.widen();
        }
        let growing = MIN_SUBMISSION_PAUSE.saturating_mul(2_u32.saturating_pow(state.rejected_submissions.min(16)));
        let wait = named.map_or(growing.min(MAX_PAUSE), |named| named.max(MIN_SUBMISSION_PAUSE));
        state.hold(named.map_or(Duration::ZERO, |named| named.min(MAX_POLL_PAUSE)), wait);
        state.rejected_submissions += u32::from(is_first);
        wait
    }

    /// Pauses submissions while the service can't be reached.
    pub(super) fn hold_submissions(&self, wait: Duration) {
        self.state.lock().hold(Duration::ZERO, wait);
    }

    /// Returns the learned requests per second, if they are limited.
    pub(super) fn per_second(&self) -> Option<f64> {
        let gap = self.state.lock().gap;
        (gap > 0.0).then(|| 1.0 / gap)
    }

    /// Records a response that is no rejection.
    pub(super) fn record_accepted(&self) {
        self.state.lock().narrow();
    }

    /// Records an accepted submission.
    pub(super) fn record_submission(&self) {
        self.state.lock().rejected_submissions = 0;
    }

    /// Waits for the end of a pause of submissions.
    pub(super) async fn submissions_resumed(&self) {
        loop {
            let until = self.state.lock().submissions_until;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Waits for the next submission: a gap after the last request. Returns false if a pause started in the meantime.
    pub(super) async fn turn_to_submit(&self) -> bool {
        let _first_of_submissions = self.submissions.lock().await;
        self.next_moment().await;
        self.state.lock().submissions_until <= Instant::now()
    }

    /// Waits for the next poll. Returns false if a pause started in the meantime.
    pub(super) async fn turn_to_poll(&self) -> bool {
        self.next_moment().await;
        self.pending().is_none()
    }

    /// Returns the rest of the pause of all requests, if there is one.
    pub(super) fn pending(&self) -> Option<Duration> {
        let left = self.state.lock().until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Reserves the next moment for a request, and waits for it.
    async fn next_moment(&self) {
        let _first_in_line = self.head.lock().await;
        let at = self.state.lock().reserve(self.least_gap);
        // Tokio's timers round up to a millisecond, also for a moment that is over.
        if at > Instant::now() {
            tokio::time::sleep_until(at).await;
        }
    }
}

impl State {
    /// Pauses all requests, and submissions.
    fn hold(&mut self, wait: Duration, submissions_wait: Duration) {
        let now = Instant::now();
        self.until = self.until.max(now + wait);
        self.submissions_until = self.submissions_until.max(now + submissions_wait);
    }

    /// Widens the gap, unless a pause is on: requests in flight together are rejected together. Returns whether it did.
    fn widen(&mut self) -> bool {
        if self.until > Instant::now() {
            return false;
        }
        let growth = if self.rejections == 0 { GROWTH } else { FAST_GROWTH };
        if self.rejections == 0 {
            self.too_short = self.gap;
        }
        self.gap = (self.gap * growth).clamp(FIRST_GAP, MAX_GAP);
        self.rejections += 1;
        true
    }

    fn narrow(&mut self) {
        self.rejections = 0;
        if self.gap < self.too_short {
            // The service accepts a gap that it rejected before, so its limit is unknown again.
            self.too_short = 0.0;
        }
        self.gap *= if self.gap > self.too_short * NEAR { FAST_SHRINK } else { SLOW_SHRINK };
        if self.gap < MIN_GAP {
            self.gap = 0.0;
        }
    }

    /// Reserves the next moment for a request.
    fn reserve(&mut self, least_gap: Duration) -> Instant {
        let at = self.next.max(Instant::now());
        self.next = at + least_gap.max(Duration::from_secs_f64(self.gap));
        at
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use futures::stream::FuturesUnordered;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Waits for the moment of a submission, as the submitter does.
    async fn submit(pace: &Pace) {
        loop {
            pace.submissions_resumed().await;
            if pace.turn_to_submit().await {
                return;
            }
        }
    }

    /// The starts of this many concurrent submissions, as times after the given moment.
    async fn starts(pace: &Pace, requests: usize, since: Instant) -> Vec<Duration> {
        let turns: FuturesUnordered<_> = (0..requests)
            .map(|_| async {
                submit(pace).await;
                pace.record_accepted();
                since.elapsed()
            })
            .collect();
        turns.collect().await
    }

    /// Sends requests to a service with a limit of this many seconds between two. Returns the time and the rejections.
    async fn send(pace: &Pace, limit: f64, requests: usize) -> (f64, usize) {
        let (start, limit) = (Instant::now(), Duration::from_secs_f64(limit));
        let (mut last, mut accepted, mut rejected) = (start.checked_sub(limit).expect("a clock"), 0, 0);
        while accepted < requests {
            submit(pace).await;
            if last.elapsed() < limit {
                rejected += 1;
                pace.slow_down();
            } else {
                (last, accepted) = (Instant::now(), accepted + 1);
                pace.record_accepted();
            }
        }
        (start.elapsed().as_secs_f64(), rejected)
    }

    #[tokio::test(start_paused = true)]
    async fn longest_pause_holds_for_all_requests() {
        let (pace, start) = (Pace::new(None), Instant::now());
        assert_eq!(starts(&pace, 100, start).await, [Duration::ZERO; 100]);
        pace.pause(30 * SECOND);
        pace.pause(5 * SECOND);
        for at in starts(&pace, 2, start).await {
            assert!(at >= 30 * SECOND && at <= 31 * SECOND, "{at:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_spread_after_a_pause() {
        let pace = Pace::new(None);
        pace.pause(10 * SECOND);
        let starts = starts(&pace, 200, Instant::now() + 10 * SECOND).await;
        let within = |seconds| starts.iter().filter(|at| **at < Duration::from_secs_f64(seconds)).count();
        assert!((2..=12).contains(&within(0.2)), "{} together", within(0.2));
        assert_eq!(within(2.0), 200, "the gap never closes: {:?}", starts.last());
    }

    #[tokio::test(start_paused = true)]
    async fn rate_settles_below_the_limit_and_follows_it() {
        let pace = Pace::new(None);
        let (_, rejected) = send(&pace, 0.025, 100).await;
        assert!(rejected < 10, "{rejected}");
        for (limit, max_rejected) in [(0.025, 12), (0.1, 20), (0.01, 12), (0.5, 20), (3.0, 20)] {
            send(&pace, limit, 300).await;
            let (took, rejected) = send(&pace, limit, 1000).await;
            assert!(took < 1000.0 * limit * 1.35, "{limit}: {took}");
            assert!(rejected <= max_rejected, "{limit}: {rejected}");
        }
        send(&pace, 0.0, 1000).await;
        assert_eq!(pace.per_second(), None, "there is no limit any more");
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_while_all_is_rejected() {
        let pace = Pace::new(None);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            pauses.push(pace.slow_down().as_millis());
            tokio::time::sleep(MAX_PAUSE).await;
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000]);
        (0..200).for_each(|_| pace.record_accepted());
        assert!(pace.per_second().is_none_or(|rate| rate > 20.0), "{:?}", pace.per_second());
    }

    #[tokio::test(start_paused = true)]
    async fn rps_holds_for_submissions_and_polls_together() {
        let (pace, start) = (Pace::new(Some(4.0)), Instant::now());
        let submissions = starts(&pace, 100, start);
        // A poll waits only for earlier submissions.
        let poll = async {
            tokio::time::sleep(Duration::from_millis(1900)).await;
            assert!(pace.turn_to_poll().await);
            start.elapsed()
        };
        let (submissions, poll) = futures::join!(submissions, poll);
        assert_eq!(submissions.last(), Some(&(25 * SECOND)));
        assert!(poll <= 3 * SECOND, "{poll:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_submission_holds_polls_for_a_minute() {
        let (pace, start) = (Pace::new(None), Instant::now());
        assert_eq!(pace.reject_submission(Some(600 * SECOND)), 600 * SECOND);
        assert_eq!(pace.pending(), Some(MAX_POLL_PAUSE));
        submit(&pace).await;
        assert_eq!(start.elapsed(), 600 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn submissions_pause_longer_until_one_is_accepted() {
        let pace = Pace::new(None);
        for expected in [250, 500, 1000, 2000] {
            assert_eq!(pace.reject_submission(None), Duration::from_millis(expected));
            assert_eq!(pace.pending(), None, "polls go on");
            submit(&pace).await;
        }
        pace.record_submission();
        assert_eq!(pace.reject_submission(None), MIN_SUBMISSION_PAUSE);
    }
}
