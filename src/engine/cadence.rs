//! When to look at a task next. Pure: durations in, a duration out.
//!
//! A look before a task can be ready is wasted, so the first one comes when its family's typical time begins
//! (interface §4). From then on a task is looked at every `--poll-interval` at the most, and a little earlier at
//! random, so that tasks submitted together don't ask together. Between two looks at one task there is always at least
//! `--poll-floor`.

use std::time::Duration;

use super::settings::Settings;

/// How much earlier than the interval a look may come, as a share of it.
const JITTER: f64 = 0.1;
/// The longest pause after looks that brought no usable answer.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// Places looks.
#[derive(Clone, Debug)]
pub struct Cadence {
    interval: Duration,
    floor: Duration,
    first: Option<Duration>,
    speed: f64,
}

impl Cadence {
    /// As the user set it. An interval below the floor is lifted to it.
    pub fn new(settings: &Settings) -> Self {
        Self {
            interval: settings.poll_interval.max(settings.poll_floor),
            floor: settings.poll_floor,
            first: settings.first_poll,
            speed: settings.speed,
        }
    }

    /// How long to wait with the first look at a task that was submitted `age` ago and whose family typically needs at
    /// least `typical_min`. `random` is from 0 to 1.
    pub fn first(&self, typical_min: Duration, age: Duration, random: f64) -> Duration {
        let ready = self.first.unwrap_or_else(|| typical_min.div_f64(self.speed));
        let wait = ready.saturating_sub(age);
        // Spread over a tenth, later rather than earlier: earlier would be wasted.
        wait + ready.min(self.interval).mul_f64(JITTER * random)
    }

    /// How long to wait after a look that said "not yet".
    pub fn next(&self, random: f64) -> Duration {
        self.interval.mul_f64(1.0 - JITTER * random).max(self.floor)
    }

    /// How long to wait after `failures` looks in a row without a usable answer: doubling from the floor, with full
    /// jitter above it, and never longer than half a minute or the interval, whichever is longer.
    pub fn after_trouble(&self, failures: u32, random: f64) -> Duration {
        let most = LONGEST_BACKOFF.max(self.interval);
        let ceiling = self.floor.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(most);
        self.floor + ceiling.saturating_sub(self.floor).mul_f64(random)
    }

    /// The pause where the service gave no time of its own: the interval.
    pub fn unsaid_wait(&self) -> Duration {
        self.interval
    }

    /// A span of real time, shortened as the simulator shortens it.
    pub fn scaled(&self, span: Duration) -> Duration {
        span.div_f64(self.speed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPICAL: Duration = Duration::from_mins(1);

    fn cadence() -> Cadence {
        Cadence::new(&Settings::default())
    }

    #[test]
    fn nothing_is_asked_before_a_task_can_be_ready() {
        assert_eq!(cadence().first(TYPICAL, Duration::ZERO, 0.0), TYPICAL);
        assert_eq!(cadence().first(TYPICAL, Duration::from_secs(20), 0.0), Duration::from_secs(40));
        assert_eq!(cadence().first(TYPICAL, Duration::from_hours(1), 0.0), Duration::ZERO);
    }

    #[test]
    fn the_first_look_can_be_set() {
        let settings = Settings { first_poll: Some(Duration::from_secs(5)), ..Settings::default() };
        assert_eq!(Cadence::new(&settings).first(TYPICAL, Duration::ZERO, 0.0), Duration::from_secs(5));
    }

    proptest! {
        #[test]
        fn never_rarer_than_the_interval_nor_more_often_than_the_floor(
            interval_ms in 1_u64..60_000,
            floor_ms in 1_u64..10_000,
            failures in 0_u32..100,
            random in 0.0..1.0_f64,
        ) {
            let settings = Settings {
                poll_interval: Duration::from_millis(interval_ms),
                poll_floor: Duration::from_millis(floor_ms),
                ..Settings::default()
            };
            let cadence = Cadence::new(&settings);
            let longest = settings.poll_interval.max(settings.poll_floor);
            prop_assert!(cadence.next(random) <= longest);
            prop_assert!(cadence.next(random) >= settings.poll_floor);
            let backoff = cadence.after_trouble(failures, random);
            prop_assert!(backoff >= settings.poll_floor);
            prop_assert!(backoff <= longest.max(LONGEST_BACKOFF));
        }
    }
}
