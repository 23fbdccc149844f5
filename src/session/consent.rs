//! What somebody agreed to spend.

use super::refusal::Refusal;
use crate::domain::Usd;
use crate::plan::Plan;

/// What a person, or whoever speaks for one, agreed to. By itself, to nothing that costs money.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Consent {
    up_to: Usd,
    again: bool,
}

impl Consent {
    /// Agrees to new spending up to a sum.
    #[must_use]
    pub fn up_to(sum: Usd) -> Self {
        Self { up_to: sum, again: false }
    }

    /// Agrees to all that a plan can cost, and where some of it seems to have been bought before, to that too: for whoever has
    /// shown that plan. Of a plan that shows no such thing, it agrees to none that a later one finds.
    #[must_use]
    pub fn to(plan: &Plan) -> Self {
        Self { up_to: plan.most(), again: !plan.repurchases.is_empty() }
    }

    /// Agrees as well to buy again what seems to have been bought before. No consent to a sum is consent to that.
    #[must_use]
    pub fn also_again(self) -> Self {
        Self { again: true, ..self }
    }

    /// Refuses a plan that costs more, or that buys again what nobody agreed to.
    pub(super) fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        if !plan.repurchases.is_empty() && !self.again {
            return Err(Refusal::BoughtBefore { jobs: plan.repurchases.len() });
        }
        let cost = plan.most();
        if cost > self.up_to {
            return Err(Refusal::NotAgreed { cost, agreed: self.up_to });
        }
        Ok(())
    }
}
