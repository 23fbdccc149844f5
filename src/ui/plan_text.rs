//! The plan for a terminal.

use std::time::Duration;

use super::lines::{count, span};
use super::table::{shortened, table};
use crate::domain::JobId;
use crate::plan::{Action, Plan, Planned, by_model};

/// The most jobs that are listed one by one, unless more is asked for.
const LISTED: usize = 20;

/// The plan as text of this width. With `all`, every job is listed.
#[must_use]
pub fn plan_text(plan: &Plan, width: u16, all: bool) -> String {
    let mut text = format!("{}: {}\n\n", plan.key, count(plan.jobs.len(), "job"));
    text.push_str(&jobs(plan, width, all));
    text.push('\n');
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
        text.push_str(&table(&["  model", "jobs", "seconds", "cost"], &[1, 2, 3], rows, width));
        text.push('\n');
    }
    text.push_str(&sums(plan));
    text
}

fn jobs(plan: &Plan, width: u16, all: bool) -> String {
    // What asks for attention or money comes before what is done.
    let (mut shown, done): (Vec<&Planned>, Vec<&Planned>) =
        plan.jobs.iter().partition(|planned| all || planned.action != Action::Done);
    let most = if all { usize::MAX } else { LISTED };
    let hidden = shown.len().saturating_sub(most);
    shown.truncate(most);
    let rows = shown.iter().map(|planned| {
        let job = &planned.job;
        let length = job.spec.duration.map(|seconds| format!("{seconds} s")).unwrap_or_default();
        vec![
            format!("  {}", action_name(planned.action)),
            shortened(job.id.as_str(), 32),
            job.spec.model.clone(),
            length,
            format!("${}", planned.cost),
            shortened(&planned.reason, 60),
        ]
    });
    let mut text = String::new();
    if !shown.is_empty() {
        text.push_str(&table(&["  action", "job", "model", "length", "cost", "why"], &[3, 4], rows, width));
    }
    if hidden > 0 {
        text.push_str(&format!("  … and {hidden} more (-v lists all)\n"));
    }
    if !done.is_empty() {
        text.push_str(&format!("  {} completed, nothing to do\n", done.len()));
    }
    text
}

fn sums(plan: &Plan) -> String {
    let totals = plan.totals();
    let mut text = format!("{} to submit for ${}", count(totals.submit, "job"), totals.cost);
    if totals.submit > 0 {
        let wall = span(Duration::from_secs(plan.estimate.wall_s));
        text.push_str(&format!(": about {wall}, about {}", count_requests(plan.estimate.requests)));
    }
    text.push('\n');
    let outstanding = plan.resume.len() + plan.collect.len();
    if outstanding > 0 {
        text.push_str(&format!("{} at the service already, submitted before\n", count(outstanding, "task")));
    }
    if totals.in_doubt > 0 {
        text.push_str(&format!(
            "{} in doubt: perhaps charged, never sent again by itself\n",
            count(totals.in_doubt, "job")
        ));
    }
    if plan.worst_case() > totals.cost {
        text.push_str(&format!("at most ${} with every paid retry\n", plan.worst_case()));
    }
    for limit in plan.limits() {
        let verdict = if totals.cost <= limit.left() { "within" } else { "OVER" };
        let used = if limit.used.is_zero() { String::new() } else { format!(", ${} of it used", limit.used) };
        text.push_str(&format!("{verdict} the limit of ${} ({}){used}\n", limit.usd, limit.source));
    }
    for (new, old) in &plan.renamed {
        text.push_str(&format!("{}\n", renamed(new, old)));
    }
    text
}

/// What a likely rename means for the money.
#[must_use]
pub fn renamed(new: &JobId, old: &JobId) -> String {
    format!("{new} asks for the same as {old}, which was submitted and is gone: if it was renamed, rename it back")
}

fn count_requests(requests: u64) -> String {
    count(usize::try_from(requests).unwrap_or(usize::MAX), "request")
}

/// What an action is called in a table.
pub fn action_name(action: Action) -> &'static str {
    match action {
        Action::Submit => "submit",
        Action::Changed => "changed",
        Action::Retry => "retry",
        Action::Resume => "resume",
        Action::Done => "done",
        Action::Hold => "hold",
        Action::Failed => "failed",
        Action::InDoubt => "in doubt",
    }
}
