//! Everything that the ledger knows of one batch, as a value.

use std::collections::HashMap;

use super::{Attempt, Charge, JobId, Usd};

/// All attempts of one batch, oldest first for each job.
#[derive(Clone, Debug, Default)]
pub struct History {
    attempts: Vec<Attempt>,
    by_job: HashMap<JobId, Vec<usize>>,
}

impl History {
    /// From all attempts of a batch, oldest first.
    #[must_use]
    pub fn new(attempts: Vec<Attempt>) -> Self {
        let mut by_job: HashMap<JobId, Vec<usize>> = HashMap::new();
        for (index, attempt) in attempts.iter().enumerate() {
            by_job.entry(attempt.job.clone()).or_default().push(index);
        }
        Self { attempts, by_job }
    }

    /// Every attempt, oldest first.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter()
    }

    /// The attempts of one job, oldest first.
    #[must_use]
    pub fn of(&self, job: &JobId) -> impl DoubleEndedIterator<Item = &Attempt> {
        self.by_job.get(job).into_iter().flatten().map(|&index| &self.attempts[index])
    }

    /// What was certainly charged for the batch.
    #[must_use]
    pub fn spent(&self) -> Usd {
        self.sum_of(|attempt| attempt.charge() == Charge::Charged)
    }

    /// What may have been charged on top of that: the price of every attempt in doubt.
    #[must_use]
    pub fn at_risk(&self) -> Usd {
        self.sum_of(|attempt| attempt.state.is_doubtful())
    }

    /// What may have been charged, too: the price of every task whose family documents no moment of charging, and that
    /// is not completed.
    #[must_use]
    pub fn unknown(&self) -> Usd {
        self.sum_of(|attempt| attempt.charge() == Charge::Unknown && !attempt.state.is_doubtful())
    }

    fn sum_of(&self, is_counted: impl Fn(&Attempt) -> bool) -> Usd {
        self.attempts.iter().filter(|attempt| is_counted(attempt)).map(|attempt| attempt.price).sum()
    }
}
