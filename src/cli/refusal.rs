//! What a refusal means at the command line: the exit code, and how to mend it.

use std::error::Error;
use std::path::Path;

use super::exit::Exit;
use super::failure::Failure;
use super::paths::is_known_to_the_shell;
use crate::domain::{Freeze, MovedOnto, RefusalCode, with_causes};
use crate::ledger::{AnyLedger, HoldError, LedgerError, Unavailable};
use crate::session::{ConnectionError, OtherAccount, Refusal, ThroughALink};
use crate::ui::quoted;

/// What to do once a database has forgotten something.
const LOOK_FIRST: &str =
    "compare the service's bill with `shotlist reconcile BILL`, then run `shotlist limit set --resume`";
/// The command that unfreezes a ledger.
const UNFREEZE: &str = "shotlist limit set --resume";
/// The help for tasks of another account.
const SAME_ACCOUNT: &str =
    "use the same base URL and key; if both keys belong to one account, as after a rotation, pass `--same-account`";
const WRITABLE: &str = "check the path, the permissions of its folder and the free space";

impl Failure {
    /// A ledger that can't be used.
    pub(super) fn of_ledger(error: &Unavailable) -> Self {
        Self::before_sending(Exit::CannotWrite, with_causes(error))
            .with_help(error.help())
            .with_code(RefusalCode::LedgerUnavailable)
    }

    /// Something that the ledger did not take.
    fn of_write(error: &LedgerError) -> Self {
        let refused = |exit| Self::before_sending(exit, with_causes(error));
        let failure = match error {
            LedgerError::Unavailable(error) => Self::of_ledger(error),
            LedgerError::OtherPlan { .. } => refused(Exit::Busy).with_help(
                "run the same manifest everywhere, or wait until the others have ended; prices and jobs must be the same",
            ),
            LedgerError::LookedAfter { .. } => {
                refused(Exit::Busy).with_help("end that run first, or wait for it: it will say what became of the task")
            }
            LedgerError::OtherAccount { .. } => refused(Exit::Usage).with_help(SAME_ACCOUNT),
            LedgerError::SenderMayLive { .. } => refused(Exit::Busy)
                .with_help("wait until it has ended, or until `shotlist status` calls it dead for some minutes"),
            LedgerError::Frozen(freeze) => Self::frozen(freeze),
            error => Self::cannot_write(error),
        };
        failure.with_code(error.code())
    }

    /// A ledger whose purchases are frozen: by its keeper, or by a failover after which purchases may be missing.
    fn frozen(freeze: &Freeze) -> Self {
        let exit = if freeze.by_failover { Exit::CannotWrite } else { Exit::NotAllowed };
        let allow = format!("run `{UNFREEZE}` to allow purchases again");
        let help = if freeze.by_failover { LOOK_FIRST.to_owned() } else { allow };
        Self::before_sending(exit, freeze.to_string()).with_help(help)
    }

    /// Names the ledger in the command that unfreezes it.
    pub(super) fn of_this_ledger(self, ledger: &AnyLedger, given: Option<&Path>) -> Self {
        if given.is_some_and(is_known_to_the_shell) {
            return self;
        }
        let unfreeze = format!("{UNFREEZE} --ledger {}", quoted(&ledger.to_string()));
        Self { help: self.help.map(|help| help.replace(UNFREEZE, &unfreeze)), ..self }
    }

    /// A result that can't be put into its form: shotlist's own fault, the same for every command.
    pub(crate) fn of_form(error: &serde_json::Error) -> Self {
        Self::plain(Exit::CannotWrite, format!("the result can't be written as JSON: {error}"))
    }

    /// The same of a command that has nothing to do with money.
    pub(crate) fn without_money(self) -> Self {
        Self { money: None, ..self }
    }

    /// Something else that can't be written.
    pub(super) fn cannot_write(error: &dyn Error) -> Self {
        Self::before_sending(Exit::CannotWrite, with_causes(error)).with_help(WRITABLE)
    }
}

impl From<Unavailable> for Failure {
    fn from(error: Unavailable) -> Self {
        Self::of_ledger(&error)
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        Self::of_write(&error)
    }
}

impl From<MovedOnto> for Failure {
    fn from(error: MovedOnto) -> Self {
        Refusal::from(error).into()
    }
}

impl From<HoldError> for Failure {
    fn from(error: HoldError) -> Self {
        Refusal::from(error).into()
    }
}

impl From<ThroughALink> for Failure {
    fn from(link: ThroughALink) -> Self {
        let failure = Self::before_sending(Exit::CannotWrite, with_causes(&link));
        failure.with_help(format!("a link that you made yourself can be named: {}", link.option()))
    }
}

impl From<OtherAccount> for Failure {
    fn from(error: OtherAccount) -> Self {
        Refusal::from(error).into()
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        Refusal::from(error).into()
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let refused = |exit| Self::before_sending(exit, with_causes(&refusal));
        let failure = match &refusal {
            Refusal::Hold(HoldError::Busy { .. }) => refused(Exit::Busy)
                .with_help("wait for it to end; what it does is in the ledger, and the next run goes on from there"),
            Refusal::Hold(HoldError::Unavailable(error)) | Refusal::Ledger(error) => Self::of_ledger(error),
            Refusal::Write(error) => Self::of_write(error),
            Refusal::PrivateLedger => refused(Exit::Usage)
                .with_help("set `SHOTLIST_LEDGER` to the database of your team, or remove `ledger: shared` from the manifest"),
            Refusal::Moved(_) => refused(Exit::Usage)
                .with_help("take the entry out of `moved`: both were paid for, or may have been"),
            Refusal::KeyInRequest { .. } => refused(Exit::Usage).with_help("remove the secret from the prompt, or from the file that the manifest reads"),
            Refusal::Replaces(_) => refused(Exit::Usage).with_help("write another `file`, or choose another directory with `--out`"),
            Refusal::NoReport(_) => refused(Exit::Usage).with_help("name another file, or move that one away"),
            Refusal::Files(_) => refused(Exit::CannotWrite).with_help(WRITABLE),
            Refusal::Connection(_) => refused(Exit::Unreachable),
            Refusal::Frozen(freeze) => Self::frozen(freeze),
            Refusal::OverLimit { limit, .. } if limit.source.starts_with("owner.") => refused(Exit::NotAllowed)
                .with_help("the owner raises it with `shotlist limit set`; or choose fewer jobs with --select or --tag"),
            Refusal::OverLimit { .. } => {
                refused(Exit::NotAllowed).with_help("raise the limit, or choose fewer jobs with --select or --tag")
            }
            Refusal::NoConnection | Refusal::OtherKind { .. } => refused(Exit::Usage),
            Refusal::OtherAccount(_) => refused(Exit::Usage).with_help(SAME_ACCOUNT),
            Refusal::BoughtBefore { .. } => refused(Exit::NotAllowed).with_help(
                "pass `--buy-again GLOB` for the jobs to repurchase, follow the hint for each job above, or leave it out with `--exclude`",
            ),
            Refusal::NoAssetCommand { .. } => refused(Exit::Usage).with_help(
                "give --asset-command CMD: it gets the path of a picture as its last argument, and prints the address at which the service \
                 can fetch it",
            ),
            Refusal::NotApproved { .. } => refused(Exit::NotAllowed)
                .with_help("have the plan approved as it is now, or bring back what it was; --plan --approved FILE, with a saved plan, says what differs"),
            Refusal::NotAgreed { .. } => refused(Exit::NotAllowed)
                .with_help("give --yes, --max-cost or --approved, or write budget.run in the manifest; --plan shows the cost"),
        };
        failure.with_code(refusal.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{JobId, Usd};
    use crate::plan::Limit;

    /// The only place that holds the sentences: tests of runs name codes.
    #[test]
    fn refusals_read_so() {
        let job = || JobId::new("hero").expect("an ID");
        let usd = |text: &str| text.parse::<Usd>().expect("an amount");
        let limit = Limit { source: "budget.day".into(), usd: usd("40"), used: usd("30"), label: None };
        let refusals = [
            Refusal::PrivateLedger,
            Refusal::KeyInRequest { job: job() },
            Refusal::Files(Box::new(std::io::Error::other("the disk is full"))),
            Refusal::Connection(ConnectionError::Simulator("no port is free".into())),
            Refusal::OverLimit { cost: usd("19.05"), limit },
            Refusal::NoConnection,
            Refusal::OtherKind { ledger_is_simulated: true },
            Refusal::OtherKind { ledger_is_simulated: false },
            Refusal::BoughtBefore { jobs: 1 },
            Refusal::BoughtBefore { jobs: 2 },
            Refusal::NoAssetCommand { jobs: 2 },
            Refusal::NotAgreed { cost: usd("19.05"), agreed: Usd::ZERO },
            Refusal::NotAgreed { cost: usd("19.05"), agreed: usd("5") },
            Refusal::Write(LedgerError::Claimed(job())),
            Refusal::Write(LedgerError::RolledBack),
            Refusal::Write(LedgerError::Closed),
        ];
        let shown = refusals.into_iter().map(|refusal| {
            let Failure { exit, code, message, help, .. } = refusal.into();
            let code = code.map_or("", RefusalCode::code);
            format!("error[{code}]: {message}\n  help: {}\n  exit: {}\n", help.unwrap_or_default(), exit.code())
        });
        insta::assert_snapshot!(shown.collect::<String>());
    }

    /// A client that can't be set up is no disk that is full, and has another exit code.
    #[test]
    fn each_refusal_says_what_mends_it() {
        let client = Refusal::Connection(ConnectionError::Simulator("no port is free".into()));
        let disk = Refusal::Files(Box::new(std::io::Error::other("the disk is full")));
        let told = |refusal: Refusal| {
            let Failure { exit, message, help, .. } = refusal.into();
            (exit, message, help.is_some_and(|help| help.contains("free space")))
        };
        assert_eq!(
            told(client),
            (Exit::Unreachable, "the simulator can't be started: no port is free".to_owned(), false)
        );
        assert_eq!(told(disk), (Exit::CannotWrite, "the disk is full".to_owned(), true));
    }

    #[test]
    fn what_cannot_be_written_as_json_has_one_exit_code() {
        let error = serde_json::to_string(&std::collections::BTreeMap::from([(vec![1], 1)])).expect_err("no text");
        let Failure { exit, message, .. } = Failure::of_form(&error);
        assert_eq!((exit.code(), message.contains("JSON")), (74, true));
    }
}
