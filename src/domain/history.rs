//! The ledger's record of one batch, as a value.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Attempt, Charge, Declaration, JobId, Usd};

/// All attempts of one batch, oldest first for each job, and why others were not made.
#[derive(Clone, Debug, Default)]
pub struct History {
    attempts: Vec<Attempt>,
    /// The indexes of all attempts, by job, oldest first for each.
    by_job: Vec<u32>,
    /// The reason why a job was not sent, where that is no submission.
    unsent: BTreeMap<JobId, String>,
    /// The retake of a run that did not finish it.
    retake: Option<UnfinishedRetake>,
}

/// A retake by patterns whose run didn't end: the same patterns continue it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UnfinishedRetake {
    /// The patterns.
    pub globs: Vec<String>,
    /// The number of the newest attempt before the retake; newer ones are part of it.
    pub after: i64,
}

impl History {
    /// Holds all attempts of a batch, oldest first.
    pub fn new(attempts: Vec<Attempt>) -> Self {
        // A ledger's attempts are numbered from 1, and memory ends long before this does.
        let count = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        let mut by_job: Vec<u32> = (0..count).collect();
        // Stable, so each job's attempts stay in their order.
        by_job.sort_by(|a, b| attempts[*a as usize].job().cmp(attempts[*b as usize].job()));
        Self { attempts, by_job, unsent: BTreeMap::new(), retake: None }
    }

    /// Adds why jobs were not sent when it was last their turn.
    #[must_use]
    pub fn with_unsent(self, unsent: BTreeMap<JobId, String>) -> Self {
        Self { unsent, ..self }
    }

    /// Adds an unfinished retake.
    #[must_use]
    pub fn with_retake(self, retake: Option<UnfinishedRetake>) -> Self {
        Self { retake, ..self }
    }

    /// The unfinished retake.
    pub fn retake(&self) -> Option<&UnfinishedRetake> {
        self.retake.as_ref()
    }

    /// The reason why a job was not sent at its last turn, if nothing was submitted for it since.
    pub fn why_unsent(&self, job: &JobId) -> Option<&str> {
        self.unsent.get(job).map(String::as_str)
    }

    /// The attempts, the reasons why jobs were not sent, and the unfinished retake.
    pub(crate) fn into_parts(self) -> (Vec<Attempt>, BTreeMap<JobId, String>, Option<UnfinishedRetake>) {
        (self.attempts, self.unsent, self.retake)
    }

    /// The part of it about the chosen jobs.
    #[must_use]
    pub fn about(self, is_meant: impl Fn(&JobId) -> bool) -> Self {
        let (attempts, mut unsent, retake) = self.into_parts();
        unsent.retain(|job, _| is_meant(job));
        Self::new(attempts.into_iter().filter(|attempt| is_meant(attempt.job())).collect())
            .with_unsent(unsent)
            .with_retake(retake)
    }

    /// The same with changes to attempts that leave each with its job.
    pub(super) fn changed(mut self, change: impl FnMut(&mut Attempt)) -> Self {
        self.attempts.iter_mut().for_each(change);
        self
    }

    /// Every attempt, oldest first.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter()
    }

    /// The attempts of one job, oldest first.
    pub fn of(&self, job: &JobId) -> impl DoubleEndedIterator<Item = &Attempt> + Clone {
        self.at(self.places(job))
    }

    /// The positions of a job's attempts, for a later access.
    pub fn places(&self, job: &JobId) -> Range<usize> {
        let start = self.by_job.partition_point(|&place| self.attempts[place as usize].job() < job);
        let own = self.by_job[start..].iter().take_while(|&&place| *self.attempts[place as usize].job() == *job);
        start..start + own.count()
    }

    /// The attempts at these positions.
    pub fn at(&self, places: Range<usize>) -> impl DoubleEndedIterator<Item = &Attempt> + Clone {
        self.by_job[places].iter().map(|&place| &self.attempts[place as usize])
    }

    /// Returns whether nothing was bought for its job since.
    pub fn is_last(&self, attempt: &Attempt) -> bool {
        self.of(attempt.job()).all(|other| other.id <= attempt.id || other.state.made_no_task())
    }

    /// Returns the abandoned tasks of jobs for which nothing was bought since. They may still complete.
    pub fn abandoned(&self) -> impl Iterator<Item = &Attempt> {
        let is_abandoned = |attempt: &&Attempt| {
            let known = &attempt.particulars;
            known.declared.is_some_and(|declared| declared.what == Declaration::Lost) && known.billed.is_none()
        };
        self.attempts().filter(is_abandoned).filter(|attempt| self.is_last(attempt))
    }

    /// The sum that was certainly charged for the batch.
    pub fn spent(&self) -> Usd {
        self.sum_of(|attempt| attempt.charge() == Charge::Charged)
    }

    /// The sum that may have been charged besides: the price of every attempt in doubt.
    pub fn at_risk(&self) -> Usd {
        self.sum_of(|attempt| attempt.state.is_doubtful())
    }

    /// A further sum that may have been charged: the price of every incomplete task whose family documents no moment of
    /// charging.
    pub fn unknown(&self) -> Usd {
        self.sum_of(|attempt| attempt.charge() == Charge::Unknown && !attempt.state.is_doubtful())
    }

    fn sum_of(&self, is_counted: impl Fn(&Attempt) -> bool) -> Usd {
        self.attempts.iter().filter(|attempt| is_counted(attempt)).map(Attempt::cost).sum()
    }
}
