//! Refusals at the command line, each with its help.

use std::error::Error;

use super::args::ManifestArgs;
use super::exit::Failure;
use crate::domain::{Freeze, MovedOnto, RefusalCode, with_causes};
use crate::files::NoZone;
use crate::ledger::{HoldError, Ledger, LedgerError, Unavailable};
use crate::session::{ConnectionError, CopyVideoError, OtherAccount, Refusal, ResolveError, ThroughALink};
use crate::ui::quoted;

/// The help after a database has forgotten something.
const LOOK_FIRST: &str =
    "compare the service's bill with `shotlist reconcile BILL`, then run `shotlist limit set --unfreeze`";
/// The command that unfreezes a ledger.
const UNFREEZE: &str = "shotlist limit set --unfreeze";
/// The help for tasks of another account.
const SAME_ACCOUNT: &str =
    "use the same base URL and key; if both keys belong to one account, as after a rotation, pass `--same-account`";
/// The help for a submission whose runner may still receive the response.
const RUNNER_MAY_LIVE: &str =
    "wait until that run has ended, or until `shotlist status` has shown it as expired for 3 min";
/// The help for a batch that another run has.
const WAIT: &str = "wait with `--lock-wait 5m`; on PostgreSQL, the lease of a killed run ends after 60 s";
/// The help for jobs that were both paid for.
const MOVED_ONTO: &str = "remove the entry from `moved`: both jobs are paid for, or may be";
/// The help after something changed meanwhile.
const SHOW_PLAN: &str = "look at the plan again with `--plan`";
const RUN_AGAIN: &str = "run the command again; it continues from the ledger";
/// The help for an ID that no task has.
const CHECK_TASK: &str = "check the task ID";
/// The help for a file that can't be written.
const WRITABLE: &str = "check the path, the permissions of its directory, and the free space";

impl Failure {
    /// A ledger that can't be used.
    pub(super) fn of_ledger(error: &Unavailable) -> Self {
        Self::new(RefusalCode::LedgerUnavailable, with_causes(error)).with_help(error.help())
    }

    /// A change that the ledger refused.
    fn of_write(error: &LedgerError) -> Self {
        let (code, help) = match error {
            LedgerError::Unavailable(error) => return Self::of_ledger(error),
            LedgerError::Frozen(freeze) => return Self::frozen(freeze),
            LedgerError::MovedOnto(_) => (RefusalCode::MovedOnto, MOVED_ONTO),
            LedgerError::SenderMayLive { .. } => (RefusalCode::RunnerMayLive, RUNNER_MAY_LIVE),
            LedgerError::OverLimit { .. } => (RefusalCode::OverLimit, "raise the limit, or choose fewer jobs"),
            LedgerError::PaidElsewhere { .. } => (RefusalCode::AlreadyPaid, SHOW_PLAN),
            LedgerError::Claimed(_) | LedgerError::Approved(_) => (RefusalCode::LedgerRefuses, SHOW_PLAN),
            LedgerError::TaskTaken { .. } => (RefusalCode::TaskTaken, CHECK_TASK),
            LedgerError::RolledBack => (RefusalCode::NotWritable, LOOK_FIRST),
            LedgerError::Closed => (RefusalCode::NotWritable, RUN_AGAIN),
            LedgerError::Locked(_) => (RefusalCode::BatchLocked, WAIT),
            LedgerError::Store(_) => (RefusalCode::NotWritable, WRITABLE),
            LedgerError::LeaseExpired | LedgerError::Illegal(_) | LedgerError::Deferred(_) => {
                (RefusalCode::LedgerRefuses, RUN_AGAIN)
            }
        };
        Self::new(code, with_causes(error)).with_help(help)
    }

    /// A ledger whose purchases are frozen: by the user, or by a failover after which purchases may be missing.
    fn frozen(freeze: &Freeze) -> Self {
        let allow = format!("run `{UNFREEZE}` to allow purchases again");
        let help = if freeze.by_failover { LOOK_FIRST.to_owned() } else { allow };
        Self::new(freeze.code(), freeze.to_string()).with_help(help)
    }

    /// Names the ledger in the command that unfreezes it.
    pub(super) fn of_this_ledger(self, ledger: &Ledger, args: &ManifestArgs) -> Self {
        let unfreeze = match &args.ledger {
            Some(named) if ledger.is_shared() && named.is_from_environment => return self,
            _ => format!("{UNFREEZE} --ledger {}", quoted(&ledger.to_string())),
        };
        Self { help: self.help.map(|help| help.replace(UNFREEZE, &unfreeze)), ..self }
    }

    fn of_zone(error: &NoZone) -> Self {
        Self::plain(RefusalCode::OptionInvalid, error.to_string())
            .with_help("set `TZ` to a name such as Europe/Berlin, or pass `--timezone` to `limit set`")
    }

    /// A result that can't be written as JSON: shotlist's own fault, the same for every command.
    pub(crate) fn of_form(error: &serde_json::Error) -> Self {
        Self::plain(RefusalCode::NotWritable, format!("can't write the result as JSON: {error}"))
    }

    /// A file that can't be written.
    pub(super) fn cannot_write(error: &dyn Error) -> Self {
        Self::new(RefusalCode::NotWritable, with_causes(error)).with_help(WRITABLE)
    }
}

impl From<Unavailable> for Failure {
    fn from(error: Unavailable) -> Self {
        Self::of_ledger(&error)
    }
}

impl From<NoZone> for Failure {
    fn from(error: NoZone) -> Self {
        Self::of_zone(&error)
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        Self::of_write(&error)
    }
}

impl From<ThroughALink> for Failure {
    fn from(link: ThroughALink) -> Self {
        let failure = Self::new(RefusalCode::NotWritable, with_causes(&link));
        failure.with_help(format!("if the link is yours, name its target: {}", link.option))
    }
}

macro_rules! refusals {
    ($($error:ty)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Refusal::from(error).into()
            }
        }
    )*};
}

refusals!(MovedOnto HoldError OtherAccount ConnectionError);

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        use RefusalCode as Code;
        let (code, help) = match &refusal {
            Refusal::Hold(HoldError::Unavailable(error)) | Refusal::Ledger(error) => return Self::of_ledger(error),
            Refusal::Write(error) => return Self::of_write(error),
            Refusal::Frozen(freeze) => return Self::frozen(freeze),
            Refusal::Connection(_) => return Self::new(Code::NoClient, with_causes(&refusal)),
            Refusal::NoConnection => return Self::new(Code::NoConnection, with_causes(&refusal)),
            Refusal::OtherKind { .. } => return Self::new(Code::LedgerKind, with_causes(&refusal)),
            Refusal::Hold(HoldError::Busy { .. }) => (Code::BatchLocked, WAIT),
            Refusal::PrivateLedger => (
                Code::LedgerPrivate,
                "set `SHOTLIST_LEDGER` to the database of your team, or remove `ledger: shared` from the manifest",
            ),
            Refusal::Zone(error) => return Self::of_zone(error),
            Refusal::SlotsOfFile => (Code::OptionInvalid, "pass `--concurrency` to each run instead"),
            Refusal::Moved(_) => (Code::MovedOnto, MOVED_ONTO),
            Refusal::KeyInRequest { .. } => {
                (Code::SecretInRequest, "remove the secret from the prompt, or from the file that the manifest reads")
            }
            Refusal::Replaces(_) => {
                (Code::ReplacesInput, "write another `file`, or choose another directory with `--out`")
            }
            Refusal::NoReport(_) => (Code::NotAReport, "name another file, or move that one away"),
            Refusal::Files(_) | Refusal::Thread(_) => (Code::NotWritable, WRITABLE),
            Refusal::OverLimit(limits) if limits.iter().any(|(_, limit)| limit.source.starts_with("ledger.")) => (
                Code::OverLimit,
                "raise the limit with `shotlist limit set`, or choose fewer jobs with `--select` or `--tag`",
            ),
            Refusal::OverLimit(_) => {
                (Code::OverLimit, "raise the limit, or choose fewer jobs with `--select` or `--tag`")
            }
            Refusal::OtherAccount(_) => (Code::OtherAccount, SAME_ACCOUNT),
            Refusal::BoughtBefore { .. } => (
                Code::AlreadyPaid,
                "pass `--buy-again GLOB` for the jobs to buy again, follow the hint for each job above, or leave it out with `--exclude`",
            ),
            Refusal::ReportUnknown { report, .. } => {
                let report = quoted(&report.to_string_lossy());
                return Self::new(Code::ReportUnknown, with_causes(&refusal)).with_help(format!(
                    "restore the directory `.shotlist`, or record them at no cost: `shotlist import MANIFEST {report}`; move the report away if it is not yours"
                ));
            }
            Refusal::NoAssetCommand { .. } => (
                Code::NoAssetCommand,
                "pass `--asset-command CMD`: it gets the path of an image as its last argument, and prints a URL for the service",
            ),
            Refusal::NotApproved { .. } => (
                Code::PlanDiffers,
                "approve the plan as it is now, or restore what was approved; `diff` of two plans that were saved with `--format json` shows the changes",
            ),
            Refusal::Unconfirmed { .. } => (
                Code::ConfirmationNeeded,
                "pass `--yes`, `--max-cost`, or `--approved`, or set `budget.run` in the manifest; `--plan` shows the cost",
            ),
            Refusal::NoVideo { .. } => {
                (Code::ChoicesInvalid, "run `shotlist report`, and choose on the contact sheet again")
            }
            Refusal::NothingToArchive(_) => {
                (Code::NotArchivable, "archive only completed jobs: `shotlist status MANIFEST` lists all states")
            }
            Refusal::NotHere(_) => {
                (Code::NotArchivable, "name its directory with `--out`, or leave out `--to` if it was moved already")
            }
            Refusal::Copy(CopyVideoError::Same(_)) => {
                (Code::NotWritable, "name a directory that is not the output directory under another name")
            }
            Refusal::Copy(_) => (Code::NotWritable, "name another directory with `--to`, or remove what is in the way"),
            Refusal::Remove { .. } => {
                (Code::NotWritable, "the copy is complete and recorded: remove the original by hand")
            }
        };
        Self::new(code, with_causes(&refusal)).with_help(help)
    }
}

impl From<ResolveError> for Failure {
    fn from(error: ResolveError) -> Self {
        use RefusalCode as Code;
        let message = error.to_string();
        let (code, help) = match error {
            ResolveError::Refusal(refusal) => return refusal.into(),
            ResolveError::NoAttempt(_)
            | ResolveError::NotInDoubt { is_active: false, .. }
            | ResolveError::NoActiveTask(_) => (
                Code::NotResolvable,
                "list the jobs in doubt with `shotlist resolve MANIFEST`, and all states with `shotlist status MANIFEST`",
            ),
            ResolveError::NotInDoubt { .. } => {
                (Code::NotResolvable, "wait for its active task; `--abandon` gives up a task that never ends")
            }
            ResolveError::NoJob(_) => (Code::NotResolvable, "name jobs of the manifest"),
            ResolveError::NothingToUndo(_) => (Code::NotResolvable, "look at the job with `shotlist status MANIFEST`"),
            ResolveError::SeveralTasks { .. } => (Code::NotResolvable, "name the task that never ends: `--abandon=ID`"),
            ResolveError::SeveralJobs(_) => (Code::NotResolvable, "pass the ID of one job"),
            ResolveError::RunnerMayLive(_) => (Code::RunnerMayLive, RUNNER_MAY_LIVE),
            ResolveError::TaskMismatch { .. } => {
                (Code::TaskMismatch, "check the task ID; pass `--anyway` if it is still this job's task")
            }
            ResolveError::NoTask(..) => {
                (Code::TaskUnconfirmed, "check the task ID; if no task exists, pass `--never-created`")
            }
            ResolveError::Unreachable(..) => (Code::Unreachable, "repeat the command later"),
            ResolveError::Pattern(_) => (Code::OptionInvalid, "`*`, `?`, and `[a-z]` have a meaning in a pattern"),
            ResolveError::TaskTaken { .. } => (Code::TaskTaken, CHECK_TASK),
            ResolveError::Unconfirmed(_) => (Code::TaskUnconfirmed, CHECK_TASK),
            ResolveError::KeyRefused(_) => (Code::KeyRefused, "check the API key"),
        };
        Self::new(code, message).with_help(help)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cli::exit::Exit;
    use crate::domain::{Account, BatchKey, Digest, JobId, Label, Move, TaskId, Usd};
    use crate::plan::Limit;

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

    /// The only place that holds the sentences: tests of runs name codes.
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
            Refusal::OverLimit(vec![(usd("19.05"), limit("budget.day", None))]),
            Refusal::OverLimit(vec![
                (usd("19.05"), limit("budget.day", None)),
                (usd("9"), limit("ledger.month", Some(client()))),
            ]),
            Refusal::NoConnection,
            Refusal::OtherKind { ledger_is_simulated: true },
            Refusal::OtherKind { ledger_is_simulated: false },
            Refusal::OtherAccount(OtherAccount { job: job(), more: 2, owner: other, account }),
            Refusal::BoughtBefore { jobs: 1 },
            Refusal::BoughtBefore { jobs: 2 },
            Refusal::ReportUnknown { report: "out/report.json".into(), jobs: 2 },
            Refusal::NoAssetCommand { jobs: 2 },
            Refusal::NotApproved { approved: Digest::of("a plan") },
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
            ResolveError::NotInDoubt { job: job(), is_active: false },
            ResolveError::NotInDoubt { job: job(), is_active: true },
            ResolveError::NoActiveTask(job()),
            ResolveError::SeveralTasks { job: job(), tasks: vec!["task_1".to_owned(), "task_2".to_owned()] },
            ResolveError::SeveralJobs(vec![job(), "spin".to_owned()]),
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
        let Failure { exit, code, message, help, money } = error.into();
        let (code, help) = (code.map_or("", RefusalCode::code), help.unwrap_or_default());
        let money = money.unwrap_or_default();
        format!("error[{code}]: {message}\n  note: {money}\n  help: {help}\n  exit: {}\n", exit.code())
    }

    /// A client that can't be set up is no disk that is full, and has another exit code.
    #[test]
    fn each_refusal_says_what_fixes_it() {
        let client = Refusal::Connection(ConnectionError::Simulator("no port is free".into()));
        let disk = Refusal::Files(Box::new(std::io::Error::other("the disk is full")));
        let shown = |refusal: Refusal| {
            let Failure { exit, message, help, .. } = refusal.into();
            (exit, message, help.is_some_and(|help| help.contains("free space")))
        };
        assert_eq!(shown(client), (Exit::Unreachable, "can't start the simulator: no port is free".to_owned(), false));
        assert_eq!(shown(disk), (Exit::CannotWrite, "the disk is full".to_owned(), true));
    }

    #[test]
    fn what_cannot_be_written_as_json_has_one_exit_code() {
        let error = serde_json::to_string(&std::collections::BTreeMap::from([(vec![1], 1)])).expect_err("no text");
        let Failure { exit, message, .. } = Failure::of_form(&error);
        assert_eq!((exit.code(), message.contains("JSON")), (74, true));
    }
}
