//! The notes of a plan in words, the same in every output. Jobs that are already paid for are listed by purchase, each with the jobs of the same
//! request.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::page::Page;
use super::status::counted;
use super::table::{MAX_NAMES, listed};
use crate::domain::{
    AttemptId, BatchKey, Choice, History, Job, JobChoice, JobId, OpenElsewhere, ReviewOfTask, Reviewed, Takes,
    UnfinishedRetake, Usd, count, quoted, wishes,
};
use crate::plan::{AlreadyPaid, Before, Limit, Plan, PlanNote, SpentChoice};
use crate::report::{NextCommand, Report};

/// The maximum number of listed purchases, and of jobs in a pattern.
const MAX_LISTED: usize = 20;

/// Returns a note as a clause without a period.
pub(crate) fn sentence(note: &PlanNote<'_>, again: &NextCommand) -> String {
    match note {
        PlanNote::Simulated => "sandbox run: nothing is paid, and real purchases do not count".to_owned(),
        PlanNote::Frozen(freeze) => freeze.to_string(),
        PlanNote::LocalImages(jobs) => {
            let use_one = if *jobs == 1 { "uses" } else { "use" };
            format!("{} {use_one} a local image, which `--asset-command` gives a URL", count(*jobs, "job"))
        }
        PlanNote::LeftOut(jobs) => format!("{} left for another run", count(*jobs, "due job")),
        PlanNote::ChoiceSpent(why, jobs) => choice_spent(*why, jobs, again),
        PlanNote::ReplacesChoices(replaced) => {
            format!("no longer counts: {}", earlier_choices(replaced.iter().map(|(job, earlier)| (job, earlier))))
        }
        PlanNote::UntilKept(waiting, later) => {
            let waits = match &**waiting {
                [] => String::new(),
                [one] => format!("1 job waits for a choice ({one}); "),
                jobs => format!("{} jobs wait for a choice ({}); ", jobs.len(), listed(jobs)),
            };
            format!("{waits}later runs may buy takes for {later:#} more, until one of each job is kept")
        }
        PlanNote::OnTrial(models) => {
            let each = models.iter().map(|(model, fault)| {
                format!("{model} begins with 1 job, because its last video was not as ordered: {fault}")
            });
            each.collect::<Vec<_>>().join("; ")
        }
        PlanNote::RetakeUnfinished(begun) => retake_unfinished(begun),
        PlanNote::OldPrices(day, age) => {
            format!("prices of {day}, {} old; compare a bill, and correct them with `--catalog`", count(*age, "day"))
        }
        PlanNote::ActiveTasks(tasks) => format!("{} of earlier runs to poll", count(*tasks, "active task")),
        PlanNote::Held(jobs, fees) => format!(
            "{} held until the service has reviewed their faces, which costs {fees:#} outside this plan; then write `review: approved` and `paid_on` under `faces`",
            count(*jobs, "job")
        ),
        PlanNote::WaitsForImages(jobs) => {
            format!("{} held for an image that is not there yet; a run buys them once it is", count(*jobs, "job"))
        }
        PlanNote::Stale(jobs) => {
            format!(
                "{} bought with an earlier image; `--retake` buys another take with the current one",
                count(*jobs, "job")
            )
        }
        PlanNote::InDoubt(jobs, at_risk) => {
            let resolve = again.command("resolve", &[]);
            format!(
                "{} in doubt: {at_risk:#} at risk, never sent again by itself; `{resolve}` lists them",
                count(*jobs, "job")
            )
        }
        PlanNote::WorstCase(most, is_capped) => {
            let stop = if *is_capped { "; retries stop at the limit" } else { "" };
            format!("at most {most:#} with every paid retry{stop}")
        }
        PlanNote::Limit(limit, cost) => limited(limit, *cost),
        PlanNote::RowsLeftOut(sentence) => (*sentence).to_owned(),
        PlanNote::Reads(names) => format!("reads {}: {}", count(names.len(), "file"), listed(*names)),
        PlanNote::OtherBatch(other) => other_batch(other),
        PlanNote::AlreadyPaid(plan) => {
            let (jobs, cost) = (plan.already_paid.len(), plan.already_paid_cost());
            let are = if jobs == 1 { "is" } else { "are" };
            let is_sure = plan.already_paid.iter().all(|before| before.state != "in_doubt");
            let perhaps = if is_sure { "" } else { ", or may be" };
            let globs = quoted(&repurchased(plan));
            format!(
                "{} {are} already paid for{perhaps}; `--buy-again {globs}` buys again for {cost:#}",
                count(jobs, "job")
            )
        }
        PlanNote::ToFetch(videos) => format!("{} to download, already paid for", count(*videos, "video")),
    }
}

/// The note about jobs that are already paid for, with its details.
pub(crate) fn already_paid(plan: &Plan, again: &NextCommand) -> Page {
    let mut page = Page::new();
    add(&mut page, &PlanNote::AlreadyPaid(plan), again);
    page
}

/// Adds a note, with its details below.
pub(super) fn add(page: &mut Page, note: &PlanNote<'_>, again: &NextCommand) {
    page.line(sentence(note, again));
    for line in details(note) {
        page.line(format_args!("  {line}"));
    }
}

/// The list below a note: the earlier purchases of jobs that are already paid for, each with the way to use it.
pub(crate) fn details(note: &PlanNote<'_>) -> Vec<String> {
    let PlanNote::AlreadyPaid(plan) = note else { return Vec::new() };
    let mut purchases: IndexMap<String, Vec<&AlreadyPaid>> = IndexMap::new();
    for before in &plan.already_paid {
        purchases.entry(described(&plan.key, "", before)).or_default().push(before);
    }
    let shown = purchases.into_values().map(|alike| described(&plan.key, &asking(&alike), alike[0]));
    let mut lines: Vec<String> = shown.collect();
    let more = lines.len().saturating_sub(MAX_LISTED);
    lines.truncate(MAX_LISTED);
    lines.extend((more > 0).then(|| format!("… and {more} more")));
    lines
}

/// A limit with its used part, and for a label also the cost of its jobs.
fn limited(limit: &Limit, cost: Usd) -> String {
    if limit.used > limit.usd {
        return format!("OVER the limit of {:#} ({}) already: {:#} used", limit.usd, limit.source, limit.used);
    }
    let verdict = if cost <= limit.left() { "within" } else { "OVER" };
    let taken = limit.label.as_ref().map(|_| format!(", with {cost:#} to submit")).unwrap_or_default();
    let used = if limit.used.is_zero() { String::new() } else { format!(", of which {:#} is used", limit.used) };
    let near = if cost <= limit.left() && limit.is_near(cost) { "; that uses at least 80 % of it" } else { "" };
    format!("{verdict} the limit of {:#} ({}){used}{taken}{near}", limit.usd, limit.source)
}

/// Jobs without a retake, and the reason.
fn choice_spent(why: SpentChoice, jobs: &[(&JobId, &str)], again: &NextCommand) -> String {
    let named = |(job, wishes): &(&JobId, &str)| match why {
        SpentChoice::Disputed => format!("{job}: {wishes}"),
        _ => job.to_string(),
    };
    let because = match why {
        SpentChoice::NotTheLastTake => "the choice is about an earlier take",
        SpentChoice::AlreadyRetaken => "the interrupted run already bought it, and this run continues it",
        SpentChoice::Disputed => {
            let decide = again.command("choose", &["--decide", "JOB=keep"]);
            &format!("reviewers disagree, so nothing is bought; `{decide}` ends it")
        }
        SpentChoice::AllTakes => {
            "all takes of `up_to` are bought, and none is kept; raise `up_to`, or pass `--retake ID`"
        }
        SpentChoice::RetakeFailed => "the retake failed; `--retry-failed` with the same choices retries it",
    };
    format!("no retake of {} ({}): {because}", count(jobs.len(), "job"), listed(jobs.iter().map(named)))
}

/// A retake that did not finish, and how to continue it.
pub(crate) fn retake_unfinished(begun: &UnfinishedRetake) -> String {
    let options = begun.globs.iter().take(MAX_NAMES).map(|glob| format!("--retake {}", quoted(glob)));
    let mut options = options.collect::<Vec<_>>().join(" ");
    if begun.globs.len() > MAX_NAMES {
        options.push_str(" …");
    }
    format!(
        "an earlier `{options}` did not finish; the same options continue it, and other patterns buy another take of each job"
    )
}

/// The content of a file of choices.
pub(crate) fn choices_of(reviews: &[ReviewOfTask], file: &Path) -> String {
    let of = |wanted: Choice| reviews.iter().filter(|it| it.review.choice == Some(wanted)).count();
    let notes = reviews.iter().filter(|it| !it.review.note.is_empty()).count();
    let by = reviews.first().map(|it| format!(" by {}", it.review.by)).unwrap_or_default();
    let file = file.display();
    format!("{file}{by}: {} keep, {} retake, {}", of(Choice::Keep), of(Choice::Retake), count(notes, "note"))
}

/// Replaced choices: `mug (keep by anna of 2026-11-03 10:00 UTC)`.
fn earlier_choices<'a>(replaced: impl Iterator<Item = (&'a JobId, &'a Reviewed)>) -> String {
    listed(replaced.map(|(job, Reviewed { review, at })| {
        let choice = if review.choice == Some(Choice::Keep) { "keep" } else { "retake" };
        format!("{job} ({choice} by {} of {})", review.by, at.strftime("%F %R UTC"))
    }))
}

/// The choices of a batch after a record of new ones.
pub(crate) fn choices_recorded(
    new: &[(AttemptId, &ReviewOfTask, Option<&Reviewed>)],
    jobs: &[Arc<Job>],
    history: &History,
    again: &NextCommand,
) -> Page {
    let choice_of = |job: &Job| Takes::for_job(job, history.attempts_of(job.id()))?.choice;
    let mut page = Page::new();
    page.line(format_args!("recorded {}; nothing was spent", count(new.len(), "new choice")));
    let replaced = earlier_choices(new.iter().filter_map(|(_, given, replaced)| Some((&given.job, (*replaced)?))));
    if !replaced.is_empty() {
        page.line(format_args!("no longer counts: {replaced}"));
    }
    for job in jobs.iter().filter(|job| choice_of(job) == Some(JobChoice::Conflict)) {
        let wishes = wishes(job, history.attempts_of(job.id()));
        page.line(format_args!("in conflict, so nothing is bought: {} ({wishes})", job.id()));
    }
    let retakes = listed(jobs.iter().filter(|job| choice_of(job) == Some(JobChoice::Retake)).map(|job| job.id()));
    if !retakes.is_empty() {
        page.line(format_args!("to retake: {retakes}"));
        let run = again.command("run", &["--retake", "@ledger"]);
        page.line(format_args!("to see what the retakes cost: `{run} --plan`"));
    }
    page
}

/// The number of archived videos, and the directory of the copies.
pub(crate) fn archived(videos: usize, to: Option<&Path>) -> Page {
    let (mut page, to) = (Page::new(), to.map(|to| format!(", moved to {}", to.display())).unwrap_or_default());
    page.line(format_args!("archived {}{to}; runs neither download nor miss them", count(videos, "video")));
    page
}

/// The outcome of an import.
pub(crate) fn imported(imported: usize, doubts: usize, known: usize, refused: usize) -> String {
    let doubts = if doubts > 0 { format!(", {} in doubt", count(doubts, "job")) } else { String::new() };
    let known = if known > 0 { format!(", {known} known already") } else { String::new() };
    let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
    format!("imported {}{doubts}{known}{refused}; nothing was submitted or spent", count(imported, "task"))
}

/// The jobs that are already paid for, once each.
pub(super) fn repurchased_jobs(plan: &Plan) -> Vec<&str> {
    let mut jobs: Vec<&str> = plan.already_paid.iter().map(|before| before.job.as_str()).collect();
    jobs.dedup();
    jobs
}

/// The pattern for `--buy-again` that names the jobs to buy again, or `*` if they are many.
pub(crate) fn repurchased(plan: &Plan) -> String {
    match repurchased_jobs(plan).as_slice() {
        [one] => (*one).to_owned(),
        few if few.len() <= MAX_LISTED => format!("{{{}}}", few.join(",")),
        _ => "*".to_owned(),
    }
}

/// Jobs with equal requests, with the verb for their number.
fn asking(alike: &[&AlreadyPaid]) -> String {
    let verb = if alike.len() == 1 { "has" } else { "have" };
    format!("{} {verb}", listed(alike.iter().map(|before| &before.job)))
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

/// One earlier purchase, with the command or line that avoids another.
fn described(own: &BatchKey, asking: &str, already_paid: &AlreadyPaid) -> String {
    let AlreadyPaid { job, before, state, price, task, video } = already_paid;
    let price = price.map_or_else(|| "unknown price".to_owned(), |price| format!("{price:#}"));
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
pub(super) fn other_batch(other: &OpenElsewhere) -> String {
    let counted = |number: u32, noun: &str, rest: &str| {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        (number > 0).then(|| format!("{}{rest}", count(number, noun)))
    };
    let at_risk = format!(" in doubt ({:#} at risk)", other.at_risk);
    let parts = [
        counted(other.active, "task", " to finish free of charge"),
        counted(other.unfetched, "video", " to download free of charge"),
        counted(other.doubtful, "submission", &at_risk),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    // A manifest without `batch` makes the unnamed batch.
    let batch = match &*other.batch.batch {
        "" => "the unnamed batch".to_owned(),
        name => format!("another batch, `{name}`,"),
    };
    format!("{batch} has {}", parts.join(", "))
}

/// The present states of another batch's jobs.
pub(crate) fn finished(report: &Report) -> String {
    let spent = report.totals.spent_usd;
    let (states, directory) = (counted(&report.totals), report.directory());
    format!("finished: {}: {states}, {spent:#} spent by now, in {}", report.key, directory.display())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::{Freeze, Label, Review};

    #[test]
    fn note_texts_match_the_snapshot() {
        let usd = |text: &str| text.parse::<Usd>().expect("an amount");
        let label = Label { name: "client".into(), value: "acme".into() };
        let limit = |label| Limit { source: "budget.day".into(), usd: usd("40"), used: usd("30"), label };
        let (day, client) = (limit(None), limit(Some(label)));
        let unused = Limit { used: Usd::ZERO, ..limit(None) };
        let passed = Limit { used: usd("40.01"), ..limit(None) };
        let (hero, spin) = (JobId::new("hero").expect("an ID"), JobId::new("spin").expect("an ID"));
        let review = Review { by: "anna".into(), choice: Some(Choice::Keep), note: String::new(), decides: false };
        let at = "2026-11-03T10:00:00Z".parse().expect("a time");
        let replaced = [(hero.clone(), Reviewed { review, at })];
        let begun = UnfinishedRetake { globs: vec!["hero*".into(), "spin".into()], after: 0 };
        let many = UnfinishedRetake { globs: (0..6).map(|glob| format!("j{glob}")).collect(), after: 0 };
        let other = OpenElsewhere { active: 1, unfetched: 2, ..OpenElsewhere::default() };
        let batch = BatchKey { name: "m".into(), batch: "may".into() };
        let doubtful = OpenElsewhere { batch, doubtful: 1, at_risk: usd("0.90"), ..other.clone() };
        let (freeze, files) = (Freeze::on_request("Anna compares the bill"), (0..6).map(|file| format!("{file}.csv")));
        let files: Vec<String> = files.collect();
        let notes = [
            PlanNote::Simulated,
            PlanNote::Frozen(&freeze),
            PlanNote::ReplacesChoices(&replaced),
            PlanNote::LocalImages(1),
            PlanNote::LocalImages(2),
            PlanNote::LeftOut(2),
            PlanNote::ChoiceSpent(SpentChoice::NotTheLastTake, vec![(&hero, "anna keeps take 1, ben retakes take 2")]),
            PlanNote::ChoiceSpent(SpentChoice::AlreadyRetaken, vec![(&hero, ""), (&spin, "")]),
            PlanNote::ChoiceSpent(SpentChoice::RetakeFailed, vec![(&hero, "anna keeps take 1, ben retakes take 2")]),
            PlanNote::ChoiceSpent(SpentChoice::Disputed, vec![(&hero, "anna keeps take 1, ben retakes take 2")]),
            PlanNote::ChoiceSpent(SpentChoice::AllTakes, vec![(&hero, "anna keeps take 1, ben retakes take 2")]),
            PlanNote::UntilKept(vec![&hero, &spin], usd("2.70")),
            PlanNote::UntilKept(vec![&hero], usd("2.70")),
            PlanNote::UntilKept(vec![], usd("2.70")),
            PlanNote::OnTrial(&[("beta-2.0-lite".to_owned(), "5 s, requested 10 s".to_owned())]),
            PlanNote::RetakeUnfinished(&begun),
            PlanNote::RetakeUnfinished(&many),
            PlanNote::ActiveTasks(1),
            PlanNote::OldPrices(jiff::civil::date(2026, 1, 31), 31),
            PlanNote::Held(2, usd("0.40")),
            PlanNote::WaitsForImages(2),
            PlanNote::Stale(1),
            PlanNote::InDoubt(2, usd("1.80")),
            PlanNote::Limit(&passed, Usd::ZERO),
            PlanNote::WorstCase(usd("3.60"), false),
            PlanNote::WorstCase(usd("3.60"), true),
            PlanNote::Limit(&unused, usd("40")),
            PlanNote::Limit(&day, usd("9")),
            PlanNote::Limit(&day, usd("19")),
            PlanNote::Limit(&client, usd("19")),
            PlanNote::Reads(&files),
            PlanNote::OtherBatch(&other),
            PlanNote::OtherBatch(&doubtful),
            PlanNote::ToFetch(1),
        ];
        let again = NextCommand::without_options(Path::new("m.yaml"));
        let shown = |note: &PlanNote| format!("{}: {}", note.code().code(), sentence(note, &again));
        let shown = notes.iter().map(shown).collect::<Vec<_>>().join("\n");
        // Other tests cover shell quoting.
        insta::assert_snapshot!(shown.replace(&quoted("hero*"), "'hero*'"));
    }
}
