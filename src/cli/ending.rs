//! How a run ended: what it bought, its exit code, and what no later run makes up for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::args::AgainArgs;
use super::exit::Exit;
use crate::domain::{Job, JobId, Usd};
use crate::plan::{Action, Plan};
use crate::report::{JobState, Report};
use crate::session::{EngineOutcome, RunEvent, StopReason};
use crate::ui::{Again, Terminal};

/// The most jobs that are named where none was bought: then the same words ask for the same.
const NAMED: usize = 20;

/// What a run bought, as far as it was told.
#[derive(Default)]
pub(super) struct Bought {
    /// What may have been charged for what is written down.
    reserved: Usd,
    /// What is charged for tasks that could not be written down so far.
    rescued: HashMap<JobId, Usd>,
    /// Jobs that were asked for again, in manifest order.
    wanted: Vec<JobId>,
    /// Those of them that were submitted.
    submitted: HashSet<JobId>,
}

impl Bought {
    /// Nothing yet, by a run of this plan.
    pub(super) fn by(plan: &Plan) -> Self {
        let wanted = plan.jobs.iter().filter(|planned| planned.action == Action::Retry);
        Self { wanted: wanted.map(|planned| planned.job.id.clone()).collect(), ..Self::default() }
    }

    /// Takes note of what may have been charged.
    pub(super) fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Submitted { job, price, .. } | RunEvent::InDoubt { job, price, .. } => {
                self.rescued.remove(job);
                self.reserved += *price;
                if !self.wanted.is_empty() {
                    self.submitted.insert(job.clone());
                }
            }
            RunEvent::Rescue { job, price, .. } => {
                self.rescued.insert(job.clone(), *price);
            }
            _ => {}
        }
    }

    /// What may have been charged.
    pub(super) fn reserved(&self) -> Usd {
        self.reserved + self.rescued.values().copied().sum()
    }
}

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

/// A later run finishes what is due, and does not take or try again what nobody asks for then. Whoever asked for it in the same words would
/// pay twice for what this run came to.
pub(super) fn say_what_was_not_bought_again(args: &AgainArgs, bought: &Bought, again: &Again, terminal: &Terminal) {
    let left: Vec<&str> = bought
        .wanted
        .iter()
        .filter(|id| !bought.submitted.contains(id) && !bought.rescued.contains_key(id))
        .map(JobId::as_str)
        .collect();
    let (wanted, ids) = (bought.wanted.len(), left.join(","));
    let said = match left.len() {
        0 => return,
        left if left == wanted && left > NAMED => {
            let retake = (!args.retake.is_empty()).then_some("--retake");
            let options: Vec<&str> = retake.into_iter().chain(args.retry_failed.then_some("--retry-failed")).collect();
            format!(
                "none of the {wanted} jobs that were asked for again was bought: that needs {} again",
                options.join(" and ")
            )
        }
        left => {
            let select = if left == 1 { ids } else { format!("{{{ids}}}") };
            let mut options = vec!["--select", &select];
            if !args.retake.is_empty() {
                options.extend(["--retake", "*"]);
            }
            if args.retry_failed {
                options.push("--retry-failed");
            }
            let command = again.command("run", &options);
            format!("{left} of {wanted} jobs that were asked for again were not bought: to buy them alone, `{command}`")
        }
    };
    terminal.failure(&format!("the run ended early: {said}"));
}
