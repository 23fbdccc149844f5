//! Who is told how a run went, where nobody watches it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::groups::duration;

/// Who is told, and how long another run is waited for.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Nobody watching")]
pub(crate) struct MonitorArgs {
    /// Tell a monitor such as healthchecks.io that the run begins and how it ended; better in `SHOTLIST_PING`, because whoever has the
    /// address can say that all is well
    #[arg(long, env = "SHOTLIST_PING", hide_env_values = true, value_name = "URL")]
    pub ping: Option<String>,
    /// Write metrics for the textfile collector of Prometheus's node exporter, also of a run that was refused
    #[arg(long, env = "SHOTLIST_METRICS", hide_env_values = true, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Write a summary in Markdown, for the page of a CI job or a comment
    #[arg(long, env = "SHOTLIST_SUMMARY", hide_env_values = true, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// How long to wait for another run that holds this batch, before ending with 75
    #[arg(long, env = "SHOTLIST_LOCK_WAIT", hide_env_values = true, value_name = "DURATION", value_parser = duration)]
    pub lock_wait: Option<Duration>,
}
