//! The request rate of a service, learned from its rejections.
//!
//! A service or gateway that limits requests responds with 429, often without a time to wait. Then the gap between
//! requests grows by three tenths. It shrinks with each accepted request: fast while far above the last gap that was
//! too short, and slowly near it. So the rate settles just below the limit, with one rejection in several hundred
//! requests, and follows a limit that is raised.

use std::time::Duration;

/// The gap after the first rejection, in seconds.
const FIRST_GAP: f64 = 0.02;
/// The longest gap, in seconds.
const LONGEST_GAP: f64 = 10.0;
/// The growth of the gap after a rejection, and after each more in a row.
const GROWTH: f64 = 1.3;
const GROWTH_AGAIN: f64 = 2.0;
/// The part of the gap that remains after an accepted request: far above the gap that was too short, and near it.
const QUICKLY: f64 = 0.97;
const SLOWLY: f64 = 0.999;
/// The bound of "near", as a multiple of the gap that was too short.
const NEAR: f64 = 1.15;
/// The shortest gap above zero, in seconds.
const NO_GAP: f64 = 0.001;
/// The pause after a rejection, doubled with each more in a row, and the longest pause.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The learned rate, in seconds between two requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    gap: f64,
    too_short: f64,
    /// Rejections since the last accepted request.
    refusals: u32,
}

impl Rate {
    /// Records a rejection. Returns the pause.
    pub(super) fn refused(&mut self) -> Duration {
        let growth = if self.refusals == 0 {
            self.too_short = self.gap;
            GROWTH
        } else {
            // A rejection after a pause: the gap is far too short, or the service is busy for now.
            GROWTH_AGAIN
        };
        self.gap = (self.gap * growth).clamp(FIRST_GAP, LONGEST_GAP);
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.refusals.min(16))).min(LONGEST_PAUSE);
        self.refusals += 1;
        pause
    }

    /// Records an accepted request.
    pub(super) fn accepted(&mut self) {
        self.refusals = 0;
        if self.gap < self.too_short {
            // The service accepts a gap that it rejected before, so its limit is unknown again.
            self.too_short = 0.0;
        }
        self.gap *= if self.gap > self.too_short * NEAR { QUICKLY } else { SLOWLY };
        if self.gap < NO_GAP {
            self.gap = 0.0;
        }
    }

    /// Returns the gap between two requests.
    pub(super) fn gap(&self) -> Duration {
        Duration::from_secs_f64(self.gap)
    }

    /// Returns the requests per second, while there is a limit.
    pub(super) fn per_second(&self) -> Option<f64> {
        (self.gap > 0.0).then(|| 1.0 / self.gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends requests at a limit of this many seconds between two. Returns the time and the number of rejections.
    fn asked(rate: &mut Rate, limit: f64, requests: usize) -> (f64, usize) {
        let (mut now, mut last, mut taken, mut refused) = (0.0, -limit, 0, 0);
        while taken < requests {
            if now - last < limit {
                refused += 1;
                now += rate.refused().as_secs_f64().max(rate.gap);
            } else {
                (last, taken) = (now, taken + 1);
                rate.accepted();
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
        // After an outage, the gap shrinks with the first acceptance.
        (0..200).for_each(|_| rate.accepted());
        assert!(rate.gap() < Duration::from_millis(50), "{:?}", rate.gap());
    }
}
