//! Text in place of a missing video: the reason, what it means for the money, and the next step.

use jiff::Timestamp;

use crate::report::row::{JobState, Row, Totals};
use crate::report::{Commands, Report};

/// The reason why a job has no video, as text.
pub(super) struct JobNote {
    /// The cause, with the service's message if there is one.
    pub cause: Option<String>,
    /// Since when, if it was sent.
    pub since: Option<Timestamp>,
    /// The meaning, and the next step.
    pub next: String,
    /// The command.
    pub command: Option<String>,
}

impl JobNote {
    /// The note of a job. `None` for a completed one, unless its video was archived.
    pub(super) fn for_row(row: &Row, commands: Option<&Commands>) -> Option<Self> {
        let line = |name: &str, rest: &[&str]| commands.map(|commands| commands.line(name, rest));
        let (next, command) = match row.state {
            JobState::Completed => match row.archived_at.filter(|_| row.file.is_none()) {
                Some(at) => (format!("Archived on {}. Runs don't download it again.", at.strftime("%F")), None),
                None => return None,
            },
            JobState::InDoubt => (
                format!("${} at risk. Look for its task at the service, and settle it.", row.at_risk_usd),
                line("resolve", &[]),
            ),
            JobState::Failed => (
                format!("Trying again costs ${}.", row.price_usd),
                line("run", &["--select", &row.id, "--retry-failed"]),
            ),
            JobState::Rejected => {
                ("Nothing was charged. The next run asks again.".to_owned(), line("run", &["--select", &row.id]))
            }
            JobState::Held => {
                let face = row.face.as_deref().unwrap_or_default();
                (
                    format!(
                        "Waits for the review of {face}. Once that is through, write review: approved and paid_on."
                    ),
                    None,
                )
            }
            JobState::Queued | JobState::InProgress => ("At the service. The next run finishes it.".to_owned(), None),
            JobState::Pending if row.error_message.is_some() => {
                ("Nothing was charged. The next run with --asset-command tries again.".to_owned(), None)
            }
            JobState::Pending => ("Not sent yet.".to_owned(), None),
        };
        let since = row.submitted_at;
        Some(Self { cause: cause(row), since, next, command })
    }
}

/// The error, with the service's code.
fn cause(row: &Row) -> Option<String> {
    let message = row.error_message.as_deref().filter(|message| !message.is_empty());
    match (message, row.error_code.as_deref()) {
        (Some(message), Some(code)) => Some(format!("{message} ({code})")),
        (one, other) => one.or(other).map(str::to_owned),
    }
}

/// Jobs that ask for someone, for one reason.
pub(super) struct Problem {
    /// The filter of a click: a state, or another mark of the cards.
    pub shows: &'static str,
    pub color: &'static str,
    pub text: String,
    pub command: Option<String>,
}

/// The most of a reason that is above the cards, in characters: the card has all of it.
const MAX_REASON: usize = 120;

/// Marks of cards besides their state: jobs that were due and not sent, videos whose program is due, and videos that differ from their request.
pub(super) const UNSENT: &str = "unsent";
pub(super) const EXEC: &str = "exec";
pub(super) const MISMATCH: &str = "mismatch";

/// The problems, the worst first.
pub(super) fn problems(report: &Report, commands: Option<&Commands>) -> Vec<Problem> {
    let Totals { at_risk_usd, states, exec_failed, exec_owed, mismatched, mismatched_usd, .. } = &report.totals;
    let line = |name: &str, rest: &[&str]| commands.map(|commands| commands.line(name, rest));
    let problem = |state: JobState, rest: String, command: Option<(&str, &[&str])>| {
        let count = states.get(state.name()).copied().filter(|&count| count > 0)?;
        let (name, command) = (state.name(), command.and_then(|(name, rest)| line(name, rest)));
        Some(Problem { shows: name, color: name, text: format!("{count} {}{rest}", state.label()), command })
    };
    let unsent = (report.unsent > 0).then(|| Problem {
        shows: UNSENT,
        color: JobState::Pending.name(),
        text: format!(
            "{} not sent, and not charged: {}; the next run with --asset-command tries again",
            report.unsent,
            why_unsent(report)
        ),
        command: None,
    });
    let exec = [(*exec_failed, "failed"), (*exec_owed, "not started")];
    let exec: Vec<String> = exec
        .into_iter()
        .filter(|(videos, _)| *videos > 0)
        .map(|(videos, what)| format!("{what} for {videos}"))
        .collect();
    let exec = (!exec.is_empty()).then(|| Problem {
        shows: EXEC,
        color: JobState::Failed.name(),
        text: format!("--exec: {}; the next run with it starts it again", exec.join(", ")),
        command: None,
    });
    let differs = (*mismatched > 0).then(|| Problem {
        shows: MISMATCH,
        color: JobState::Failed.name(),
        text: format!(
            "{mismatched} {} what was paid for: ${mismatched_usd}; see mismatches.csv",
            if *mismatched == 1 { "video does not match" } else { "videos do not match" }
        ),
        command: None,
    });
    let found = [
        problem(JobState::InDoubt, format!(": ${at_risk_usd} at risk; resolve them"), Some(("resolve", &[]))),
        problem(
            JobState::Failed,
            ": tried again only when asked, and costs again".to_owned(),
            Some(("run", &["--retry-failed"])),
        ),
        problem(JobState::Rejected, ": not charged".to_owned(), Some(("status", &["-v"]))),
        differs,
        unsent,
        exec,
        problem(JobState::Held, ": waiting for a face review".to_owned(), None),
    ];
    found.into_iter().flatten().collect()
}

/// The reason why jobs were not sent, of the first one.
fn why_unsent(report: &Report) -> String {
    let mut reasons = report.rows_in(|state| state == JobState::Pending).filter_map(|row| row.error_message);
    let first = reasons.next().unwrap_or_default();
    let line = first.trim_start_matches("not sent: ");
    let short: String = line.chars().take(MAX_REASON).collect();
    if short == line { short } else { format!("{short}…") }
}
