//! A run that shares its batch with other runners: it stays until theirs is done, too, and goes on with what one of them left.
//!
//! So every runner ends with the same report of the whole batch, and the work of one that dies is never lost with it. What one of them was
//! about to buy when it ended is bought by the others in the end; nothing is that was not due when this run began.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::planning::plan_against;
use super::refusal::Refusal;
use super::start::Session;
use crate::domain::{Account, Attempt, AttemptId, AttemptState, Digest, History, JobId, with_causes};
use crate::engine::{self, Engine, RunEvent, StopReason};
use crate::ledger::{Joining, LockedBatch, Sharing};
use crate::plan::{Action, Plan, Planned};
use crate::service::VideoService;

/// How many times longer than at first the pause between two looks becomes.
const MOST_RARELY: u32 = 10;

/// What all runners of a batch have to agree on: every job of the manifest, with its request and its price.
pub(super) fn joining(session: &Session, connection: &Connection) -> Joining {
    let mut jobs = String::new();
    for job in &session.manifest.jobs {
        let request = job.request.fingerprint().as_str();
        jobs.push_str(&format!("{} {} {}\n", job.id, &request[..request.len().min(16)], job.price));
    }
    let concurrency = i32::try_from(session.options.settings.concurrency).unwrap_or(i32::MAX);
    let (account, is_same_account) = (connection.account().clone(), connection.is_same_account());
    Joining { digest: Digest::of(&jobs), jobs, concurrency, account, is_same_account }
}

/// Claims the tasks and the videos of a plan that no live runner is assigned to, and leaves the other tasks out of the plan. Returns what is claimed.
pub(super) async fn leave_theirs(batch: &LockedBatch, plan: &mut Plan) -> Result<HashSet<AttemptId>, Refusal> {
    let Some(sharing) = batch.sharing() else { return Ok(claimable(plan).collect()) };
    let own = sharing.take_over(claimable(plan).collect()).await?;
    plan.resume.retain(|attempt| own.contains(&attempt.id));
    plan.collect.retain(|attempt| own.contains(&attempt.id));
    Ok(own)
}

/// The tasks of a plan, and the videos that were never downloaded.
fn claimable(plan: &Plan) -> impl Iterator<Item = AttemptId> {
    let missing = plan.downloads.iter().flat_map(|downloads| &downloads.missing);
    let new = missing.filter(|download| download.known.is_none()).map(|download| download.attempt);
    plan.outstanding().map(|attempt| attempt.id).chain(new)
}

/// Looks after what runners leave that die while this one has its own to do. Returns once that is over, and what was taken over, too.
pub(super) async fn adopt<S: VideoService>(
    session: &Session,
    engine: &Engine<'_, S>,
    sharing: &Sharing,
    is_over: &CancellationToken,
) -> engine::Outcome {
    let mut run = engine::Outcome::default();
    loop {
        tokio::select! {
            () = is_over.cancelled() => return run,
            () = engine.stop.stopping() => return run,
            () = tokio::time::sleep(sharing.look_again() * MOST_RARELY) => {}
        }
        // What can't be asked now is asked again, and told in the end.
        let Ok(others) = sharing.others(session.options.downloads).await else { continue };
        if others.orphans > 0
            && let Ok(mut plan) = orphans(session, engine.account).await
            && claim_orphans(engine.ledger, &mut plan).await.is_ok_and(|has_some| has_some)
        {
            run.add(engine.run(&plan).await);
        }
    }
}

/// Waits until the other runners have done what they are at, goes on with what nobody alive looks after, and buys what is left of the plan
/// after all: what another runner was about to buy when it ended. A ledger that can't be asked any more ends that: what this run bought is done.
pub(super) async fn stay<S: VideoService>(
    session: &Session,
    engine: &Engine<'_, S>,
    sharing: &Sharing,
    plan: &Plan,
    began: Instant,
    run: &mut engine::Outcome,
) {
    let ended = tokio::select! {
        ended = go_on(session, engine, sharing, plan, run) => ended,
        never = end_the_time_box(session, engine, began) => match never {},
    };
    if let Err(refusal) = ended {
        let reason = StopReason::LedgerFailed;
        engine.stop.because(reason);
        (engine.tell)(RunEvent::Stopping { reason, message: with_causes(&refusal) });
    }
}

/// One time box holds for all that a run does, also where it goes on with what others have left. Never returns: what is stopped ends by itself.
async fn end_the_time_box<S: VideoService>(session: &Session, engine: &Engine<'_, S>, began: Instant) -> Infallible {
    if let Some(most) = session.options.settings.max_duration {
        tokio::time::sleep(most.saturating_sub(began.elapsed())).await;
        engine.stop.because(StopReason::TimeBox);
        let message = "what is not done is left for the next run".to_owned();
        (engine.tell)(RunEvent::Stopping { reason: StopReason::TimeBox, message });
    }
    std::future::pending().await
}

async fn go_on<S: VideoService>(
    session: &Session,
    engine: &Engine<'_, S>,
    sharing: &Sharing,
    plan: &Plan,
    run: &mut engine::Outcome,
) -> Result<(), Refusal> {
    let mut seen = Seen::default();
    loop {
        wait_for_others(session, engine, sharing, run).await?;
        if engine.stop.is_stopping() {
            return Ok(());
        }
        let history = session.history().await?;
        let mut rest = left_of(session, plan, &history).await?;
        rest.jobs.retain(|planned| seen.is_news(&planned.job.id, &history));
        if rest.jobs.is_empty() {
            return Ok(());
        }
        if rest.totals().submit > 0 {
            run.add(engine.run(&rest).await);
        }
    }
}

/// What was left once, and could not be bought then, is left for the next run; unless somebody has been at it since, and let it go.
#[derive(Default)]
struct Seen(HashMap<JobId, Option<AttemptId>>);

impl Seen {
    /// Whether a job is looked at for the first time with its newest attempt.
    fn is_news(&mut self, job: &JobId, history: &History) -> bool {
        let newest = history.of(job).map(|attempt| attempt.id).max();
        self.0.insert(job.clone(), newest) != Some(newest)
    }
}

async fn wait_for_others<S: VideoService>(
    session: &Session,
    engine: &Engine<'_, S>,
    sharing: &Sharing,
    run: &mut engine::Outcome,
) -> Result<(), Refusal> {
    let (mut told, mut pause) = (None, sharing.look_again());
    // What could not be taken over once can't be later, either: it is of another account, for example.
    let mut tried: HashSet<AttemptId> = HashSet::new();
    while !engine.stop.is_stopping() {
        let others = sharing.others(session.options.downloads).await?;
        if others.orphans > 0 {
            let mut plan = orphans(session, engine.account).await?;
            let ids: HashSet<AttemptId> = claimable(&plan).collect();
            if claim_orphans(engine.ledger, &mut plan).await? {
                run.add(engine.run(&plan).await);
                continue;
            }
            if others.assigned == 0 && ids.is_subset(&tried) {
                break;
            }
            tried.extend(ids);
        } else if others.assigned == 0 {
            break;
        }
        if told != Some(others.assigned) {
            (told, pause) = (Some(others.assigned), sharing.look_again());
            (engine.tell)(RunEvent::WaitingForRunners { open: others.assigned, alive: others.alive });
        }
        // Whoever waits for minutes asks less and less often.
        engine.stop.unless_stopping(tokio::time::sleep(pause)).await;
        pause = (pause * 2).min(sharing.look_again() * MOST_RARELY);
    }
    Ok(())
}

/// Claims what a plan has of tasks and videos without a live runner, and leaves out the rest. Returns false if nothing is left.
async fn claim_orphans(batch: &LockedBatch, plan: &mut Plan) -> Result<bool, Refusal> {
    let own = leave_theirs(batch, plan).await?;
    if let Some(downloads) = &mut plan.downloads {
        downloads.missing.retain(|download| own.contains(&download.attempt));
    }
    Ok(!own.is_empty())
}

/// The tasks of the batch that this account can poll, the videos of its tasks that were never downloaded, and nothing to buy.
async fn orphans(session: &Session, account: &Account) -> Result<Plan, Refusal> {
    let history = session.history().await?;
    let mut plan = plan_against(session, &history).await?;
    if let Some(downloads) = &mut plan.downloads {
        downloads.missing.retain(|download| download.known.is_none() && download.account == *account);
    }
    plan.jobs.retain(|planned| !planned.action.buys());
    plan.retries = 0;
    plan.resume.retain(|attempt| attempt.account == *account);
    plan.collect.retain(|attempt| attempt.account == *account);
    Ok(plan)
}

/// What is still due of a plan, because nobody has made an attempt of it since that may have bought something, or that the service
/// refused for good. Among it is what somebody is just about to send, and may let go: it is in doubt until then, and not bought.
async fn left_of(session: &Session, plan: &Plan, history: &History) -> Result<Plan, Refusal> {
    let due: HashMap<&JobId, &Planned> =
        plan.jobs.iter().filter(|it| it.action.buys()).map(|it| (&it.job.id, it)).collect();
    let mut left = without_videos(plan_against(session, history).await?);
    let is_new = |attempt: &Attempt| plan.newest.is_none_or(|newest| attempt.id > newest);
    let is_open = |attempt: &Attempt| matches!(attempt.state, AttemptState::Void | AttemptState::Intended);
    let was_tried = |job: &JobId| history.of(job).any(|attempt| is_new(attempt) && !is_open(attempt));
    let may_be_bought = |planned: &Planned| planned.action.buys() || planned.action == Action::InDoubt;
    left.jobs.retain(|it| may_be_bought(it) && due.contains_key(&it.job.id) && !was_tried(&it.job.id));
    for planned in &mut left.jobs {
        // Consent covers the purchases of other batches that the run began with, and no later ones.
        planned.paid_elsewhere = due[&planned.job.id].paid_elsewhere;
    }
    (left.resume, left.collect) = (Vec::new(), Vec::new());
    Ok(left)
}

/// The videos that were missing when the run began are fetched already, or were not to be had.
fn without_videos(mut plan: Plan) -> Plan {
    if let Some(downloads) = &mut plan.downloads {
        downloads.missing.clear();
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::domain::{Account, BatchKey};
    use crate::ledger::Intent;
    use crate::manifest;
    use crate::session::{Home, Options};

    /// Consent doesn't cover purchases of other batches since the plan.
    #[tokio::test]
    async fn rest_of_a_plan_keeps_the_purchases_that_consent_covers() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("m.yaml");
        std::fs::write(&path, "version: 1\njobs: [{ id: a, model: alpha-2, prompt: x }]\n").expect("a manifest");
        let manifest = manifest::load(&manifest::Options::of(&path), Catalog::embedded()).sound().expect("sound");
        let home = Home::of(&path);
        let ledger = home.ledger().expect("a ledger");
        let options = Options::of(home, &manifest.key).expect("a directory");
        let session = Session::new(manifest, ledger, options);
        let plan = session.plan().await.expect("a plan");
        assert_eq!(plan.jobs[0].paid_elsewhere, Some(0));
        let other = BatchKey { name: "other".into(), batch: String::new() };
        let account = Account { service: "https://api.example".into(), key: "k".into() };
        let batch = session.ledger().lock(&other).await.expect("a batch");
        batch.intend(Intent::new(&plan.jobs[0].job, account)).await.expect("a purchase");
        let history = session.history().await.expect("a history");
        let left = left_of(&session, &plan, &history).await.expect("a plan");
        assert_eq!(left.jobs[0].paid_elsewhere, Some(0), "the ledger has one by now, and refuses it");
    }
}
