//! Settings of a run, its outcome, reasons to stop it, and the circuit breaker of a model.
//!
//! The first video of a model in a run is judged, because the next ones would differ in the same way. Active tasks are paid for, and are polled to
//! their end. A model whose newest delivery of an earlier run was at fault is on trial: one job at a time, until a video is right,
//! or, without downloads, a task is completed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::domain::{JobId, Usd};
use crate::ledger::LedgerError;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The maximum number of active tasks.
    pub concurrency: usize,
    /// The longest time between two polls of one task, once it may be ready. Without it, 8 s by the speed of the service.
    pub poll_interval: Option<Duration>,
    /// The shortest time between two polls of one task. Without it, 1 s by the speed of the service.
    pub poll_floor: Option<Duration>,
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
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 8,
            poll_interval: None,
            poll_floor: None,
            first_poll: None,
            deadline: Duration::from_mins(30),
            max_failures: None,
            max_doubts: 3,
            accepts_mismatch: false,
            rps: None,
        }
    }
}

/// The outcome of a run. The ledger has the state of each job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The reasons for an early end; empty without one.
    pub stopped: BTreeSet<StopReason>,
    /// The sum that may have been charged for the run's submissions.
    pub reserved: Usd,
    /// The number of jobs that failed or were rejected in their last attempt of this run.
    pub failures: usize,
    /// The number of tasks that exceeded `--deadline`.
    pub past_deadline: usize,
    /// The number of videos that could not be downloaded.
    pub unfetched: usize,
    /// True if submissions of a model stopped, because its videos differ from their requests.
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

/// The reported differences of each model, and the models that are no longer submitted.
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

    /// Ends the trial of a model. All of its jobs may start.
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

/// The reason for an early end of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StopReason {
    /// As many jobs failed as `--max-failures` allows.
    TooManyFailures,
    /// As many in-doubt outcomes in a row as `--max-doubts` allows.
    TooManyDoubts,
    /// The next submission would exceed a spend limit.
    SpendLimit,
    /// Purchases are frozen in the ledger.
    Frozen,
    /// Another batch has paid for the request since the plan was made.
    PaidElsewhere,
    /// The service is unreachable.
    Unreachable,
    /// The service refused the key.
    KeyRefused,
    /// A video can't be written to this machine.
    FilesFailed,
    /// The ledger can't be written.
    LedgerFailed,
    /// The lease of this runner expired, and another one may have the batch.
    LeaseExpired,
    /// The number of a signal.
    Signal(i32),
}

impl StopReason {
    /// Returns the reason to stop after a refused intent.
    pub(super) fn of_intent(error: &LedgerError) -> Self {
        match error {
            LedgerError::OverLimit { .. } => Self::SpendLimit,
            LedgerError::PaidElsewhere { .. } => Self::PaidElsewhere,
            LedgerError::Frozen(freeze) if !freeze.by_failover => Self::Frozen,
            LedgerError::LeaseExpired => Self::LeaseExpired,
            _ => Self::LedgerFailed,
        }
    }

    /// Returns whether polling stops, too. Active tasks are paid for, so only a signal stops it, or another runner that polls them.
    fn aborts(self) -> bool {
        matches!(self, Self::Signal(_) | Self::LeaseExpired)
    }
}

/// The shared stop state of a run.
#[derive(Debug, Default)]
pub struct Stop {
    submitting: CancellationToken,
    sending: CancellationToken,
    polling: CancellationToken,
    reasons: Mutex<BTreeSet<StopReason>>,
    /// The jobs that are being submitted, each with its price.
    in_flight: Mutex<BTreeMap<JobId, Usd>>,
}

/// A submission before its response is recorded.
pub(super) struct Sending<'s> {
    stop: &'s Stop,
    job: &'s JobId,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.stop.in_flight.lock().remove(self.job);
    }
}

impl Stop {
    /// Stops submitting. Returns whether the reason is new.
    pub fn because(&self, reason: StopReason) -> bool {
        let new = self.reasons.lock().insert(reason);
        self.submitting.cancel();
        // Submissions with a reserved price may still be sent.
        if reason != StopReason::SpendLimit {
            self.sending.cancel();
        }
        if reason.aborts() {
            self.polling.cancel();
        }
        new
    }

    /// Registers a submission until its response is recorded: a run that ends before leaves it in doubt.
    pub(super) fn sending<'s>(&'s self, job: &'s JobId, price: Usd) -> Sending<'s> {
        self.in_flight.lock().insert(job.clone(), price);
        Sending { stop: self, job }
    }

    /// Returns the jobs that would be in doubt if the run ended now, each with its price.
    pub fn in_flight(&self) -> BTreeMap<JobId, Usd> {
        self.in_flight.lock().clone()
    }

    /// Returns all reasons.
    pub fn reasons(&self) -> BTreeSet<StopReason> {
        self.reasons.lock().clone()
    }

    /// Returns whether submitting has stopped.
    pub fn is_stopping(&self) -> bool {
        self.submitting.is_cancelled()
    }

    /// Returns whether submissions with a reserved price have stopped, too.
    pub fn forbids_sending(&self) -> bool {
        self.sending.is_cancelled()
    }

    /// Waits until submitting stops.
    pub async fn stopping(&self) {
        self.submitting.cancelled().await;
    }

    /// Returns the result of waiting, or `None` if submitting stops first.
    pub(crate) async fn unless_stopping<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stopping() => None,
            value = wait => Some(value),
        }
    }

    /// Returns whether polling has stopped.
    pub fn is_aborting(&self) -> bool {
        self.polling.is_cancelled()
    }

    /// Waits until polling stops.
    pub async fn aborting(&self) {
        self.polling.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_abort_leaves_active_tasks() {
        for reason in [
            StopReason::TooManyFailures,
            StopReason::TooManyDoubts,
            StopReason::SpendLimit,
            StopReason::Frozen,
            StopReason::PaidElsewhere,
            StopReason::Unreachable,
            StopReason::KeyRefused,
            StopReason::FilesFailed,
            StopReason::LedgerFailed,
        ] {
            let stop = Stop::default();
            assert!(stop.because(reason));
            assert!(!stop.because(reason), "shown twice");
            assert!(stop.is_stopping() && !stop.polling.is_cancelled(), "{reason:?}");
            assert_eq!(stop.forbids_sending(), reason != StopReason::SpendLimit, "{reason:?}");
        }
        let stop = Stop::default();
        stop.because(StopReason::Signal(2));
        assert!(stop.is_stopping() && stop.polling.is_cancelled());
    }
}
