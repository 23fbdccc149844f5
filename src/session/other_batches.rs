//! Finishes other batches of the same name, for example yesterday's.
//!
//! A run submits nothing for them. It polls their tasks, downloads their videos to their directories, and writes their reports from the ledger, because
//! the manifest may have changed.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::connection::Connection;
use super::options::{mark_unreported, unmark_unreported, unreported_batches};
use super::purchases;
use super::refusal::Refusal;
use super::reporter::{Reported, Reporter};
use super::start::Session;
use crate::domain::{Attempt, AttemptId, BatchKey, History, Job, JobId, NoticeCode, OpenElsewhere, Usd};
use crate::ledger::{HoldError, LockedBatch};
use crate::plan::{OtherDirectory, Plan, PlanInput, Retakes};
use crate::report::{Writer, earlier_jobs};

/// The maximum number of other batches in one run: each has open files. The next runs finish the rest.
const MAX_OTHER_BATCHES: usize = 32;
/// The pause between two checks whether a batch is done.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// Another batch that this run finishes.
pub(super) struct OtherBatch {
    key: BatchKey,
    pub(super) batch: LockedBatch,
    jobs: Arc<[Arc<Job>]>,
    history: History,
    directory: OtherDirectory,
}

/// Locks the batches with open work, and adds the work to the plan. Skips locked batches.
pub(super) async fn lock(
    session: &Session,
    plan: &mut Plan,
    open: &[OpenElsewhere],
) -> Result<Vec<OtherBatch>, Refusal> {
    let mut locked = Vec::new();
    if !session.options.finishes_other_batches {
        return Ok(locked);
    }
    let has_work = |open: &&OpenElsewhere| {
        open.active + open.unanswered > 0
            || (open.unfetched > 0 && session.options.downloads)
            || (open.unexecuted > 0 && session.options.exec.is_some())
    };
    let mut keys: Vec<BatchKey> = open.iter().filter(has_work).map(|open| open.batch.clone()).collect();
    keys.extend(unreported(session)?.into_iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>());
    for key in keys {
        if locked.len() == MAX_OTHER_BATCHES {
            tracing::warn!(
                code = NoticeCode::BatchesLeft.code(),
                "more than {MAX_OTHER_BATCHES} other batches to finish; the next runs finish the rest"
            );
            break;
        }
        let batch = match session.ledger.lock(&key).await {
            Err(HoldError::Busy { batch, .. }) => {
                tracing::info!(code = NoticeCode::BatchTaken.code(), "another run finishes batch `{batch}`");
                continue;
            }
            locked => locked?,
        };
        // The lock prevents changes.
        let history = session.ledger.history(&key).await?;
        let is_shared = !is_usual(session);
        let out = if is_shared { session.options.out.clone() } else { session.options.home.out(&key)? };
        let jobs = jobs(session, &key, &history, &out).into();
        let directory = OtherDirectory { path: out.into(), is_shared };
        let other = OtherBatch { key, batch, jobs, history, directory };
        plan.look_after(other.plan(session), &other.directory);
        locked.push(other);
    }
    Ok(locked)
}

/// Returns whether each batch has a separate directory.
fn is_usual(session: &Session) -> bool {
    session.options.home.out(&session.manifest.key).is_ok_and(|usual| usual == session.options.out)
}

/// Batches whose reports a killed run did not write.
fn unreported(session: &Session) -> Result<Vec<BatchKey>, Refusal> {
    if !is_usual(session) {
        return Ok(Vec::new());
    }
    let key = |batch| BatchKey { name: session.manifest.key.name.clone(), batch };
    let marked = unreported_batches(&session.options.home.out(&key(String::new()))?);
    Ok(marked.into_iter().map(key).filter(|key| *key != session.manifest.key).collect())
}

/// Marks their reports as pending, in case this run is killed.
pub(super) fn mark(others: &[OtherBatch]) -> Result<(), Refusal> {
    let mut own = others.iter().filter(|other| !other.directory.is_shared);
    let marked = own.try_for_each(|other| mark_unreported(&other.directory.path, &other.key.batch));
    marked.map_err(|error| Refusal::Files(Box::new(error)))
}

impl OtherBatch {
    /// Its key, the directory of its videos, and its history.
    pub(super) fn known(&self) -> (&BatchKey, &Path, &History) {
        (&self.key, &*self.directory.path, &self.history)
    }

    /// The plan of the batch. A video that was removed after its download is not downloaded again.
    fn plan(&self, session: &Session) -> Plan {
        let ids: HashSet<&JobId> = self.jobs.iter().map(|job| job.id()).collect();
        let is_here = |_: &_, _: &_| true;
        let input = PlanInput {
            manifest: &self.jobs,
            key: self.key.clone(),
            is_simulated: session.ledger.is_simulated(),
            is_in_manifest: &|id| ids.contains(id),
            history: &self.history,
            run_limit: None,
            limits: Vec::new(),
            concurrency: session.options.settings.concurrency,
            retries: 0,
            retry_failed: false,
            retake: &Retakes::default(),
            approved: None,
            sample: None,
            is_here: session.options.downloads.then_some(&is_here),
        };
        Plan::new(&self.jobs, input)
    }
}

/// Leaves out the tasks of other accounts: the service would deny that they exist.
pub(super) fn skip_other_accounts(others: &[OtherBatch], plan: &mut Plan, connection: &Connection) {
    let theirs: HashSet<AttemptId> =
        others.iter().flat_map(|other| other.history.attempts()).map(|attempt| attempt.id).collect();
    let before = plan.collect.len();
    plan.collect.retain(|attempt| {
        attempt.account == *connection.account() || connection.is_same_account() || !theirs.contains(&attempt.id)
    });
    if plan.collect.len() < before {
        let left = before - plan.collect.len();
        tracing::warn!(
            code = NoticeCode::AccountsLeft.code(),
            left,
            "skipped tasks of other accounts in other batches"
        );
    }
}

/// The batches that are still locked, and the states of the jobs of those that were released.
pub(super) struct OtherBatches {
    pub(super) locked: Vec<OtherBatch>,
    pub(super) finished: Vec<Result<Reported, Refusal>>,
}

/// Releases each batch once it is done, for runs of that batch. Never returns.
pub(super) async fn release_done(session: &Session, others: &Mutex<OtherBatches>) -> Infallible {
    // A hook may run for one of its videos, and another run would start it again.
    if session.options.exec.is_some() {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        let others = &mut *others.lock().await;
        let mut at = 0;
        while let Some(other) = others.locked.get(at) {
            if !is_done(session, other).await {
                at += 1;
                continue;
            }
            let reported = report_one(session, other).await;
            // Removed last, in case this future is dropped.
            others.locked.remove(at);
            others.finished.push(reported);
        }
    }
}

/// Returns whether a batch has no active task and no download left. A batch that can't be read is not done.
async fn is_done(session: &Session, other: &OtherBatch) -> bool {
    let is_open =
        |attempt: &Attempt| attempt.state.is_active() || (attempt.needs_download() && session.options.downloads);
    session.ledger.history(&other.key).await.is_ok_and(|history| !history.attempts().any(is_open))
}

/// Writes the reports of the batches that are left, and releases them.
pub(super) async fn report(session: &Session, others: Mutex<OtherBatches>) -> Vec<Result<Reported, Refusal>> {
    let OtherBatches { locked, mut finished } = others.into_inner();
    for other in locked {
        finished.push(report_one(session, &other).await);
    }
    finished
}

async fn report_one(session: &Session, other: &OtherBatch) -> Result<Reported, Refusal> {
    // A shared directory has the reports of this run.
    let OtherDirectory { path: out, is_shared } = &other.directory;
    let writer = if *is_shared { Writer::default() } else { Writer::usual(out, None) };
    writer.check()?;
    if !is_shared {
        purchases::check_report(&session.ledger, out, &other.key, &[], &other.history).await?;
    }
    let reporter = Reporter {
        face_reviews_usd: Usd::ZERO,
        key: other.key.clone(),
        moves: Vec::new(),
        jobs: Arc::clone(&other.jobs),
        ledger: session.ledger.clone(),
        out: out.to_path_buf(),
        writer,
    };
    let reported = reporter.write().await?;
    if reported.written.is_ok() && !is_shared {
        unmark_unreported(out);
    }
    Ok(reported)
}

/// The submitted jobs of a batch in manifest order, then the removed jobs. A job without a submission is included if the report of the batch has
/// it.
fn jobs(session: &Session, key: &BatchKey, history: &History, out: &Path) -> Vec<Arc<Job>> {
    let mut bought: HashMap<&JobId, &Attempt> = HashMap::new();
    for attempt in history.attempts() {
        bought.insert(attempt.job(), attempt);
    }
    let reported: HashSet<String> = earlier_jobs(out, key).into_iter().map(|job| job.id).collect();
    let today = session.manifest.jobs.iter().filter_map(|job| match bought.remove(job.id()) {
        Some(attempt) => Some(Arc::new(Job::as_bought(&attempt.purchase, Some(job)))),
        None => reported.contains(job.id().as_str()).then(|| Arc::clone(job)),
    });
    let mut jobs: Vec<Arc<Job>> = today.collect();
    let mut gone: Vec<&Attempt> = bought.into_values().collect();
    gone.sort_by_key(|attempt| attempt.id);
    jobs.extend(gone.into_iter().map(|attempt| Arc::new(Job::as_bought(&attempt.purchase, None))));
    jobs
}
