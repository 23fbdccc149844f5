//! Exit codes and failures of commands: the contract with scripts. When several apply, the one furthest down the table wins.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;

use super::args::{ManifestArgs, RepeatArgs};
use super::next_commands;
use crate::domain::{BatchKey, Explained, Freeze, Job, JobId, NoticeCode, RefusalCode, WRITABLE, quoted, with_causes};
use crate::ledger::Ledger;
use crate::plan::{Action, Plan};
use crate::report::{JobState, NextCommand, Report};
use crate::session::{EngineOutcome, RunEvent, StopReason};
use crate::ui::Terminal;

/// The end of a command, from best to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Exit {
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
    pub(super) fn for_refusal(code: RefusalCode) -> Self {
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

    /// The code, and a short description.
    pub(super) fn described(self) -> (u8, &'static str) {
        match self {
            Self::Done => (0, "all jobs are completed"),
            Self::SomeFailed => (1, "a job is not finished"),
            Self::Held => (5, "only held jobs are left"),
            Self::InDoubt => (7, "a job is in doubt"),
            Self::NotAllowed => (3, "a spend limit or a missing confirmation"),
            Self::Unreachable => (6, "the service is unreachable"),
            Self::KeyRefused => (4, "the service refused the key"),
            Self::Busy => (75, "another run has the batch lock"),
            Self::CannotWrite => (74, "a write failed"),
            Self::Usage => (2, "usage error or invalid manifest"),
            // As in shells: 128 and the signal.
            Self::Signal(number) => (u8::try_from(128 + number).unwrap_or(u8::MAX), "interrupted by a signal"),
        }
    }

    /// The code.
    pub(super) fn code(self) -> u8 {
        self.described().0
    }

    /// Shows the failure of a command, and reports once that a result could not be written.
    pub(super) fn shown(ended: Result<Self, Failure>, terminal: &Terminal) -> Self {
        let exit = ended.unwrap_or_else(|Failure { exit, code, message, help, money }| {
            terminal.error(code.map(RefusalCode::code), &message, help.as_deref(), money);
            exit
        });
        if terminal.tell_lost_results() { exit.max(Self::CannotWrite) } else { exit }
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
    /// The consequence for the money. [`Failure::of_command`] adds it to a failure from before a request.
    pub money: Option<&'static str>,
}

/// A failure with the code of a refusal: its message, and after a semicolon its help, both as for [`format!`].
macro_rules! failure {
    ($code:ident, $($message:expr),+ $(; $($help:expr),+)?) => {
        $crate::cli::exit::Failure::new($crate::domain::RefusalCode::$code, format!($($message),+))
            $(.with_help(format!($($help),+)))?
    };
}
pub(super) use failure;

impl Failure {
    /// A failure without help.
    pub(super) fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { exit: Exit::for_refusal(code), code: Some(code), message: message.into(), help: None, money: None }
    }

    /// A file that can't be written.
    pub(super) fn cannot_write(error: &dyn Error) -> Self {
        Self::new(RefusalCode::NotWritable, with_causes(error)).with_help(WRITABLE)
    }

    /// Adds the manifest and the options to the commands in its help, and a note about the money if it has none.
    pub(super) fn of_command(self, manifest: Option<&ManifestArgs>, money: Option<&'static str>) -> Self {
        let Some(args) = manifest else { return Self { money: self.money.or(money), ..self } };
        let again = next_commands::for_batch(args, &BatchKey { name: String::new(), batch: String::new() });
        let named = |part: &str| {
            let split = part.strip_prefix("shotlist ").and_then(|command| command.split_once(" MANIFEST"));
            split.map_or_else(|| part.to_owned(), |(command, rest)| again.command(command, &[]) + rest)
        };
        let help = self.help.map(|help| help.split('`').map(named).collect::<Vec<_>>().join("`"));
        Self { help, money: self.money.or(money), ..self }
    }

    /// Names the ledger in the command that unfreezes it.
    pub(super) fn of_this_ledger(self, ledger: &Ledger, args: &ManifestArgs) -> Self {
        let sandbox = if ledger.is_simulated() { " --sandbox" } else { "" };
        let unfreeze = match &args.ledger {
            Some(named) if ledger.is_shared() && named.is_from_environment => return self,
            _ => format!("{}{sandbox} --ledger {}", Freeze::UNFREEZE, quoted(&ledger.to_string())),
        };
        Self { help: self.help.map(|help| help.replace(Freeze::UNFREEZE, &unfreeze)), ..self }
    }

    /// Adds the help.
    #[must_use]
    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds another way out.
    #[must_use]
    pub(super) fn or(self, other: &str) -> Self {
        let help = self.help.iter().map(String::as_str).chain([other]).collect::<Vec<_>>().join("; ");
        self.with_help(help)
    }
}

impl<E: Explained> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.code(), with_causes(&error)).with_help(error.help())
    }
}

/// The jobs that a run repeats, by its plan and its events.
pub(super) struct Repeats {
    /// Jobs to retry or retake, in manifest order.
    wanted: Vec<JobId>,
    /// The submitted jobs among them.
    submitted: HashSet<JobId>,
    /// Jobs to buy again that wait for an image or a review, each with the reason. Their state is that of their video.
    pub held: Vec<(JobId, String)>,
}

impl Repeats {
    /// Those of a plan.
    pub(super) fn for_plan(plan: &Plan) -> Self {
        let wanted = plan.jobs.iter().filter(|planned| planned.action.repeats());
        let held = plan.jobs.iter().filter(|planned| planned.action == Action::Hold && planned.earlier > 0);
        Self {
            wanted: wanted.map(|planned| planned.job.id().clone()).collect(),
            submitted: HashSet::new(),
            held: held.map(|planned| (planned.job.id().clone(), planned.reason.to_string())).collect(),
        }
    }

    /// Records a submission that may be charged.
    pub(super) fn note(&mut self, event: &RunEvent) {
        if let RunEvent::Submitted { job, .. } | RunEvent::InDoubt { job, .. } | RunEvent::TaskNotRecorded { job, .. } =
            event
            && !self.wanted.is_empty()
        {
            self.submitted.insert(job.clone());
        }
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
    repeats: &Repeats,
    again: &NextCommand,
    to_repeat: Option<&str>,
    terminal: &Terminal,
) {
    let left = repeats.wanted.iter().filter(|job| !repeats.submitted.contains(*job)).map(JobId::as_str);
    let left: Vec<&str> = left.collect();
    if left.is_empty() {
        return;
    }
    let (count, wanted) = (left.len(), repeats.wanted.len());
    let how = if let Some(command) = to_repeat {
        format!("`{command}` buys them, and none twice")
    } else {
        let select = if let [one] = left[..] { one.to_owned() } else { format!("{{{}}}", left.join(",")) };
        let mut options = vec!["--select", &select];
        // Choices may name other jobs, which are not selected.
        options.extend((!args.retake.is_empty()).then_some(["--retake", "*"]).into_iter().flatten());
        options.extend(args.retry_failed.then_some("--retry-failed"));
        format!("`{}` buys them alone", again.command("run", &options))
    };
    let left = format!("the run ended early: {count} of {wanted} jobs to repeat were not submitted; {how}");
    terminal.failure(NoticeCode::NotBoughtAgain, &left);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Account, Digest, Label, Move, MovedOnto, TaskId, Usd};
    use crate::ledger::{HoldError, LedgerError};
    use crate::plan::Limit;
    use crate::session::{ConnectionError, OtherAccount, PassedLimits, Refusal, ResolveError, UnknownPurchases};

    #[test]
    fn exits_are_ordered_like_the_table() {
        use Exit as E;
        let jobs = [E::Done, E::Held, E::SomeFailed, E::InDoubt, E::NotAllowed, E::Unreachable, E::KeyRefused];
        let run = [E::Busy, E::CannotWrite, E::Usage, E::Signal(2), E::Signal(15)];
        assert!(jobs.iter().chain(&run).is_sorted());
        assert_eq!((jobs.map(E::code), run.map(E::code)), ([0, 5, 1, 7, 3, 6, 4], [75, 74, 2, 130, 143]));
    }

    /// A new code must not end with 2, as if nothing was sent, without a decision.
    #[test]
    fn exit_code_of_each_refusal_matches_the_snapshot() {
        let lines = RefusalCode::ALL.iter().map(|code| format!("{} {}", Exit::for_refusal(*code).code(), code.code()));
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    }

    fn job() -> JobId {
        JobId::new("hero").expect("an ID")
    }

    fn spin() -> JobId {
        JobId::new("spin").expect("an ID")
    }

    fn batch() -> BatchKey {
        BatchKey { name: "campaign".into(), batch: "may".into() }
    }

    fn usd(text: &str) -> Usd {
        text.parse().expect("an amount")
    }

    /// The only test of the texts: tests of runs compare codes.
    #[test]
    fn refusal_texts_match_the_snapshot() {
        let limit = |source: &str, label| Limit { source: source.into(), usd: usd("40"), used: usd("30"), label };
        let freeze = |by_failover| Freeze { why: "the server was replaced".into(), by_failover };
        let other = Account { service: "https://other.example".into(), key: "0a1b".into() };
        let account = Account { service: "https://api.example".into(), key: "2c3d".into() };
        let client = || Label { name: "client".into(), value: "acme".into() };
        let refusals = [
            Refusal::Hold(HoldError::Busy { batch: batch(), holder: " on desk-1".into() }),
            Refusal::PrivateLedger,
            Refusal::SlotsOfFile,
            Refusal::Moved(MovedOnto(Move { from: job(), to: spin() })),
            Refusal::KeyInRequest { job: job() },
            Refusal::Files(Box::new(std::io::Error::other("the disk is full"))),
            Refusal::Connection(ConnectionError::Simulator("no port is free".into())),
            Refusal::Frozen(freeze(false)),
            Refusal::Frozen(freeze(true)),
            Refusal::OverLimit(PassedLimits(vec![(usd("19.05"), limit("budget.day", None))])),
            Refusal::OverLimit(PassedLimits(vec![
                (usd("19.05"), limit("budget.day", None)),
                (usd("9"), limit("ledger.month", Some(client()))),
            ])),
            Refusal::NoConnection,
            Refusal::OtherKind { ledger_is_simulated: true },
            Refusal::OtherKind { ledger_is_simulated: false },
            Refusal::OtherAccount(OtherAccount { job: job(), more: 2, owner: other, account }),
            Refusal::BoughtBefore { jobs: 1 },
            Refusal::BoughtBefore { jobs: 2 },
            Refusal::ReportUnknown(UnknownPurchases { report: "out/report.json".into(), jobs: 2 }),
            Refusal::NoAssetCommand { jobs: 2 },
            Refusal::NotApproved { approved: Digest::of_json(&"a plan").expect("JSON") },
            Refusal::Unconfirmed { cost: usd("19.05"), confirmed: Usd::ZERO },
            Refusal::Unconfirmed { cost: usd("19.05"), confirmed: usd("5") },
        ];
        insta::assert_snapshot!(refusals.into_iter().map(shown).collect::<String>());
    }

    #[test]
    fn ledger_error_texts_match_the_snapshot() {
        let (name, runner) = (|| "hero".to_owned(), || "desk-1 process 7".to_owned());
        let errors = [
            LedgerError::Store(Arc::new(std::io::Error::other("the disk is full"))),
            LedgerError::OverLimit { name: "budget.day".into(), limit: usd("40"), used: usd("39.60") },
            LedgerError::Claimed(job()),
            LedgerError::Approved(job()),
            LedgerError::PaidElsewhere { job: job(), other: batch() },
            LedgerError::TaskTaken { task: TaskId::new("task_1").expect("an ID"), job: name(), batch: batch() },
            LedgerError::RolledBack,
            LedgerError::LeaseExpired,
            LedgerError::SenderMayLive { job: name(), runner: runner() },
            LedgerError::Closed,
        ];
        insta::assert_snapshot!(errors.into_iter().map(Refusal::Write).map(shown).collect::<String>());
    }

    #[test]
    fn resolve_error_texts_match_the_snapshot() {
        let (job, task) = (|| "hero".to_owned(), || TaskId::new("task_1").expect("a task ID"));
        let errors = [
            ResolveError::NoAttempt(job()),
            ResolveError::NotInDoubt(job()),
            ResolveError::StillActive(job()),
            ResolveError::NoActiveTask(job()),
            ResolveError::SeveralTasks { job: job(), tasks: vec!["task_1".to_owned(), "task_2".to_owned()] },
            ResolveError::SeveralJobs { jobs: vec![job(), "spin".to_owned()] },
            ResolveError::RunnerMayLive(job()),
            ResolveError::TaskTaken { task: task(), job: spin(), batch: batch() },
            ResolveError::TaskMismatch { task: task(), job: spin(), differences: vec!["model alpha-2".to_owned()] },
            ResolveError::NoTask(task(), "task not found".to_owned()),
            ResolveError::Unreachable(task(), "connection refused".to_owned()),
            ResolveError::Refusal(Refusal::Write(LedgerError::RolledBack)),
        ];
        insta::assert_snapshot!(errors.into_iter().map(shown).collect::<String>());
    }

    fn shown(error: impl Into<Failure>) -> String {
        let Failure { exit, code, message, help, .. } = error.into();
        let (code, help) = (code.map_or("", RefusalCode::code), help.unwrap_or_default());
        format!("error[{code}]: {message}\n  help: {help}\n  exit: {}\n", exit.code())
    }
}
