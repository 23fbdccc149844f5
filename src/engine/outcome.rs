//! Outcome of a run, and the counters behind it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::stop::StopReason;

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
    pub braked: bool,
}

/// Counters of a run.
#[derive(Default)]
pub(super) struct Tally {
    pub past_deadline: AtomicUsize,
    /// For `--max-failures`: failed tasks, rejected jobs, and jobs in doubt.
    pub failures: AtomicUsize,
    /// Jobs whose last attempt failed or was rejected, and failed tasks of earlier runs.
    ended_badly: AtomicUsize,
    /// Videos that could not be downloaded.
    unfetched: AtomicUsize,
}

impl Tally {
    pub(super) fn note_fetch(&self, is_here: bool) {
        if !is_here {
            self.unfetched.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the end of a job after all of its retries, or of a resumed task. One job ID can end twice: in two
    /// batches, or with a retake.
    pub(super) fn note_end(&self, is_bad: bool) {
        if is_bad {
            self.ended_badly.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the outcome of the run.
    pub(super) fn outcome(self, stopped: BTreeSet<StopReason>) -> Outcome {
        Outcome {
            stopped,
            failures: self.ended_badly.into_inner(),
            past_deadline: self.past_deadline.into_inner(),
            unfetched: self.unfetched.into_inner(),
            braked: false,
        }
    }
}
