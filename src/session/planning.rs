//! The plan of a session.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashSet};

use super::refusal::Refusal;
use super::start::Session;
use super::{ledger_limits, purchases};
use crate::domain::{Attempt, History, JobId, VideoFile};
use crate::download::is_whole;
use crate::ledger::{OpenElsewhere, Unavailable, this_machine};
use crate::plan::{Elsewhere, Plan, PlanInput};

impl Session {
    /// Returns the plan of a run by the current ledger. Takes no lock, sends no request, and writes nothing.
    pub async fn plan(&self) -> Result<Plan, Refusal> {
        let history = self.history().await?;
        Ok(plan_against(self, &history).await?.0)
    }
}

/// Plans against a history: due jobs, their cost, and jobs that are already paid for. Returns the plan, and the work left in other batches.
pub(super) async fn plan_against(session: &Session, history: &History) -> Result<(Plan, Vec<OpenElsewhere>), Refusal> {
    let Session { manifest, selected, options, .. } = session;
    if manifest.is_ledger_shared && !session.ledger.is_shared() && !session.ledger.is_simulated() {
        return Err(Refusal::PrivateLedger);
    }
    let ids = || manifest.jobs.iter().map(|job| job.id()).chain(&manifest.unsound).collect();
    let ids: LazyCell<HashSet<&JobId>, _> = LazyCell::new(ids);
    let is_in_manifest = |id: &JobId| ids.contains(id);
    let controls = session.ledger.controls().await?;
    let limits = ledger_limits::with_what_is_used(session, &controls).await?;
    // A video that another machine downloaded stays there, unless this run fetches all.
    let is_theirs = |attempt: &Attempt| match &attempt.particulars.fetched_by {
        Some(machine) => session.ledger.is_shared() && !options.fetches_only && **machine != *this_machine(),
        None => false,
    };
    let is_here = |attempt: &Attempt, file: &VideoFile| is_theirs(attempt) || is_whole(&options.out, file);
    let mut plan = Plan::new(
        selected,
        PlanInput {
            key: manifest.key.clone(),
            is_simulated: session.ledger.is_simulated(),
            manifest: &manifest.jobs,
            is_in_manifest: &is_in_manifest,
            history,
            run_limit: ledger_limits::of_the_run(options, &manifest.budget),
            limits,
            concurrency: options.settings.concurrency,
            retries: options.redo.retries,
            retry_failed: options.redo.retry_failed,
            retake: &options.redo.retake,
            approved: options.approved.as_ref(),
            sample: options.sample,
            inputs: manifest.inputs.clone(),
            prices: manifest.prices,
            is_here: options.downloads.then_some(&is_here),
        },
    );
    if options.fetches_only {
        plan.only_fetch();
    }
    plan.frozen = controls.freeze;
    purchases::add_already_paid(session, &mut plan, history).await?;
    plan.on_trial = on_trial(session, &plan).await?;
    let open = session.ledger.open_elsewhere(&manifest.key).await?;
    plan.elsewhere = if options.finishes_other_batches { open_elsewhere(&open, options.downloads) } else { Vec::new() };
    Ok((plan, open))
}

/// The models of due jobs whose newest delivery was not as it was bought, each with the fault.
async fn on_trial(session: &Session, plan: &Plan) -> Result<Vec<(String, String)>, Unavailable> {
    let due = plan.jobs.iter().filter(|planned| planned.action.buys());
    let models: BTreeSet<&str> = due.map(|planned| planned.job.spec.model.as_str()).collect();
    let mut on_trial = Vec::new();
    for model in models.into_iter().filter(|_| !session.options.settings.accepts_mismatch) {
        let fault = session.ledger.newest_delivery(model).await?.and_then(|attempt| attempt.delivery_fault());
        on_trial.extend(fault.map(|fault| (model.to_owned(), fault)));
    }
    Ok(on_trial)
}

/// The work left in other batches, with or without downloads.
pub(super) fn open_elsewhere(open: &[OpenElsewhere], fetches: bool) -> Vec<Elsewhere> {
    let shown = open.iter().map(|open| Elsewhere {
        batch: open.batch.batch.clone(),
        active: open.active,
        doubtful: open.doubtful,
        unfetched: if fetches { open.unfetched } else { 0 },
        at_risk: open.at_risk,
    });
    shown.filter(|other| other.active + other.doubtful + other.unfetched > 0).collect()
}
