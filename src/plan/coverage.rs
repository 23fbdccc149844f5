//! Coverage of a plan by an approval.

use serde_json::Value;

use super::approval::{Approved, SavedJob, SavedPlan};
use super::build::Plan;
use super::planned::Planned;
use crate::domain::Usd;

impl Plan {
    /// Returns whether an approval covers it. A saved plan must also show it.
    pub fn is_approved_by(&self, approved: &Approved) -> bool {
        approved.digest() == self.digest() && approved.saved.as_ref().is_none_or(|saved| saved.shows(self))
    }
}

impl SavedPlan {
    /// Returns whether the file shows the jobs that a plan submits. A file that was edited, or has the digest of another plan, approves nothing.
    fn shows(&self, plan: &Plan) -> bool {
        let mut shown: Vec<_> = self.jobs.iter().filter(|job| job.buys()).collect();
        let mut planned: Vec<_> = plan.jobs.iter().filter(|planned| planned.is_to_be_approved).collect();
        shown.sort_unstable_by_key(|job| &job.id);
        planned.sort_unstable_by_key(|planned| &planned.job.id);
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
        self.id == job.id.as_str()
            && self.cost_usd == job.price
            && self.labels == job.labels
            && self.earlier == planned.earlier
            && serde_json::from_str::<Value>(job.request.body()).is_ok_and(|request| request == self.request)
    }
}
