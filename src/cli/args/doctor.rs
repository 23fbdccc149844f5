//! Options of `doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::groups::{ManifestArgs, ServiceArgs};
use super::ledger::PathParser;
use super::run::HookArgs;

/// The manifest of a command without one: the working directory, whose ledger it uses.
pub(crate) const NO_MANIFEST: &str = "./";

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(mut_arg("manifest", |arg| arg.required(false).default_value(NO_MANIFEST).hide_default_value(true)))]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(flatten)]
    pub hooks: HookArgs,
    /// Directory for reports and videos [default: shotlist-out/NAME[/BATCH]]
    #[arg(value_parser = PathParser, long, env = "SHOTLIST_OUT", value_name = "DIR", help_heading = "Files")]
    pub out: Option<PathBuf>,
    /// Format of the output
    #[arg(long, env = "SHOTLIST_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub format: DoctorFormat,
}

/// The form of the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DoctorFormat {
    Text,
    Json,
}
