//! How a run ended, counted while it goes on.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::stop::StopReason;
use crate::domain::JobId;

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
    /// Jobs whose last word was bad so far.
    ended_badly: Mutex<HashSet<JobId>>,
    /// Videos that could not be fetched.
    unfetched: AtomicUsize,
}

impl Tally {
    pub(super) fn note_fetch(&self, is_here: bool) {
        if !is_here {
            self.unfetched.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Keeps the last word of a job: a retry may make good what an earlier task did not.
    pub(super) fn note_end(&self, job: &JobId, is_bad: bool) {
        let mut jobs = self.ended_badly.lock().unwrap_or_else(PoisonError::into_inner);
        if is_bad {
            jobs.insert(job.clone());
        } else {
            jobs.remove(job);
        }
    }

    /// How the run ended.
    pub(super) fn outcome(self, stopped: BTreeSet<StopReason>) -> Outcome {
        Outcome {
            stopped,
            failures: self.ended_badly.into_inner().unwrap_or_else(PoisonError::into_inner).len(),
            past_deadline: self.past_deadline.into_inner(),
            unfetched: self.unfetched.into_inner(),
        }
    }
}
