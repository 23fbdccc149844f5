//! The command line.
//!
//! [`command_line`] has the commands and the options of most, [`run`] those of `run` and of its hooks, [`limits`] those of limits and shared
//! ledgers, and [`groups`] those of several commands.

mod command_line;
mod doctor;
mod groups;
mod ledger;
mod limits;
mod passed_options;
mod run;
mod sandbox;

pub(super) use command_line::{
    ArchiveArgs, ChooseArgs, Cli, Command, CompletionsArgs, HelpArgs, ImportArgs, InitArgs, LedgerArgs, LedgerCommand,
    LogFormat, ManArgs, ReconcileArgs, ReportCommandArgs, ResolveArgs, SchemaArgs, SchemaOf, SpendArgs, SpendFormat,
    StatusArgs, TerminalArgs, Verdict, When,
};
pub(super) use doctor::{DoctorArgs, DoctorFormat, NO_MANIFEST};
pub(super) use groups::{ManifestArgs, ReportArgs, SelectArgs, ServiceArgs, StatusFormat};
pub(super) use ledger::{NamedLedger, below_home};
pub(super) use limits::{FetchArgs, LimitArgs, LimitCommand, LimitSetArgs, StoreArgs};
pub(super) use passed_options::PassedOptions;
pub(super) use run::{HookArgs, PlanFormat, RepeatArgs, RunArgs};
pub(super) use sandbox::SandboxArgs;
