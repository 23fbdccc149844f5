//! The command line.
//!
//! [`command_line`] has the commands and most options, [`run`] those of `run` and of its hooks, and [`groups`] those of several commands. [`others`]
//! has those of limits, ledgers, `doctor`, and `sandbox`.

mod command_line;
mod groups;
mod others;
mod run;

pub(super) use command_line::{
    ArchiveArgs, ChooseArgs, Cli, Command, CompletionsArgs, HelpArgs, ImportArgs, InitArgs, LedgerArgs, LedgerCommand,
    LogFormat, ManArgs, ReconcileArgs, ReportCommandArgs, ResolveArgs, SchemaArgs, SchemaOf, SpendArgs, SpendFormat,
    StatusArgs, TerminalArgs, Verdict, When,
};
pub(super) use groups::PassedOptions;
pub(super) use groups::{ManifestArgs, ReportArgs, SelectArgs, ServiceArgs, StatusFormat};
pub(super) use groups::{NamedLedger, below_home};
pub(super) use others::SandboxArgs;
pub(super) use others::{DoctorArgs, NO_MANIFEST};
pub(super) use others::{FetchArgs, LimitArgs, LimitCommand, LimitSetArgs, StoreArgs};
pub(super) use run::{HookArgs, PlanFormat, RepeatArgs, RunArgs};
