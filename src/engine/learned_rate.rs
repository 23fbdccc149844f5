//! The rate that a service takes, learned from what it refuses.
//!
//! A service or a gateway that limits requests by time says 429 and often no word of how long to wait. Then the gap between
//! requests grows by three tenths; it shrinks with each request that is taken, quickly while it is far above the last gap that was
//! too short, and very slowly near it. So it settles a little above the limit, with a refusal in some hundred requests, and
//! follows a limit that is raised.

use std::time::Duration;

/// The gap after the first refusal.
const FIRST_GAP: f64 = 0.02;
/// The longest gap, in seconds.
const LONGEST_GAP: f64 = 10.0;
/// How much longer the gap is after a refusal, and after each more in a row.
const GROWTH: f64 = 1.3;
const GROWTH_AGAIN: f64 = 2.0;
/// What a request that is taken leaves of the gap, far above one that was too short and near it.
const QUICKLY: f64 = 0.97;
const SLOWLY: f64 = 0.999;
/// What is near, as a multiple of the gap that was too short.
const NEAR: f64 = 1.15;
/// A gap below this is none, in seconds.
const NO_GAP: f64 = 0.001;
/// The pause after a refusal, doubled with each more in a row, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What is known of the rate, in seconds between two requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    gap: f64,
    too_short: f64,
    /// Refusals since the last request that was taken.
    refusals: u32,
}

impl Rate {
    /// A request came too soon after the one before. Returns how long nobody should ask.
    pub(super) fn refused(&mut self) -> Duration {
        let growth = if self.refusals == 0 {
            self.too_short = self.gap;
            GROWTH
        } else {
            // Refused again although nobody asked for a while: the gap is far too short, or the service is busy for now.
            GROWTH_AGAIN
        };
        self.gap = (self.gap * growth).clamp(FIRST_GAP, LONGEST_GAP);
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.refusals.min(16))).min(LONGEST_PAUSE);
        self.refusals += 1;
        pause
    }

    /// A request was taken.
    pub(super) fn taken(&mut self) {
        self.refusals = 0;
        if self.gap < self.too_short {
            // It takes what it refused before: how much more it takes is to be found anew.
            self.too_short = 0.0;
        }
        self.gap *= if self.gap > self.too_short * NEAR { QUICKLY } else { SLOWLY };
        if self.gap < NO_GAP {
            self.gap = 0.0;
        }
    }

    /// The gap between two requests.
    pub(super) fn gap(&self) -> Duration {
        Duration::from_secs_f64(self.gap)
    }

    /// Requests a second, while there is a limit.
    pub(super) fn per_second(&self) -> Option<f64> {
        (self.gap > 0.0).then(|| 1.0 / self.gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests at a limit of so many seconds between two; how long they took and how many were refused.
    fn asked(rate: &mut Rate, limit: f64, requests: usize) -> (f64, usize) {
        let (mut now, mut last, mut taken, mut refused) = (0.0, -limit, 0, 0);
        while taken < requests {
            if now - last < limit {
                refused += 1;
                now += rate.refused().as_secs_f64().max(rate.gap);
            } else {
                (last, taken) = (now, taken + 1);
                rate.taken();
                now += rate.gap.max(NO_GAP);
            }
        }
        (now, refused)
    }

    #[test]
    fn it_settles_a_little_above_the_limit_and_follows_it() {
        let mut rate = Rate::default();
        let (_, refused) = asked(&mut rate, 0.025, 100);
        assert!(refused < 10, "{refused}");
        for (limit, most_refused) in [(0.025, 12), (0.1, 20), (0.01, 12), (0.5, 20), (3.0, 20)] {
            asked(&mut rate, limit, 300);
            let (took, refused) = asked(&mut rate, limit, 1000);
            assert!(took < 1000.0 * limit * 1.35, "{limit}: {took}");
            assert!(refused <= most_refused, "{limit}: {refused}");
        }
        asked(&mut rate, 0.0, 1000);
        assert_eq!(rate.gap(), Duration::ZERO, "no limit any more");
    }

    #[test]
    fn a_service_that_takes_nothing_is_asked_more_and_more_seldom() {
        let mut rate = Rate::default();
        let pauses: Vec<u128> = (0..8).map(|_| rate.refused().as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000]);
        // As soon as it takes something again, the gap shrinks: nothing was too short but the outage.
        (0..200).for_each(|_| rate.taken());
        assert!(rate.gap() < Duration::from_millis(50), "{:?}", rate.gap());
    }
}
