//! Guards against buying again within a batch: due jobs with a request that was paid for under their own ID or another one.
//!
//! # Guarantees
//!
//! - A due job is reported if the batch has paid for its request under another ID, and the job of that ID has changed or is gone. Requests are compared
//!   exactly and normalized.
//! - The comparison includes unselected jobs, so a part of the plan reports the same purchases as the whole plan.
//! - One earlier purchase matches one due job. Further takes of its request are new.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::decide::Action;
use super::input::{AlreadyPaid, Before, PlanInput, Planned};
use crate::domain::{Attempt, AttemptId, Charge, Fingerprint, Job, JobId, Request, Takes};

/// The due jobs that the batch has probably paid for.
pub(super) fn already_paid(jobs: &[Planned], given: &PlanInput<'_>) -> Vec<AlreadyPaid> {
    let paid: Vec<&Attempt> = given.history.attempts().filter(|attempt| attempt.charge() != Charge::None).collect();
    let due = jobs.iter().filter(|planned| matches!(planned.action, Action::Submit | Action::Changed));
    // Most plans have no paid or no due jobs.
    let due = due.filter(|_| !paid.is_empty()).map(|planned| (&*planned.job, Request::normalized(&planned.job.spec)));
    let due: Vec<(&Job, Fingerprint)> = due.collect();
    if due.is_empty() {
        return Vec::new();
    }
    let under_own_id =
        due.iter().filter_map(|(job, normalized)| Some((job.id(), under_own_id(job, normalized, given)?)));
    let mut found: HashMap<&JobId, AlreadyPaid> = under_own_id.collect();
    let asked: HashMap<&JobId, &Job> = given.manifest.iter().map(|job| (job.id(), &**job)).collect();
    let mut explained = HashSet::new();
    for is_exact in [true, false] {
        let mut unwanted = unwanted(&paid, &asked, is_exact, &explained);
        for (job, normalized) in &due {
            let request = if is_exact { job.purchase.fingerprint() } else { normalized };
            if !found.contains_key(job.id())
                && let Some((id, attempt)) = unwanted.get_mut(request).and_then(BTreeMap::pop_first)
            {
                explained.insert(attempt.id);
                let before = if (given.is_in_manifest)(id) { Before::Changed } else { Before::Gone };
                found.insert(job.id(), AlreadyPaid::from_attempt(job, before(id.clone()), attempt));
            }
        }
    }
    due.iter().filter_map(|(job, _)| found.remove(job.id())).collect()
}

/// The purchase of the job under its own ID with an equal normalized request, unless it is due for a retake.
fn under_own_id(job: &Job, normalized: &Fingerprint, given: &PlanInput<'_>) -> Option<AlreadyPaid> {
    let is_same = |attempt: &&Attempt| attempt.charge() != Charge::None && attempt.normalized == *normalized;
    let paid = given.history.attempts_of(job.id()).rev().find(is_same)?;
    let takes = Takes::new(paid.purchase.fingerprint(), given.history.attempts_of(job.id()));
    let choice = takes.and_then(|takes| takes.choice);
    let is_wanted = given.retake_of(job.id()).is_about(paid, choice);
    (!is_wanted).then(|| AlreadyPaid::from_attempt(job, Before::Respelled, paid))
}

/// Purchases of changed or removed jobs: by request, exact or normalized, the IDs in order, each with its newest attempt. `asked` are the jobs of the
/// manifest, selected or not; a job with an error has another request.
fn unwanted<'h>(
    paid: &[&'h Attempt],
    asked: &HashMap<&JobId, &Job>,
    is_exact: bool,
    explained: &HashSet<AttemptId>,
) -> HashMap<&'h Fingerprint, BTreeMap<&'h JobId, &'h Attempt>> {
    let still_wants = |job: &Job, attempt: &Attempt| {
        job.purchase.fingerprint() == attempt.purchase.fingerprint()
            || !is_exact && Request::normalized(&job.spec) == attempt.normalized
    };
    let is_unwanted = |attempt: &&Attempt| !asked.get(attempt.job()).is_some_and(|job| still_wants(job, attempt));
    let mut unwanted: HashMap<_, BTreeMap<_, _>> = HashMap::new();
    for attempt in paid.iter().copied().filter(is_unwanted) {
        let request = if is_exact { attempt.purchase.fingerprint() } else { &attempt.normalized };
        unwanted.entry(request).or_default().insert(attempt.job(), attempt);
    }
    // After the newest attempts are known: an older attempt of a job must not match a second due job.
    for ids in unwanted.values_mut() {
        ids.retain(|_, attempt| !explained.contains(&attempt.id));
    }
    unwanted
}
