//! Settings of a run.

use std::time::Duration;

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
