//! Everything that the ledger knows of one batch, as a value.

use super::{Attempt, Charge, JobId, Usd};

/// All attempts of one batch, oldest first for each job.
#[derive(Clone, Debug, Default)]
pub struct History {
    attempts: Vec<Attempt>,
    /// The places of all attempts, in the order of their jobs, oldest first for each.
    by_job: Vec<u32>,
}

impl History {
    /// Holds all attempts of a batch, oldest first.
    #[must_use]
    pub fn new(attempts: Vec<Attempt>) -> Self {
        // A ledger's attempts are numbered from 1, and memory ends long before this does.
        let count = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        let mut by_job: Vec<u32> = (0..count).collect();
        // Stable, so each job's attempts stay in their order.
        by_job.sort_by(|a, b| attempts[*a as usize].job.cmp(&attempts[*b as usize].job));
        Self { attempts, by_job }
    }

    /// Every attempt, to make another history of.
    pub(super) fn into_attempts(self) -> Vec<Attempt> {
        self.attempts
    }

    /// What of it is about the jobs that are meant.
    #[must_use]
    pub fn about(self, is_meant: impl Fn(&JobId) -> bool) -> Self {
        Self::new(self.attempts.into_iter().filter(|attempt| is_meant(&attempt.job)).collect())
    }

    /// Every attempt, oldest first.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter()
    }

    /// The attempts of one job, oldest first.
    #[must_use]
    pub fn of(&self, job: &JobId) -> impl DoubleEndedIterator<Item = &Attempt> {
        let start = self.by_job.partition_point(|&place| self.attempts[place as usize].job < *job);
        let own = self.by_job[start..].partition_point(|&place| self.attempts[place as usize].job == *job);
        self.by_job[start..start + own].iter().map(|&place| &self.attempts[place as usize])
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
