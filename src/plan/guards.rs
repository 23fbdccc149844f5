//! Guards against buying again within a batch: due jobs whose request was paid for under their own ID or another one.
//!
//! # Guarantees
//!
//! - A due job is reported if the batch has paid for its request under another ID whose job has changed or is gone. Requests are compared exactly
//!   and normalized.
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
    let due: Vec<Due<'_>> = due.filter(|_| !paid.is_empty()).map(Due::new).collect();
    if due.is_empty() {
        return Vec::new();
    }
    let mut found: HashMap<&JobId, AlreadyPaid> =
        due.iter().filter_map(|due| Some((due.job.id(), under_own_id(due, given)?))).collect();
    let asked = Asked::new(given);
    let mut explained = HashSet::new();
    for form in [Form::Exact, Form::Normalized] {
        let mut pool = Pool::new(&paid, &asked, form, &explained);
        for due in &due {
            if !found.contains_key(due.job.id())
                && let Some(attempt) = pool.take(due.fingerprint(form))
            {
                explained.insert(attempt.id);
                let before = if asked.has(attempt.job()) { Before::Changed } else { Before::Gone };
                found.insert(due.job.id(), AlreadyPaid::from_attempt(due.job, before(attempt.job().clone()), attempt));
            }
        }
    }
    due.iter().filter_map(|due| found.remove(due.job.id())).collect()
}

/// The comparison of two requests.
#[derive(Clone, Copy)]
enum Form {
    Exact,
    Normalized,
}

/// A due job with its normalized request.
struct Due<'p> {
    job: &'p Job,
    normalized: Fingerprint,
}

impl<'p> Due<'p> {
    fn new(planned: &'p Planned) -> Self {
        Self { job: &planned.job, normalized: Request::normalized(&planned.job.spec) }
    }

    fn fingerprint(&self, form: Form) -> &Fingerprint {
        match form {
            Form::Exact => self.job.purchase.fingerprint(),
            Form::Normalized => &self.normalized,
        }
    }
}

/// The purchase of the job under its own ID with an equal normalized request, unless it is due for a retake.
fn under_own_id(due: &Due<'_>, given: &PlanInput<'_>) -> Option<AlreadyPaid> {
    let is_same = |attempt: &&Attempt| attempt.charge() != Charge::None && attempt.normalized == due.normalized;
    let paid = given.history.attempts_of(due.job.id()).rev().find(is_same)?;
    let takes = Takes::new(paid.purchase.fingerprint(), given.history.attempts_of(due.job.id()));
    let choice = takes.and_then(|takes| takes.choice);
    let is_wanted = given.retake_of(due.job.id()).is_about(paid, choice);
    (!is_wanted).then(|| AlreadyPaid::from_attempt(due.job, Before::Respelled, paid))
}

/// The current request of each job of the manifest, selected or not.
struct Asked<'g> {
    jobs: HashMap<&'g JobId, &'g Job>,
    is_in_manifest: &'g dyn Fn(&JobId) -> bool,
}

impl<'g> Asked<'g> {
    fn new(given: &PlanInput<'g>) -> Self {
        let jobs = given.manifest.iter().map(|job| (job.id(), &**job)).collect();
        Self { jobs, is_in_manifest: given.is_in_manifest }
    }

    /// Returns whether the manifest has a job of this ID, with or without an error.
    fn has(&self, id: &JobId) -> bool {
        (self.is_in_manifest)(id)
    }

    /// Returns whether the job of an attempt still has the request. A job with an error has another one.
    fn still_wants(&self, attempt: &Attempt, form: Form) -> bool {
        self.jobs.get(attempt.job()).is_some_and(|job| match form {
            _ if job.purchase.fingerprint() == attempt.purchase.fingerprint() => true,
            Form::Exact => false,
            Form::Normalized => Request::normalized(&job.spec) == attempt.normalized,
        })
    }
}

/// Purchases of changed or removed jobs: by request, the IDs in order, each with its newest attempt.
struct Pool<'h>(HashMap<&'h Fingerprint, BTreeMap<&'h JobId, &'h Attempt>>);

impl<'h> Pool<'h> {
    fn new(paid: &[&'h Attempt], asked: &Asked<'_>, form: Form, explained: &HashSet<AttemptId>) -> Self {
        let mut pool: HashMap<&Fingerprint, BTreeMap<&JobId, &Attempt>> = HashMap::new();
        for attempt in paid.iter().filter(|attempt| !asked.still_wants(attempt, form)) {
            let request = match form {
                Form::Exact => attempt.purchase.fingerprint(),
                Form::Normalized => &attempt.normalized,
            };
            pool.entry(request).or_default().insert(attempt.job(), attempt);
        }
        // After the newest attempts are known: an older attempt of a job must not match a second due job.
        for ids in pool.values_mut() {
            ids.retain(|_, attempt| !explained.contains(&attempt.id));
        }
        Self(pool)
    }

    /// Removes one purchase of a request, and returns it.
    fn take(&mut self, request: &Fingerprint) -> Option<&'h Attempt> {
        self.0.get_mut(request)?.pop_first().map(|(_, attempt)| attempt)
    }
}
