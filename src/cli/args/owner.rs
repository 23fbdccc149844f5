//! Options of what the owner of the money says, and of what one machine wants of the others.

use std::path::PathBuf;
use std::str::FromStr as _;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Subcommand};

use super::groups::{ManifestArgs, SelectArgs, ServiceArgs, at_least_one};
use super::ledger::NamedLedger;
use crate::domain::{Label, Usd};

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
    /// Ledger [default: .shotlist/ledger.db in the working directory]
    #[arg(long, global = true, env = "SHOTLIST_LEDGER", value_name = "PATH|postgres://…")]
    pub ledger: Option<NamedLedger>,
    /// Profile with the settings of an account
    #[arg(long, global = true, env = "SHOTLIST_PROFILE", value_name = "NAME")]
    pub profile: Option<String>,
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
pub(crate) struct LimitSetArgs {
    /// Maximum per day over all batches; `none` removes the limit
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub day: Option<Amount>,
    /// Maximum per month over all batches; `none` removes the limit
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub month: Option<Amount>,
    /// Apply the limits to jobs with this label only
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    pub label: Option<Label>,
    /// Time zone of days and months, for example Europe/Berlin [default: this machine's]
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    pub timezone: Option<String>,
    /// Maximum number of active tasks of all runners; `none` removes it
    ///
    /// For a ledger on PostgreSQL. Without it, the largest `--concurrency` applies
    #[arg(long, value_name = "N|none", value_parser = slots)]
    pub slots: Option<Slots>,
    /// Block all purchases, for example before you restore a backup
    #[arg(long, conflicts_with = "unfreeze")]
    pub freeze: bool,
    /// Allow purchases again
    #[arg(long)]
    pub unfreeze: bool,
}

/// An amount, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Amount(pub Option<Usd>);

/// A number of places, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slots(pub Option<u32>);

/// Options of `fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    #[command(flatten)]
    pub selection: SelectArgs,
    /// Directory for the videos [default: as for `run`]
    #[arg(long, env = "SHOTLIST_OUT", value_name = "DIR", help_heading = "Files")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub service: ServiceArgs,
}

fn amount(text: &str) -> Result<Amount, String> {
    if text == "none" {
        return Ok(Amount(None));
    }
    Usd::from_str(text).map(|usd| Amount(Some(usd))).map_err(|error| error.to_string())
}

fn slots(text: &str) -> Result<Slots, String> {
    if text == "none" {
        return Ok(Slots(None));
    }
    let count = at_least_one(text)?;
    u32::try_from(count).map(|count| Slots(Some(count))).map_err(|_| "that is too many".to_owned())
}

fn label(text: &str) -> Result<Label, String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, for example client=acme")?;
    if name.is_empty() {
        return Err("the name before the = is empty".to_owned());
    }
    Ok(Label { name: name.to_owned(), value: value.to_owned() })
}

fn zone(text: &str) -> Result<String, String> {
    jiff::tz::TimeZone::get(text).map_err(|_| "unknown time zone; write one such as Europe/Berlin".to_owned())?;
    Ok(text.to_owned())
}
