//! The plan for a terminal.

use std::collections::HashMap;
use std::time::Duration;

use super::command::quoted;
use super::elsewhere::open_elsewhere;
use super::lines::{count, span};
use super::page::Page;
use super::repurchases::repurchases;
use super::table::Column;
use super::wrap::wrapped;
use crate::domain::printable::one_line;
use crate::domain::{UnfinishedRetake, Usd};
use crate::plan::{Action, Limit, Plan, Planned, SpentChoice, Totals, by_model};

/// The most jobs that are listed one by one, unless more is asked for.
const LISTED: usize = 20;
/// The most names in one line.
const NAMED: usize = 5;
/// What is said of a plan that is not about the real service.
pub(super) const SIMULATED: &str = "a rehearsal on the simulator: nothing is paid, and real purchases do not count";

/// The plan as text of this width. With `all`, every job is listed.
#[must_use]
pub(crate) fn plan_text(plan: &Plan, width: u16, all: bool) -> Page {
    let mut page = Page::new();
    page.line(format_args!("{}: {}", plan.key, count(plan.jobs.len(), "job")));
    page.line("");
    list_jobs(&mut page, plan, width, all);
    page.line("");
    let models = by_model(plan);
    if !models.is_empty() {
        let rows = models.iter().map(|model| {
            vec![
                format!("  {}", model.model),
                model.jobs.to_string(),
                model.seconds.to_string(),
                format!("${}", model.cost_usd),
            ]
        });
        let columns = [
            Column::word("  model"),
            Column::number("jobs").spare(),
            Column::number("seconds").spare(),
            Column::number("cost"),
        ];
        page.table(&columns, rows, width);
        page.line("");
    }
    if all {
        list_prompts(&mut page, plan, width);
    }
    for line in summary(plan) {
        page.line(line);
    }
    page
}

/// The finished prompts of what would be bought, each below its job.
fn list_prompts(page: &mut Page, plan: &Plan, width: u16) {
    for planned in plan.jobs.iter().filter(|planned| planned.action.buys() || planned.action == Action::Hold) {
        page.line(format_args!("  {}", planned.job.id));
        let prompt = one_line(planned.job.spec.prompt.as_deref().unwrap_or("(no prompt)"));
        for line in wrapped(&prompt, usize::from(width).saturating_sub(4), 0).lines() {
            page.line(format_args!("    {line}"));
        }
    }
    page.line("");
}

/// What there is to know of the whole, a line each: first what is submitted.
fn summary(plan: &Plan) -> Vec<String> {
    let totals = plan.totals();
    let mut head = format!("{} to submit for ${}", count(totals.submit, "job"), totals.cost);
    if totals.submit > 0 {
        let wall = span(Duration::from_secs(plan.estimate.wall_s));
        head.push_str(&format!(": about {wall}, about {}", count_requests(plan.estimate.requests)));
    }
    [head].into_iter().chain(told(plan)).collect()
}

fn list_jobs(page: &mut Page, plan: &Plan, width: u16, all: bool) {
    // What asks for attention or money comes before what is done.
    let (shown, done): (Vec<&Planned>, Vec<&Planned>) =
        plan.jobs.iter().partition(|planned| all || planned.action != Action::Done);
    let is_grouped = !all && shown.len() > LISTED;
    let mut groups = if is_grouped { groups_of(&shown) } else { shown.iter().map(|&job| vec![job]).collect() };
    let most = if all { usize::MAX } else { LISTED };
    let hidden: usize = groups.iter().skip(most).map(Vec::len).sum();
    groups.truncate(most);
    if !groups.is_empty() {
        let columns = [
            Column::word("  action"),
            Column::id("job"),
            Column::word("model").spare(),
            Column::number("length").spare(),
            Column::number("cost"),
            Column::text("why"),
        ];
        page.table(&columns, groups.iter().map(|group| cells(group)), width);
    }
    if hidden > 0 {
        page.line(format_args!("  … and {hidden} more (-v lists all)"));
    } else if is_grouped {
        page.line("  -v lists every job");
    }
    if !done.is_empty() {
        page.line(format_args!("  {} completed, nothing to do", done.len()));
    }
}

/// Jobs of which the same is to be said, in the order of their first ones.
fn groups_of<'p>(jobs: &[&'p Planned]) -> Vec<Vec<&'p Planned>> {
    let mut groups: Vec<Vec<&Planned>> = Vec::new();
    let mut places = HashMap::new();
    for planned in jobs {
        let spec = &planned.job.spec;
        let alike = (planned.action, &spec.model, spec.duration, planned.cost, &planned.reason);
        let place = *places.entry(alike).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(planned);
    }
    groups
}

/// One line for jobs of which the same is to be said.
fn cells(group: &[&Planned]) -> Vec<String> {
    let Some(first) = group.first() else { return Vec::new() };
    let id = match group {
        [one] => one.job.id.to_string(),
        several => format!("{} × {}, …", several.len(), first.job.id),
    };
    let spec = &first.job.spec;
    vec![
        format!("  {}", action_name(first.action)),
        id,
        spec.model.clone(),
        spec.duration.map(|seconds| format!("{seconds} s")).unwrap_or_default(),
        cost(first.action, group),
        first.reason.to_string(),
    ]
}

/// What a group of jobs costs; nothing is said of what sends nothing. Of a job in doubt, what is at risk.
pub(super) fn cost(action: Action, group: &[&Planned]) -> String {
    match action {
        Action::InDoubt => format!("${}?", group.iter().map(|planned| planned.at_risk).sum::<Usd>()),
        action if action.buys() => format!("${}", group.iter().map(|planned| planned.cost).sum::<Usd>()),
        _ => String::new(),
    }
}

/// What the manifest was made of besides itself.
pub(super) fn inputs(plan: &Plan) -> impl Iterator<Item = String> {
    let kinds = [("file", &plan.inputs.files), ("variable", &plan.inputs.variables)];
    let read = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    read.map(|(what, names)| format!("reads {}: {}", count(names.len(), what), listed(names)))
}

/// What there is to know besides what is submitted, a line each.
#[must_use]
pub(super) fn told(plan: &Plan) -> Vec<String> {
    let totals = plan.totals();
    let mut lines = Vec::new();
    if plan.is_simulated {
        lines.push(SIMULATED.to_owned());
    }
    if plan.pictures() > 0 {
        lines.push(pictures(plan.pictures()));
    }
    if !plan.left_out.is_empty() {
        lines.push(left_out(plan.left_out.len()));
    }
    lines.extend(spent_choices(plan));
    lines.extend(plan.unfinished_retake.as_ref().map(unfinished_retake));
    let outstanding = plan.resume.len() + plan.collect.len();
    if outstanding > 0 {
        lines.push(format!("{} at the service already, submitted before", count(outstanding, "task")));
    }
    if totals.held > 0 {
        lines.push(held(&totals));
    }
    if totals.in_doubt > 0 {
        lines.push(format!(
            "{} in doubt: ${} at risk, never sent again by itself; `shotlist resolve MANIFEST` lists what to settle",
            count(totals.in_doubt, "job"),
            totals.at_risk
        ));
    }
    if plan.retries > 0 && plan.worst_case() > totals.cost {
        let stop = if plan.most() < plan.worst_case() { ": they stop at the limit" } else { "" };
        lines.push(format!("at most ${} with every paid retry{stop}", plan.most()));
    }
    for limit in plan.every_limit() {
        let verdict = if plan.cost_under(limit) <= limit.left() { "within" } else { "OVER" };
        lines.push(format!("{verdict} {}", limit_in_words(plan, limit)));
    }
    lines.extend(inputs(plan));
    for other in &plan.elsewhere {
        lines.push(open_elsewhere(other));
    }
    lines.extend(plan.frozen.as_ref().map(ToString::to_string));
    lines.extend(repurchases(plan).as_str().lines().map(str::to_owned));
    if totals.fetch > 0 {
        lines.push(to_fetch(totals.fetch));
    }
    lines
}

/// A limit, what of it is used, and for one that is not about everything, what the plan takes of it.
#[must_use]
pub(super) fn limit_in_words(plan: &Plan, limit: &Limit) -> String {
    let taken = limit.label.as_ref().map(|_| format!(", ${} to submit", plan.cost_under(limit)));
    let used = (!limit.used.is_zero()).then(|| format!(", ${} of it used", limit.used));
    format!("the limit of ${} ({}){}{}", limit.usd, limit.source, taken.unwrap_or_default(), used.unwrap_or_default())
}

/// The first few of some names.
pub(crate) fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let first = names.iter().take(NAMED).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    if names.len() > NAMED { format!("{first}, …") } else { first }
}

/// The skipped retakes, one line per reason.
#[must_use]
pub(crate) fn spent_choices(plan: &Plan) -> Vec<String> {
    let told = [SpentChoice::NotTheLastTake, SpentChoice::RetakeFailed, SpentChoice::AlreadyRetaken]
        .into_iter()
        .filter_map(|why| {
            let spent = plan.spent_choices(why);
            let ids: Vec<&str> = spent.iter().map(|id| id.as_str()).collect();
            let (are, their) = if spent.len() == 1 { ("is", "its") } else { ("are", "their") };
            let because = match why {
                SpentChoice::NotTheLastTake => format!("the choice is not about {their} last take"),
                SpentChoice::AlreadyRetaken => "the interrupted run already did that; this run continues it".to_owned(),
                SpentChoice::RetakeFailed => {
                    format!("{their} retake failed (--retry-failed with the same choices tries again)")
                }
            };
            let jobs = count(spent.len(), "job");
            (!spent.is_empty()).then(|| format!("{jobs} {are} not taken again, because {because}: {}", listed(&ids)))
        });
    told.collect()
}

/// A retake that didn't finish, and how to continue it.
#[must_use]
pub(crate) fn unfinished_retake(begun: &UnfinishedRetake) -> String {
    let options = begun.globs.iter().take(NAMED).map(|glob| format!("--retake {}", quoted(glob)));
    let mut options = options.collect::<Vec<_>>().join(" ");
    if begun.globs.len() > NAMED {
        options.push_str(" …");
    }
    format!("an earlier `{options}` didn't finish: the same options continue it, other patterns start over")
}

/// What begins with a picture of this machine.
#[must_use]
pub(crate) fn pictures(jobs: usize) -> String {
    let (jobs, begin) = (count(jobs, "job"), if jobs == 1 { "begins" } else { "begin" });
    format!("{jobs} {begin} with a picture of this machine, to which the run's --asset-command gives an address")
}

/// What is due and left for another run.
#[must_use]
pub(super) fn left_out(jobs: usize) -> String {
    format!("{} due besides, left for another run", count(jobs, "job"))
}

/// What is held, and what that costs besides.
#[must_use]
pub(super) fn held(totals: &Totals) -> String {
    format!(
        "{} held for face reviews: ${} once, paid outside the service; `review: approved` under `faces` lets them go",
        count(totals.held, "job"),
        totals.face_reviews
    )
}

/// What is said of videos that are not here.
#[must_use]
pub(crate) fn to_fetch(missing: usize) -> String {
    format!("{} that earlier runs paid for will be fetched, without a charge", count(missing, "video"))
}

fn count_requests(requests: u64) -> String {
    count(usize::try_from(requests).unwrap_or(usize::MAX), "request")
}

/// What an action is called in a table.
pub(super) fn action_name(action: Action) -> &'static str {
    match action {
        Action::Submit => "submit",
        Action::Changed => "changed",
        Action::Retry => "retry",
        Action::Resume => "resume",
        Action::Done => "done",
        Action::Fetch => "fetch",
        Action::Hold => "hold",
        Action::Failed => "failed",
        Action::InDoubt => "in doubt",
    }
}
