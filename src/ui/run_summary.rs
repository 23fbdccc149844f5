//! Summary of a run: as Markdown, as a few lines, and as the last event of a JSON log. None of them contains a prompt,
//! even if the service repeats one.

use std::fmt::Write as _;

use super::lines::{count, first_few, without_prompt};
use super::markdown::{escaped, hidden, no_room};
use crate::domain::BatchKey;
use crate::domain::printable::{one_line, until_prompt};
use crate::report::{JobState, Report, Row, Totals};

/// The beginning of a summary, which identifies it.
pub(crate) const SUMMARY_MARK: &str = "<!-- shotlist summary: ";
/// The most that a summary takes, in bytes: what GitHub shows on the page of a job is 1 MiB (spec §8).
const MOST: usize = 900_000;
/// Room behind the rows for how many are left out.
const LAST_LINE: usize = 200;
/// The most jobs that a short summary names.
const NAMED: usize = 20;

/// The end of a run, as far as it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSummary<'t> {
    /// The batch.
    pub key: &'t BatchKey,
    /// The exit code, and what it says.
    pub exit_code: u8,
    pub meaning: &'static str,
    /// The reason of a refusal, or for which jobs were not submitted.
    pub why: Option<&'t str>,
    /// True for a sandbox run.
    pub is_simulated: bool,
    /// The states of the batch, if they are known.
    pub report: Option<&'t Report>,
}

/// The jobs that ask for someone first, and within that as in the manifest.
const ORDER: [JobState; 8] = [
    JobState::InDoubt,
    JobState::Failed,
    JobState::Rejected,
    JobState::Pending,
    JobState::Held,
    JobState::InProgress,
    JobState::Queued,
    JobState::Completed,
];

/// A summary as GitHub-flavoured Markdown: sums, then what is wrong, then as many of the other jobs as fit.
pub(crate) fn summary_markdown(summary: &RunSummary<'_>) -> String {
    let RunSummary { key, exit_code, meaning, why, is_simulated, report } = *summary;
    let mut text = format!("{SUMMARY_MARK}{} -->\n", hidden(&key.to_string()));
    let mut put = |line: String| {
        let _infallible = writeln!(text, "{line}");
    };
    put(format!("### Videos: {}\n", escaped(&key.to_string())));
    put(format!("**Exit {exit_code}: {meaning}.**{}\n", simulated(is_simulated)));
    if let Some(why) = why {
        put(format!("{}\n", escaped(why)));
    }
    let Some(report) = report else { return text };
    put("| jobs | spent | at risk | unknown | to submit |\n|---:|---:|---:|---:|---:|".to_owned());
    let Totals { jobs, spent_usd, at_risk_usd, unknown_usd, to_submit_usd, .. } = &report.totals;
    put(format!("| {jobs} | ${spent_usd} | ${at_risk_usd} | ${unknown_usd} | ${to_submit_usd} |\n"));
    put(format!("{}.\n", states(&report.totals)));
    put("| state | job | model | cost | detail |\n|---|---|---|---:|---|".to_owned());
    let mut left_out = report.totals.jobs;
    'rows: for state in ORDER {
        for row in report.rows_in(|of| of == state) {
            let line = line(&row);
            if text.len() + line.len() + LAST_LINE > MOST {
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
    let exec = row
        .exec
        .as_ref()
        .and_then(|exec| exec.error.as_ref())
        .map(|error| format!("exec: {}", until_prompt(error, row.prompt.as_deref())));
    // A service may repeat what it was asked for.
    let said = row.error_message.as_ref().map(|said| without_prompt(said, row.prompt.as_deref()));
    let detail = said.or(exec).or_else(|| row.file.clone()).unwrap_or_default();
    format!("| {} | `{}` | {} | {cost} | {} |\n", row.state.label(), row.id, escaped(&row.model), escaped(&detail))
}

/// A few lines: how it ended, sums, and which jobs ask for someone.
pub(crate) fn short_summary(summary: &RunSummary<'_>) -> String {
    let RunSummary { key, exit_code, meaning, is_simulated, report, .. } = *summary;
    let key = one_line(&key.to_string());
    let mut text = format!("{key}: exit {exit_code}, {meaning}{}\n", simulated(is_simulated));
    let Some(report) = report else { return text };
    let Totals { spent_usd, at_risk_usd, unknown_usd, .. } = &report.totals;
    let sums = format!("spent ${spent_usd}, at risk ${at_risk_usd}, unknown ${unknown_usd}");
    let _infallible = writeln!(text, "{}\n{sums}", states(&report.totals));
    for state in [JobState::InDoubt, JobState::Failed, JobState::Rejected, JobState::Pending] {
        let jobs = report.states().filter(|(_, of)| *of == state).map(|(job, _)| job.id.to_string());
        if let Some(jobs) = first_few(jobs, NAMED) {
            let _infallible = writeln!(text, "{}: {jobs}", state.label());
        }
    }
    text
}

/// Writes the last event of a JSON log. Of a quiet run that succeeded, there is none.
pub(crate) fn log_finished(summary: &RunSummary<'_>) {
    let RunSummary { key, exit_code, meaning, is_simulated, report, .. } = *summary;
    let totals = report.map(|report| &report.totals);
    let usd = |sum: fn(&Totals) -> crate::domain::Usd| totals.map(|totals| sum(totals).to_string());
    let (spent_usd, at_risk_usd, unknown_usd) =
        (usd(|totals| totals.spent_usd), usd(|totals| totals.at_risk_usd), usd(|totals| totals.unknown_usd));
    let jobs = totals.map(|totals| totals.jobs);
    let of = |state: JobState| totals.map(|totals| totals.states.get(state.name()).copied().unwrap_or(0));
    let (completed, failed, rejected) = (of(JobState::Completed), of(JobState::Failed), of(JobState::Rejected));
    let (in_doubt, pending, held) = (of(JobState::InDoubt), of(JobState::Pending), of(JobState::Held));
    let (queued, in_progress) = (of(JobState::Queued), of(JobState::InProgress));
    let (name, batch) = (&*key.name, &*key.batch);
    // An event's level is a part of its type.
    macro_rules! finished {
        ($level:ident) => {
            tracing::$level!(
                event = "finished",
                name,
                batch,
                exit_code,
                message = meaning,
                simulated = is_simulated,
                jobs,
                completed,
                failed,
                rejected,
                in_doubt,
                pending,
                held,
                queued,
                in_progress,
                spent_usd,
                at_risk_usd,
                unknown_usd
            )
        };
    }
    if exit_code == 0 { finished!(info) } else { finished!(warn) }
}

/// The mark of a sandbox run, whose sums are no money.
fn simulated(is_simulated: bool) -> &'static str {
    if is_simulated { " This was the simulator: nothing was paid." } else { "" }
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
