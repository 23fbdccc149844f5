//! How a run ended: its exit code, and what no later run makes up for.

use std::collections::HashSet;
use std::sync::Arc;

use super::args::AgainArgs;
use super::exit::Exit;
use crate::domain::{Job, JobId};
use crate::report::{JobState, Report};
use crate::session::{EngineOutcome, StopReason};
use crate::ui::Terminal;

/// The exit code: the worst of what the selected jobs and the run itself say.
pub(super) fn exit<'j>(selected: impl Iterator<Item = &'j Arc<Job>>, report: &Report, run: &EngineOutcome) -> Exit {
    let selected: HashSet<&JobId> = selected.map(|job| &job.id).collect();
    let jobs = report.states().filter(|(job, _)| selected.contains(&job.id)).map(|(_, state)| match state {
        JobState::Completed => Exit::Done,
        JobState::Held => Exit::Held,
        JobState::InDoubt => Exit::InDoubt,
        // Whatever else it is, it is not what was asked for; a reason to stop says more below.
        _ => Exit::SomeFailed,
    });
    // A row shows the video that there is; a retake of it that failed is a failure all the same.
    let late = run.past_deadline > 0 || run.unfetched > 0 || run.failures > 0;
    let late = late.then_some(Exit::SomeFailed);
    let stopped = run.stopped.iter().map(|reason| match reason {
        StopReason::TooManyFailures | StopReason::TimeBox => Exit::SomeFailed,
        StopReason::TooManyDoubts => Exit::InDoubt,
        StopReason::SpendLimit => Exit::NotAllowed,
        StopReason::Unreachable => Exit::Unreachable,
        StopReason::KeyRefused => Exit::KeyRefused,
        StopReason::LedgerFailed | StopReason::FilesFailed => Exit::CannotWrite,
        StopReason::Signal(number) => Exit::Signal(*number),
    });
    jobs.chain(late).chain(stopped).max().unwrap_or(Exit::Done)
}

/// A later run finishes what is due, and does not take or try again what nobody asks for then.
pub(super) fn say_what_was_not_asked_for_again(again: &AgainArgs, run: &EngineOutcome, terminal: &Terminal) {
    let options = [("--retake", !again.retake.is_empty()), ("--retry-failed", again.retry_failed)];
    let given: Vec<&str> = options.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect();
    if !run.stopped.is_empty() && !given.is_empty() {
        let given = given.join(" and ");
        terminal.failure(&format!("the run ended early: what it did not come to needs {given} again"));
    }
}
