//! The plan of a run: every selected job with its action, its reason, and its price.
//!
//! `--sample` keeps the same N due jobs each time, spread over models and shapes. The next run continues from them.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::civil::Date;
use sha2::{Digest as _, Sha256};

use super::approval::{Approved, Bought, Estimate, Totals, digest};
use super::decide::{Action, Redo, decide};
use super::downloads::DownloadPlan;
use super::guards;
use super::input::{AlreadyPaid, Limit, PlanInput, Planned, Previous, UntilKept};
use super::retake::Retake;
use crate::domain::{
    Account, Attempt, AttemptId, BatchKey, Charge, Choice, Digest, Freeze, Job, JobChoice, JobId, OpenElsewhere,
    Reviewed, Takes, UnfinishedRetake, Usd,
};

/// The work of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name and batch of the jobs.
    pub key: BatchKey,
    /// True if the simulator plays the service, so nothing is paid.
    pub is_simulated: bool,
    /// The selected jobs, in manifest order.
    pub jobs: Vec<Planned>,
    /// Active tasks without a selected job: the job was changed or removed since. They are polled to their end, because they are paid.
    pub collect: Vec<Attempt>,
    /// Active tasks of selected jobs.
    pub resume: Vec<Attempt>,
    /// Due jobs that were probably bought before: under another ID in this batch, in another batch of the ledger, or in an earlier report.
    pub already_paid: Vec<AlreadyPaid>,
    /// The spend limit of this run, if any.
    pub run_limit: Option<Limit>,
    /// Limits over all batches.
    pub limits: Vec<Limit>,
    /// The number of paid retries of a job whose task fails.
    pub retries: u32,
    /// The newest attempt in the plan's history. A newer one is of another runner.
    pub newest: Option<AttemptId>,
    /// The expected time and polls.
    pub estimate: Estimate,
    /// The videos to download and their paths, or `None` if videos stay at their URLs.
    pub downloads: Option<DownloadPlan>,
    /// The files that the manifest reads.
    pub inputs: Vec<String>,
    /// The rows that became no jobs, a sentence for each file.
    pub rows_left_out: Vec<String>,
    /// The day of the catalog's prices, and their age in days.
    pub prices: (Date, i32),
    digest: Digest,
    /// The freeze, if purchases are frozen in the ledger.
    pub frozen: Option<Freeze>,
    /// An unfinished retake of an earlier run, which the patterns of this run would replace.
    pub unfinished_retake: Option<UnfinishedRetake>,
    /// The recorded choices that reviews of this run replace.
    pub replaced_choices: Vec<(JobId, Reviewed)>,
    /// Models that begin with one job in flight, each with the fault of its newest delivery.
    pub on_trial: Vec<(String, String)>,
    /// The open work of other batches of the same name.
    pub elsewhere: Vec<OpenElsewhere>,
    /// Due jobs that are left for another run.
    pub left_out: Vec<JobId>,
    /// The active tasks that belong to other batches.
    pub others: HashSet<AttemptId>,
}

impl Plan {
    /// Returns the first job to submit whose request contains a secret.
    pub fn job_with_secret(&self, has_secret: impl Fn(&str) -> bool) -> Option<&JobId> {
        let due = self.jobs.iter().filter(|planned| planned.action.buys());
        due.map(|planned| &planned.job).find(|job| has_secret(job.purchase.request.body())).map(|job| job.id())
    }

    /// Plans the selected jobs against the ledger. The caller adds the facts of the manifest and of other batches.
    pub fn new(selected: &[Arc<Job>], given: PlanInput<'_>) -> Self {
        let mut jobs: Vec<Planned> = selected.iter().map(|job| plan_job(job, &given)).collect();
        let mut left_out = leave_out_others(&mut jobs, &given);
        left_out.extend(given.sample.into_iter().flat_map(|number| keep_sample(&mut jobs, number)));
        let resumed = jobs.iter().filter(|planned| planned.action == Action::Resume);
        let resumed: HashSet<AttemptId> = resumed.filter_map(|planned| planned.attempt).collect();
        // Most of many jobs have no attempt, and need no question.
        let chosen = LazyCell::new(|| selected.iter().map(|job| job.id()).collect::<HashSet<&JobId>>());
        let ours = |attempt: &&Attempt| chosen.contains(attempt.job()) || !(given.is_in_manifest)(attempt.job());
        let active = given.history.attempts().filter(|attempt| attempt.state.is_active()).filter(ours).cloned();
        let (resume, collect): (Vec<_>, Vec<_>) = active.partition(|attempt| resumed.contains(&attempt.id));
        let due: Vec<(u32, u32)> =
            jobs.iter().filter(|planned| planned.action.buys()).map(|planned| planned.job.purchase.typical_s).collect();
        let digest = digest(&given.key, given.retries, &bought(&jobs, &given));
        let estimate = Estimate::new(&due, resume.len() + collect.len(), given.concurrency);
        let already_paid = guards::already_paid(&jobs, &given);
        let is_left_out = |id: &JobId| (given.is_in_manifest)(id) && !chosen.contains(id);
        let downloads = given
            .is_here
            .map(|is_here| DownloadPlan::new(&jobs, given.history, [&resume, &collect], is_left_out, is_here));
        if let Some(downloads) = &downloads {
            fetch_what_is_missing(&mut jobs, downloads);
        }
        let newest = given.history.attempts().map(|attempt| attempt.id).max();
        let PlanInput { key, is_simulated, run_limit, limits, retries, .. } = given;
        Self {
            key,
            is_simulated,
            jobs,
            collect,
            resume,
            already_paid,
            run_limit,
            limits,
            retries,
            newest,
            estimate,
            downloads,
            inputs: Vec::new(),
            rows_left_out: Vec::new(),
            prices: (Date::default(), 0),
            digest,
            frozen: None,
            replaced_choices: given.history.replaced.clone(),
            unfinished_retake: given.retake.replaced(given.history.retake()).cloned(),
            on_trial: Vec::new(),
            elsewhere: Vec::new(),
            others: HashSet::new(),
            left_out,
        }
    }

    /// The digest of all purchases, which an approval names.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Counts and sums.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { jobs: self.jobs.len(), left_out: self.left_out.len(), ..Totals::default() };
        for planned in &self.jobs {
            *match planned.action {
                Action::Submit | Action::Changed | Action::Retry | Action::Retake => &mut totals.submit,
                Action::Resume => &mut totals.resume,
                // A completed job is done, with or without its video here.
                Action::Done | Action::Stale | Action::Fetch => &mut totals.done,
                Action::Hold => &mut totals.held,
                Action::Failed => &mut totals.failed,
                Action::InDoubt => &mut totals.in_doubt,
            } += 1;
            totals.cost_usd += planned.cost;
            totals.at_risk_usd += planned.at_risk;
        }
        totals.worst_case_usd = totals.cost_usd * (self.retries + 1);
        totals.fetch = self.downloads.as_ref().map_or(0, |downloads| downloads.missing.len());
        let held = self.jobs.iter().filter(|planned| planned.action == Action::Hold);
        let reviews: HashSet<&str> = HashSet::new();
        let fees = held
            .filter_map(|planned| planned.job.review.as_ref())
            .scan(reviews, |seen, review| Some(if seen.insert(&review.face) { review.fee } else { Usd::ZERO }));
        totals.face_reviews_usd = fees.sum();
        totals
    }

    /// The maximum cost of the run: each submission with all of its paid retries.
    pub fn worst_case(&self) -> Usd {
        self.totals().worst_case_usd
    }

    /// The maximum cost of the run within its own limit.
    pub fn most(&self) -> Usd {
        let most = self.worst_case();
        self.run_limit.as_ref().map_or(most, |limit| most.min(limit.left()))
    }

    /// The limits that the planned submissions would exceed. Retries don't count, because they stop at a limit.
    pub fn passed_limits(&self) -> impl Iterator<Item = &Limit> {
        self.every_limit().filter(|limit| self.cost_under(limit) > limit.left())
    }

    /// The price of the submissions to which a limit applies.
    pub fn cost_under(&self, limit: &Limit) -> Usd {
        self.jobs.iter().filter(|planned| limit.is_about(&planned.job)).map(|planned| planned.cost).sum()
    }

    /// All spend limits.
    pub fn every_limit(&self) -> impl Iterator<Item = &Limit> {
        self.run_limit.iter().chain(&self.limits)
    }

    /// Returns whether the plan keeps all limits.
    pub fn is_within_limits(&self) -> bool {
        self.passed_limits().next().is_none()
    }

    /// The freeze, if the run has due jobs.
    pub fn freeze(&self) -> Option<&Freeze> {
        self.frozen.as_ref().filter(|_| self.buys())
    }

    /// Returns whether a job is due.
    pub fn buys(&self) -> bool {
        self.jobs.iter().any(|planned| planned.action.buys())
    }

    /// The number of due jobs with a local image.
    pub fn local_images(&self) -> usize {
        self.jobs.iter().filter(|planned| planned.action.buys() && !planned.job.spec.local_images.is_empty()).count()
    }

    /// The price of all jobs that were probably bought before.
    pub fn already_paid_cost(&self) -> Usd {
        let again: HashSet<&JobId> = self.already_paid.iter().map(|before| &before.job).collect();
        self.jobs.iter().filter(|planned| again.contains(planned.job.id())).map(|planned| planned.cost).sum()
    }

    /// Jobs whose next take waits for a choice, and the price of all takes that later runs may buy until one of each job is kept.
    pub fn until_kept(&self) -> (Vec<&JobId>, Usd) {
        let each = || self.jobs.iter().filter_map(|planned| Some((planned.job.id(), planned.until_kept?)));
        (
            each().filter(|(_, until)| until.waits).map(|(id, _)| id).collect(),
            each().map(|(_, until)| until.later).sum(),
        )
    }

    /// Returns whether the run sends any request to the service.
    pub fn needs_service(&self) -> bool {
        self.asks_about_tasks() || self.totals().fetch > 0
    }

    /// Returns whether the run submits or polls, besides downloading missing videos.
    pub fn asks_about_tasks(&self) -> bool {
        self.active_tasks().next().is_some() || self.buys()
    }

    /// The tasks that the run polls.
    pub fn active_tasks(&self) -> impl Iterator<Item = &Attempt> {
        self.resume.iter().chain(&self.collect)
    }

    /// Assigns the tasks of earlier runs to this account, after a key rotation.
    pub fn reassign(&mut self, account: &Account) {
        for attempt in self.resume.iter_mut().chain(&mut self.collect) {
            attempt.account = account.clone();
        }
        for download in self.downloads.iter_mut().flat_map(|downloads| &mut downloads.missing) {
            download.account = account.clone();
        }
    }
}

/// The action for a completed job without its video here.
fn fetch_what_is_missing(jobs: &mut [Planned], downloads: &DownloadPlan) {
    let missing: HashSet<AttemptId> = downloads.missing.iter().map(|download| download.attempt).collect();
    let done = jobs.iter_mut().filter(|planned| planned.action == Action::Done);
    for planned in done.filter(|planned| planned.attempt.is_some_and(|attempt| missing.contains(&attempt))) {
        planned.action = Action::Fetch;
        planned.reason = "is completed, but its video is missing here".into();
    }
}

fn plan_job(job: &Arc<Job>, given: &PlanInput<'_>) -> Planned {
    let attempts: Vec<&Attempt> = given.history.attempts_of(job.id()).collect();
    let has_all_takes = job.up_to.is_some() && takes_left(job, &attempts) == 0;
    let retake = match given.retake_of(job.id()) {
        Retake::No if takes_left(job, &attempts) > 0 => Retake::Recorded,
        asked => asked,
    };
    let redo = Redo { retry_failed: given.retry_failed, retake, has_all_takes };
    let before = before_approval(&attempts, given.approved);
    let is_bought_already = attempts.iter().any(|attempt| !attempt.state.made_no_task() && !before.contains(attempt));
    let wished = decide(job, attempts.iter().copied(), redo);
    let retaken = decide(job, attempts.iter().copied(), Redo { retry_failed: false, ..redo }).action;
    let spent_choice = wished.spent_choice;
    // The approval covers its own purchases.
    let decision =
        if is_bought_already { decide(job, attempts.iter().copied(), Redo::default()) } else { wished.clone() };
    let approved = if is_bought_already { decide(job, before.iter().copied(), redo).action } else { decision.action };
    let until_kept = until_kept(job, &attempts, decision.action);
    let doubtful = attempts.iter().filter(|attempt| attempt.state.is_doubtful());
    let is_repeated = decision.action == Action::Changed || decision.action.repeats();
    let followed = attempts.iter().filter(|attempt| is_repeated && Some(attempt.id) == decision.attempt);
    let previous = followed.map(|attempt| Box::new(previous(attempt))).next();
    Planned {
        job: Arc::clone(job),
        until_kept,
        spent_choice,
        action: decision.action,
        reason: decision.reason,
        attempt: decision.attempt,
        cost: if decision.action.buys() { job.purchase.price } else { Usd::ZERO },
        at_risk: doubtful.map(|attempt| attempt.purchase.price).sum(),
        earlier: before.iter().filter(|attempt| attempt.counts_as_submission()).count(),
        is_to_be_approved: approved.buys(),
        paid_elsewhere: None,
        previous,
        is_uncovered: is_bought_already && !approved.repeats() && retaken == Action::Retake,
    }
}

fn previous(attempt: &Attempt) -> Previous {
    let reviews = attempt.particulars.reviews.iter().map(|reviewed| &reviewed.review);
    let notes = reviews.filter(|review| review.choice == Some(Choice::Retake) && !review.note.is_empty());
    Previous {
        request: attempt.purchase.request.body().to_owned(),
        notes: notes.map(|review| format!("{}: {}", review.by, review.note)).collect(),
    }
}

/// Removes due jobs that a retake leaves for another run, and returns their IDs.
fn leave_out_others(jobs: &mut Vec<Planned>, given: &PlanInput<'_>) -> Vec<JobId> {
    let is_left = |planned: &mut Planned| {
        planned.is_to_be_approved
            && given.retake.leaves_out(planned.job.id(), &given.history.attempts_of(planned.job.id()))
    };
    jobs.extract_if(.., is_left).map(|planned| planned.job.id().clone()).collect()
}

/// The number of takes that may still be bought until one is kept. A charge counts, with or without a video.
fn takes_left(job: &Job, attempts: &[&Attempt]) -> u32 {
    let fingerprint = job.fingerprint_among(attempts.iter().copied());
    let is_bought = |it: &&&Attempt| it.charge() != Charge::None && *it.purchase.fingerprint() == fingerprint;
    let bought = attempts.iter().filter(is_bought).count();
    job.up_to.unwrap_or(0).saturating_sub(u32::try_from(bought).unwrap_or(u32::MAX))
}

fn until_kept(job: &Job, attempts: &[&Attempt], action: Action) -> Option<UntilKept> {
    job.up_to?;
    let takes = Takes::for_job(job, attempts.iter().copied());
    let choice = takes.and_then(|takes| takes.choice);
    let more = takes_left(job, attempts).saturating_sub(u32::from(action.buys()));
    let left = if matches!(choice, Some(JobChoice::Keep)) { 0 } else { more };
    let waits =
        left > 0 && takes.is_some() && matches!(choice, None | Some(JobChoice::Conflict)) && action == Action::Done;
    Some(UntilKept { waits, later: job.purchase.price * left })
}

/// The attempts of a job before the approval.
fn before_approval<'h>(attempts: &[&'h Attempt], approved: Option<&Approved>) -> Vec<&'h Attempt> {
    let is_part = |attempt: &Attempt| approved.is_some_and(|approved| approved.covers(attempt));
    attempts.iter().copied().filter(|attempt| !is_part(attempt)).collect()
}

/// The jobs that an approval covers.
fn bought<'p>(jobs: &'p [Planned], given: &PlanInput<'_>) -> Vec<Bought<'p>> {
    let covered = jobs.iter().filter(|planned| planned.is_to_be_approved).map(|planned| {
        let attempts: Vec<&Attempt> = given.history.attempts_of(planned.job.id()).collect();
        let before =
            before_approval(&attempts, given.approved).into_iter().filter(|attempt| attempt.counts_as_submission());
        (&*planned.job, before.map(|attempt| attempt.intended_at.as_microsecond()).collect())
    });
    covered.collect()
}

/// Keeps `number` due jobs of a plan, one of each model and shape in turn, in the order of a hash of their IDs. Returns the IDs of the others.
///
/// Jobs that were bought under the same approval count, too, so a restarted run has the same sample.
pub(super) fn keep_sample(jobs: &mut Vec<Planned>, number: usize) -> Vec<JobId> {
    let sample = sample(jobs.iter().filter(|planned| planned.is_to_be_approved), number);
    let is_left = |planned: &mut Planned| planned.is_to_be_approved && !sample.contains(planned.job.id());
    jobs.extract_if(.., is_left).map(|planned| planned.job.id().clone()).collect()
}

fn sample<'p>(due: impl Iterator<Item = &'p Planned>, number: usize) -> HashSet<JobId> {
    let mut by_kind: BTreeMap<(&str, bool), Vec<_>> = BTreeMap::new();
    for planned in due {
        let id = planned.job.id();
        let spec = &planned.job.spec;
        by_kind.entry((&spec.model, spec.is_upright())).or_default().push((Sha256::digest(id.as_str()).to_vec(), id));
    }
    let mut piles: Vec<_> = by_kind.into_values().collect();
    for pile in &mut piles {
        pile.sort_unstable_by(|one, other| other.cmp(one));
    }
    let mut sample = HashSet::new();
    while sample.len() < number && piles.iter().any(|pile| !pile.is_empty()) {
        for pile in &mut piles {
            if let Some((_, id)) = pile.pop().filter(|_| sample.len() < number) {
                sample.insert(id.clone());
            }
        }
    }
    sample
}
