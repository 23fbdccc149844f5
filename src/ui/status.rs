//! Where each job stands, and how a run ended.

use std::path::Path;

use super::lines::count;
use super::table::{shortened, table};
use crate::report::{JobState, Report, Row};

/// The most jobs that are listed one by one, unless more is asked for.
const LISTED: usize = 40;

/// Where each job stands, as text of this width. With `all`, completed jobs are listed too.
#[must_use]
pub fn status_text(report: &Report, width: u16, all: bool) -> String {
    let mut text = format!("{}: {}\n\n", report.key, count(report.totals.jobs, "job"));
    let rows: Vec<Row> = report.rows().filter(|row| all || row.state != JobState::Completed).collect();
    let most = if all { usize::MAX } else { LISTED };
    let cells = rows.iter().take(most).map(|row| {
        vec![
            format!("  {}", row.state.name()),
            shortened(&row.id, 32),
            row.model.clone(),
            row.cost_usd.map_or_else(|| "?".to_owned(), |cost| format!("${cost}")),
            shortened(row.error_message.as_deref().or(row.task_id.as_deref()).unwrap_or(""), 60),
        ]
    });
    if !rows.is_empty() {
        text.push_str(&table(&["  state", "job", "model", "cost", "detail"], &[3], cells, width));
        if rows.len() > most {
            text.push_str(&format!("  … and {} more (-v lists all)\n", rows.len() - most));
        }
        text.push('\n');
    }
    text.push_str(&sums(report));
    text
}

/// How a run ended, for stdout.
#[must_use]
pub fn summary_text<'p>(report: &Report, reports: impl Iterator<Item = &'p Path>) -> String {
    let mut text = sums(report);
    for path in reports {
        text.push_str(&format!("report: {}\n", path.display()));
    }
    if report.simulated {
        text.push_str("This was the simulator: no video was made by a real service, and nothing was paid.\n");
    }
    text
}

fn sums(report: &Report) -> String {
    let states: Vec<String> = JobState::ALL
        .into_iter()
        .filter_map(|state| {
            let jobs = report.totals.states.get(state.name()).copied().filter(|&jobs| jobs > 0)?;
            Some(format!("{jobs} {}", state.name().replace('_', " ")))
        })
        .collect();
    let totals = &report.totals;
    let mut text = format!("{}: {}\n", count(totals.jobs, "job"), states.join(", "));
    let simulated = if report.simulated { " (simulated)" } else { "" };
    text.push_str(&format!("spent: ${}{simulated} of ${} planned\n", totals.spent_usd, totals.planned_usd));
    if !totals.at_risk_usd.is_zero() {
        text.push_str(&format!("at risk: ${} in doubt, settle it with `shotlist resolve`\n", totals.at_risk_usd));
    }
    if !totals.unknown_usd.is_zero() {
        text.push_str(&format!("unknown: ${} for tasks that may or may not be charged\n", totals.unknown_usd));
    }
    if !report.superseded.is_empty() {
        text.push_str(&format!(
            "superseded: {} of changed, retaken or removed jobs\n",
            count(report.superseded.len(), "task")
        ));
    }
    text
}
