//! The estimated time left of a run, from the times of its finished tasks.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::domain::JobId;
use crate::plan::{Action, Plan};

/// An active task.
#[derive(Clone, Copy, Debug)]
struct Running {
    since: Instant,
    percent: Option<u8>,
}

/// The work that is left.
#[derive(Debug)]
pub(super) struct Eta {
    slots: f64,
    /// The mean of the typical times of all due and active jobs, in seconds.
    typical_s: f64,
    /// The seconds of all finished tasks, and their number.
    seconds: f64,
    tasks: f64,
    /// Due jobs that are not submitted yet.
    waiting: f64,
    running: HashMap<JobId, Running>,
}

impl Eta {
    /// The work of a plan in this many slots, at a service that is `speed` times faster than documented.
    #[expect(clippy::cast_precision_loss, reason = "a number of jobs")]
    pub(super) fn new(plan: &Plan, slots: usize, speed: f64, now: Instant) -> Self {
        let waiting = plan.jobs.iter().filter(|planned| planned.action.buys()).count() as f64;
        let due = plan.jobs.iter().filter(|planned| planned.action.buys() || planned.action == Action::Resume);
        let typical: Vec<f64> =
            due.map(|planned| planned.job.typical_s).map(|(min, max)| f64::from(min + max) / 2.0 / speed).collect();
        let typical_s = typical.iter().sum::<f64>() / (typical.len() as f64).max(1.0);
        let running = plan.resume.iter().map(|attempt| (attempt.job.clone(), Running { since: now, percent: None }));
        Self { slots: slots as f64, typical_s, seconds: 0.0, tasks: 0.0, waiting, running: running.collect() }
    }

    /// A waiting job got a task.
    pub(super) fn submitted(&mut self, job: &JobId, now: Instant) {
        self.stop_waiting();
        self.running.insert(job.clone(), Running { since: now, percent: None });
    }

    /// A waiting job ended without a task.
    pub(super) fn stop_waiting(&mut self) {
        self.waiting = (self.waiting - 1.0).max(0.0);
    }

    /// A task is being generated.
    pub(super) fn progressed(&mut self, job: &JobId, percent: Option<u8>) {
        if let Some(running) = self.running.get_mut(job) {
            running.percent = percent;
        }
    }

    /// A task ended, or was left. Only a finished one says how long others take.
    pub(super) fn ended(&mut self, job: &JobId, is_finished: bool, now: Instant) {
        let Some(running) = self.running.remove(job) else { return };
        if is_finished {
            self.seconds += now.duration_since(running.since).as_secs_f64();
            self.tasks += 1.0;
        }
    }

    /// The tasks that have been at the service longest, with their ages and how far they are.
    pub(super) fn oldest(&self, most: usize, now: Instant) -> Vec<(&JobId, Duration, Option<u8>)> {
        let mut oldest: Vec<(&JobId, &Running)> = self.running.iter().collect();
        oldest.sort_unstable_by_key(|(job, running)| (running.since, *job));
        let seen = |(job, running): (_, &Running)| (job, now.duration_since(running.since), running.percent);
        oldest.into_iter().take(most).map(seen).collect()
    }

    /// Returns the time left: all that is left, shared among the slots, and at least the rest of the slowest task.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        let mean = if self.tasks > 0.0 { self.seconds / self.tasks } else { self.typical_s };
        let rests = self.running.values().map(|running| {
            let age = now.duration_since(running.since).as_secs_f64();
            // A late task is as far from its end as it is late.
            if age < mean { mean - age } else { (age - mean).min(mean) }
        });
        let (rest, longest) = rests.fold((0.0_f64, 0.0_f64), |(sum, longest), rest| (sum + rest, longest.max(rest)));
        let seconds = ((self.waiting * mean + rest) / self.slots).max(longest);
        (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
    }
}
