//! End of a run: its purchases, its exit code, and failures that no later run repairs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::args::RepeatArgs;
use super::exit::Exit;
use crate::domain::{Job, JobId, NoticeCode, Usd};
use crate::plan::{Action, Plan};
use crate::report::{JobState, Report};
use crate::session::{EngineOutcome, RunEvent, StopReason};
use crate::ui::{NextCommand, Terminal};

/// The most jobs that are named where none was bought: then the same words ask for the same.
const NAMED: usize = 20;

/// The purchases of a run, by its events.
#[derive(Default)]
pub(super) struct Bought {
    /// The possible charges of recorded submissions.
    reserved: Usd,
    /// The charges of tasks that are not recorded yet.
    rescued: HashMap<JobId, Usd>,
    /// Jobs that were asked for again, in manifest order.
    wanted: Vec<JobId>,
    /// Those of them that were submitted.
    submitted: HashSet<JobId>,
}

impl Bought {
    /// No purchases yet, by a run of this plan.
    pub(super) fn by(plan: &Plan) -> Self {
        let wanted = plan.jobs.iter().filter(|planned| planned.action == Action::Retry);
        Self { wanted: wanted.map(|planned| planned.job.id().clone()).collect(), ..Self::default() }
    }

    /// Records the possible charge of an event.
    pub(super) fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Submitted { job, price, .. } | RunEvent::InDoubt { job, price, .. } => {
                self.rescued.remove(job);
                self.reserved += *price;
                if !self.wanted.is_empty() {
                    self.submitted.insert(job.clone());
                }
            }
            RunEvent::TaskNotRecorded { job, price, .. } => {
                self.rescued.insert(job.clone(), *price);
            }
            _ => {}
        }
    }

    /// The retries and retakes that were not submitted.
    fn left(&self) -> Vec<&str> {
        let is_left = |id: &&JobId| !self.submitted.contains(*id) && !self.rescued.contains_key(*id);
        self.wanted.iter().filter(is_left).map(JobId::as_str).collect()
    }

    /// The sum that may have been charged.
    pub(super) fn reserved(&self) -> Usd {
        self.reserved + self.rescued.values().copied().sum()
    }
}

/// The exit code: the worst of what the selected jobs and the run itself say.
pub(super) fn exit<'j>(selected: impl Iterator<Item = &'j Arc<Job>>, report: &Report, run: &EngineOutcome) -> Exit {
    let selected: HashSet<&JobId> = selected.map(|job| job.id()).collect();
    let jobs = report.states().filter(|(job, _)| selected.contains(job.id())).map(|(_, state)| match state {
        JobState::Completed => Exit::Done,
        JobState::Held => Exit::Held,
        JobState::InDoubt => Exit::InDoubt,
        // No other state is a success; a reason to stop says more below.
        _ => Exit::SomeFailed,
    });
    // A row shows the video that there is; a retake of it that failed is a failure anyway.
    let late =
        run.past_deadline > 0 || run.unfetched > 0 || run.failures > 0 || run.is_model_stopped || run.mismatches > 0;
    let late = late.then_some(Exit::SomeFailed);
    let stopped = run.stopped.iter().map(|reason| match reason {
        StopReason::TooManyFailures => Exit::SomeFailed,
        StopReason::TooManyDoubts => Exit::InDoubt,
        StopReason::SpendLimit | StopReason::Frozen | StopReason::PaidElsewhere => Exit::NotAllowed,
        StopReason::Unreachable => Exit::Unreachable,
        StopReason::KeyRefused => Exit::KeyRefused,
        StopReason::LedgerFailed | StopReason::LeaseExpired | StopReason::FilesFailed => Exit::CannotWrite,
        StopReason::Signal(number) => Exit::Signal(*number),
    });
    jobs.chain(late).chain(stopped).max().unwrap_or(Exit::Done)
}

/// A later run finishes what is due, and does not take or try again what no one asks for then. Whoever asks in the same words may pay twice
/// for what this run came to, unless those are `to_repeat`.
pub(super) fn say_what_was_not_bought_again(
    args: &RepeatArgs,
    bought: &Bought,
    again: &NextCommand,
    to_repeat: Option<&str>,
    terminal: &Terminal,
) {
    let left = bought.left();
    let (count, wanted) = (left.len(), bought.wanted.len());
    if left.is_empty() {
        return;
    }
    let select = if let [one] = left[..] { one.to_owned() } else { format!("{{{}}}", left.join(",")) };
    let retry = args.retry_failed.then_some("--retry-failed");
    let how = match to_repeat {
        Some(command) => format!("`{command}` buys them, and none twice"),
        None if count == wanted && count > NAMED => {
            let options = (!args.retake.is_empty()).then_some("--retake").into_iter().chain(retry);
            format!("they need {} again", options.collect::<Vec<_>>().join(" and "))
        }
        None => {
            let mut options = vec!["--select", select.as_str()];
            // Choices may name other jobs, too, which are not selected here.
            options.extend((!args.retake.is_empty()).then_some(["--retake", "*"]).into_iter().flatten());
            options.extend(retry);
            format!("`{}` buys them alone", again.command("run", &options))
        }
    };
    let left = format!("the run ended early: {count} of {wanted} jobs to repeat were not submitted; {how}");
    terminal.failure(NoticeCode::NotBoughtAgain, &left);
}
