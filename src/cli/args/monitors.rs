//! Options for monitors and summaries.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::groups::duration;

/// The monitors, and the wait for another run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Unattended runs")]
pub(crate) struct MonitorArgs {
    /// Report start and end to a monitor such as healthchecks.io
    ///
    /// The URL is secret: prefer `SHOTLIST_PING`
    #[arg(long, hide_short_help = true, env = "SHOTLIST_PING", value_name = "URL")]
    pub ping: Option<String>,
    /// Write metrics for the `node_exporter` of Prometheus, also after a refusal
    #[arg(long, hide_short_help = true, env = "SHOTLIST_METRICS", value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Write a summary in Markdown, for a CI job or a comment
    #[arg(long, hide_short_help = true, env = "SHOTLIST_SUMMARY", value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Maximum wait for another run of the batch, before exit 75
    #[arg(long, hide_short_help = true, env = "SHOTLIST_LOCK_WAIT", value_name = "DURATION", value_parser = duration)]
    pub lock_wait: Option<Duration>,
}
