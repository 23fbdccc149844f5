//! Exit codes and failures of commands: the contract with scripts. When several apply, the one furthest down the table wins.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::args::RepeatArgs;
use crate::domain::{Job, JobId, NoticeCode, RefusalCode, Usd};
use crate::plan::{Action, Plan};
use crate::report::{JobState, Report};
use crate::session::{EngineOutcome, RunEvent, StopReason};
use crate::ui::{NextCommand, Terminal, quoted};

/// The end of a command, from best to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Exit {
    /// All work is done.
    Done,
    /// Only jobs with a pending face review are left.
    Held,
    /// Some job is failed, rejected or past its deadline.
    SomeFailed,
    /// Some job is in doubt.
    InDoubt,
    /// A spend limit or a missing confirmation refused the run, or stopped it.
    NotAllowed,
    /// The service could not be reached.
    Unreachable,
    /// The service refused the key.
    KeyRefused,
    /// Another run holds this batch.
    Busy,
    /// The ledger or a report could not be written.
    CannotWrite,
    /// Bad usage or an invalid manifest: nothing was sent.
    Usage,
    /// Interrupted by a signal, by its number.
    Signal(i32),
}

impl Exit {
    /// The exit code of a refusal.
    pub fn of(code: RefusalCode) -> Self {
        use RefusalCode as C;
        match code {
            C::AlreadyPaid
            | C::Frozen
            | C::ConfirmationNeeded
            | C::NotConfirmed
            | C::OverLimit
            | C::PlanDiffers
            | C::ReportUnknown
            | C::WarningsNotAccepted => Self::NotAllowed,
            C::NoClient | C::Unreachable => Self::Unreachable,
            C::KeyRefused => Self::KeyRefused,
            C::BatchLocked | C::RunnerMayLive => Self::Busy,
            C::FileExists
            | C::FrozenByFailover
            | C::LedgerDamaged
            | C::LedgerRefuses
            | C::LedgerUnavailable
            | C::NotWritable => Self::CannotWrite,
            _ => Self::Usage,
        }
    }

    /// A short description.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "all jobs are completed",
            Self::SomeFailed => "a job is not finished",
            Self::Held => "only held jobs are left",
            Self::InDoubt => "a job is in doubt",
            Self::NotAllowed => "a spend limit or a missing confirmation",
            Self::Unreachable => "the service is unreachable",
            Self::KeyRefused => "the service refused the key",
            Self::Busy => "another run has the batch lock",
            Self::CannotWrite => "a write failed",
            Self::Usage => "usage error or invalid manifest",
            Self::Signal(_) => "interrupted by a signal",
        }
    }

    /// The code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::SomeFailed => 1,
            Self::Held => 5,
            Self::InDoubt => 7,
            Self::NotAllowed => 3,
            Self::Unreachable => 6,
            Self::KeyRefused => 4,
            Self::Busy => 75,
            Self::CannotWrite => 74,
            Self::Usage => 2,
            // As in shells: 128 and the signal.
            Self::Signal(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The note about the money if no request was sent.
pub(super) const NOTHING_SENT: &str = "nothing was submitted; nothing was spent";

/// The failure of a command.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The code for scripts, or `None` if a signal ended the command.
    pub code: Option<RefusalCode>,
    /// The error, with its causes.
    pub message: String,
    /// The help.
    pub help: Option<String>,
    /// The consequence for the money.
    pub money: Option<&'static str>,
}

impl Failure {
    /// A failure before anything was sent.
    pub(super) fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { exit: Exit::of(code), code: Some(code), message: message.into(), help: None, money: Some(NOTHING_SENT) }
    }

    /// A failure of a command without a purchase.
    pub(super) fn plain(code: RefusalCode, message: impl Into<String>) -> Self {
        Self::new(code, message).without_money()
    }

    /// A signal that ended a command before anything was sent.
    pub(super) fn interrupted(signal: i32, message: impl Into<String>) -> Self {
        Self { exit: Exit::Signal(signal), code: None, message: message.into(), help: None, money: Some(NOTHING_SENT) }
    }

    /// A signal that ended a command without a purchase.
    pub(crate) fn without_money(self) -> Self {
        Self { money: None, ..self }
    }

    /// Shows it.
    pub(super) fn show(self, terminal: &Terminal) {
        terminal.error(self.code.map(RefusalCode::code), &self.message, self.help.as_deref(), self.money);
    }

    /// Names the manifest in the commands of its help.
    pub(super) fn of_manifest(self, manifest: &Path) -> Self {
        let name = quoted(&manifest.to_string_lossy());
        let named = |help: String| {
            [" ", "`"]
                .into_iter()
                .fold(help, |help, end| help.replace(&format!(" MANIFEST{end}"), &format!(" {name}{end}")))
        };
        Self { help: self.help.map(named), ..self }
    }

    /// Adds the help.
    #[must_use]
    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The maximum number of jobs in a command. If there are more and none was submitted, the same options repeat them.
const NAMED: usize = 20;

/// The purchases of a run, by its events.
#[derive(Default)]
pub(super) struct Bought {
    /// The possible charges of recorded submissions.
    reserved: Usd,
    /// The charges of tasks that are not recorded yet.
    rescued: HashMap<JobId, Usd>,
    /// Jobs to retry or retake, in manifest order.
    wanted: Vec<JobId>,
    /// The submitted jobs among them.
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

/// The exit code: the worst of the selected jobs and of the run.
pub(super) fn exit_of<'j>(selected: impl Iterator<Item = &'j Arc<Job>>, report: &Report, run: &EngineOutcome) -> Exit {
    let selected: HashSet<&JobId> = selected.map(|job| job.id()).collect();
    let jobs = report.states().filter(|(job, _)| selected.contains(job.id())).map(|(_, state)| match state {
        JobState::Completed => Exit::Done,
        JobState::Held => Exit::Held,
        JobState::InDoubt => Exit::InDoubt,
        // Any other state is no success; the reason of a stop counts below.
        _ => Exit::SomeFailed,
    });
    // A row shows its video, also if a retake failed, which is a failure.
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

/// Reports the retries and retakes that a run did not submit. A later run repeats them only with an option, and the same options may pay again for
/// those that this run submitted, except in the command `to_repeat`.
pub(super) fn report_unsubmitted_repeats(
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
            // Choices may name other jobs, which are not selected.
            options.extend((!args.retake.is_empty()).then_some(["--retake", "*"]).into_iter().flatten());
            options.extend(retry);
            format!("`{}` buys them alone", again.command("run", &options))
        }
    };
    let left = format!("the run ended early: {count} of {wanted} jobs to repeat were not submitted; {how}");
    terminal.failure(NoticeCode::NotBoughtAgain, &left);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_ordered_like_the_table() {
        let table = [
            (Exit::Done, 0),
            (Exit::Held, 5),
            (Exit::SomeFailed, 1),
            (Exit::InDoubt, 7),
            (Exit::NotAllowed, 3),
            (Exit::Unreachable, 6),
            (Exit::KeyRefused, 4),
            (Exit::Busy, 75),
            (Exit::CannotWrite, 74),
            (Exit::Usage, 2),
            (Exit::Signal(2), 130),
            (Exit::Signal(15), 143),
        ];
        for pair in table.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{pair:?}");
            assert_eq!((pair[0].0.code(), pair[1].0.code()), (pair[0].1, pair[1].1));
        }
    }

    /// A new code must not end with 2, as if nothing was sent, without a decision.
    #[test]
    fn exit_code_of_each_refusal_matches_the_snapshot() {
        let lines = RefusalCode::ALL.iter().map(|code| format!("{} {}", Exit::of(*code).code(), code.code()));
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    }
}
