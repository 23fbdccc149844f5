//! Options of `limit`, `ledger`, `doctor`, and `sandbox`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Subcommand};

use super::groups::{
    LedgerParser, ManifestArgs, NamedLedger, PathParser, SelectArgs, ServiceArgs, at_least_one, decimal, name_and_value,
};
use super::run::HookArgs;
use crate::domain::{Label, Usd};
use crate::sandbox::Fault;

/// Options of `limit`.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Action
    #[command(subcommand)]
    pub command: LimitCommand,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// The ledger of a command without a manifest.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Ledger [default: .shotlist/ledger.db in the working directory; a run uses the one beside its manifest]
    #[arg(value_parser = LedgerParser, long, global = true, env = "SHOTLIST_LEDGER", value_name = "PATH|postgres://…")]
    pub ledger: Option<NamedLedger>,
    /// Use the simulator's ledger
    #[arg(long, global = true, env = "SHOTLIST_SANDBOX", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub sandbox: bool,
}

/// The operations on ledger limits.
#[derive(Debug, Subcommand)]
pub(crate) enum LimitCommand {
    /// Set limits that no manifest can raise
    Set(LimitSetArgs),
    /// Show the limits, with the rest of each
    Show,
}

/// Options of `limit set`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["day", "month", "slots", "freeze", "unfreeze"]))]
#[command(group = clap::ArgGroup::new("sums").multiple(true).args(["day", "month"]))]
pub(crate) struct LimitSetArgs {
    /// Maximum per day over all batches; `none` removes the limit
    #[arg(long, value_name = "USD|none")]
    pub day: Option<OrNone<Usd>>,
    /// Maximum per month over all batches; `none` removes the limit
    #[arg(long, value_name = "USD|none")]
    pub month: Option<OrNone<Usd>>,
    /// Apply the limits to jobs with this label only
    #[arg(long, value_name = "NAME=VALUE", value_parser = label, requires = "sums")]
    pub label: Option<Label>,
    /// Time zone of days and months, for example Europe/Berlin [default: this machine's]
    #[arg(long, value_name = "ZONE", value_parser = zone, requires = "sums")]
    pub timezone: Option<String>,
    /// Maximum number of active tasks of all runners; `none` removes it
    ///
    /// For a ledger on PostgreSQL. Each live runner gets an equal share; without it, each has its `--concurrency`
    #[arg(long, value_name = "N|none", value_parser = slots)]
    pub slots: Option<OrNone<u32>>,
    /// Block all purchases, for example before you restore a backup
    #[arg(long, conflicts_with = "unfreeze")]
    pub freeze: bool,
    /// Allow purchases again
    #[arg(long)]
    pub unfreeze: bool,
}

/// A value, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OrNone<T>(pub Option<T>);

impl<T: FromStr> FromStr for OrNone<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == "none" { Ok(Self(None)) } else { text.parse().map(|value| Self(Some(value))) }
    }
}

/// Options of `fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    #[command(flatten)]
    pub selection: SelectArgs,
    /// Directory for the videos [default: as for `run`]
    #[arg(value_parser = PathParser, long, env = "SHOTLIST_OUT", value_name = "DIR", help_heading = "Files")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub service: ServiceArgs,
}

fn slots(text: &str) -> Result<OrNone<u32>, String> {
    let slots = text.parse::<OrNone<NonZeroU32>>().map_err(|_| "write a whole number from 1, or `none`".to_owned())?;
    Ok(OrNone(slots.0.map(NonZeroU32::get)))
}

fn label(text: &str) -> Result<Label, String> {
    name_and_value(text).map(|(name, value)| Label { name, value })
}

fn zone(text: &str) -> Result<String, String> {
    jiff::tz::TimeZone::get(text).map_err(|_| "unknown time zone; write one such as Europe/Berlin".to_owned())?;
    Ok(text.to_owned())
}

/// The manifest of a command without one: the working directory, for its ledger.
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
}

/// Options of `sandbox`.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// Port on 127.0.0.1; 0 selects a free one
    #[arg(long, value_name = "N", default_value = "8787")]
    pub port: u16,
    /// Speed-up over the real service
    #[arg(long, value_name = "X", default_value = "1", value_parser = decimal(0.01..=1_000_000.0))]
    pub speed: f64,
    /// Fault and its share, 0 to 1; repeatable
    ///
    /// Of a response: `lost-response` (the request is handled, then the connection is cut), `server-error`, `retry-after`, `slow`. Of a task:
    /// `failed-task`. Of a video: `expired-url`
    #[arg(long, value_name = "NAME=P", value_parser = fault)]
    pub fault: Vec<(Fault, f64)>,
    /// Catalog that adds models or changes prices
    #[arg(value_parser = PathParser, long, env = "SHOTLIST_CATALOG", value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// Maximum number of active tasks; a submission above it gets a 429
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_tasks: Option<usize>,
}

fn fault(text: &str) -> Result<(Fault, f64), String> {
    let (name, share) = text.split_once('=').ok_or("write NAME=P, for example slow=0.1")?;
    let known = || Fault::ALL.map(Fault::name).join(", ");
    let fault = Fault::named(name);
    Ok((fault.ok_or_else(|| format!("unknown fault `{name}`; write one of {}", known()))?, decimal(0.0..=1.0)(share)?))
}
