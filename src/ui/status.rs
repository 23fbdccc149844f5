//! States of jobs, and the end of a run.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use indexmap::IndexMap;

use super::page::{LAST_LINE, MAX_BYTES, Page, escaped, hidden, no_room};
use super::table::{Column, listed, shortened, without_prompt};
use crate::domain::{Attempt, BatchKey, Charge, History, Job, JobChoice, JobId, TaskId, Usd, count, quoted};
use crate::report::{Form, JobState, NextCommand, Report, Row, Superseded, Totals, form_of};

/// The maximum number of jobs in a list without `-v`.
const LISTED: usize = 40;
/// The most causes that are listed, the most jobs that are named with each, and the most characters of one.
const MAX_CAUSES: usize = 8;
const MAX_CAUSE: usize = 200;

/// The states of jobs as text of this width: jobs that need a person, the sums, and a line for each job. Of many jobs, only incomplete ones are
/// listed; with `all`, every job is, and nothing is cut off.
pub(crate) fn status_text(report: &Report, again: &NextCommand, width: u16, all: bool) -> Page {
    let mut page = Page::new();
    tell_notes(&mut page, report, again);
    page.line(format_args!("{}: {}", report.key, states(&report.totals)));
    sum_up(&mut page, report, None, &[]);
    let lists_completed = all || report.totals.jobs <= LISTED;
    let rows: Vec<Row> = report.rows_in(|state| lists_completed || state != JobState::Completed).collect();
    if rows.is_empty() {
        return page;
    }
    page.line("");
    let most = if all { usize::MAX } else { LISTED };
    let columns = [
        Column::word("  state"),
        Column::id("job"),
        Column::word("model").spare(),
        Column::number("cost"),
        Column::text("detail"),
    ];
    let cells = rows.iter().take(most).map(cells);
    if all {
        page.whole_table(&columns, cells, width);
    } else {
        page.table(&columns, cells, width);
    }
    if rows.len() > most {
        page.line(format_args!("  … and {} more (-v lists all)", rows.len() - most));
    }
    page
}

fn cells(row: &Row) -> Vec<String> {
    vec![
        format!("  {}", row.state.label()),
        row.id.clone(),
        row.model.clone(),
        row.cost_usd.map_or_else(|| "?".to_owned(), |cost| format!("{cost:#}")),
        shortened(&detail(row), usize::MAX),
    ]
}

/// Where the video of a job is, or the reason why there is none.
fn detail(row: &Row) -> String {
    let caused = row.notes().iter().find_map(|note| Some((note.kind, note.cause.as_deref()?)));
    match caused {
        // The state is in the row already.
        Some((kind, cause)) if kind.state() != row.state => format!("{}: {cause}", kind.name().replace('_', " ")),
        Some((_, cause)) => cause.to_owned(),
        None => [&row.file, &row.declared, &row.task_id].into_iter().flatten().next().cloned().unwrap_or_default(),
    }
}

/// The summary of a run. `reserved` is the sum of its submissions, `left_out` has due jobs outside the selection, and `again` makes the printed
/// commands.
pub(crate) fn summary_text(
    report: &Report,
    reserved: Option<Usd>,
    left_out: &HashSet<JobId>,
    again: &NextCommand,
    reports: &[&Path],
) -> Page {
    let mut page = Page::new();
    page.line(states(&report.totals));
    let (pages, others): (Vec<&Path>, Vec<&Path>) = reports.iter().partition(|path| form_of(path) == Some(Form::Html));
    let has_videos = report.totals.states.get(JobState::Completed.name()).is_some_and(|completed| *completed > 0);
    let is_beside = |path: &&Path| has_videos && path.parent() == Some(report.directory());
    let (beside, others): (Vec<&Path>, Vec<&Path>) = others.into_iter().partition(is_beside);
    sum_up(&mut page, report, reserved, &beside);
    tell_notes(&mut page, report, again);
    for line in not_done(report, left_out, again) {
        page.line(line);
    }
    if !others.is_empty() {
        let others: Vec<String> = others.iter().map(|path| path.display().to_string()).collect();
        page.line(format_args!("reports: {}", others.join(", ")));
    }
    // Last: most users open the page next.
    for path in pages {
        page.line(format_args!("to look at it: {} {}", opener(), quoted(&path.to_string_lossy())));
    }
    page
}

/// The jobs that need a person, each cause once for all of its jobs, with the consequence for the money and the command.
fn tell_notes(page: &mut Page, report: &Report, again: &NextCommand) {
    let (mut room, mut hidden) = (MAX_CAUSES, 0);
    for (kind, noted) in report.notes() {
        if !kind.needs_a_person() {
            continue;
        }
        hidden += noted.by_cause.len().saturating_sub(room);
        for (cause, jobs) in noted.by_cause.iter().take(room) {
            let names = listed(jobs);
            let cause = cause.as_deref().map(|cause| format!(": {}", shortened(cause, MAX_CAUSE)));
            page.line(format_args!("{} ({names}){}", kind.counted(jobs.len()), cause.unwrap_or_default()));
            room -= 1;
        }
        let command = kind.command().map(|(name, options)| format!(": {}", again.command(name, options)));
        page.line(format_args!("  {}{}", kind.meaning(noted.usd), command.unwrap_or_default()));
    }
    if hidden > 0 {
        page.line(format_args!("… and {} (`status -v` has all)", count(hidden, "more cause")));
    }
    // A real face without a review is rejected, or generation fails (interface §3).
    let is_bad = |state| matches!(state, JobState::Failed | JobState::Rejected);
    if report.states().any(|(job, state)| is_bad(state) && job.has_no_review) {
        page.line("if a video shows a real person, its face needs a review first: `shotlist help manifest`, `faces`");
    }
}

/// Jobs that the next run continues, with its command. The command names the batch, because a template of tomorrow names another one.
fn not_done(report: &Report, left_out: &HashSet<JobId>, again: &NextCommand) -> Vec<String> {
    // The plan is only shown: tomorrow, a prompt with `{{ today }}` is another request.
    let plan = again.command("run", &["--plan"]);
    let jobs = |is_meant: &dyn Fn(&Job, JobState) -> bool| {
        let meant = report.states().filter(|(job, state)| is_meant(job, *state));
        Some(listed(meant.map(|(job, _)| job.id()))).filter(|jobs| !jobs.is_empty())
    };
    let is_left_out = |job: &Job, state| state == JobState::Pending && left_out.contains(job.id());
    let active = jobs(&|_, state| matches!(state, JobState::Queued | JobState::InProgress));
    let pending = jobs(&|job, state| state == JobState::Pending && !is_left_out(job, state));
    let lines = [
        active.map(|jobs| format!("active: {jobs}; the next run polls them")),
        pending.map(|jobs| format!("not submitted: {jobs}; `{plan}` shows them")),
        jobs(&is_left_out).map(|jobs| format!("left for another run: {jobs}; `{plan}` shows them")),
    ];
    lines.into_iter().flatten().collect()
}

/// The command that opens a page on this system.
fn opener() -> &'static str {
    match std::env::consts::OS {
        "macos" => "open",
        // `start` takes its first word in double quotes for a title in `cmd`, and for an error in PowerShell.
        "windows" => "explorer",
        _ => "xdg-open",
    }
}

/// The money, once; the videos, with the reports beside them; and the choices. `reserved` is the sum of the submissions of this run.
fn sum_up(page: &mut Page, report: &Report, reserved: Option<Usd>, beside: &[&Path]) {
    let totals = &report.totals;
    let possible = totals.spent_usd + totals.at_risk_usd + totals.unknown_usd;
    let by_this_run = reserved.filter(|usd| !usd.is_zero() && *usd != possible);
    let by_this_run = by_this_run.map_or_else(String::new, |usd| format!(", {usd:#} reserved by this run"));
    let superseded: Usd =
        report.superseded.iter().filter(|it| it.charge == Charge::Charged).map(|it| it.price_usd).sum();
    let amounts = [
        (totals.at_risk_usd, "at risk"),
        (totals.unknown_usd, "with an undocumented charge"),
        (totals.to_submit_usd, "to submit"),
        (totals.held_usd, "held"),
        // Without it, what was paid for takes that are gone would read like an overrun.
        (superseded, "of the spent for superseded tasks"),
    ];
    let amounts = amounts.iter().filter(|(usd, _)| !usd.is_zero()).map(|(usd, what)| format!(", {usd:#} {what}"));
    let simulated = if report.simulated { " (simulated: nothing was paid)" } else { "" };
    page.line(format_args!("{:#} spent{simulated}{by_this_run}{}", totals.spent_usd, amounts.collect::<String>()));
    let completed = totals.states.get(JobState::Completed.name()).copied().unwrap_or(0);
    if completed > 0 {
        let wanted = completed - totals.archived;
        let missing = if totals.videos < wanted { format!(" of {wanted}") } else { String::new() };
        let archived = if totals.archived > 0 { format!(", {} archived", totals.archived) } else { String::new() };
        let names = beside.iter().filter_map(|path| path.file_name()).map(|name| format!(", {}", name.display()));
        let (directory, reports) =
            (report.directory().display(), names.collect::<String>().replacen(", ", ", with ", 1));
        page.line(format_args!("videos: {}{missing} in {directory}{archived}{reports}", totals.videos));
    }
    let choices = [(JobChoice::Keep, "kept"), (JobChoice::Retake, "to retake"), (JobChoice::Conflict, "in conflict")];
    let choices = choices.map(|(choice, what)| (totals.choices.get(choice.name()).copied().unwrap_or(0), what));
    let choices: Vec<String> =
        choices.iter().filter(|(jobs, _)| *jobs > 0).map(|(jobs, what)| format!("{jobs} {what}")).collect();
    if !choices.is_empty() {
        page.line(format_args!("choices: {}", choices.join(", ")));
    }
    let is_active = |superseded: &&Superseded| matches!(superseded.state, JobState::Queued | JobState::InProgress);
    let active = report.superseded.iter().filter(is_active).count();
    let active = if active > 0 { format!("; the next run polls {active} of them") } else { String::new() };
    if !report.superseded.is_empty() {
        let tasks = count(report.superseded.len(), "task");
        page.line(format_args!("superseded: {tasks} of jobs that were changed, repeated, or removed{active}"));
    }
}

/// The number of jobs, with their states.
pub(super) fn states(totals: &Totals) -> String {
    format!("{}: {}", count(totals.jobs, "job"), counted(totals))
}

/// The states, each with its jobs.
pub(super) fn counted(totals: &Totals) -> String {
    let counted = JobState::ALL.iter().filter_map(|state| {
        let jobs = totals.states.get(state.name()).copied().filter(|&jobs| jobs > 0)?;
        Some(format!("{jobs} {}", state.label()))
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// Sums and jobs as Markdown, at most [`MAX_BYTES`]. The first line is a hidden marker: CI finds its earlier comment by it.
pub(crate) fn status_markdown(report: &Report) -> String {
    use JobState::{Completed, Failed, Held, InDoubt, InProgress, Pending, Queued, Rejected};
    let key = report.key.to_string();
    let mut text = format!("<!-- shotlist status: {} -->\n### Videos: {}\n\n", hidden(&key), escaped(&key));
    if report.simulated {
        text.push_str("This was the simulator: nothing was paid.\n\n");
    }
    let Totals { jobs, spent_usd, at_risk_usd, unknown_usd, to_submit_usd, .. } = &report.totals;
    text.push_str("| jobs | spent | at risk | unknown | to submit |\n|---:|---:|---:|---:|---:|\n");
    let _infallible =
        writeln!(text, "| {jobs} | {spent_usd:#} | {at_risk_usd:#} | {unknown_usd:#} | {to_submit_usd:#} |");
    let _infallible = writeln!(text, "\n{}.\n", states(&report.totals));
    text.push_str("| state | job | model | cost | detail |\n|---|---|---|---:|---|\n");
    let mut left_out = report.totals.jobs;
    'rows: for state in [InDoubt, Failed, Rejected, Pending, Held, InProgress, Queued, Completed] {
        for row in report.rows_in(|of| of == state) {
            let line = line(&row);
            if text.len() + line.len() + LAST_LINE > MAX_BYTES {
                break 'rows;
            }
            text.push_str(&line);
            left_out -= 1;
        }
    }
    if left_out > 0 {
        let _infallible = writeln!(text, "\n{}", no_room(left_out));
    }
    text
}

fn line(row: &Row) -> String {
    let cost = row.cost_usd.map_or_else(|| "?".to_owned(), |cost| format!("{cost:#}"));
    let detail = without_prompt(&detail(row), row.prompt.as_deref());
    format!("| {} | `{}` | {} | {cost} | {} |\n", row.state.label(), row.id, escaped(&row.model), escaped(&detail))
}

/// The maximum columns of a prompt.
const PROMPT: usize = 72;

/// The submissions of a batch that are in doubt, oldest first. `again` makes the printed commands.
pub(crate) fn doubts(history: &History, again: &NextCommand, width: u16) -> Page {
    let mut page = Page::new();
    let doubtful: Vec<&Attempt> = history.attempts().filter(|attempt| attempt.state.is_doubtful()).collect();
    if doubtful.is_empty() {
        page.line("no jobs in doubt");
        return page;
    }
    let at_risk: Usd = doubtful.iter().map(|attempt| attempt.purchase.price).sum();
    page.line(format_args!("{} in doubt, {at_risk:#} at risk", count(doubtful.len(), "submission")));
    page.line("");
    let cells = |attempt: &&Attempt| {
        let (at, cost) = (attempt.intended_at.strftime("%F %T%.3f UTC"), attempt.purchase.price);
        vec![format!("  {}", attempt.job()), at.to_string(), format!("{cost:#}"), prompt(attempt)]
    };
    let columns = [Column::id("  job"), Column::word("sent"), Column::number("cost"), Column::text("prompt")];
    page.table(&columns, doubtful.iter().map(cells), width);
    let mut causes: IndexMap<&str, Vec<String>> = IndexMap::new();
    for attempt in &doubtful {
        let known =
            attempt.error.as_ref().map_or("a run sends it now, or was killed before the response", |it| &it.message);
        causes.entry(known).or_default().push(attempt.job().to_string());
    }
    page.line("");
    for (cause, jobs) in causes {
        // The cause is not shortened: it may contain a task ID.
        page.line(format_args!("  {}: {cause}", listed(jobs)));
    }
    for attempt in doubtful {
        if let Some(id) = held_id(attempt) {
            let command = again.command("resolve", &[attempt.job().as_str(), "--task", &id]);
            page.line(format_args!("  if `{id}` is the task of {}: {command}", attempt.job()));
        }
    }
    page.line("");
    page.line("Look up each job at the service by time and prompt. If a task exists:");
    page.line(format_args!("  {}", again.command("resolve", &["JOB", "--task", "ID"])));
    page.line("If none exists, make the job due again; JOB can be a pattern:");
    page.line(format_args!("  {}", again.command("resolve", &["JOB", "--never-created"])));
    page
}

/// The jobs in doubt of another batch of the same name.
pub(crate) fn doubts_elsewhere(batch: &BatchKey, doubtful: u32, at_risk: Usd, again: &NextCommand) -> String {
    let submissions = count(doubtful, "submission");
    format!("in `{batch}`: {submissions} in doubt, {at_risk:#} at risk: {}", again.command("resolve", &[]))
}

fn prompt(attempt: &Attempt) -> String {
    let sent: serde_json::Value = serde_json::from_str(attempt.purchase.request.body()).unwrap_or_default();
    shortened(sent["prompt"].as_str().unwrap_or_default(), PROMPT)
}

/// JSON pointers to fields of a response that may contain the task ID. None is documented, so the user decides.
const HELD_IDS: &str = "/id /task_id /data/task_id /data/id /data/0/id /output/task_id /job_id /request_id";

/// The possible task ID in the response to a job in doubt.
fn held_id(attempt: &Attempt) -> Option<String> {
    let response = &attempt.error.as_ref()?.raw;
    let text = |place: &str| response.pointer(place)?.as_str().map(str::to_owned);
    HELD_IDS.split(' ').find_map(text).filter(|id| TaskId::new(id.as_str()).is_some())
}
