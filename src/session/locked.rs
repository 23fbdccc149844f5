//! A locked batch, with the plan of what is due in it.

use super::other_batches::{self, OtherBatch};
use super::planning::{open_elsewhere, plan_against};
use super::refusal::Refusal;
use super::start::Session;
use crate::domain::History;
use crate::ledger::LockedBatch;
use crate::plan::Plan;

/// A batch that no other runner is at.
pub struct Locked<'s> {
    pub(super) session: &'s Session,
    pub(super) batch: LockedBatch,
    pub(super) plan: Plan,
    pub(super) history: History,
    pub(super) others: Vec<OtherBatch>,
}

impl Session {
    /// Takes the batch, so that nobody else runs it, and plans anew.
    pub async fn lock(&self) -> Result<Locked<'_>, Refusal> {
        self.check_reports()?;
        self.check_outputs()?;
        let (home, ledger) = (self.options.home.is_simulated(), self.ledger.is_simulated());
        if home != ledger {
            // The pace of a rehearsal is none for real money.
            return Err(Refusal::OtherKind { ledger_is_simulated: ledger });
        }
        let key = &self.manifest.key;
        let batch = self.ledger.lock(key).await?;
        // What counts is what the ledger says now that nobody else can change it.
        let history = self.history().await?;
        let mut plan = plan_against(self, &history).await?;
        let others = other_batches::lock(self, &mut plan, &self.ledger.open_elsewhere(key).await?).await?;
        if !others.is_empty() {
            // What a run that died left without an answer is in doubt now, and what a live one waits for is not.
            plan.elsewhere = open_elsewhere(self.ledger.open_elsewhere(key).await?, self.options.downloads);
        }
        Ok(Locked { session: self, batch, plan, history, others })
    }
}

impl Locked<'_> {
    /// What the run will do.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Refuses a plan that passes a limit on spending.
    pub fn check_limits(&self) -> Result<(), Refusal> {
        let Some(limit) = self.plan.passed_limits().next() else { return Ok(()) };
        Err(Refusal::OverLimit { cost: self.plan.cost_under(limit), limit: limit.clone() })
    }

    /// Refuses to buy while purchases are frozen. If active tasks are to be polled, the run happens, and its first intent stops submitting.
    pub fn check_freeze(&self) -> Result<(), Refusal> {
        match self.plan.freeze() {
            Some(freeze) if self.plan.outstanding().next().is_none() => Err(freeze.clone().into()),
            _ => Ok(()),
        }
    }

    /// Refuses a plan that is another one than was approved.
    pub fn check_approval(&self) -> Result<(), Refusal> {
        match &self.session.options.approved {
            Some(approved) if !self.plan.is_approved_by(approved) => {
                Err(Refusal::NotApproved { approved: approved.digest().clone() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses jobs that begin with a picture of this machine where nobody can give it an address.
    pub(super) fn check_pictures(&self) -> Result<(), Refusal> {
        match self.plan.pictures() {
            jobs @ 1.. if self.session.options.assets.is_none() => Err(Refusal::NoAssetCommand { jobs }),
            _ => Ok(()),
        }
    }

    /// How many jobs are in doubt because an earlier run ended between sending and the answer.
    #[must_use]
    pub fn recovered(&self) -> usize {
        self.batch.recovered()
    }
}
