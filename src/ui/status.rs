//! States of jobs, and the end of a run.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use indexmap::IndexMap;
use unicode_width::UnicodeWidthStr as _;

use super::command::NextCommand;
use super::markdown::{escaped, hidden, no_room};
use super::page::Page;
use super::table::{Column, first_few, shortened, without_prompt};
use crate::domain::count;
use crate::domain::quoted;
use crate::domain::text::until_prompt;
use crate::domain::{Attempt, BatchKey, Charge, History, Job, JobChoice, JobId, TaskId, Usd};
use crate::report::{ExecOutcome, Form, JobState, Report, Row, Superseded, Totals, form_of};

/// The most jobs that are listed one by one, unless more is asked for.
const LISTED: usize = 40;
/// The most causes that are reported at the end of a run, the most jobs that are named with each, and the most of its words.
const CAUSES: usize = 8;
const NAMED: usize = 5;
const WHY: usize = 200;

/// The states of jobs as text of this width, one per line. Of many jobs, only incomplete ones are listed; with `all`,
/// every job is, and nothing is cut off.
pub(crate) fn status_text(report: &Report, again: &NextCommand, width: u16, all: bool) -> Page {
    let mut page = Page::new();
    page.line(format_args!("{}: {}", report.key, count(report.totals.jobs, "job")));
    page.line("");
    let lists_completed = all || report.totals.jobs <= LISTED;
    let rows: Vec<Row> = report.rows_in(|state| lists_completed || state != JobState::Completed).collect();
    let most = if all { usize::MAX } else { LISTED };
    let columns = [
        Column::word("  state"),
        Column::id("job"),
        Column::word("model").spare(),
        Column::number("cost"),
        Column::text("detail"),
    ];
    if !rows.is_empty() {
        let cells = rows.iter().take(most).map(cells);
        if all {
            page.whole_table(&columns, cells, width);
        } else {
            page.table(&columns, cells, width);
        }
        if rows.len() > most {
            page.line(format_args!("  … and {} more (-v lists all)", rows.len() - most));
        }
        page.line("");
    }
    sum_up(&mut page, report, again);
    if !all {
        // The causes, which the table does not show.
        for line in causes(report) {
            page.line(line);
        }
    }
    page
}

fn cells(row: &Row) -> Vec<String> {
    let is_missing = row.state == JobState::Completed && row.file.is_none();
    let archived = row.archived_at.filter(|_| is_missing).map(|at| format!("archived on {}", at.strftime("%F")));
    let exec = row.exec.as_ref().and_then(|exec| exec.error.as_deref()).map(|error| format!("exec: {error}"));
    let reviewers = row.reviewer.as_deref().filter(|_| row.choice == Some(JobChoice::Conflict));
    let disagree = reviewers.map(|reviewers| format!("reviewers disagree: {reviewers}"));
    let shown = row
        .error_message
        .as_deref()
        .or(exec.as_deref())
        .or(disagree.as_deref())
        .or(row.file.as_deref())
        .or(archived.as_deref())
        .or(row.declared.as_deref());
    let detail = match shown {
        Some(detail) => detail,
        None if is_missing => "no video on this machine",
        None => row.task_id.as_deref().unwrap_or(""),
    };
    vec![
        format!("  {}", row.state.label()),
        row.id.clone(),
        row.model.clone(),
        row.cost_usd.map_or_else(|| "?".to_owned(), |cost| format!("${cost}")),
        shortened(detail, usize::MAX),
    ]
}

/// The end of a run, for stdout: `reserved` is the sum of its submissions, `left_out` are due jobs that it was not to submit, and `again` leads
/// back to it.
pub(crate) fn summary_text(
    report: &Report,
    reserved: Option<Usd>,
    left_out: &HashSet<JobId>,
    again: &NextCommand,
    reports: &[&Path],
) -> Page {
    let mut page = Page::new();
    sum_up(&mut page, report, again);
    if let Some(reserved) = reserved {
        page.line(format_args!("reserved: ${reserved} by this run"));
    }
    for line in causes(report) {
        page.line(line);
    }
    if report.totals.states.get(JobState::Failed.name()).is_some_and(|&failed| failed > 0) {
        page.line("failed: `--retry-failed` retries, and costs again");
    }
    for line in not_done(report, left_out, again) {
        page.line(line);
    }
    if report.simulated {
        page.line("This was the simulator: nothing was paid.");
    }
    let (pages, others): (Vec<&Path>, Vec<&Path>) = reports.iter().partition(|path| form_of(path) == Some(Form::Html));
    for path in others {
        page.line(format_args!("report: {}", path.display()));
    }
    // Last, because that is what everybody wants to do next.
    for path in pages {
        page.line(format_args!("to look at it: {} {}", opener(), quoted(&path.to_string_lossy())));
    }
    page
}

/// The jobs that the next run continues, with its command. It names the batch, because tomorrow's template makes
/// another one.
fn not_done(report: &Report, left_out: &HashSet<JobId>, again: &NextCommand) -> Vec<String> {
    // Only shown: on another day, `{{ today }}` in a prompt asks for another video, and the user has to see that before it is bought.
    let plan = again.command("run", &["--plan"]);
    let jobs = |is_meant: &dyn Fn(&Job, JobState) -> bool| {
        let meant = report.states().filter(|(job, state)| is_meant(job, *state));
        first_few(meant.map(|(job, _)| job.id().to_string()), NAMED)
    };
    let is_left_out = |job: &Job, state| state == JobState::Pending && left_out.contains(job.id());
    let active = jobs(&|_, state| matches!(state, JobState::Queued | JobState::InProgress));
    let pending = jobs(&|job, state| state == JobState::Pending && !is_left_out(job, state));
    [
        active.map(|jobs| format!("active: {jobs}; the next run polls them")),
        pending.map(|jobs| format!("not submitted: {jobs}; `{plan}` shows them")),
        jobs(&is_left_out).map(|jobs| format!("left for another run: {jobs}; `{plan}` shows them")),
    ]
    .into_iter()
    .flatten()
    .collect()
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

/// The errors, once for all jobs with the same, and what may be the reason: a real face without a review is rejected, or generation fails
/// (interface §3).
fn causes(report: &Report) -> Vec<String> {
    let is_bad = |state| matches!(state, JobState::Failed | JobState::Rejected);
    let mut lines = errors(report);
    if report.states().any(|(job, state)| is_bad(state) && job.has_no_review) {
        lines.push(
            "if a video shows a real person, its face needs a review first: `shotlist help manifest`, `faces`"
                .to_owned(),
        );
    }
    lines
}

fn errors(report: &Report) -> Vec<String> {
    let mut groups: IndexMap<(String, String), Vec<String>> = IndexMap::new();
    for row in report.rows() {
        // One that is pending has a message only if it was its turn.
        let is_bad = row.state != JobState::Completed;
        let waits = row.face.filter(|_| row.state == JobState::Held).map(|face| {
            format!("waits for the review of {face}; then write `review: approved` and `paid_on` under `faces`")
        });
        let own = row.error_message.filter(|_| is_bad).or(waits).map(|message| (row.state.label(), message));
        let of_exec = row.exec.and_then(|exec| {
            let what = if exec.outcome == ExecOutcome::Owed { "exec owed" } else { "exec failed" };
            Some((what.to_owned(), exec.error?))
        });
        for cause in [own, of_exec].into_iter().flatten() {
            groups.entry(cause).or_default().push(row.id.clone());
        }
    }
    let shown = groups.iter().take(CAUSES).map(|((what, why), jobs)| {
        let more = if jobs.len() > NAMED { ", …" } else { "" };
        let names = jobs.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("{what}, {}: {}: {names}{more}", count(jobs.len(), "job"), shortened(why, WHY))
    });
    let hidden = groups.len().saturating_sub(CAUSES);
    shown.chain((hidden > 0).then(|| format!("… and {hidden} more causes (`status -v` has all)"))).collect()
}

fn sum_up(page: &mut Page, report: &Report, again: &NextCommand) {
    let totals = &report.totals;
    page.line(states(totals));
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
        page.line(format_args!("unknown: ${} for tasks whose charge is undocumented", totals.unknown_usd));
    }
    let completed = totals.states.get(JobState::Completed.name()).copied().unwrap_or(0);
    if completed > 0 {
        let wanted = completed - totals.archived;
        let missing = if totals.videos < wanted { format!(" of {wanted}") } else { String::new() };
        let archived = if totals.archived > 0 { format!(", {} archived", totals.archived) } else { String::new() };
        page.line(format_args!("videos: {}{missing} in {}{archived}", totals.videos, report.directory().display()));
    }
    let choices = [(JobChoice::Keep, "kept"), (JobChoice::Retake, "to retake"), (JobChoice::Conflict, "in conflict")];
    let choices = choices.map(|(choice, what)| (totals.choices.get(choice.name()).copied().unwrap_or(0), what));
    let choices: Vec<String> =
        choices.iter().filter(|(jobs, _)| *jobs > 0).map(|(jobs, what)| format!("{jobs} {what}")).collect();
    if !choices.is_empty() {
        page.line(format_args!("choices: {}", choices.join(", ")));
    }
    let exec = [("failed", totals.exec_failed), ("not started", totals.exec_owed)];
    let exec: Vec<String> = exec
        .into_iter()
        .filter(|(_, videos)| *videos > 0)
        .map(|(what, videos)| format!("{what} for {}", count(videos, "video")))
        .collect();
    if !exec.is_empty() {
        page.line(format_args!("exec: {}; the next run with `--exec` repeats them", exec.join(", ")));
    }
    if totals.mismatched > 0 {
        let videos = count(totals.mismatched, "video");
        page.line(format_args!("mismatch: {videos} for ${}; `mismatches.csv` lists them", totals.mismatched_usd));
    }
    let is_active = |superseded: &&Superseded| matches!(superseded.state, JobState::Queued | JobState::InProgress);
    let active = report.superseded.iter().filter(is_active).count();
    if active > 0 {
        page.line(format_args!("active: {} of other jobs; the next run polls them", count(active, "task")));
    }
    if !report.superseded.is_empty() {
        page.line(format_args!(
            "superseded: {} of jobs that were changed, repeated, or removed",
            count(report.superseded.len(), "task")
        ));
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

/// The length of the whole text in bytes, at most: below GitHub's 65,536 characters of a comment.
const MAX_BYTES: usize = 60_000;
/// Room behind the rows for the count of omitted jobs.
const LAST_LINE_BYTES: usize = 200;
/// Sums and jobs, at most [`MAX_BYTES`]. The first line is a hidden marker, by which CI finds its earlier comment.
pub(crate) fn status_markdown(report: &Report) -> String {
    use JobState::{Completed, Failed, Held, InDoubt, InProgress, Pending, Queued, Rejected};
    let key = report.key.to_string();
    let mut text = format!("<!-- shotlist status: {} -->\n### Videos: {}\n\n", hidden(&key), escaped(&key));
    if report.simulated {
        text.push_str("This was the simulator: nothing was paid.\n\n");
    }
    let Totals { jobs, spent_usd, at_risk_usd, unknown_usd, to_submit_usd, .. } = &report.totals;
    text.push_str("| jobs | spent | at risk | unknown | to submit |\n|---:|---:|---:|---:|---:|\n");
    let _infallible = writeln!(text, "| {jobs} | ${spent_usd} | ${at_risk_usd} | ${unknown_usd} | ${to_submit_usd} |");
    let _infallible = writeln!(text, "\n{}.\n", states(&report.totals));
    text.push_str("| state | job | model | cost | detail |\n|---|---|---|---:|---|\n");
    let mut left_out = report.totals.jobs;
    'rows: for state in [InDoubt, Failed, Rejected, Pending, Held, InProgress, Queued, Completed] {
        for row in report.rows_in(|of| of == state) {
            let line = line(&row);
            if text.len() + line.len() + LAST_LINE_BYTES > MAX_BYTES {
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
    let cost = row.cost_usd.map_or_else(|| "?".to_owned(), |cost| format!("${cost}"));
    let prompt = row.prompt.as_deref();
    let exec = row.exec.as_ref().and_then(|exec| exec.error.as_ref());
    let exec = exec.map(|error| format!("exec: {}", until_prompt(error, prompt)));
    let error = row.error_message.as_ref().map(|message| without_prompt(message, prompt));
    let detail = error.or(exec).or_else(|| row.file.clone()).unwrap_or_default();
    format!("| {} | `{}` | {} | {cost} | {} |\n", row.state.label(), row.id, escaped(&row.model), escaped(&detail))
}

/// The columns of an id and of a prompt, where there is too much of them.
const ID: usize = 32;
const PROMPT: usize = 72;

/// The submissions of a batch of which no one knows what came, oldest first; `again` is what leads back to it.
pub(crate) fn doubts(history: &History, again: &NextCommand) -> Page {
    let mut page = Page::new();
    let doubtful: Vec<&Attempt> = history.attempts().filter(|attempt| attempt.state.is_doubtful()).collect();
    if doubtful.is_empty() {
        page.line("no jobs in doubt");
        return page;
    }
    let at_risk: Usd = doubtful.iter().map(|attempt| attempt.purchase.price).sum();
    page.line(format_args!("{} in doubt, ${at_risk} at risk", count(doubtful.len(), "submission")));
    page.line("");
    let widest = |text: fn(&Attempt) -> String| doubtful.iter().map(|attempt| text(attempt).width()).max().unwrap_or(0);
    let (jobs, costs) = (widest(job), widest(cost));
    for attempt in doubtful {
        let (job, cost, at) = (job(attempt), cost(attempt), attempt.intended_at.strftime("%F %T%.3f UTC"));
        page.line(format_args!("  {job:jobs$}  {at}  {cost:>costs$}  {}", prompt(attempt)));
        // In full: the id of a task may be in it.
        page.line(format_args!("  {:jobs$}  {}", "", known(attempt)));
        if let Some(id) = held_id(attempt) {
            let command = again.command("resolve", &[attempt.job().as_str(), "--task", &id]);
            page.line(format_args!("  {:jobs$}  if `{id}` is its task: {command}", ""));
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
    let submissions = count(usize::try_from(doubtful).unwrap_or(usize::MAX), "submission");
    format!("in `{batch}`: {submissions} in doubt, ${at_risk} at risk: {}", again.command("resolve", &[]))
}

fn job(attempt: &Attempt) -> String {
    shortened(attempt.job().as_str(), ID)
}

fn cost(attempt: &Attempt) -> String {
    format!("${}", attempt.purchase.price)
}

fn prompt(attempt: &Attempt) -> String {
    let sent: serde_json::Value = serde_json::from_str(attempt.purchase.request.body()).unwrap_or_default();
    shortened(sent["prompt"].as_str().unwrap_or_default(), PROMPT)
}

/// The fields of a response that may hold the task ID, as JSON pointers. None of them is documented, so the user decides.
const HELD_IDS: &str = "/id /task_id /data/task_id /data/id /data/0/id /output/task_id /job_id /request_id";

/// The task ID that the response to a job in doubt may hold.
fn held_id(attempt: &Attempt) -> Option<String> {
    let response = &attempt.error.as_ref()?.raw;
    let text = |place: &str| response.pointer(place)?.as_str().map(str::to_owned);
    HELD_IDS.split(' ').find_map(text).filter(|id| TaskId::new(id.as_str()).is_some())
}

fn known(attempt: &Attempt) -> &str {
    attempt.error.as_ref().map_or("a run sends it now, or was killed before the response", |error| &error.message)
}
