//! Looks whether what a run would buy was bought before: under another name of the ledger, or by a report whose ledger
//! is not there.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::home::Home;
use super::refusal::Refusal;
use super::start::Session;
use crate::domain::{Attempt, BatchKey, Charge, Fingerprint, History, JobId, TaskId};
use crate::ledger::{BoughtElsewhere, Ledger, Unavailable};
use crate::plan::{Action, Before, Plan, Repurchase};
use crate::report::{EarlierJob, earlier_jobs, set_aside};

/// The jobs of a plan that were bought before. What a person asked to buy again is not among them, and neither is what the
/// simulator would make: that costs nothing.
pub(super) async fn bought_before<L: Ledger>(
    session: &Session<L>,
    plan: &Plan,
    history: &History,
) -> Result<Vec<Repurchase>, Unavailable> {
    let due = || plan.jobs.iter().filter(|planned| planned.action.buys() && planned.action != Action::Retry);
    if session.ledger.is_simulated() || due().next().is_none() {
        return Ok(Vec::new());
    }
    let requests = due().map(|planned| planned.job.request.fingerprint().clone()).collect();
    let elsewhere = session.ledger.bought_under_other_names(&plan.key.name, requests).await?;
    let elsewhere: HashMap<&Fingerprint, &BoughtElsewhere> =
        elsewhere.iter().map(|bought| (&bought.attempt.fingerprint, bought)).collect();
    // Takes ask for the same, too: those that go beyond what was bought are new.
    let mut left: HashMap<&Fingerprint, u32> =
        elsewhere.iter().map(|(request, bought)| (*request, bought.jobs)).collect();
    let known_from_ledger = due().filter_map(|planned| {
        let request = planned.job.request.fingerprint();
        let left = left.get_mut(request).filter(|left| **left > 0)?;
        *left -= 1;
        Some((&planned.job.id, *elsewhere.get(request)?))
    });
    let renamed: HashSet<&JobId> = plan.repurchases.iter().map(|before| &before.job).collect();
    let known_from_ledger = known_from_ledger.filter(|(job, _)| !renamed.contains(job));
    let mut found: Vec<Repurchase> =
        known_from_ledger.map(|(job, bought)| under_another_name(&session.options.home, job, bought)).collect();

    let Session { ledger, options, manifest, .. } = session;
    let reported = reported(ledger, &options.out, &manifest.key, history).await?;
    let reported: HashMap<&str, &EarlierJob> = reported.iter().map(|row| (row.id.as_str(), row)).collect();
    let told: HashSet<JobId> = plan.repurchases.iter().chain(&found).map(|before| before.job.clone()).collect();
    let unknown = due().filter(|planned| !told.contains(&planned.job.id));
    let unknown: Vec<Repurchase> = unknown
        .filter_map(|planned| {
            Some(by_report(&session.options.out, &planned.job.id, reported.get(planned.job.id.as_str())?))
        })
        .collect();
    found.extend(unknown);
    Ok(found)
}

fn under_another_name(home: &Home, job: &JobId, bought: &BoughtElsewhere) -> Repurchase {
    let BoughtElsewhere { batch, attempt, .. } = bought;
    let file = attempt.file.as_ref().and_then(|file| Some(home.out(batch).ok()?.join(file.path.as_str())));
    let file = file.filter(|path| path.exists()).map(|path| path.display().to_string());
    Repurchase {
        job: job.clone(),
        before: Before::OtherName(batch.clone(), attempt.job.clone()),
        state: attempt.state.name().to_owned(),
        price: Some(attempt.price),
        task: attempt.task.as_ref().map(|task| task.id.clone()),
        video: file.or_else(|| attempt.video_url.clone()),
    }
}

/// The jobs of an earlier report in the folder that it calls bought, or perhaps, and of which the ledger knows nothing.
async fn reported<L: Ledger>(
    ledger: &L,
    out: &Path,
    key: &BatchKey,
    history: &History,
) -> Result<Vec<EarlierJob>, Unavailable> {
    let rows = earlier_jobs(out, key);
    let known = ledger.known_tasks(rows.iter().filter_map(task).collect()).await?;
    // Also under an id that the job had when its report was written.
    let moved = history.attempts().filter_map(|attempt| Some((attempt.particulars.bought_as.as_deref()?, attempt)));
    let moved: Vec<(&JobId, &Attempt)> = moved.collect();
    let attempts = |row: &EarlierJob| {
        let before = moved.iter().filter(|(id, _)| id.as_str() == row.id).map(|(_, attempt)| *attempt);
        JobId::new(row.id.as_str()).map(|job| history.of(&job).chain(before).collect::<Vec<_>>())
    };
    let is_unknown = |row: &EarlierJob| {
        let Ok(attempts) = attempts(row) else { return false };
        match task(row) {
            // Set aside, it stays after it was knowingly bought again with this ledger.
            Some(_) if row.is_set_aside && attempts.iter().any(|attempt| attempt.charge() != Charge::None) => false,
            Some(task) => !known.contains(&task),
            // One in doubt has no task. Where the ledger has any attempt of the job, it knows better.
            None => row.state == "in_doubt" && attempts.is_empty(),
        }
    };
    Ok(rows.into_iter().filter(is_unknown).collect())
}

/// Sets aside what only the report knows, which is about to be written anew from the ledger.
pub(super) async fn keep_what_only_the_report_knows<L: Ledger>(
    ledger: &L,
    out: &Path,
    key: &BatchKey,
    history: &History,
) -> Result<(), Refusal> {
    if ledger.is_simulated() {
        return Ok(());
    }
    let mut seen = HashSet::new();
    let mut rows = reported(ledger, out, key, history).await?;
    rows.retain(|row| seen.insert((row.id.clone(), row.task_id.clone())));
    if rows.is_empty() {
        return Ok(());
    }
    set_aside(out, key, rows).map_err(|error| Refusal::Files(Box::new(error)))
}

fn task(row: &EarlierJob) -> Option<TaskId> {
    TaskId::new(row.task_id.as_deref()?)
}

fn by_report(out: &Path, job: &JobId, row: &EarlierJob) -> Repurchase {
    let file = row.file.as_ref().map(|file| out.join(file)).filter(|path| path.exists());
    Repurchase {
        job: job.clone(),
        before: Before::Reported(out.join("report.json")),
        state: row.state.clone(),
        price: row.cost_usd,
        task: task(row),
        video: file.map(|path| path.display().to_string()).or_else(|| row.video_url.clone()),
    }
}
