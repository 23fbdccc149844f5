//! The plan for a terminal.

use std::time::Duration;

use indexmap::IndexMap;

use super::notes::add;
use super::page::{Page, wrapped};
use super::table::{Column, span};
use crate::domain::text::one_line;
use crate::domain::{Usd, count};
use crate::plan::{Action, Plan, Planned, by_model, notes};
use crate::report::NextCommand;

/// The maximum number of listed jobs, without `-v`.
const LISTED: usize = 20;

/// The plan as text of this width. With `all`, every job is listed. `again` makes the printed commands.
pub(crate) fn plan_text(plan: &Plan, again: &NextCommand, width: u16, all: bool) -> Page {
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
                format!("{:#}", model.cost_usd),
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
    summarize(&mut page, plan, again);
    page
}

/// The rendered prompts of due jobs, each below its job.
fn list_prompts(page: &mut Page, plan: &Plan, width: u16) {
    for planned in plan.jobs.iter().filter(|planned| planned.action.buys() || planned.action == Action::Hold) {
        page.line(format_args!("  {}", planned.job.id()));
        let prompt = one_line(planned.job.spec.prompt.as_deref().unwrap_or("(no prompt)"));
        for line in wrapped(&prompt, usize::from(width).saturating_sub(4), 0).lines() {
            page.line(format_args!("    {line}"));
        }
    }
    page.line("");
}

/// Adds the facts of the whole plan, the submissions first.
fn summarize(page: &mut Page, plan: &Plan, again: &NextCommand) {
    let totals = plan.totals();
    if totals.submit == 0 {
        page.line("nothing to buy");
    } else {
        let (jobs, wall) = (count(totals.submit, "job"), span(Duration::from_secs(plan.estimate.wall_s)));
        let (cost, requests) = (totals.cost_usd, count(plan.estimate.requests, "request"));
        page.line(format_args!("{jobs} to submit for {cost:#}: about {wall}, about {requests}"));
    }
    for note in notes(plan) {
        add(page, &note, again);
    }
}

fn list_jobs(page: &mut Page, plan: &Plan, width: u16, all: bool) {
    // Jobs that need attention or money come before completed ones.
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
            Column::word("shape").spare(),
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

/// Jobs with equal lines, in the order of the first ones.
fn groups_of<'p>(jobs: &[&'p Planned]) -> Vec<Vec<&'p Planned>> {
    let mut groups: IndexMap<_, Vec<&Planned>> = IndexMap::new();
    for planned in jobs {
        let spec = &planned.job.spec;
        let alike = (planned.action, &spec.model, spec.shape(), spec.duration, planned.cost, &planned.reason);
        groups.entry(alike).or_default().push(planned);
    }
    groups.into_values().collect()
}

/// The line of a group of jobs.
fn cells(group: &[&Planned]) -> Vec<String> {
    let Some(first) = group.first() else { return Vec::new() };
    let id = match group {
        [one] => one.job.id().to_string(),
        several => format!("{} × {}, …", several.len(), first.job.id()),
    };
    let spec = &first.job.spec;
    vec![
        format!("  {}", first.action.name().replace('_', " ")),
        id,
        spec.model.clone(),
        spec.shape().unwrap_or_default().to_owned(),
        spec.duration.map(|seconds| format!("{seconds} s")).unwrap_or_default(),
        cost(first.action, group),
        first.reason.to_string(),
    ]
}

/// The cost of a group of jobs, empty if nothing is sent. For jobs in doubt, the sum at risk.
pub(super) fn cost(action: Action, group: &[&Planned]) -> String {
    match action {
        Action::InDoubt => format!("{:#}?", group.iter().map(|planned| planned.at_risk).sum::<Usd>()),
        action if action.buys() => format!("{:#}", group.iter().map(|planned| planned.cost).sum::<Usd>()),
        _ => String::new(),
    }
}
