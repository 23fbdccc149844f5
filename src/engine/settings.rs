//! What the user can set about a run.

use std::time::Duration;

/// The knobs of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most tasks outstanding at the service.
    pub concurrency: usize,
    /// The longest pause between two polls of one task, once it may be ready.
    pub poll_interval: Duration,
    /// The shortest pause between two polls of one task.
    pub poll_floor: Duration,
    /// When to poll a task for the first time; by default when its family's typical time begins.
    pub first_poll: Option<Duration>,
    /// How long to wait for one task before it is left at the service.
    pub deadline: Duration,
    /// How long the run may take; then it submits no more and leaves the rest for the next one.
    pub max_duration: Option<Duration>,
    /// How many jobs may fail, be rejected or end in doubt before nothing more is submitted.
    pub max_failures: Option<usize>,
    /// How many submissions in a row may end in doubt before nothing more is submitted.
    pub max_doubts: usize,
    /// The most requests a second, submissions and polls together.
    pub rps: Option<f64>,
    /// How much faster than documented the service runs: 1, or more for the simulator.
    pub speed: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 8,
            poll_interval: Duration::from_secs(10),
            poll_floor: Duration::from_secs(1),
            first_poll: None,
            deadline: Duration::from_mins(30),
            max_duration: None,
            max_failures: None,
            max_doubts: 3,
            rps: None,
            speed: 1.0,
        }
    }
}
