//! Consent to spending.

use std::collections::HashSet;

use super::refusal::Refusal;
use crate::domain::{JobId, Usd};
use crate::plan::Plan;

/// Permission to spend. The default permits no spending.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Consent {
    up_to: Usd,
    /// The jobs that may be repurchased.
    again: HashSet<JobId>,
}

impl Consent {
    /// Permits spending up to a sum.
    pub fn up_to(sum: Usd) -> Self {
        Self { up_to: sum, again: HashSet::new() }
    }

    /// Permits the cost of a plan and its repurchases, after you saw that plan. A repurchase that only a later plan
    /// finds is not covered.
    pub fn to(plan: &Plan) -> Self {
        Self::up_to(plan.most()).also_again(plan.repurchases.iter().map(|before| before.job.clone()))
    }

    /// Also permits the repurchase of these jobs. Consent to a sum doesn't include it.
    #[must_use]
    pub fn also_again(self, jobs: impl IntoIterator<Item = JobId>) -> Self {
        Self { again: jobs.into_iter().collect(), ..self }
    }

    /// Refuses a plan that costs more, or with a repurchase that lacks consent.
    pub(super) fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        let unasked = plan.repurchases.iter().filter(|before| !self.again.contains(&before.job)).count();
        if unasked > 0 {
            return Err(Refusal::BoughtBefore { jobs: unasked });
        }
        let cost = plan.most();
        if cost > self.up_to {
            return Err(Refusal::NotAgreed { cost, agreed: self.up_to });
        }
        Ok(())
    }
}
