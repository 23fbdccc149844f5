//! The command line.
//!
//! [`command_line`] has the commands and the options of each, [`run`] the many of `run`, [`hooks`] those of what it starts, [`limits`] those of limits and of several machines, [`doctor`] those of `doctor`, [`sandbox`](mod@sandbox) those of `sandbox`, [`ledger`] the one that names a ledger, and [`groups`] those that
//! several commands share.

mod command_line;
mod doctor;
mod groups;
mod hooks;
mod ledger;
mod limits;
mod run;
mod sandbox;

pub(super) use command_line::{
    ArchiveArgs, ChooseArgs, Cli, Command, CompletionsArgs, HelpArgs, ImportArgs, InitArgs, LedgerArgs, LedgerCommand,
    LogFormat, ManArgs, ReconcileArgs, ReportCommandArgs, ResolveArgs, SchemaArgs, SchemaOf, SpendArgs, SpendFormat,
    StatusArgs, TerminalArgs, Verdict, When,
};
pub(super) use doctor::{DoctorArgs, DoctorFormat, NO_MANIFEST};
pub(super) use groups::{ManifestArgs, ReportArgs, SelectArgs, ServiceArgs, StatusFormat};
pub(super) use hooks::HookArgs;
pub(super) use ledger::{NamedLedger, below_home};
pub(super) use limits::{FetchArgs, LimitArgs, LimitCommand, LimitSetArgs, StoreArgs};
pub(super) use run::{PlanFormat, RepeatArgs, RunArgs};
pub(super) use sandbox::SandboxArgs;
