//! What went wrong, above the videos: a line for each state that asks for somebody.

use serde::Serialize;

use crate::report::row::{JobState, Totals};
use crate::report::{Commands, Report};

/// The jobs of one state that asks for somebody.
#[derive(Serialize)]
pub(super) struct Problem {
    state: &'static str,
    told: String,
    command: Option<String>,
}

/// What asks for somebody, the worst first.
pub(super) fn problems(report: &Report, commands: Option<&Commands>) -> Vec<Problem> {
    let Totals { at_risk_usd, states, .. } = &report.totals;
    let problem = |state: JobState, rest: String, command: Option<(&str, &[&str])>| {
        let count = states.get(state.name()).copied().filter(|&count| count > 0)?;
        let command = commands.zip(command).map(|(commands, (name, rest))| commands.line(name, rest));
        Some(Problem { state: state.name(), told: format!("{count} {}{rest}", state.label()), command })
    };
    let found = [
        problem(JobState::InDoubt, format!(": ${at_risk_usd} at risk, for a person to settle"), Some(("resolve", &[]))),
        problem(
            JobState::Failed,
            ": tried again only when asked, and costs again".to_owned(),
            Some(("run", &["--retry-failed"])),
        ),
        problem(JobState::Rejected, ": not charged".to_owned(), Some(("status", &["-v"]))),
        problem(JobState::Held, ": waiting for a face review".to_owned(), None),
    ];
    found.into_iter().flatten().collect()
}
