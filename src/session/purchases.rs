//! The plan of a session, with the earlier purchases of due jobs in other batches and in reports.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::options::DefaultPaths;
use super::refusal::{Refusal, UnknownPurchases};
use super::start::{self, Session};
use crate::domain::{
    Attempt, BatchKey, Fingerprint, History, Job, JobId, Move, OpenElsewhere, Request, TaskId, VideoFile,
};
use crate::download::is_whole;
use crate::ledger::{BoughtElsewhere, Ledger, Unavailable, this_machine};
use crate::plan::{AlreadyPaid, Before, Plan, PlanInput, Planned};
use crate::report::{EarlierJob, JSON_REPORT, earlier_jobs};

/// Adds due jobs that other batches or earlier reports have paid for. Skips retries, which the user requested, and the simulator, which charges
/// nothing.
pub(super) async fn add_already_paid(session: &Session, plan: &mut Plan, history: &History) -> Result<(), Unavailable> {
    if session.ledger.is_simulated() {
        return Ok(());
    }
    let Session { ledger, options, manifest, .. } = session;
    let due = plan.jobs.iter_mut().filter(|planned| planned.action.buys() && !planned.action.repeats());
    let mut due: Vec<&mut Planned> = due.collect();
    if due.is_empty() {
        return Ok(());
    }
    let jobs: Vec<Arc<Job>> = due.iter().map(|planned| Arc::clone(&planned.job)).collect();
    let requests = move || jobs.iter().map(|job| Request::normalized(&job.spec)).collect();
    let elsewhere = ledger.bought_elsewhere(&plan.key, requests).await?;
    let elsewhere: HashMap<&Fingerprint, &BoughtElsewhere> =
        elsewhere.iter().map(|bought| (&bought.attempt.normalized, bought)).collect();
    // Takes may share a request: more takes than purchases are new.
    let mut unmatched: HashMap<&Fingerprint, u32> =
        elsewhere.iter().map(|(request, bought)| (*request, bought.jobs)).collect();
    let mut questioned: HashSet<JobId> = plan.already_paid.iter().map(|before| before.job.clone()).collect();
    for planned in &mut due {
        planned.paid_elsewhere = Some(0);
        if elsewhere.is_empty() {
            continue;
        }
        let Some((request, bought)) = elsewhere.get_key_value(&Request::normalized(&planned.job.spec)) else {
            continue;
        };
        planned.paid_elsewhere = Some(bought.attempts);
        let (job, unmatched) = (planned.job.id(), unmatched.entry(request).or_default());
        if *unmatched > 0 && questioned.insert(job.clone()) {
            *unmatched -= 1;
            plan.already_paid.push(bought_in_another_batch(&options.home, &plan.key, &planned.job, bought));
        }
    }
    let reported = reported(&options.out, &manifest.key, &manifest.moves, history);
    let unquestioned = due.iter().filter(|planned| !questioned.contains(planned.job.id()));
    let jobs: Vec<&Job> = unquestioned.map(|planned| &*planned.job).collect();
    let matched = matched(&reported, &jobs, &manifest.moves);
    plan.already_paid.extend(matched.into_iter().map(|(job, row)| by_report(&options.out, job.id(), row)));
    Ok(())
}

/// The row of a report for each job: by its ID, or else by its request, if no other job has the ID of that row.
fn matched<'j, 'r>(reported: &'r [EarlierJob], jobs: &[&'j Job], moves: &[Move]) -> Vec<(&'j Job, &'r EarlierJob)> {
    let of_row = |row: &EarlierJob| JobId::new(&*row.id).ok().map(|job| moved_to(moves, job));
    let named = LazyCell::new(|| jobs.iter().map(|job| job.id()).collect::<HashSet<&JobId>>());
    let mut by_job: HashMap<JobId, &EarlierJob> = HashMap::new();
    let mut by_request: HashMap<&Fingerprint, Vec<&EarlierJob>> = HashMap::new();
    for row in reported {
        match (of_row(row).filter(|job| named.contains(job)), &row.purchase) {
            (Some(job), _) => _ = by_job.insert(job, row),
            (None, Some(purchase)) => by_request.entry(&purchase.normalized).or_default().push(row),
            (None, None) => {}
        }
    }
    let mut row = |job: &Job| {
        if let Some(row) = by_job.get(job.id()) {
            return Some(*row);
        }
        // Normalizing takes longer than reading a job.
        if by_request.is_empty() { None } else { by_request.get_mut(&Request::normalized(&job.spec))?.pop() }
    };
    jobs.iter().filter_map(|job| Some((*job, row(job)?))).collect()
}

fn bought_in_another_batch(home: &DefaultPaths, own: &BatchKey, job: &Job, bought: &BoughtElsewhere) -> AlreadyPaid {
    let BoughtElsewhere { batch, attempt, .. } = bought;
    let file = attempt.file.as_ref().and_then(|file| Some(home.out(batch).ok()?.join(file.path.as_str())));
    let file = file.filter(|path| path.exists()).map(|path| path.display().to_string());
    let before = if own.name == batch.name { Before::OtherBatch } else { Before::OtherName };
    let video = file.or_else(|| attempt.video_url.clone());
    AlreadyPaid { video, ..AlreadyPaid::from_attempt(job, before(batch.clone(), attempt.job().clone()), attempt) }
}

/// The jobs of an earlier report that are paid for or in doubt, without such an attempt in the ledger. A task under another job in the ledger
/// counts: one of the two is wrong.
fn reported(out: &Path, key: &BatchKey, moves: &[Move], history: &History) -> Vec<EarlierJob> {
    let rows = earlier_jobs(out, key);
    // Also under the first ID of a moved job.
    let moved = history.attempts().filter_map(|attempt| Some((attempt.particulars.bought_as.as_deref()?, attempt)));
    let moved: Vec<(&JobId, &Attempt)> = moved.collect();
    let attempts = |row: &EarlierJob| {
        let before = moved.iter().filter(|(id, _)| id.as_str() == row.id).map(|(_, attempt)| *attempt);
        JobId::new(row.id.as_str())
            .map(|job| history.attempts_of(&moved_to(moves, job)).chain(before).collect::<Vec<_>>())
    };
    let is_unknown = |row: &EarlierJob| {
        let Ok(attempts) = attempts(row) else { return false };
        match task(row) {
            Some(task) => !attempts.iter().any(|attempt| attempt.task.as_ref().is_some_and(|names| names.has(&task))),
            // A job in doubt has no task. Any attempt in the ledger is better evidence.
            None => row.state == "in_doubt" && attempts.is_empty(),
        }
    };
    rows.into_iter().filter(is_unknown).collect()
}

/// The current ID of a job with this earlier ID.
pub(super) fn moved_to(moves: &[Move], id: JobId) -> JobId {
    moves.iter().fold(id, |id, a_move| if a_move.from == id { a_move.to.clone() } else { id })
}

/// Refuses to replace the report in a directory if it has purchases that the ledger doesn't: it may be their only record.
pub(super) async fn check_report(
    ledger: &Ledger,
    out: &Path,
    key: &BatchKey,
    moves: &[Move],
    history: &History,
) -> Result<(), Refusal> {
    if ledger.is_simulated() || reported(out, key, moves, history).is_empty() {
        return Ok(());
    }
    // A runner whose lease expired may have recorded responses, and written its report, since the history was read.
    let unknown = reported(out, key, moves, &ledger.history(key).await?.moved(moves)?).len();
    if unknown == 0 { Ok(()) } else { Err(UnknownPurchases { report: out.join(JSON_REPORT), jobs: unknown }.into()) }
}

fn task(row: &EarlierJob) -> Option<TaskId> {
    TaskId::new(row.task_id.as_deref()?)
}

fn by_report(out: &Path, job: &JobId, row: &EarlierJob) -> AlreadyPaid {
    let file = row.file.as_ref().map(|file| out.join(file)).filter(|path| path.exists());
    AlreadyPaid {
        job: job.clone(),
        before: Before::Reported(out.join(JSON_REPORT)),
        state: row.state.clone(),
        price: row.cost_usd,
        task: task(row),
        video: file.map(|path| path.display().to_string()).or_else(|| row.video_url.clone()),
    }
}

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
    let limits = start::with_what_is_used(session, &controls).await?;
    // A video that another machine downloaded stays there, unless this run fetches all.
    let is_theirs = |attempt: &Attempt| match &attempt.particulars.fetched_by {
        Some(machine) => session.ledger.is_shared() && !options.fetches_only && &**machine != this_machine(),
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
            run_limit: start::of_the_run(options, &manifest.budget),
            limits,
            concurrency: options.settings.concurrency,
            retries: options.redo.retries,
            retry_failed: options.redo.retry_failed,
            retake: &options.redo.retake,
            approved: options.approved.as_ref(),
            sample: options.sample,
            is_here: options.downloads.then_some(&is_here),
        },
    );
    if options.fetches_only {
        plan.only_fetch();
    }
    plan.inputs.clone_from(&manifest.inputs);
    plan.rows_left_out.clone_from(&manifest.rows_left_out);
    plan.prices = manifest.prices;
    plan.frozen = controls.freeze;
    add_already_paid(session, &mut plan, history).await?;
    plan.on_trial = on_trial(session, &plan).await?;
    let open = session.ledger.open_elsewhere(&manifest.key).await?;
    plan.elsewhere = if options.finishes_other_batches { open_elsewhere(&open, options.downloads) } else { Vec::new() };
    Ok((plan, open))
}

/// The models of due jobs with a mismatch of the newest delivery, each with that.
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

/// The open work of other batches, with or without downloads.
pub(super) fn open_elsewhere(open: &[OpenElsewhere], fetches: bool) -> Vec<OpenElsewhere> {
    let unfetched = |open: &OpenElsewhere| if fetches { open.unfetched } else { 0 };
    let shown = open.iter().map(|open| OpenElsewhere { unfetched: unfetched(open), ..open.clone() });
    shown.filter(|other| other.active + other.doubtful + other.unfetched > 0).collect()
}
