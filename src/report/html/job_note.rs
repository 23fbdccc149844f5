//! Text in place of a missing video: the reason, what it means for the money, and the next step.

use jiff::Timestamp;

use crate::report::Commands;
use crate::report::row::{JobState, Row};

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
