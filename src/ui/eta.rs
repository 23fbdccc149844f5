//! How long the rest of a run will take, from what its finished tasks took.
//!
//! Tasks of one model and length are a class, and a class takes what its finished tasks took. One of which nothing is known
//! yet takes the middle of its family's typical time, as much longer or shorter as the others turned out to be.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::domain::JobId;
use crate::plan::Plan;

/// A task that is at the service.
#[derive(Clone, Copy, Debug)]
struct Running {
    since: Instant,
    class: usize,
    percent: Option<u8>,
}

/// What is known of a class.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// The middle of the family's typical time.
    typical_s: f64,
    /// Seconds of all finished tasks, and how many there are.
    seconds: f64,
    tasks: f64,
    /// Jobs that are still to be submitted.
    waiting: f64,
}

impl Class {
    /// Seconds of a task, at a service that takes so many times the typical time.
    fn mean(&self, slower: f64) -> f64 {
        if self.tasks > 0.0 { self.seconds / self.tasks } else { self.typical_s * slower }
    }
}

/// What is still to be done, task by task.
#[derive(Debug)]
pub(super) struct Eta {
    classes: Vec<Class>,
    class_of: HashMap<JobId, usize>,
    running: HashMap<JobId, Running>,
    slots: f64,
}

impl Eta {
    /// Reckons for a plan on so many slots, at a service that is so many times faster than documented.
    pub(super) fn new(plan: &Plan, slots: usize, speed: f64, now: Instant) -> Self {
        let mut names: HashMap<(&str, Option<i64>), usize> = HashMap::new();
        #[expect(clippy::cast_precision_loss, reason = "as many as tasks at a service")]
        let slots = slots as f64;
        let mut eta = Self { classes: Vec::new(), class_of: HashMap::new(), running: HashMap::new(), slots };
        for planned in &plan.jobs {
            let (spec, (min, max)) = (&planned.job.spec, planned.job.typical_s);
            let next = names.len();
            let class = *names.entry((&spec.model, spec.duration)).or_insert(next);
            if class == next {
                let typical_s = f64::from(min + max) / 2.0 / speed;
                eta.classes.push(Class { typical_s, seconds: 0.0, tasks: 0.0, waiting: 0.0 });
            }
            if planned.action.buys() {
                eta.classes[class].waiting += 1.0;
            }
            eta.class_of.insert(planned.job.id.clone(), class);
        }
        for attempt in &plan.resume {
            eta.start(&attempt.job, now);
        }
        eta
    }

    /// A task was made for a job that waited.
    pub(super) fn submitted(&mut self, job: &JobId, now: Instant) {
        self.stop_waiting(job);
        self.start(job, now);
    }

    /// A job ended without a task.
    pub(super) fn stop_waiting(&mut self, job: &JobId) {
        if let Some(class) = self.class_of.get(job).and_then(|&class| self.classes.get_mut(class)) {
            class.waiting = (class.waiting - 1.0).max(0.0);
        }
    }

    fn start(&mut self, job: &JobId, since: Instant) {
        if let Some(&class) = self.class_of.get(job) {
            self.running.insert(job.clone(), Running { since, class, percent: None });
        }
    }

    /// A task was seen being generated.
    pub(super) fn progressed(&mut self, job: &JobId, percent: Option<u8>) {
        if let Some(running) = self.running.get_mut(job) {
            running.percent = percent;
        }
    }

    /// A task is over, or left; what it took counts for others if it was finished.
    pub(super) fn ended(&mut self, job: &JobId, is_finished: bool, now: Instant) {
        let Some(running) = self.running.remove(job) else { return };
        if let Some(class) = self.classes.get_mut(running.class).filter(|_| is_finished) {
            class.seconds += now.duration_since(running.since).as_secs_f64();
            class.tasks += 1.0;
        }
    }

    /// The tasks that have been at the service longest, with their ages and how far they are.
    pub(super) fn oldest(&self, most: usize, now: Instant) -> Vec<(&JobId, Duration, Option<u8>)> {
        let mut oldest: Vec<(&JobId, &Running)> = Vec::with_capacity(most + 1);
        for (job, running) in &self.running {
            let place = oldest.partition_point(|(other, known)| (known.since, *other) < (running.since, job));
            if place < most {
                oldest.insert(place, (job, running));
                oldest.truncate(most);
            }
        }
        oldest.into_iter().map(|(job, running)| (job, now.duration_since(running.since), running.percent)).collect()
    }

    /// How long the rest takes: all that is left shared among the slots, and at least what the slowest task still needs.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        let finished = self.classes.iter().filter(|class| class.tasks > 0.0);
        let (took, typical) = finished
            .fold((0.0, 0.0), |(took, typical), class| (took + class.seconds, typical + class.tasks * class.typical_s));
        let slower = if typical > 0.0 { took / typical } else { 1.0 };
        let waiting: f64 = self.classes.iter().map(|class| class.waiting * class.mean(slower)).sum();
        let rests = self.running.values().map(|running| {
            let age = now.duration_since(running.since).as_secs_f64();
            let mean = self.classes.get(running.class).map_or(0.0, |class| class.mean(slower));
            // One that is late is as far from its end as it is late: nobody knows better.
            if age < mean { mean - age } else { (age - mean).min(mean) }
        });
        let (rest, longest) = rests.fold((0.0_f64, 0.0_f64), |(sum, longest), rest| (sum + rest, longest.max(rest)));
        let seconds = ((waiting + rest) / self.slots).max(longest);
        (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
    }
}
