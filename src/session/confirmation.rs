//! Confirmation of spending.

use std::collections::HashSet;

use super::refusal::Refusal;
use crate::domain::{JobId, Usd};
use crate::plan::Plan;

/// The user's confirmation of a sum, and of jobs to buy again. The default confirms nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Confirmation {
    up_to: Usd,
    /// The jobs to buy again.
    again: HashSet<JobId>,
}

impl Confirmation {
    /// Confirms spending up to a sum.
    pub fn up_to(sum: Usd) -> Self {
        Self { up_to: sum, again: HashSet::new() }
    }

    /// Confirms the cost of a plan and the jobs that it buys again, after the user saw that plan. What only a later plan buys again is not
    /// covered.
    pub fn to(plan: &Plan) -> Self {
        Self::up_to(plan.most()).also_again(plan.already_paid.iter().map(|before| before.job.clone()))
    }

    /// Also confirms that these jobs are bought again, which a sum doesn't include.
    #[must_use]
    pub fn also_again(self, jobs: impl IntoIterator<Item = JobId>) -> Self {
        Self { again: jobs.into_iter().collect(), ..self }
    }

    /// Refuses a plan that costs more, or buys a job again without confirmation.
    pub(super) fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        let unconfirmed = plan.already_paid.iter().filter(|before| !self.again.contains(&before.job)).count();
        if unconfirmed > 0 {
            return Err(Refusal::BoughtBefore { jobs: unconfirmed });
        }
        let cost = plan.most();
        if cost > self.up_to {
            return Err(Refusal::Unconfirmed { cost, confirmed: self.up_to });
        }
        Ok(())
    }
}
