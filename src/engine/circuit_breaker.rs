//! Stops submitting a model whose tasks or videos differ from what was requested.
//!
//! The first video of a model in a run is judged, because the next ones would differ in the same way. Active tasks are paid for, and are polled to
//! their end. A model whose newest delivery of an earlier run was at fault is on trial: one job at a time, until a video is right,
//! or, without downloads, a task is completed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
