//! Jobs that are already paid for, as text: each earlier purchase once, with the jobs of the same request.

use indexmap::IndexMap;
use serde_json::Value;

use super::status::counted;
use crate::domain::BatchKey;
use crate::domain::count;
use crate::plan::{AlreadyPaid, Before, Elsewhere, Plan};
use crate::report::Report;

/// The most jobs that a pattern lists.
const LISTED: usize = 20;
/// The most jobs that are named with one.
const NAMED: usize = 5;

/// The pattern for `--buy-again` that names the jobs to buy again, or `*` if they are many.
pub(crate) fn repurchased(plan: &Plan) -> String {
    let mut jobs: Vec<&str> = plan.already_paid.iter().map(|before| before.job.as_str()).collect();
    jobs.dedup();
    match jobs.as_slice() {
        [one] => (*one).to_owned(),
        few if few.len() <= LISTED => format!("{{{}}}", few.join(",")),
        _ => "*".to_owned(),
    }
}

/// The earlier purchases, each with the way to use it: one line each.
pub(super) fn bought_before(plan: &Plan) -> Vec<String> {
    let mut lines: IndexMap<String, Vec<&AlreadyPaid>> = IndexMap::new();
    for before in &plan.already_paid {
        lines.entry(described(&plan.key, "", before)).or_default().push(before);
    }
    lines.into_values().map(|alike| described(&plan.key, &asking(&alike), alike[0])).collect()
}

/// The jobs that ask for the same, with their verb.
fn asking(alike: &[&AlreadyPaid]) -> String {
    let mut names: Vec<String> = alike.iter().take(NAMED).map(|before| before.job.to_string()).collect();
    if alike.len() > NAMED {
        names.push(format!("{} more", alike.len() - NAMED));
    }
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} and {last} have", names.join(", ")),
        last => format!("{} has", last.unwrap_or_default()),
    }
}

/// The edits that give a manifest the name and the batch value of an earlier purchase. One without the other would make the jobs due again.
fn edits(own: &BatchKey, earlier: &BatchKey) -> String {
    let name = (own.name != earlier.name).then(|| format!("write `name: {}`", Value::from(&*earlier.name)));
    let batch = (own.batch != earlier.batch).then(|| match &*earlier.batch {
        "" => "remove `batch`".to_owned(),
        batch => format!("write `batch: {}`", Value::from(batch)),
    });
    name.into_iter().chain(batch).collect::<Vec<_>>().join(" and ")
}

/// One earlier purchase, and what to do about it.
fn described(own: &BatchKey, asking: &str, already_paid: &AlreadyPaid) -> String {
    let AlreadyPaid { job, before, state, price, task, video } = already_paid;
    let price = price.map_or_else(|| "unknown price".to_owned(), |price| format!("${price}"));
    let video = video.as_ref().map_or_else(String::new, |video| format!("; its video: {video}"));
    let state = state.replace('_', " ");
    match before {
        Before::Gone(old) => format!(
            "{job} has the request of {old}, which is paid for and not in the manifest ({state}, {price}{video}): if it is the same \
             job, write `- {{ from: {old}, to: {job} }}` under `moved`"
        ),
        Before::Changed(old) => format!(
            "{job} has the earlier request of {old}, which has changed ({state}, {price}{video}): if rows have moved, \
             write a lasting ID for each, and the new ID of {old} under `moved`"
        ),
        Before::Respelled => format!(
            "{job} is paid for in another form: only whitespace, case, quotes, dashes, or Unicode forms differ ({state}, {price}{video}): \
             restore the prompt, or exclude the job with `--exclude {job}`"
        ),
        Before::OtherBatch(batch, old) => format!(
            "{asking} the request of {old} of `{batch}` ({state}, {price}{video}): if it is the same batch, {}",
            edits(own, batch)
        ),
        Before::OtherName(batch, old) => format!(
            "{asking} the request of {old} of `{batch}` ({state}, {price}{video}): if the manifest was renamed, {}",
            edits(own, batch)
        ),
        Before::Reported(report) => {
            let task = task.as_ref().map_or_else(String::new, |task| format!(" with task {task}"));
            format!(
                "{job} is paid for{task} by {} ({state}, {price}{video}), but not in this ledger: restore its ledger \
                 (the directory `.shotlist`)",
                report.display()
            )
        }
    }
}

/// The active tasks, missing videos, and jobs in doubt of another batch.
pub(super) fn other_batch(other: &Elsewhere) -> String {
    let counted = |number: u32, noun: &str, rest: &str| {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        (number > 0).then(|| format!("{}{rest}", count(number, noun)))
    };
    let at_risk = format!(" in doubt (${} at risk)", other.at_risk);
    let parts = [
        counted(other.active, "task", " to finish"),
        counted(other.unfetched, "video", " to download"),
        counted(other.doubtful, "submission", &at_risk),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    // One without a name is what a manifest without `batch` makes.
    let batch = match &*other.batch {
        "" => "the unnamed batch".to_owned(),
        name => format!("another batch, `{name}`,"),
    };
    format!("{batch} has {}", parts.join(", "))
}

/// The present states of another batch's jobs.
pub(crate) fn finished(report: &Report) -> String {
    let spent = report.totals.spent_usd;
    let (states, directory) = (counted(&report.totals), report.directory());
    format!("finished: {}: {states}, ${spent} spent by now, in {}", report.key, directory.display())
}
