//! Settings of a run, its outcome, and the circuit breaker of a model.
//!
//! The first video of a model in a run is judged, because the next ones would differ in the same way. Active tasks are paid for, and are polled to
//! their end. A model whose newest delivery of an earlier run was at fault is on trial: one job at a time, until a video is right,
//! or, without downloads, a task is completed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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

/// The differences seen of each model, and the models that are no longer submitted.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    /// True if the user accepts mismatches.
    is_off: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By model and field.
    seen: HashSet<(String, &'static str)>,
    stopped: HashSet<String>,
    /// The models on trial, each with the turn of one job.
    trials: HashMap<String, Arc<Semaphore>>,
    /// Videos of another duration or shape that this run bought.
    mismatches: usize,
}

impl CircuitBreaker {
    /// A circuit breaker that stops no model if `is_off`, with models on trial.
    pub(super) fn new<'m>(is_off: bool, on_trial: impl Iterator<Item = &'m str>) -> Self {
        let trials = on_trial.map(|model| (model.to_owned(), Arc::new(Semaphore::new(1)))).collect();
        Self { is_off, state: Mutex::new(State { trials, ..State::default() }) }
    }

    /// Waits for the turn of a job, if its model is on trial. The turn lasts until the value is dropped.
    pub(super) async fn turn(&self, model: &str) -> Option<OwnedSemaphorePermit> {
        let turn = self.state.lock().trials.get(model).cloned()?;
        // Closed at the end of the trial.
        turn.acquire_owned().await.ok()
    }

    /// Ends the trial of a model. All of its jobs may go on.
    pub(super) fn end_trial(&self, model: &str) {
        self.state.lock().trials.remove(model).inspect(|turn| turn.close());
    }

    /// Records a difference of a model. Returns whether it is the first one of this field in the run.
    pub(super) fn record(&self, model: &str, field: &'static str) -> bool {
        self.state.lock().seen.insert((model.to_owned(), field))
    }

    /// Stops a model. Returns false if the user accepts mismatches.
    pub(super) fn stop(&self, model: &str) -> bool {
        if !self.is_off {
            self.state.lock().stopped.insert(model.to_owned());
            self.end_trial(model);
        }
        !self.is_off
    }

    /// Returns whether a model is stopped.
    pub(super) fn is_stopped(&self, model: &str) -> bool {
        self.state.lock().stopped.contains(model)
    }

    /// Returns whether any model is stopped.
    pub(super) fn has_stopped(&self) -> bool {
        !self.state.lock().stopped.is_empty()
    }

    /// Counts a video of another duration or shape. Returns false, and counts nothing, if the user accepts mismatches.
    pub(super) fn count_mismatch(&self, is_grave: bool) -> bool {
        self.state.lock().mismatches += usize::from(is_grave && !self.is_off);
        !self.is_off
    }

    /// Returns the number of counted videos.
    pub(super) fn mismatches(&self) -> usize {
        self.state.lock().mismatches
    }
}
