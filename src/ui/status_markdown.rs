//! States of a batch as GitHub-flavored Markdown, for the summary of a CI job or a comment. Contains no prompt, even if the service repeats one.

use std::fmt::Write as _;

use super::lines::without_prompt;
use super::markdown::{escaped, hidden, no_room};
use super::status::states;
use crate::domain::text::until_prompt;
use crate::report::{JobState, Report, Row, Totals};

/// The length of the whole text in bytes, at most: below GitHub's 65,536 characters of a comment.
const MAX_BYTES: usize = 60_000;
/// Room behind the rows for the count of omitted jobs.
const LAST_LINE_BYTES: usize = 200;
/// The order of the rows: first the states that need the user.
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

/// Sums and jobs, at most [`MAX_BYTES`]. The first line is a hidden marker, by which CI finds its earlier comment.
pub(crate) fn status_markdown(report: &Report) -> String {
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
    'rows: for state in ORDER {
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
