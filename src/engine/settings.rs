//! Settings of a run, and its outcome.

use std::collections::BTreeSet;
use std::time::Duration;

use super::stop::StopReason;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The maximum number of active tasks.
    pub concurrency: usize,
    /// The longest time between two polls of one task, once it may be ready.
    pub poll_interval: Duration,
    /// The shortest time between two polls of one task.
    pub poll_floor: Duration,
    /// The age of a task at its first poll. Without it, a quarter of its shortest typical time.
    pub first_poll: Option<Duration>,
    /// The time after which a task is left active.
    pub deadline: Duration,
    /// The number of failed, rejected, and in-doubt jobs that stops submitting.
    pub max_failures: Option<usize>,
    /// The number of in-doubt outcomes in a row that stops submitting.
    pub max_doubts: usize,
    /// True to submit a model on whose videos differ from their requests.
    pub accepts_mismatch: bool,
    /// The maximum number of requests per second, polls included.
    pub rps: Option<f64>,
    /// The speed of the service, as a multiple of the documented one: 1, or more for the simulator.
    pub speed: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 8,
            poll_interval: Duration::from_secs(8),
            poll_floor: Duration::from_secs(1),
            first_poll: None,
            deadline: Duration::from_mins(30),
            max_failures: None,
            max_doubts: 3,
            accepts_mismatch: false,
            rps: None,
            speed: 1.0,
        }
    }
}

/// The outcome of a run. The ledger has the state of each job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The reasons for an early end; empty without one.
    pub stopped: BTreeSet<StopReason>,
    /// The number of jobs whose last attempt in this run failed or was rejected.
    pub failures: usize,
    /// The number of tasks that exceeded `--deadline`.
    pub past_deadline: usize,
    /// The number of videos that could not be downloaded.
    pub unfetched: usize,
    /// True if a model is not submitted any more, because it delivers something else than what is paid for.
    pub is_model_stopped: bool,
    /// Videos of another duration or shape that the run bought, unless the user accepts mismatches.
    pub mismatches: usize,
}

impl Outcome {
    /// Returns whether something was left to buy because the run was stopped, or one of its models.
    pub fn has_ended_early(&self) -> bool {
        !self.stopped.is_empty() || self.is_model_stopped
    }
}
