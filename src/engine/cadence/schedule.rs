//! Scheduling of polls, and learning from their responses.

use std::collections::HashMap;
use std::time::Duration;

use super::learned::{Learned, Promise, Sighting};
use crate::engine::settings::Settings;

/// The value of a poll, as a share of the mean duration of the class.
const POLL_WORTH: f64 = 0.006;
/// The probability of ending soon from which a task may be ready.
const READY: f64 = 0.05;
/// The time called soon, as a share of the mean duration of the class: about ten seconds of two minutes.
const SOON: f64 = 0.08;
/// The bounds of the integral of poll density at the first poll. Less than one, because a first poll also reports
/// progress.
const FIRST_POLL: (f64, f64) = (0.05, 0.35);
/// The same at every other poll: around one.
const NEXT_POLL: (f64, f64) = (0.85, 1.15);
/// The jitter of a poll before the interval ends, as a share of the interval.
const JITTER: f64 = 0.1;
/// The shortest backoff after a poll without a usable response.
const LEAST_BACKOFF: Duration = Duration::from_millis(50);
/// The shortest interval and floor: timers count whole milliseconds.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// The longest backoff after polls without a usable response.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// The number of predictions to remember for one task.
const MOST_PROMISES: usize = 8;

/// Tasks with the same expected duration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Class {
    /// The model.
    pub model: String,
    /// The length of the video, in seconds.
    pub duration_s: Option<i64>,
    /// The documented generation time: shortest and longest, in seconds.
    pub typical_s: (u32, u32),
}

/// The observations of one task.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sight {
    /// The current prediction from its progress.
    promise: Option<Promise>,
    promises: Vec<Promise>,
    /// The first observation of progress.
    first: Option<Sighting>,
    highest: u8,
}

impl Sight {
    /// Records progress at an age. Only growth is new.
    pub(crate) fn see(&mut self, age: Duration, percent: Option<u8>) {
        let Some(percent @ 1..=99) = percent else { return };
        if percent < self.highest {
            // The service started the task again.
            (self.promise, self.first) = (None, None);
        }
        if percent > self.highest {
            let seen = Sighting { age: age.as_secs_f64().max(0.001), percent };
            let promise = Promise::of(*self.first.get_or_insert(seen), seen);
            (self.highest, self.promise) = (percent, Some(promise));
            if self.promises.len() < MOST_PROMISES {
                self.promises.push(promise);
            }
        }
    }
}

/// The schedule of polls.
#[derive(Clone, Debug)]
pub(crate) struct Cadence {
    interval: Duration,
    floor: Duration,
    first: Option<Duration>,
    speed: f64,
    classes: HashMap<Class, Learned>,
}

impl Cadence {
    /// Applies the settings. An interval below the floor is raised to it.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            interval: settings.poll_interval.max(settings.poll_floor).max(SHORTEST_INTERVAL),
            floor: settings.poll_floor.max(SHORTEST_INTERVAL),
            first: settings.first_poll,
            speed: settings.speed,
            classes: HashMap::new(),
        }
    }

    /// Returns the wait before the first poll of a task of this age. `random` is from 0 to 1.
    pub(crate) fn first(&mut self, class: &Class, age: Duration, random: f64) -> Duration {
        if let Some(first) = self.first {
            // Later rather than earlier: an early poll finds nothing.
            return first.saturating_sub(age) + first.min(self.interval).mul_f64(JITTER * random);
        }
        let at = self.best_wait(class, &Sight::default(), age, between(FIRST_POLL, random), random);
        // An overdue task is one of many after a restart, so they are spread.
        at.unwrap_or(self.interval.mul_f64(JITTER * random))
    }

    /// Returns the wait after a poll of a task that still runs.
    pub(crate) fn next(&mut self, class: &Class, sight: &Sight, age: Duration, random: f64) -> Duration {
        let at = self.best_wait(class, sight, age, between(NEXT_POLL, random), random);
        at.unwrap_or(self.interval.mul_f64(1.0 - JITTER * random)).max(self.floor)
    }

    /// Learns that a task ended between two ages.
    pub(crate) fn learn(&mut self, class: &Class, sight: &Sight, ended: (Duration, Duration)) {
        let learned = self.learned(class);
        let (from, to) = (ended.0.as_secs_f64(), ended.1.as_secs_f64());
        // A long time without a poll says nothing: the network was down, or the machine slept.
        if to - from > learned.longest() {
            return;
        }
        // A task that was never seen running may have ended at any time. Assuming zero would waste many polls on
        // others. Halving the first poll each time finds the duration soon enough.
        let from = if from <= 0.0 { to / 2.0 } else { from };
        learned.learn((from, to), &sight.promises);
    }

    /// Returns the backoff after `failures` polls in a row without a usable response. It doubles from the floor or from
    /// [`LEAST_BACKOFF`], whichever is longer, with full jitter. It never exceeds half a minute or the interval,
    /// whichever is longer.
    pub(crate) fn after_failures(&self, failures: u32, random: f64) -> Duration {
        let most = LONGEST_BACKOFF.max(self.interval);
        let first = self.floor.max(LEAST_BACKOFF);
        let ceiling = first.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(most);
        self.floor + ceiling.saturating_sub(self.floor).mul_f64(random)
    }

    /// Returns a wait that the service asked for, raised to the floor.
    pub(crate) fn at_least_the_floor(&self, wait: Duration) -> Duration {
        wait.max(self.floor)
    }

    /// Divides a real time span by the simulator's speed.
    pub(crate) fn scaled(&self, span: Duration) -> Duration {
        span.div_f64(self.speed)
    }

    /// Returns the wait until the integral reaches `polls`, at most the interval after the task may be ready. `None` if
    /// the task is older than all predictions.
    fn best_wait(&mut self, class: &Class, sight: &Sight, age: Duration, polls: f64, random: f64) -> Option<Duration> {
        let (interval, by_hand) = (self.interval.as_secs_f64() * (1.0 - JITTER * random), self.first.is_some());
        let learned = self.learned(class);
        let now = age.as_secs_f64();
        let mixture = learned.mixture(now, sight.promise);
        let mean = learned.mean();
        let likely = mixture.likely_from(now, SOON * mean, READY)?;
        let ready = if by_hand { now } else { likely.max(mixture.begins(now)) };
        let best = mixture.best_age(now, polls, POLL_WORTH * mean).unwrap_or(f64::INFINITY);
        Some(Duration::from_secs_f64((best.min(ready + interval) - now).max(0.0)))
    }

    fn learned(&mut self, class: &Class) -> &mut Learned {
        let (min, max) = class.typical_s;
        let typical = (f64::from(min) / self.speed, f64::from(max) / self.speed);
        self.classes.entry(class.clone()).or_insert_with(|| Learned::new(typical))
    }
}

fn between((from, to): (f64, f64), random: f64) -> f64 {
    from + (to - from) * random
}
