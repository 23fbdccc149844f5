//! The plan of a session, from everything that it depends on.

use std::collections::HashSet;

use super::refusal::Refusal;
use super::start::Session;
use super::{limits, purchases};
use crate::domain::{History, JobId, VideoFile};
use crate::download::is_whole;
use crate::ledger::{Ledger, OpenElsewhere};
use crate::plan::{Elsewhere, Plan, PlanInput};

impl<L: Ledger> Session<L> {
    /// What a run would do by what the ledger says now. Takes no lock, asks nobody, writes nothing.
    pub async fn plan(&self) -> Result<Plan, Refusal> {
        let history = self.history().await?;
        plan_against(self, &history).await
    }
}

/// What is due by this history, what it costs, and what of it seems to have been bought before.
pub(super) async fn plan_against<L: Ledger>(session: &Session<L>, history: &History) -> Result<Plan, Refusal> {
    let Session { manifest, selected, options, .. } = session;
    let manifest_ids: HashSet<&JobId> = manifest.jobs.iter().map(|job| &job.id).chain(&manifest.unsound).collect();
    let limits = limits::with_what_is_used(session).await?;
    let is_here = |file: &VideoFile| is_whole(&options.out, file);
    let mut plan = Plan::new(
        selected,
        PlanInput {
            key: manifest.key.clone(),
            manifest_ids: &manifest_ids,
            history,
            run_limit: limits::of_the_run(options.max_cost, &manifest.budget),
            limits,
            concurrency: options.settings.concurrency,
            retries: options.redo.retries,
            retry_failed: options.redo.retry_failed,
            retake: options.redo.retake.clone(),
            approved: options.approved.as_ref(),
            inputs: manifest.inputs.clone(),
            is_here: options.downloads.then_some(&is_here),
        },
    );
    let bought = purchases::bought_before(session, &plan, history).await?;
    plan.repurchases.extend(bought);
    let open = session.ledger.open_elsewhere(&manifest.key).await?;
    let open = open.into_iter().map(|OpenElsewhere { batch, outstanding, doubtful, unfetched, at_risk }| Elsewhere {
        batch: batch.batch,
        outstanding,
        doubtful,
        unfetched,
        at_risk,
    });
    plan.elsewhere = if options.collects { open.collect() } else { Vec::new() };
    Ok(plan)
}
