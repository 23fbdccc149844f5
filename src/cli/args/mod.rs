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
    ManArgs, ReconcileArgs, ReportCommandArgs, ResolveArgs, SchemaArgs, SchemaOf, SpendArgs, SpendFormat, StatusArgs,
    TerminalArgs, Verdict, When,
};
pub(super) use groups::{
    LogFormat, ManifestArgs, NamedLedger, PassedOptions, ReportArgs, SelectArgs, ServiceArgs, StatusFormat, below_home,
};
pub(super) use others::{
    DoctorArgs, FetchArgs, LimitArgs, LimitCommand, LimitSetArgs, NO_MANIFEST, OrNone, SandboxArgs, StoreArgs,
};
pub(super) use run::{HookArgs, PlanFormat, RepeatArgs, RunArgs};
