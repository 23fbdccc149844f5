//! The poll schedule: the time of a task's next poll, from its age, its typical time, and its progress.
//!
//! - Without progress, a task is polled at a quarter, a half, and the whole of its shortest typical time, and then after
//!   every tenth of its age.
//! - Progress predicts the end: evenly from the submission by one observation, and along the line through the first and
//!   the last by more, because a queued task counts from its start. The next poll is halfway to that end, and a
//!   prediction that agrees with the one before is waited for. Progress that went back counts no more. A task that outlives it is polled with growing pauses.
//! - A wait is at least `--poll-floor`. It is at most `--poll-interval`, except before the shortest typical time, and
//!   where two predictions agree.

use std::time::Duration;

use super::settings::Settings;

/// The share of the shortest typical time at which a task is polled first.
const FIRST_POLL: f64 = 0.25;
/// The part of its age that a task without progress waits for its next poll.
const AGE_SHARE: f64 = 0.1;
/// The jitter of a wait, as a share of it.
const JITTER: f64 = 0.1;
/// The minimum growth of progress for an estimate by two observations instead of one.
const MIN_GROWTH: f64 = 0.1;
/// The difference of two predictions that agree, as a share of the predicted age.
const MAX_DISAGREEMENT: f64 = 0.05;
/// The progress that larger steps are multiples of.
const SMALL_STEP: u8 = 5;
/// The latest believable end, as a multiple of the longest typical time.
const MAX_TYPICAL_TIMES: f64 = 3.0;
/// The first backoff after a poll without a usable response, and the longest.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// The interval and the floor of a service at the documented speed.
const INTERVAL: Duration = Duration::from_secs(8);
const FLOOR: Duration = Duration::from_secs(1);
/// The shortest interval and floor: timers count whole milliseconds.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// Progress that a poll observed.
#[derive(Clone, Copy, Debug)]
struct Observation {
    /// The age of the task, in seconds.
    age: f64,
    /// The progress, 1 to 99.
    percent: u8,
}

impl Observation {
    /// Returns the share that is done: the middle of the percent that the service rounded down to.
    fn share(self) -> f64 {
        (f64::from(self.percent) + 0.5) / 100.0
    }
}

/// The end of a task as its progress predicts it.
#[derive(Clone, Copy, Debug)]
struct Prediction {
    /// The age at the end, in seconds, and its error from rounded progress.
    end: f64,
    error: f64,
    /// True if it agrees with the prediction before it.
    is_confirmed: bool,
}

/// The progress of one task so far.
#[derive(Clone, Default, Debug)]
pub(super) struct Progress {
    first: Option<Observation>,
    prediction: Option<Prediction>,
    percent: u8,
    /// True after progress went back: the service restarted the task, or its progress is useless.
    has_gone_back: bool,
}

impl Progress {
    /// Records progress at an age. Unchanged progress adds nothing.
    pub(super) fn record(&mut self, age: Duration, percent: Option<u8>) {
        let Some(percent @ 1..=99) = percent else { return };
        if self.has_gone_back {
            return;
        }
        if percent < self.percent {
            *self = Self { has_gone_back: true, ..Self::default() };
            return;
        }
        if percent > self.percent {
            let last = Observation { age: age.as_secs_f64().max(0.001), percent };
            let first = *self.first.get_or_insert(last);
            let previous = self.prediction.map(|prediction| prediction.end);
            (self.percent, self.prediction) = (percent, Some(predict(first, last, previous)));
        }
    }
}

/// Predicts the end from the first and the last observation.
fn predict(first: Observation, last: Observation, previous: Option<f64>) -> Prediction {
    let (grown, left) = (last.share() - first.share(), 1.0 - last.share());
    let is_line = grown >= MIN_GROWTH && last.age > first.age;
    // The age from 0 to 100 percent, and the maximum share of the rounding error.
    let (whole, off) = if is_line {
        ((last.age - first.age) / grown, 0.005 * (1.0 + left / grown))
    } else {
        (last.age / last.share(), 0.005 / last.share())
    };
    let end = last.age + left * whole;
    let agrees = previous.is_some_and(|previous| (end - previous).abs() <= MAX_DISAGREEMENT * end);
    // A service may count in large steps: then both predictions are late by up to one of them.
    let may_be_steps = [first, last].iter().all(|observation| observation.percent.is_multiple_of(SMALL_STEP));
    let is_confirmed = agrees && !may_be_steps;
    Prediction { end, error: off * whole, is_confirmed }
}

/// The schedule of a run.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    interval: Duration,
    /// The shortest wait, also if the service asks for less.
    pub(super) floor: Duration,
    first: Option<Duration>,
    speed: f64,
}

impl Schedule {
    /// Applies the settings to a service of this speed. An interval below the floor is raised to it.
    pub(super) fn new(settings: &Settings, speed: f64) -> Self {
        let floor = settings.poll_floor.unwrap_or(FLOOR.div_f64(speed)).max(MIN_INTERVAL);
        let interval = settings.poll_interval.unwrap_or(INTERVAL.div_f64(speed)).max(floor);
        Self { interval, floor, first: settings.first_poll, speed }
    }

    /// Returns the wait before the first poll of a task of this age. `random` is from 0 to 1.
    pub(super) fn first_wait(&self, typical_s: (u32, u32), age: Duration, random: f64) -> Duration {
        let first = self
            .first
            .unwrap_or_else(|| Duration::from_secs(typical_s.0.into()).div_f64(self.speed).mul_f64(FIRST_POLL));
        // Later rather than earlier: an early poll finds nothing. Of tasks of an earlier run, all may be due.
        first.saturating_sub(age) + first.min(self.interval).mul_f64(JITTER * random)
    }

    /// Returns the wait after a poll of a task that still runs.
    pub(super) fn next_wait(&self, typical_s: (u32, u32), progress: &Progress, age: Duration, random: f64) -> Duration {
        let [shortest, longest] = [typical_s.0, typical_s.1].map(|time| f64::from(time) / self.speed);
        let (now, latest) = (age.as_secs_f64(), longest * MAX_TYPICAL_TIMES);
        let is_early = self.first.is_none() && now < shortest;
        let (wait, is_bounded) = match progress.prediction.filter(|prediction| prediction.end <= latest) {
            Some(Prediction { end, .. }) if end <= now => (now - end, true),
            Some(Prediction { end, error, is_confirmed: true }) => (end - now + error * random, false),
            Some(Prediction { end, .. }) if is_early => (((end - now) / 2.0).min(shortest - now), false),
            Some(Prediction { end, .. }) => ((end - now) / 2.0, true),
            None if is_early => (now.min(shortest - now), false),
            None => (now * AGE_SHARE * (1.0 - JITTER * random), true),
        };
        let most = if is_bounded { self.interval.mul_f64(1.0 - JITTER * random) } else { Duration::MAX };
        Duration::from_secs_f64(wait).min(most).max(self.floor)
    }

    /// Returns the backoff after `failures` polls in a row without a usable response. It doubles from the floor or from
    /// [`MIN_BACKOFF`], whichever is longer, with full jitter. It never exceeds [`MAX_BACKOFF`] or the interval,
    /// whichever is longer.
    pub(super) fn backoff(&self, failures: u32, random: f64) -> Duration {
        let first = self.floor.max(MIN_BACKOFF);
        let ceiling = first.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(MAX_BACKOFF.max(self.interval));
        self.floor + ceiling.saturating_sub(self.floor).mul_f64(random)
    }
}
