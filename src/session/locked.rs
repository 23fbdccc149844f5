//! A locked batch with its plan, and a run that needs only a confirmation.

use std::collections::HashSet;

use super::connection::Connection;
use super::executor::Executions;
use super::other_batches::OtherBatch;
use super::purchases::{open_elsewhere, plan_against};
use super::refusal::{PassedLimits, Refusal};
use super::start::Session;
use super::{other_batches, purchases};
use crate::domain::{Account, History, JobId, Usd};
use crate::download::Downloader;
use crate::ledger::LockedBatch;
use crate::plan::Plan;

/// A batch that only this run may change.
pub struct Locked<'s> {
    pub(super) session: &'s Session,
    pub(super) batch: LockedBatch,
    pub(super) plan: Plan,
    pub(super) history: History,
    pub(super) others: Vec<OtherBatch>,
}

impl Session {
    /// Locks the batch and plans again.
    pub async fn lock(&self) -> Result<Locked<'_>, Refusal> {
        self.options.reports.check()?;
        self.check_outputs()?;
        let (home, ledger) = (self.options.home.is_simulated(), self.ledger.is_simulated());
        if home != ledger {
            // A sandbox run polls too fast for the real service.
            return Err(Refusal::OtherKind { ledger_is_simulated: ledger });
        }
        self.planned(self.ledger.lock(&self.manifest.key).await?).await
    }

    /// Plans a locked batch.
    pub(super) async fn planned(&self, batch: LockedBatch) -> Result<Locked<'_>, Refusal> {
        // The lock prevents changes.
        let history = self.history().await?;
        let (mut plan, open) = plan_against(self, &history).await?;
        let others = other_batches::lock(self, &mut plan, &open).await?;
        if !others.is_empty() {
            // Recovery has put intents of expired runners in doubt, and left those of live ones.
            let open = self.ledger.open_elsewhere(&self.manifest.key).await?;
            plan.elsewhere = open_elsewhere(&open, self.options.downloads);
        }
        Ok(Locked { session: self, batch, plan, history, others })
    }
}

impl Locked<'_> {
    /// Returns the plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Refuses a plan that exceeds a spend limit.
    pub fn check_limits(&self) -> Result<(), Refusal> {
        let passed = self.plan.passed_limits().map(|limit| (self.plan.cost_under(limit), limit.clone()));
        let passed: Vec<_> = passed.collect();
        if passed.is_empty() { Ok(()) } else { Err(PassedLimits(passed).into()) }
    }

    /// Refuses to submit while purchases are frozen. If active tasks are to be polled, the run happens, and its first intent stops submitting.
    pub fn check_freeze(&self) -> Result<(), Refusal> {
        match self.plan.freeze() {
            Some(freeze) if self.plan.active_tasks().next().is_none() => Err(freeze.clone().into()),
            _ => Ok(()),
        }
    }

    /// Returns the number of jobs in doubt because an earlier run ended between a submission and its response.
    pub fn recovered(&self) -> usize {
        self.batch.recovered()
    }
}

/// A locked batch with a plan within all limits, connected to the service.
pub struct Ready<'s> {
    pub(super) locked: Locked<'s>,
    pub(super) service: Option<(Connection, Option<Downloader>)>,
    /// The videos that need a hook, if one is set.
    pub(super) executions: Option<Executions>,
}

impl<'s> Locked<'s> {
    /// Refuses a report with purchases that the ledger lacks, a plan over a limit, a plan that differs from the approved
    /// one, and tasks of another account.
    /// `connection` may be missing if the plan needs no service ([`Plan::needs_service`]).
    pub async fn ready(mut self, connection: Option<Connection>) -> Result<Ready<'s>, Refusal> {
        let Session { ledger, manifest, options, .. } = self.session;
        purchases::check_report(ledger, &options.out, &manifest.key, &manifest.moves, &self.history).await?;
        match &connection {
            None if self.plan.needs_service() => return Err(Refusal::NoConnection),
            Some(connection) if connection.is_simulated() != ledger.is_simulated() => {
                return Err(Refusal::OtherKind { ledger_is_simulated: ledger.is_simulated() });
            }
            _ => {}
        }
        self.check_limits()?;
        self.session.check_approval(&self.plan)?;
        let jobs = self.plan.local_images();
        if jobs > 0 && options.assets.is_none() {
            return Err(Refusal::NoAssetCommand { jobs });
        }
        if let Some(connection) = &connection {
            if let Some(job) = self.plan.job_with_secret(|body| connection.service().has_secret(body)) {
                return Err(Refusal::KeyInRequest { job: job.clone() });
            }
            other_batches::skip_other_accounts(&self.others, &mut self.plan, connection);
            connection.check_owner(self.plan.active_tasks())?;
        }
        let service = connection.map(|connection| {
            let downloader =
                self.plan.downloads.is_some().then(|| connection.downloader(&options.out, &options.settings));
            Ok::<_, Refusal>((connection, downloader.transpose()?))
        });
        let service = service.transpose()?;
        let known = self.others.iter().map(OtherBatch::known);
        let executions = options.exec.as_ref().map(|_| Executions::new(&self.plan, &options.out, &self.history, known));
        Ok(Ready { locked: self, service, executions })
    }
}

impl Ready<'_> {
    /// The plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.locked.plan
    }

    /// The account that submits, if the plan needs the service.
    pub fn account(&self) -> Option<&Account> {
        self.service.as_ref().map(|(connection, _)| connection.account())
    }

    /// Returns whether the run needs the service, or starts a program.
    pub fn has_work(&self) -> bool {
        self.service.is_some() || self.executions.as_ref().is_some_and(|executions| !executions.is_empty())
    }
}

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

    /// Confirms the cost of a plan that the user saw, and the jobs that it buys again. Later plans may buy no other job again.
    pub fn to(plan: &Plan) -> Self {
        Self::up_to(plan.most()).also_again(plan.already_paid.iter().map(|before| before.job.clone()))
    }

    /// Also confirms buying these jobs again. A sum does not include that.
    #[must_use]
    pub fn also_again(self, jobs: impl IntoIterator<Item = JobId>) -> Self {
        Self { again: jobs.into_iter().collect(), ..self }
    }

    /// Refuses a plan that costs more, or that buys another job again.
    pub(super) fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        let unconfirmed = plan.already_paid.iter().filter(|before| !self.again.contains(&before.job)).count();
        if unconfirmed > 0 {
            return Err(Refusal::BoughtBefore { jobs: unconfirmed });
        }
        let cost = plan.most();
        if cost > self.up_to { Err(Refusal::Unconfirmed { cost, confirmed: self.up_to }) } else { Ok(()) }
    }
}
