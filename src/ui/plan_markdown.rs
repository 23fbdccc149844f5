//! The plan for a comment on a pull request.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::approval::{approve, can_be_approved};
use super::command::Again;
use super::elsewhere::open_elsewhere;
use super::lines::{count, span};
use super::markdown::{escaped, hidden, no_room};
use super::page::Page;
use super::plan_text::{SIMULATED, action_name, cost, held, inputs, left_out, limit_in_words, pictures, spent_choices};
use super::repurchases::bought_before;
use super::table::shortened;
use crate::domain::{JobId, Usd};
use crate::plan::{Action, Plan, Planned, by_model};

/// How a plan as Markdown begins, so that a comment that holds one can be found and replaced.
const MARK: &str = "<!-- shotlist plan: ";
/// The most that a plan takes, in bytes: a comment on GitHub holds 65,536 characters (spec §8).
const MOST: usize = 60_000;
/// Room behind the rows for how many are left out.
const LAST_LINE: usize = 200;
/// The most earlier purchases that are told, the most slips, and the most of what is open elsewhere.
const TOLD: usize = 20;
/// The most jobs that are named of one slip.
const NAMED: usize = 5;
/// The most characters of what is said of one slip.
const SLIP: usize = 300;
/// More rows than this are folded away.
const UNFOLDED: usize = 10;

/// The plan as GitHub-flavoured Markdown; `warnings` are what looks like a slip, each with the job that it is about, if it is about one, and
/// `again` is all that leads to it.
#[must_use]
pub(crate) fn plan_markdown(plan: &Plan, warnings: &[(Option<String>, String)], again: &Again) -> Page {
    let totals = plan.totals();
    let key = plan.key.to_string();
    let mut text = format!("{MARK}{} -->\n### Video plan: {}\n\n", hidden(&key), escaped(&key));
    let wall = span(Duration::from_secs(plan.estimate.wall_s));
    let mut put = |line: String| {
        let _infallible = writeln!(text, "{line}");
    };
    put(format!("**{} to submit for ${}**, about {wall}.", count(totals.submit, "job"), totals.cost));
    if plan.is_simulated {
        put(format!("**This is {SIMULATED}.**"));
    }
    if plan.pictures() > 0 {
        put(format!("{}.", pictures(plan.pictures())));
    }
    if !plan.left_out.is_empty() {
        put(format!("{}.", left_out(plan.left_out.len())));
    }
    plan.frozen.iter().for_each(|freeze| put(format!("**{}**", escaped(&freeze.to_string()))));
    for spent in spent_choices(plan) {
        put(escaped(&spent));
    }
    for limit in plan.every_limit() {
        let verdict = if plan.cost_under(limit) <= limit.left() { "Within" } else { "**Over**" };
        put(format!("{verdict} {}.", escaped(&limit_in_words(plan, limit))));
    }
    if totals.in_doubt > 0 {
        let jobs = count(totals.in_doubt, "job");
        put(format!("**{jobs} in doubt**: ${} at risk, never sent again by itself.", totals.at_risk));
    }
    if totals.held > 0 {
        put(format!("{}.", held(&totals)));
    }
    inputs(plan).for_each(|read| put(format!("{}.", escaped(&read))));
    for other in plan.elsewhere.iter().take(TOLD) {
        put(format!("{}.", escaped(&open_elsewhere(other))));
    }
    let slips = slips(warnings);
    if !slips.is_empty() {
        put("\n**Looks like a slip**:\n".to_owned());
        slips.iter().take(TOLD).for_each(|slip| put(format!("- {slip}")));
        if slips.len() > TOLD {
            put(format!("- … and {} more", slips.len() - TOLD));
        }
    }
    if !plan.repurchases.is_empty() {
        let (jobs, cost) = (count(plan.repurchases.len(), "job"), plan.repurchase_cost());
        put(format!("\n**{jobs} already paid for**; repurchasing costs ${cost} and requires `--buy-again`:\n"));
        let before = bought_before(plan);
        for line in before.iter().take(TOLD) {
            put(format!("- {}", escaped(line)));
        }
        if before.len() > TOLD {
            put(format!("- … and {} more", before.len() - TOLD));
        }
    }
    if can_be_approved(plan) {
        put(format!("\nDigest `{}`. To buy exactly this:\n\n    {}", plan.digest(), approve(plan, again)));
    }
    put(String::new());
    let models = by_model(plan);
    if !models.is_empty() {
        put("| model | jobs | seconds | cost |\n|---|---:|---:|---:|".to_owned());
        for model in models {
            put(format!("| {} | {} | {} | ${} |", escaped(model.model), model.jobs, model.seconds, model.cost_usd));
        }
        put(String::new());
    }
    let mut left_out = 0;
    for action in [
        Action::InDoubt,
        Action::Failed,
        Action::Changed,
        Action::Retry,
        Action::Submit,
        Action::Resume,
        Action::Hold,
        Action::Fetch,
        Action::Done,
    ] {
        let jobs: Vec<&Planned> = plan.jobs.iter().filter(|planned| planned.action == action).collect();
        if jobs.is_empty() {
            continue;
        }
        let (section, shown) = section(action, &jobs, MOST.saturating_sub(text.len() + LAST_LINE));
        left_out += jobs.len() - shown;
        text.push_str(&section);
    }
    if left_out > 0 {
        let _infallible = writeln!(text, "{}", no_room(left_out));
    }
    // What came from outside was escaped, and has no line of its own.
    let mut page = Page::new();
    text.lines().for_each(|line| page.line(line));
    page
}

/// What looks like a slip, each with the jobs that it is about, in the order of the first ones.
fn slips(warnings: &[(Option<String>, String)]) -> Vec<String> {
    let mut slips: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut places = HashMap::new();
    for (job, message) in warnings {
        let place = *places.entry(message).or_insert(slips.len());
        if place == slips.len() {
            slips.push((message, Vec::new()));
        }
        slips[place].1.extend(job.as_deref());
    }
    let told = slips.into_iter().map(|(message, jobs)| {
        let more = jobs.len().saturating_sub(NAMED);
        let named: Vec<String> = jobs.iter().take(NAMED).map(|job| named_job(job)).collect();
        let (named, message) = (named.join(", "), escaped(&shortened(message, SLIP)));
        match (jobs.len(), more) {
            (0, _) => message,
            (_, 0) => format!("{named}: {message}"),
            _ => format!("{named} and {more} more: {message}"),
        }
    });
    told.collect()
}

/// The ID of a job; of an unselected job, it may be any string.
fn named_job(id: &str) -> String {
    if JobId::new(id).is_ok() { format!("`{id}`") } else { escaped(&shortened(id, SLIP)) }
}

/// The jobs of one action, as many as fit into so many bytes, and how many those are.
fn section(action: Action, jobs: &[&Planned], room: usize) -> (String, usize) {
    let sum: Usd = jobs.iter().map(|planned| planned.cost).sum();
    let sum = if sum.is_zero() { String::new() } else { format!(" (${sum})") };
    let title = format!("{}: {}{sum}", action_name(action), jobs.len());
    let mut rows = String::from("| job | model | cost | why |\n|---|---|---:|---|\n");
    let mut shown = 0;
    for planned in jobs {
        let (id, model, reason) = (planned.job.id.as_str(), escaped(&planned.job.spec.model), escaped(&planned.reason));
        let row = format!("| `{id}` | {model} | {} | {reason} |\n", cost(action, &[planned]));
        if rows.len() + row.len() + title.len() + LAST_LINE > room {
            break;
        }
        rows.push_str(&row);
        shown += 1;
    }
    let section = if shown == 0 {
        format!("**{title}**\n")
    } else if jobs.len() > UNFOLDED {
        format!("<details><summary>{title}</summary>\n\n{rows}\n</details>\n")
    } else {
        format!("**{title}**\n\n{rows}")
    };
    (section + "\n", shown)
}
