//! Places polls, and learns from what they find.

use std::collections::HashMap;
use std::time::Duration;

use super::learned::{Learned, Promise, Sighting};
use crate::engine::settings::Settings;

/// What a poll is worth, as a share of the mean time that a task of its class takes.
const POLL_WORTH: f64 = 0.006;
/// A task may be ready once the probability that it ends soon is this high.
const READY: f64 = 0.05;
/// What is soon, as a share of the mean time that a task of its class takes: some ten seconds of two minutes.
const SOON: f64 = 0.08;
/// The integral of the density of polls at the first poll, from and to. Less than one: a first poll also learns how far
/// the task is.
const FIRST_POLL: (f64, f64) = (0.05, 0.35);
/// The same at every other poll: around one.
const NEXT_POLL: (f64, f64) = (0.85, 1.15);
/// How much earlier than the interval a poll may come, as a share of it.
const JITTER: f64 = 0.1;
/// The shortest pause after a poll without a usable answer, before it doubles: a service in trouble is not hammered.
const LEAST_BACKOFF: Duration = Duration::from_millis(50);
/// The shortest interval and floor: timers count whole milliseconds.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// The longest pause after polls that brought no usable answer.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// The most promises of one task that are remembered.
const MOST_PROMISES: usize = 8;

/// Tasks that take equally long, as far as anybody can tell beforehand.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Class {
    /// The model.
    pub model: String,
    /// Seconds of video.
    pub duration_s: Option<i64>,
    /// What the document says of the generation time: shortest and longest, in seconds.
    pub typical_s: (u32, u32),
}

/// What was seen of one task.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sight {
    /// What its progress promises now.
    promise: Option<Promise>,
    promises: Vec<Promise>,
    /// The first progress of the task.
    first: Option<Sighting>,
    highest: u8,
}

impl Sight {
    /// Takes in the progress that was seen at an age. Only growth is news.
    pub(crate) fn see(&mut self, age: Duration, percent: Option<u8>) {
        let Some(percent @ 1..=99) = percent else { return };
        if percent < self.highest {
            // It was begun anew.
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

/// Places polls, and learns from what they find.
#[derive(Clone, Debug)]
pub(crate) struct Cadence {
    interval: Duration,
    floor: Duration,
    first: Option<Duration>,
    speed: f64,
    classes: HashMap<Class, Learned>,
}

impl Cadence {
    /// Keeps to what the user set. An interval below the floor is lifted to it.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            interval: settings.poll_interval.max(settings.poll_floor).max(SHORTEST_INTERVAL),
            floor: settings.poll_floor.max(SHORTEST_INTERVAL),
            first: settings.first_poll,
            speed: settings.speed,
            classes: HashMap::new(),
        }
    }

    /// How long to wait with the first poll of a task that was submitted `age` ago. `random` is from 0 to 1.
    pub(crate) fn first(&mut self, class: &Class, age: Duration, random: f64) -> Duration {
        if let Some(first) = self.first {
            // Spread later rather than earlier: earlier would be wasted.
            return first.saturating_sub(age) + first.min(self.interval).mul_f64(JITTER * random);
        }
        let at = self.best_wait(class, &Sight::default(), age, between(FIRST_POLL, random), random);
        // A task that is overdue already is one of many after a restart: not all at once.
        at.unwrap_or(self.interval.mul_f64(JITTER * random))
    }

    /// How long to wait after a poll that said "not yet".
    pub(crate) fn next(&mut self, class: &Class, sight: &Sight, age: Duration, random: f64) -> Duration {
        let at = self.best_wait(class, sight, age, between(NEXT_POLL, random), random);
        at.unwrap_or(self.interval.mul_f64(1.0 - JITTER * random)).max(self.floor)
    }

    /// Takes in that a task ended between two ages. True if that is earlier than any of its class was thought to end.
    pub(crate) fn learn(&mut self, class: &Class, sight: &Sight, ended: (Duration, Duration)) -> bool {
        let learned = self.learned(class);
        let earliest = learned.earliest();
        let (from, to) = (ended.0.as_secs_f64(), ended.1.as_secs_f64());
        // Nobody looked for so long that it says nothing: the network was down, or the machine slept.
        if to - from > learned.longest() {
            return false;
        }
        // One that nobody ever saw running may have ended at any time. To believe that all could be ready at once would
        // waste many polls; halving the first poll each time that this happens finds the truth soon enough.
        let from = if from <= 0.0 { to / 2.0 } else { from };
        learned.learn((from, to), &sight.promises);
        to < earliest
    }

    /// How long to wait after `failures` polls in a row without a usable answer: doubling from the floor or from
    /// [`LEAST_BACKOFF`], whichever is longer, with full
    /// jitter above it, and never longer than half a minute or the interval, whichever is longer.
    pub(crate) fn after_failures(&self, failures: u32, random: f64) -> Duration {
        let most = LONGEST_BACKOFF.max(self.interval);
        let first = self.floor.max(LEAST_BACKOFF);
        let ceiling = first.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(most);
        self.floor + ceiling.saturating_sub(self.floor).mul_f64(random)
    }

    /// How long to wait when the service asked for it: as long as it says, and never less than the floor.
    pub(crate) fn at_least_the_floor(&self, wait: Duration) -> Duration {
        wait.max(self.floor)
    }

    /// A span of real time, shortened as the simulator shortens it.
    pub(crate) fn scaled(&self, span: Duration) -> Duration {
        span.div_f64(self.speed)
    }

    /// How long to wait for the place at which the integral reaches `polls`, within the interval after the task may be
    /// ready; nothing if the task has outlived all that is thought of it.
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
