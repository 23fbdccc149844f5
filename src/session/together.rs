//! A run that shares its batch with other runners: it stays until theirs is done, too, and goes on with what one of them left.
//!
//! So every runner ends with the same report of the whole batch, and the work of one that dies is never lost with it. Only
//! tasks are taken over: what is due in the meantime is for the next run.

use std::collections::HashSet;
use std::time::Instant;

use super::planning::plan_against;
use super::refusal::Refusal;
use super::start::Session;
use crate::domain::{AttemptId, Digest, with_causes};
use crate::engine::{self, Engine, RunEvent, StopReason};
use crate::ledger::{HeldBatch, Joining, Ledger};
use crate::plan::Plan;
use crate::service::VideoService;

/// What all runners of a batch have to agree on: every job of the manifest, with its request and its price.
pub(super) fn joining<L: Ledger>(session: &Session<L>) -> Joining {
    let mut jobs = String::new();
    for job in &session.manifest.jobs {
        let request = job.request.fingerprint().as_str();
        jobs.push_str(&format!("{} {} {}\n", job.id, &request[..request.len().min(16)], job.price));
    }
    let concurrency = i32::try_from(session.options.settings.concurrency).unwrap_or(i32::MAX);
    Joining { digest: Digest::of(&jobs), jobs, concurrency }
}

/// Leaves to other runners what they look after.
pub(super) async fn leave_theirs(batch: &impl HeldBatch, plan: &mut Plan) -> Result<usize, Refusal> {
    let wanted: Vec<AttemptId> = plan.outstanding().map(|attempt| attempt.id).collect();
    let own = batch.take_over(wanted).await?;
    let is_own = |id: AttemptId| own.contains(&id);
    plan.resume.retain(|attempt| is_own(attempt.id));
    plan.collect.retain(|attempt| is_own(attempt.id));
    Ok(own.len())
}

/// Waits until the other runners have done what they are at, and goes on with what nobody alive looks after. A ledger that can't be
/// asked any more ends that: what this run bought is done.
pub(super) async fn stay<L: Ledger, S: VideoService>(
    session: &Session<L>,
    engine: &Engine<'_, S, L::Held>,
    run: &mut engine::Outcome,
) {
    if let Err(refusal) = wait_for_others(session, engine, run).await {
        let reason = StopReason::LedgerFailed;
        engine.stop.because(reason);
        (engine.tell)(RunEvent::Stopping { reason, message: with_causes(&refusal) });
    }
}

async fn wait_for_others<L: Ledger, S: VideoService>(
    session: &Session<L>,
    engine: &Engine<'_, S, L::Held>,
    run: &mut engine::Outcome,
) -> Result<(), Refusal> {
    let (batch, began) = (engine.ledger, Instant::now());
    let mut told = None;
    // What could not be taken over once can't be later, either: it is of another account, for example.
    let mut tried: HashSet<AttemptId> = HashSet::new();
    while !engine.stop.is_stopping() && session.options.settings.max_duration.is_none_or(|most| began.elapsed() < most)
    {
        let others = batch.others().await?;
        if others.orphans > 0 {
            let mut plan = orphans(session).await?;
            let ids: HashSet<AttemptId> = plan.outstanding().map(|attempt| attempt.id).collect();
            if leave_theirs(batch, &mut plan).await? > 0 {
                run.add(engine.run(&plan).await);
                continue;
            }
            if others.theirs == 0 && ids.is_subset(&tried) {
                break;
            }
            tried.extend(ids);
        } else if others.theirs == 0 {
            break;
        }
        if told != Some(others.theirs) {
            told = Some(others.theirs);
            (engine.tell)(RunEvent::Others { open: others.theirs, alive: others.alive });
        }
        let look_again = batch.look_again();
        engine.stop.unless_stopping(tokio::time::sleep(look_again)).await;
    }
    Ok(())
}

/// The tasks of the batch, and nothing to buy.
async fn orphans<L: Ledger>(session: &Session<L>) -> Result<Plan, Refusal> {
    let history = session.history().await?;
    let mut plan = plan_against(session, &history).await?;
    plan.jobs.retain(|planned| !planned.action.buys());
    if let Some(downloads) = &mut plan.downloads {
        downloads.missing.clear();
    }
    plan.retries = 0;
    Ok(plan)
}
