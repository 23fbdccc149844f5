//! Options of `sandbox`.

use std::path::PathBuf;

use clap::Args;

use super::groups::{at_least_one, decimal};
use super::ledger::PathParser;
use crate::sandbox::Fault;

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
