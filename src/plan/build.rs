//! The plan of a run: every selected job with its action, its reason and its price.

use std::collections::HashSet;
use std::sync::Arc;

use super::decide::{Action, decide};
use super::estimate::Estimate;
use crate::domain::{Attempt, AttemptId, BatchKey, History, Job, JobId, Usd};

/// A selected job and what is done about it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The job.
    pub job: Arc<Job>,
    /// What is done.
    pub action: Action,
    /// Why.
    pub reason: String,
    /// The attempt that the action is about.
    pub attempt: Option<AttemptId>,
    /// What the action costs: the job's price if it buys, and otherwise nothing.
    pub cost: Usd,
}

/// The most that the run may newly spend, and where that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The amount.
    pub usd: Usd,
    /// `--max-cost` or `budget.run`.
    pub source: &'static str,
}

/// What a run will do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the jobs belong to.
    pub key: BatchKey,
    /// The selected jobs, in manifest order.
    pub jobs: Vec<Planned>,
    /// Tasks at the service that were paid for and that no selected job resumes: of a job that was changed since, or
    /// removed from the manifest. They are polled to their end, because paid work is never dropped.
    pub collect: Vec<Attempt>,
    /// Tasks at the service that selected jobs resume.
    pub resume: Vec<Attempt>,
    /// The limit on new spending, if there is one.
    pub limit: Option<Limit>,
    /// What the run will take.
    pub estimate: Estimate,
}

/// Counts and sums of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Selected jobs.
    pub jobs: usize,
    /// Jobs that are submitted.
    pub submit: usize,
    /// Jobs whose task is polled on.
    pub resume: usize,
    /// Jobs that are completed.
    pub done: usize,
    /// Jobs that wait for a face review.
    pub held: usize,
    /// Jobs that stay failed.
    pub failed: usize,
    /// Jobs that are in doubt.
    pub in_doubt: usize,
    /// What the submissions cost.
    pub cost: Usd,
}

impl Plan {
    /// Plans the selected jobs against what the ledger knows. `manifest_ids` are those of all jobs, selected or not, so
    /// that tasks of unselected jobs are left alone.
    #[must_use]
    pub fn new(
        key: BatchKey,
        selected: &[Arc<Job>],
        manifest_ids: &HashSet<&JobId>,
        history: &History,
        limit: Option<Limit>,
        concurrency: usize,
    ) -> Self {
        let jobs: Vec<Planned> = selected.iter().map(|job| plan_job(job, history)).collect();
        let resumed: HashSet<AttemptId> = jobs
            .iter()
            .filter(|planned| planned.action == Action::Resume)
            .filter_map(|planned| planned.attempt)
            .collect();
        let chosen: HashSet<&JobId> = selected.iter().map(|job| &job.id).collect();
        let ours = |attempt: &&Attempt| chosen.contains(&attempt.job) || !manifest_ids.contains(&attempt.job);
        let (resume, collect): (Vec<Attempt>, Vec<Attempt>) = history
            .attempts()
            .filter(|attempt| attempt.state.is_outstanding())
            .filter(ours)
            .cloned()
            .partition(|attempt| resumed.contains(&attempt.id));
        let due: Vec<(u32, u32)> =
            jobs.iter().filter(|planned| planned.action.buys()).map(|planned| planned.job.typical_s).collect();
        let estimate = Estimate::of(&due, resume.len() + collect.len(), concurrency);
        Self { key, jobs, collect, resume, limit, estimate }
    }

    /// Counts and sums.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { jobs: self.jobs.len(), ..Totals::default() };
        for planned in &self.jobs {
            *match planned.action {
                Action::Submit | Action::Changed | Action::Retry => &mut totals.submit,
                Action::Resume => &mut totals.resume,
                Action::Done => &mut totals.done,
                Action::Hold => &mut totals.held,
                Action::Failed => &mut totals.failed,
                Action::InDoubt => &mut totals.in_doubt,
            } += 1;
            totals.cost += planned.cost;
        }
        totals
    }

    /// The most that the run can spend, whatever happens. Without paid retries that is the sum of what is submitted.
    #[must_use]
    pub fn worst_case(&self) -> Usd {
        self.totals().cost
    }

    /// Whether the run may spend what it plans to.
    #[must_use]
    pub fn is_within_limit(&self) -> bool {
        self.limit.as_ref().is_none_or(|limit| self.worst_case() <= limit.usd)
    }

    /// Whether the run has anything to ask of the service.
    #[must_use]
    pub fn needs_service(&self) -> bool {
        !self.resume.is_empty() || !self.collect.is_empty() || self.jobs.iter().any(|planned| planned.action.buys())
    }
}

fn plan_job(job: &Arc<Job>, history: &History) -> Planned {
    let attempts: Vec<&Attempt> = history.of(&job.id).collect();
    let decision = decide(job, attempts.iter().copied());
    Planned {
        job: Arc::clone(job),
        action: decision.action,
        reason: decision.reason,
        attempt: decision.attempt,
        cost: if decision.action.buys() { job.price } else { Usd::ZERO },
    }
}
