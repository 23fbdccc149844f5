//! The command line.
//!
//! [`command_line`] has the commands and the options of each, [`run`] the many of `run`, [`programs`] those of what it starts, [`monitors`] those of monitors and summaries, [`owner`] those of limits and of several machines, [`ledger`] the one that names a ledger, and [`groups`] those that
//! several commands share.

mod command_line;
mod groups;
mod ledger;
mod monitors;
mod owner;
mod programs;
mod run;

pub(super) use command_line::{
    AdoptArgs, ChooseArgs, Cli, Command, CompletionsArgs, HelpArgs, InitArgs, LedgerArgs, LedgerCommand, LogFormat,
    ManArgs, ReconcileArgs, ReleaseArgs, ReportCommandArgs, ResolveArgs, SandboxArgs, SchemaArgs, SchemaOf, SpendArgs,
    SpendFormat, StatusArgs, StatusFormat, TerminalArgs, Verdict, When,
};
pub(super) use groups::{ManifestArgs, ReportArgs, SelectArgs, ServiceArgs};
pub(super) use ledger::NamedLedger;
pub(super) use owner::{Amount, FetchArgs, LimitArgs, LimitCommand, LimitSetArgs, StoreArgs};
pub(super) use programs::ProgramArgs;
pub(super) use run::{PlanFormat, RepeatArgs, RunArgs};
