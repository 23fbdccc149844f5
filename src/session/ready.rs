//! A run that needs only a confirmation.

use std::collections::HashSet;

use super::connection::Connection;
use super::executor::Executions;
use super::locked;
use super::locked::Locked;
use super::other_batches::{self, OtherBatch};
use super::refusal::Refusal;
use crate::domain::{Account, JobId, Usd};
use crate::download::Downloader;
use crate::plan::Plan;

/// A locked batch with a plan within all limits, connected to the service.
pub struct Ready<'s> {
    pub(super) locked: Locked<'s>,
    pub(super) service: Option<(Connection, Option<Downloader>)>,
    /// The videos that need a hook, if one is set.
    pub(super) executions: Option<Executions>,
}

impl<'s> Locked<'s> {
    /// Polls abandoned tasks once. Refuses a report with purchases that the ledger lacks, a plan over a limit, a plan that differs from the approved
    /// one, and tasks of another account.
    /// `connection` may be missing if the plan needs no service ([`Plan::needs_service`]).
    pub async fn ready(mut self, connection: Option<Connection>) -> Result<Ready<'s>, Refusal> {
        self.check_report().await?;
        match &connection {
            None if self.plan.needs_service() => return Err(Refusal::NoConnection),
            Some(connection) if connection.is_simulated() != self.session.ledger.is_simulated() => {
                return Err(Refusal::OtherKind { ledger_is_simulated: self.session.ledger.is_simulated() });
            }
            Some(connection) => self = self.without_completed(connection).await?,
            None => {}
        }
        self.check_limits()?;
        self.check_approval()?;
        self.check_local_images()?;
        if let Some(connection) = &connection {
            if let Some(job) = self.plan.job_with_secret(|body| connection.service().has_secret(body)) {
                return Err(Refusal::KeyInRequest { job: job.clone() });
            }
            other_batches::skip_other_accounts(&self.others, &mut self.plan, connection);
            connection.check_owner(self.plan.active_tasks())?;
        }
        Ready::new(self, connection)
    }

    /// Plans again if an abandoned task has completed: its job is not due.
    async fn without_completed(self, connection: &Connection) -> Result<Self, Refusal> {
        let completed = locked::take_completed(&self.batch, &self.plan.abandoned, connection).await?;
        if completed.is_empty() {
            return Ok(self);
        }
        let Self { session, batch, others, .. } = self;
        // They are locked again.
        drop(others);
        Ok(Self { completed, ..session.planned(batch).await? })
    }
}

impl<'s> Ready<'s> {
    fn new(locked: Locked<'s>, connection: Option<Connection>) -> Result<Self, Refusal> {
        let options = &locked.session.options;
        let service = connection.map(|connection| {
            let downloader =
                locked.plan.downloads.is_some().then(|| connection.downloader(&options.out, &options.settings));
            Ok::<_, Refusal>((connection, downloader.transpose()?))
        });
        let service = service.transpose()?;
        let known = locked.others.iter().map(OtherBatch::known);
        let executions =
            options.exec.as_ref().map(|_| Executions::new(&locked.plan, &options.out, &locked.history, known));
        Ok(Self { locked, service, executions })
    }

    /// The plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.locked.plan
    }

    /// The account that submits, if the plan needs the service.
    pub fn account(&self) -> Option<&Account> {
        self.service.as_ref().map(|(connection, _)| connection.account())
    }

    /// The jobs with an abandoned task that has completed since.
    pub fn completed(&self) -> &[JobId] {
        &self.locked.completed
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
        if cost > self.up_to {
            return Err(Refusal::Unconfirmed { cost, confirmed: self.up_to });
        }
        Ok(())
    }
}
