//! The answers of a ledger to its readers, but for the history of a batch.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use jiff::Timestamp;

use super::record::LedgerLimit;
use crate::domain::{Attempt, BatchKey, Charge, Fingerprint, Freeze, History, Labels, Usd};

/// The controls of purchases in a ledger, read at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Controls {
    /// The time of the ledger's clock, which sets the day and the month of limits for all machines.
    pub now: Timestamp,
    /// The ledger limits.
    pub limits: Vec<LedgerLimit>,
    /// The freeze, if purchases are frozen.
    pub freeze: Option<Freeze>,
}

/// Attempts of a quarter of an hour with the same key.
#[derive(Clone, Debug)]
pub struct Spending {
    /// The beginning of the quarter.
    pub at: Timestamp,
    /// The batch.
    pub batch: BatchKey,
    /// The model.
    pub model: String,
    /// Their labels.
    pub labels: Labels,
    /// The charge.
    pub charge: Charge,
    /// True if they are in doubt.
    pub is_doubtful: bool,
    /// The number of attempts.
    pub attempts: u32,
    /// Their total price.
    pub price: Usd,
}

/// A normalized request that was submitted elsewhere.
#[derive(Clone, Debug)]
pub struct BoughtElsewhere {
    /// The batch of the attempt.
    pub batch: BatchKey,
    /// The newest attempt that may have been charged, or else the newest one.
    pub attempt: Attempt,
    /// The number of jobs that may have been charged for it.
    pub jobs: u32,
    /// The number of attempts, paid or not.
    pub attempts: u32,
}

impl BoughtElsewhere {
    /// Sums up the purchases of other batches that this batch may repeat, by request.
    pub(super) fn from_batches(batch: &BatchKey, by_batch: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut requests: HashMap<Fingerprint, Self> = HashMap::new();
        for one in by_batch.into_iter().filter(|one| batch.may_repeat(&one.batch)) {
            match requests.entry(one.attempt.normalized.clone()) {
                Entry::Vacant(free) => drop(free.insert(one)),
                Entry::Occupied(mut sum) => {
                    let Self { jobs, attempts, .. } = *sum.get();
                    if (one.jobs > 0, one.attempt.id) > (jobs > 0, sum.get().attempt.id) {
                        sum.insert(one.clone());
                    }
                    (sum.get_mut().jobs, sum.get_mut().attempts) = (jobs + one.jobs, attempts + one.attempts);
                }
            }
        }
        requests.into_values().collect()
    }
}

/// A part of a ledger. URLs of local images are left out: the asset command returns new ones.
pub(super) enum CopyPart {
    /// A batch.
    Batch(BatchKey, History),
    /// The ledger limits, the last part of a complete copy.
    Limits(Vec<LedgerLimit>),
}

/// The contents of a ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// Batches.
    pub batches: u32,
    /// Attempts.
    pub attempts: u32,
    /// The price of all attempts that may have been charged.
    pub price: Usd,
}

impl Contents {
    /// Counts an attempt.
    pub(super) fn count(&mut self, attempt: &Attempt) {
        self.attempts += 1;
        if attempt.charge() != Charge::None {
            self.price += attempt.cost();
        }
    }
}
