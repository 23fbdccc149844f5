//! The heartbeats of the other runners, timed by this machine's own clock.
//!
//! After an outage, the runner that is back first finds all others silent, and a database's clock may jump. So a runner expires another only if
//! it has itself seen the same heartbeat for as long as a lease lasts, without a longer gap of its own.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::limits::Times;

/// The heartbeats that were seen last, each since when.
#[derive(Debug)]
pub(super) struct Heartbeats {
    seen: HashMap<i64, (i64, Instant)>,
    looked: Instant,
}

impl Heartbeats {
    pub(super) fn new() -> Self {
        Self { seen: HashMap::new(), looked: Instant::now() }
    }

    /// Notes the latest heartbeat of each live runner, as the database's time in microseconds.
    pub(super) fn note(&mut self, latest: Vec<(i64, i64)>, times: &Times) {
        let now = Instant::now();
        let has_gap = self.has_gap(times);
        let since = |runner: i64, beat: i64| match self.seen.get(&runner) {
            Some((seen, since)) if *seen == beat && !has_gap => *since,
            _ => now,
        };
        self.seen = latest.into_iter().map(|(runner, beat)| (runner, (beat, since(runner, beat)))).collect();
        self.looked = now;
    }

    /// The runners whose lease has expired, each with its last heartbeat.
    pub(super) fn expired(&self, times: &Times) -> (Vec<i64>, Vec<i64>) {
        if self.has_gap(times) {
            return (Vec::new(), Vec::new());
        }
        let is_expired = |since: Instant| since.elapsed() >= times.lease;
        self.seen
            .iter()
            .filter(|(_, (_, since))| is_expired(*since))
            .map(|(runner, (beat, _))| (*runner, *beat))
            .unzip()
    }

    /// True if this runner did not look for so long that the others may have sent heartbeats in vain.
    fn has_gap(&self, times: &Times) -> bool {
        self.looked.elapsed() > longest_gap(times)
    }
}

/// Half a lease: after a shorter outage, each runner still has half a lease to reconnect.
fn longest_gap(times: &Times) -> Duration {
    times.lease / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at each full second until `seconds`, and returns the runners that are expired then.
    async fn expired_after(heartbeats: &mut Heartbeats, seconds: u64, beat: impl Fn(u64) -> i64) -> Vec<i64> {
        let times = Times::usual();
        for second in 0..seconds {
            heartbeats.note(vec![(7, beat(second))], &times);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        heartbeats.expired(&times).0
    }

    #[tokio::test(start_paused = true)]
    async fn silent_runner_expires_after_a_lease_of_observation() {
        let mut heartbeats = Heartbeats::new();
        assert_eq!(expired_after(&mut heartbeats, 59, |_| 1).await, [0; 0]);
        assert_eq!(expired_after(&mut heartbeats, 2, |_| 1).await, [7]);
    }

    #[tokio::test(start_paused = true)]
    async fn live_runner_never_expires() {
        let mut heartbeats = Heartbeats::new();
        let every_five_seconds = |second: u64| i64::try_from(second / 5).expect("small");
        assert_eq!(expired_after(&mut heartbeats, 300, every_five_seconds).await, [0; 0]);
    }

    /// The database was away: all were silent, and the one that is back first must not expire the others.
    #[tokio::test(start_paused = true)]
    async fn outage_gives_everyone_a_lease_to_come_back() {
        let mut heartbeats = Heartbeats::new();
        assert_eq!(expired_after(&mut heartbeats, 50, |_| 1).await, [0; 0]);
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(heartbeats.expired(&Times::usual()).0, [0; 0], "not before it has looked again");
        assert_eq!(expired_after(&mut heartbeats, 59, |_| 1).await, [0; 0]);
        assert_eq!(expired_after(&mut heartbeats, 2, |_| 1).await, [7]);
    }

    /// A database's clock that jumps changes heartbeats, but never makes one old.
    #[tokio::test(start_paused = true)]
    async fn clock_jump_expires_no_runner() {
        let mut heartbeats = Heartbeats::new();
        let jump = |second: u64| if second < 30 { 1 } else { 600_000_000 };
        assert_eq!(expired_after(&mut heartbeats, 80, jump).await, [0; 0]);
    }
}
