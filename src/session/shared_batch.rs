//! Work of other runners in a shared batch.
//!
//! A run claims the tasks and videos of expired runners. It ends when no other runner has work left, so all runs end
//! with the same report. Last, it submits due jobs of its plan that another runner claimed and released.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::connection::Connection;
use super::locked::Locked;
use super::planning::plan_against;
use super::refusal::Refusal;
use super::start::Session;
use crate::domain::{Account, Attempt, AttemptId, AttemptState, Digest, History, JobId, with_causes};
use crate::engine::{Feed, RunEvent, Stop, StopReason};
use crate::ledger::{Joining, LockedBatch, OtherRunners, Sharing};
use crate::plan::{Action, Plan, Planned};

/// The longest wait before the next look at other runners, as a multiple of the shortest.
const MAX_WAIT_FACTOR: u32 = 10;

/// Identifies the plan that all runners of a batch must share: each job of the manifest, with its request and price.
fn shared_plan(session: &Session) -> Digest {
    let mut jobs = String::new();
    for job in &session.manifest.jobs {
        jobs.push_str(&format!("{} {} {}\n", job.id, job.request.fingerprint().as_str(), job.price));
    }
    Digest::of(&jobs)
}

impl Locked<'_> {
    /// Returns whether live runners buy this batch by another plan, so that this run may buy nothing.
    pub async fn meets_other_plan(&self) -> Result<bool, Refusal> {
        let Some(sharing) = self.batch.sharing().filter(|_| self.plan.buys()) else { return Ok(false) };
        let others = sharing.others(false).await?;
        Ok(others.plan.is_some_and(|plan| plan != shared_plan(self.session)))
    }
}

/// The request to buy with the other runners of a batch.
pub(super) fn joining(session: &Session, connection: &Connection) -> Joining {
    let concurrency = i32::try_from(session.options.settings.concurrency).unwrap_or(i32::MAX);
    let (account, is_same_account) = (connection.account().clone(), connection.is_same_account());
    Joining { digest: shared_plan(session), concurrency, account, is_same_account }
}

/// Claims the tasks and videos of a plan that are assigned to no live runner, and leaves the other tasks out of the plan. Returns the claimed
/// attempts.
pub(super) async fn skip_assigned(batch: &LockedBatch, plan: &mut Plan) -> Result<HashSet<AttemptId>, Refusal> {
    let Some(sharing) = batch.sharing() else { return Ok(claimable(plan).collect()) };
    let own = sharing.take_over(claimable(plan).collect()).await?;
    plan.resume.retain(|attempt| own.contains(&attempt.id));
    plan.collect.retain(|attempt| own.contains(&attempt.id));
    Ok(own)
}

/// The active tasks of a plan, and the videos that were never downloaded.
fn claimable(plan: &Plan) -> impl Iterator<Item = AttemptId> {
    let missing = plan.downloads.iter().flat_map(|downloads| &downloads.missing);
    let new = missing.filter(|download| download.known.is_none()).map(|download| download.attempt);
    plan.active_tasks().map(|attempt| attempt.id).chain(new)
}

/// A shared batch as a source of work.
pub(super) struct SharedBatch<'s> {
    pub(super) session: &'s Session,
    pub(super) batch: &'s LockedBatch,
    pub(super) sharing: &'s Sharing,
    pub(super) account: &'s Account,
    /// The initial plan of the run.
    pub(super) plan: &'s Plan,
    pub(super) stop: &'s Stop,
    pub(super) emit: &'s (dyn Fn(RunEvent) + Sync),
}

/// The work of other runners, and the claimed part of it.
struct Found {
    others: OtherRunners,
    /// The claimed tasks and videos.
    claimed: Option<Plan>,
    /// Orphaned tasks that can't be claimed, such as those of another account.
    left: HashSet<AttemptId>,
}

impl SharedBatch<'_> {
    /// Feeds the engine until no runner of the batch has work left or the run stops. Without its own work, the run also
    /// ends if the ledger can't be read.
    pub(super) async fn feed(&self, feed: &Feed) {
        if let Err(refusal) = self.feed_until_done(feed).await {
            let reason = StopReason::LedgerFailed;
            self.stop.because(reason);
            (self.emit)(RunEvent::Stopping { reason, message: with_causes(&refusal) });
        }
    }

    async fn feed_until_done(&self, feed: &Feed) -> Result<(), Refusal> {
        let (mut wait, mut seen, mut left) = (Wait::new(self.sharing), Seen::default(), HashSet::new());
        if !feed.is_idle() {
            // The run has just claimed what was orphaned.
            self.stop.unless_stopping(wait.before_next_look(feed, false)).await;
        }
        while !self.stop.is_stopping() {
            let is_idle = feed.is_idle();
            match self.look().await {
                Ok(Found { claimed: Some(plan), .. }) => {
                    feed.add(plan.into()).await;
                    continue;
                }
                Ok(Found { others, left: now, .. }) if is_idle => {
                    let is_left = now.is_subset(&left);
                    left.extend(now);
                    if others.assigned == 0 && is_left {
                        let Some(rest) = self.rest(&mut seen).await? else { return Ok(()) };
                        if rest.totals().submit > 0 {
                            feed.add(rest.into()).await;
                            wait = Wait::new(self.sharing);
                        }
                        continue;
                    }
                    if wait.is_news(others.assigned) {
                        (self.emit)(RunEvent::WaitingForRunners { open: others.assigned, alive: others.alive });
                    }
                }
                // While the run has work, the next look may succeed.
                Err(refusal) if is_idle => return Err(refusal),
                _ => {}
            }
            self.stop.unless_stopping(wait.before_next_look(feed, is_idle)).await;
        }
        Ok(())
    }

    /// Claims the work of expired runners.
    async fn look(&self) -> Result<Found, Refusal> {
        let others = self.sharing.others(self.session.options.downloads).await?;
        if others.orphans == 0 {
            return Ok(Found { others, claimed: None, left: HashSet::new() });
        }
        let mut plan = self.orphans().await?;
        let left = claimable(&plan).collect();
        let own = skip_assigned(self.batch, &mut plan).await?;
        if let Some(downloads) = &mut plan.downloads {
            downloads.missing.retain(|download| own.contains(&download.attempt));
        }
        Ok(Found { others, claimed: (!own.is_empty()).then_some(plan), left })
    }

    /// A plan of the batch's tasks that this account can poll, and of videos that were never downloaded. Submits
    /// nothing.
    async fn orphans(&self) -> Result<Plan, Refusal> {
        let history = self.session.history().await?;
        let (mut plan, _) = plan_against(self.session, &history).await?;
        if let Some(downloads) = &mut plan.downloads {
            downloads.missing.retain(|download| download.known.is_none() && download.account == *self.account);
        }
        plan.jobs.retain(|planned| !planned.action.buys());
        plan.retries = 0;
        plan.resume.retain(|attempt| attempt.account == *self.account);
        plan.collect.retain(|attempt| attempt.account == *self.account);
        Ok(plan)
    }

    /// The jobs of the plan that are still due, or claimed by another runner. `None` without news of any.
    async fn rest(&self, seen: &mut Seen) -> Result<Option<Plan>, Refusal> {
        let history = self.session.history().await?;
        let mut due = self.plan.jobs.iter().filter(|planned| planned.action.buys());
        if due.all(|planned| was_tried(self.plan, &history, &planned.job.id)) {
            return Ok(None);
        }
        let mut rest = left_of(self.session, self.plan, &history).await?;
        rest.jobs.retain(|planned| seen.is_news(&planned.job.id, &history));
        Ok((!rest.jobs.is_empty()).then_some(rest))
    }
}

/// The wait before the next look at the other runners, which grows while nothing changes.
struct Wait {
    shortest: Duration,
    next: Duration,
    assigned: Option<u32>,
}

impl Wait {
    fn new(sharing: &Sharing) -> Self {
        let shortest = sharing.look_again();
        Self { shortest, next: shortest, assigned: None }
    }

    /// Returns whether the number of tasks of other runners changed, and begins anew with the shortest wait if it did.
    fn is_news(&mut self, assigned: u32) -> bool {
        let is_news = self.assigned.replace(assigned) != Some(assigned);
        if is_news {
            self.next = self.shortest;
        }
        is_news
    }

    /// Waits, but no longer than the run has work of its own.
    async fn before_next_look(&mut self, feed: &Feed, is_idle: bool) {
        let longest = self.shortest * MAX_WAIT_FACTOR;
        if !is_idle {
            tokio::select! {
                () = feed.idle() => {}
                () = tokio::time::sleep(longest) => {}
            }
            return;
        }
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(longest);
    }
}

/// The newest attempt of each job when it was last fed. A job that failed to be submitted then is left to the next run,
/// unless another runner has claimed and released it since.
#[derive(Default)]
struct Seen(HashMap<JobId, Option<AttemptId>>);

impl Seen {
    /// Returns whether a job has a newest attempt that was not seen.
    fn is_news(&mut self, job: &JobId, history: &History) -> bool {
        let newest = history.of(job).map(|attempt| attempt.id).max();
        self.0.insert(job.clone(), newest) != Some(newest)
    }
}

/// The due jobs of a plan without a newer purchase or rejection. They include jobs in doubt for now, which another
/// runner is about to submit or release.
async fn left_of(session: &Session, plan: &Plan, history: &History) -> Result<Plan, Refusal> {
    let due: HashMap<&JobId, &Planned> =
        plan.jobs.iter().filter(|it| it.action.buys()).map(|it| (&it.job.id, it)).collect();
    let (mut left, _) = plan_against(session, history).await?;
    // Those missing at the start are downloaded or unavailable.
    left.downloads.iter_mut().for_each(|downloads| downloads.missing.clear());
    let may_be_bought = |planned: &Planned| planned.action.buys() || planned.action == Action::InDoubt;
    left.jobs.retain(|it| may_be_bought(it) && due.contains_key(&it.job.id) && !was_tried(plan, history, &it.job.id));
    for planned in &mut left.jobs {
        // The confirmation covers the purchases of other batches that the run began with, and no later ones.
        planned.paid_elsewhere = due[&planned.job.id].paid_elsewhere;
    }
    (left.resume, left.collect) = (Vec::new(), Vec::new());
    Ok(left)
}

/// Returns whether a job has an attempt since the plan that was sent.
fn was_tried(plan: &Plan, history: &History, job: &JobId) -> bool {
    let is_new = |attempt: &Attempt| plan.newest.is_none_or(|newest| attempt.id > newest);
    let is_open = |attempt: &Attempt| matches!(attempt.state, AttemptState::Void | AttemptState::Intended);
    history.of(job).any(|attempt| is_new(attempt) && !is_open(attempt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::domain::{Account, BatchKey};
    use crate::ledger::Intent;
    use crate::manifest;
    use crate::session::{DefaultPaths, Options};

    /// The confirmation doesn't cover purchases of other batches since the plan.
    #[tokio::test]
    async fn rest_of_a_plan_keeps_the_confirmed_purchases() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("m.yaml");
        std::fs::write(&path, "version: 1\njobs: [{ id: a, model: alpha-2, prompt: x }]\n").expect("a manifest");
        let manifest = manifest::load(&manifest::Options::of(&path), Catalog::embedded()).sound().expect("sound");
        let home = DefaultPaths::of(&path);
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
