//! A plan beside others: covered by an approval, joined with other batches of the same name.

use std::collections::HashSet;

use serde_json::Value;

use super::approval::{Approved, SavedJob, SavedPlan};
use super::build::Plan;
use super::input::{OtherDirectory, Planned};
use crate::domain::{AttemptId, JobId, Usd};

impl Plan {
    /// Returns whether an approval covers the plan. A saved plan must also list its jobs.
    pub fn is_approved_by(&self, approved: &Approved) -> bool {
        approved.digest() == self.digest() && approved.saved.as_ref().is_none_or(|saved| saved.shows(self))
    }
}

impl SavedPlan {
    /// Returns whether the saved plan lists the submitted jobs. An edited file, or one with the digest of another plan, approves nothing.
    fn shows(&self, plan: &Plan) -> bool {
        let mut shown: Vec<_> = self.jobs.iter().filter(|job| job.buys()).collect();
        let mut planned: Vec<_> = plan.jobs.iter().filter(|planned| planned.is_to_be_approved).collect();
        shown.sort_unstable_by_key(|job| &job.id);
        planned.sort_unstable_by_key(|planned| planned.job.id());
        let sum: Usd = self.jobs.iter().map(|job| job.cost_usd).sum();
        (&self.name, &self.batch, self.retries) == (&plan.key.name, &plan.key.batch, plan.retries)
            && (!self.simulated || plan.is_simulated)
            && self.totals.cost_usd == sum
            && shown.len() == planned.len()
            && shown.into_iter().zip(planned).all(|(saved, planned)| saved.shows(planned))
    }
}

impl SavedJob {
    fn shows(&self, planned: &Planned) -> bool {
        let job = &planned.job;
        self.id == job.id().as_str()
            && self.cost_usd == job.purchase.price
            && self.labels == job.purchase.labels
            && self.earlier == planned.earlier
            && serde_json::from_str::<Value>(job.purchase.request.body()).is_ok_and(|request| request == self.request)
    }
}

impl Plan {
    /// Active tasks of an earlier request of planned jobs.
    pub fn superseded(&self) -> HashSet<AttemptId> {
        let planned: HashSet<&JobId> = self.jobs.iter().map(|planned| planned.job.id()).collect();
        let own = self.collect.iter().filter(|attempt| !self.others.contains(&attempt.id));
        own.filter(|attempt| planned.contains(attempt.job())).map(|attempt| attempt.id).collect()
    }

    /// Keeps only the download of missing videos.
    pub fn only_fetch(&mut self) {
        self.jobs.retain(|planned| !planned.action.buys());
        (self.resume, self.collect, self.abandoned) = (Vec::new(), Vec::new(), Vec::new());
        self.already_paid = Vec::new();
    }

    /// Adds the tasks and videos of another batch. `other` is its plan; purchases of that plan are left out.
    pub fn look_after(&mut self, other: Self, directory: &OtherDirectory) {
        self.others.extend(other.active_tasks().map(|attempt| attempt.id));
        self.collect.extend(other.resume);
        self.collect.extend(other.collect);
        if let (Some(own), Some(theirs)) = (&mut self.downloads, other.downloads) {
            own.add(theirs, directory);
        }
    }
}
