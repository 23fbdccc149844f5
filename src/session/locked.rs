//! A locked batch with its plan, and abandoned tasks that have completed since.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;

use super::connection::Connection;
use super::other_batches::{self, OtherBatch};
use super::purchases::{self, open_elsewhere, plan_against};
use super::refusal::{PassedLimits, Refusal};
use super::start::Session;
use crate::domain::{Attempt, Declaration, History, JobId};
use crate::engine::{Identity, Whose};
use crate::ledger::{Event, LockedBatch};
use crate::plan::Plan;
use crate::service::{PollAnswer, Status, VideoService as _};

/// A batch that only this run may change.
pub struct Locked<'s> {
    pub(super) session: &'s Session,
    pub(super) batch: LockedBatch,
    pub(super) plan: Plan,
    pub(super) history: History,
    pub(super) others: Vec<OtherBatch>,
    /// The jobs whose abandoned task has completed.
    pub(super) completed: Vec<JobId>,
}

impl Session {
    /// Locks the batch and plans again.
    pub async fn lock(&self) -> Result<Locked<'_>, Refusal> {
        self.check_reports()?;
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
        Ok(Locked { session: self, batch, plan, history, others, completed: Vec::new() })
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

    /// Refuses a plan that differs from the approved one.
    pub fn check_approval(&self) -> Result<(), Refusal> {
        match &self.session.options.approved {
            Some(approved) if !self.plan.is_approved_by(approved) => {
                Err(Refusal::NotApproved { approved: approved.digest().clone() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses to replace a report with purchases that the ledger doesn't have.
    pub(super) async fn check_report(&self) -> Result<(), Refusal> {
        let Session { ledger, manifest, options, .. } = self.session;
        purchases::check_report(ledger, &options.out, &manifest.key, &manifest.moves, &self.history).await
    }

    /// Refuses jobs with a local image if no asset command is set.
    pub(super) fn check_local_images(&self) -> Result<(), Refusal> {
        match self.plan.local_images() {
            jobs @ 1.. if self.session.options.assets.is_none() => Err(Refusal::NoAssetCommand { jobs }),
            _ => Ok(()),
        }
    }

    /// Returns the number of jobs in doubt because an earlier run ended between a submission and its response.
    pub fn recovered(&self) -> usize {
        self.batch.recovered()
    }
}

/// The most polls at once.
const AT_ONCE: usize = 8;

/// Polls abandoned tasks of the connection's account, and records those that have completed. Returns their jobs.
pub(super) async fn take_completed(
    batch: &LockedBatch,
    abandoned: &[Attempt],
    connection: &Connection,
) -> Result<Vec<JobId>, Refusal> {
    let ours = abandoned.iter().filter(|attempt| connection.check_owner([*attempt].into_iter()).is_ok());
    let polls = ours.map(async |attempt| Ok::<_, Refusal>((attempt, completion(attempt, connection).await)));
    let completed = stream::iter(polls).buffered(AT_ONCE).try_filter_map(async |(attempt, completion)| {
        let Some(completion) = completion else { return Ok(None) };
        batch.record(attempt.id, Event::Undone(Declaration::Lost)).await?;
        batch.record(attempt.id, completion).await?;
        Ok(Some(attempt.job().clone()))
    });
    completed.try_collect().await
}

/// The completion of a task, if one poll shows it.
async fn completion(attempt: &Attempt, connection: &Connection) -> Option<Event> {
    let names = attempt.task.clone()?;
    let PollAnswer::Report(report) = connection.service().poll(&names.id).await else { return None };
    if report.status != Status::Completed || Identity::new(names).identify(&report) != Whose::Own {
        return None;
    }
    let ended_at = report.completed_at.unwrap_or_else(Timestamp::now);
    Some(Event::Completed { video_url: report.video_url?, ended_at, polls: 1 })
}
