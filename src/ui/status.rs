//! Where each job stands, and how a run ended.

use std::path::Path;

use unicode_width::UnicodeWidthStr as _;

use super::command::Again;
use super::lines::count;
use super::page::Page;
use super::table::{shortened, shortened_inside};
use crate::domain::{Charge, Usd};
use crate::report::{JobState, Report, Row};

/// The most jobs that are listed one by one, unless more is asked for.
const LISTED: usize = 40;
/// The most columns of an id in a terminal of eighty; a wider one has room for more.
const ID: usize = 24;
/// The blanks around a cell, and the fewest columns that are worth having for what went wrong.
const BLANKS: usize = 2;
const LEAST_DETAIL: usize = 8;

/// Where each job stands, as text of this width: a line each. Of many jobs, those are listed that are not completed; with
/// `all`, every job is, and nothing is cut off.
#[must_use]
pub(crate) fn status_text(report: &Report, again: &Again, width: u16, all: bool) -> Page {
    let mut page = Page::new();
    page.line(format_args!("{}: {}", report.key, count(report.totals.jobs, "job")));
    page.line("");
    let lists_completed = all || report.totals.jobs <= LISTED;
    let rows: Vec<Row> = report.rows().filter(|row| lists_completed || row.state != JobState::Completed).collect();
    let most = if all { usize::MAX } else { LISTED };
    let longest_id = if all { usize::MAX } else { ID + usize::from(width.saturating_sub(80)) / 2 };
    let mut cells: Vec<[String; 5]> = rows.iter().take(most).map(|row| cells(row, longest_id)).collect();
    if !all {
        fit(&mut cells, width.into());
    }
    if !rows.is_empty() {
        let cells = cells.into_iter().map(Vec::from);
        page.table(&["  state", "job", "model", "cost", "detail"], &[3], cells, width);
        if rows.len() > most {
            page.line(format_args!("  … and {} more (-v lists all)", rows.len() - most));
        }
        page.line("");
    }
    sum_up(&mut page, report, again);
    page
}

fn cells(row: &Row, longest_id: usize) -> [String; 5] {
    let is_missing = row.state == JobState::Completed && row.file.is_none();
    let exec = row.exec.as_ref().and_then(|exec| exec.error.as_deref());
    let detail = match row.error_message.as_deref().or(row.declared.as_deref()).or(exec).or(row.file.as_deref()) {
        Some(detail) => detail,
        None if is_missing => "the video is not here",
        None => row.task_id.as_deref().unwrap_or(""),
    };
    [
        format!("  {}", row.state.name()),
        shortened_inside(&row.id, longest_id),
        row.model.clone(),
        row.cost_usd.map_or_else(|| "?".to_owned(), |cost| format!("${cost}")),
        shortened(detail, usize::MAX),
    ]
}

/// Cuts what went wrong to what the other columns leave.
fn fit(cells: &mut [[String; 5]], width: usize) {
    let taken: usize =
        (0..4).map(|column| cells.iter().map(|row| row[column].width()).max().unwrap_or(0).max(5) + BLANKS).sum();
    let room = width.saturating_sub(taken + BLANKS).max(LEAST_DETAIL);
    for row in cells {
        row[4] = shortened(&row[4], room);
    }
}

/// How a run ended, for stdout: `reserved` is what it submitted, and `again` what leads back to it.
#[must_use]
pub(crate) fn summary_text(report: &Report, reserved: Option<Usd>, again: &Again, reports: &[&Path]) -> Page {
    let mut page = Page::new();
    sum_up(&mut page, report, again);
    if let Some(reserved) = reserved {
        page.line(format_args!("reserved: ${reserved} by this run"));
    }
    if report.totals.states.get(JobState::Failed.name()).is_some_and(|&failed| failed > 0) {
        let status = again.command("status", &["-v"]);
        page.line(format_args!("failed: `{status}` says why; --retry-failed tries again, and costs again"));
    }
    for path in reports {
        page.line(format_args!("report: {}", path.display()));
    }
    if report.simulated {
        page.line("This was the simulator: no video was made by a real service, and nothing was paid.");
    }
    page
}

fn sum_up(page: &mut Page, report: &Report, again: &Again) {
    let states: Vec<String> = JobState::ALL
        .into_iter()
        .filter_map(|state| {
            let jobs = report.totals.states.get(state.name()).copied().filter(|&jobs| jobs > 0)?;
            Some(format!("{jobs} {}", state.name().replace('_', " ")))
        })
        .collect();
    let totals = &report.totals;
    page.line(format_args!("{}: {}", count(totals.jobs, "job"), states.join(", ")));
    let simulated = if report.simulated { " (simulated)" } else { "" };
    let superseded: Usd = report
        .superseded
        .iter()
        .filter(|superseded| superseded.charge == Charge::Charged)
        .map(|superseded| superseded.price_usd)
        .sum();
    // Without it, what was paid for takes that are gone would read like an overrun.
    let besides =
        if superseded.is_zero() { String::new() } else { format!(", ${superseded} of it for superseded tasks") };
    page.line(format_args!("spent: ${}{simulated}{besides}", totals.spent_usd));
    if !totals.to_submit_usd.is_zero() {
        page.line(format_args!("to submit: ${}", totals.to_submit_usd));
    }
    if !totals.held_usd.is_zero() {
        page.line(format_args!("held: ${} for jobs that wait for a face review", totals.held_usd));
    }
    if !totals.at_risk_usd.is_zero() {
        let resolve = again.command("resolve", &[]);
        page.line(format_args!("at risk: ${} in doubt, listed by `{resolve}`", totals.at_risk_usd));
    }
    if !totals.unknown_usd.is_zero() {
        page.line(format_args!(
            "unknown: ${} for tasks of which nobody documents whether they are charged",
            totals.unknown_usd
        ));
    }
    let completed = totals.states.get(JobState::Completed.name()).copied().unwrap_or(0);
    if completed > 0 {
        let missing = if totals.videos < completed { format!(" of {completed}") } else { String::new() };
        page.line(format_args!("videos: {}{missing} in {}", totals.videos, report.folder().display()));
    }
    if totals.exec_failed > 0 {
        page.line(format_args!(
            "exec: failed for {}; the next run with --exec starts it again",
            count(totals.exec_failed, "video")
        ));
    }
    if !report.superseded.is_empty() {
        page.line(format_args!(
            "superseded: {} of jobs that were changed, taken or tried again, or removed",
            count(report.superseded.len(), "task")
        ));
    }
}
