//! How a run ended, counted while it goes on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::stop::StopReason;

/// How a run ended. How each job stands is in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Why it ended early; empty if it did not.
    pub stopped: BTreeSet<StopReason>,
    /// Jobs whose last word in this run was bad: their task failed, or they were rejected for good.
    pub failures: usize,
    /// Tasks that were left at the service because they took longer than `--deadline`.
    pub past_deadline: usize,
    /// Videos that could not be fetched.
    pub unfetched: usize,
}

/// How many jobs ended in a way that the run has to count.
#[derive(Default)]
pub(super) struct Tally {
    pub past_deadline: AtomicUsize,
    /// For `--max-failures`: tasks that failed, jobs that were rejected for good or are in doubt.
    pub failures: AtomicUsize,
    /// Jobs whose last word was bad, and tasks of earlier runs.
    ended_badly: AtomicUsize,
    /// Videos that could not be fetched.
    unfetched: AtomicUsize,
}

impl Tally {
    pub(super) fn note_fetch(&self, is_here: bool) {
        if !is_here {
            self.unfetched.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The last word about a job, after all of its retries, or about a task of an earlier run. Two of them may be of the same id: of
    /// two batches, or of a retake.
    pub(super) fn note_end(&self, is_bad: bool) {
        if is_bad {
            self.ended_badly.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How the run ended.
    pub(super) fn outcome(self, stopped: BTreeSet<StopReason>) -> Outcome {
        Outcome {
            stopped,
            failures: self.ended_badly.into_inner(),
            past_deadline: self.past_deadline.into_inner(),
            unfetched: self.unfetched.into_inner(),
        }
    }
}
