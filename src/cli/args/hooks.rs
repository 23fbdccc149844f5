//! Programs of the user's that a run starts.

use std::time::Duration;

use clap::Args;

use super::groups::duration;

/// The hooks, and the time for each.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Programs")]
pub(crate) struct HookArgs {
    /// Program that prints a URL for a local image (`image_file`)
    ///
    /// It gets the path as its last argument, and runs for due jobs only
    #[arg(long, hide_short_help = true, env = "SHOTLIST_ASSET_COMMAND", value_name = "CMD")]
    pub asset_command: Option<String>,
    /// Program to run for each verified video
    ///
    /// It gets the path as its last argument, and facts in `SHOTLIST_ID`, `SHOTLIST_PROMPT`, and so on. The next run repeats a failure
    #[arg(long, hide_short_help = true, env = "SHOTLIST_EXEC", value_name = "CMD")]
    pub exec: Option<String>,
    /// Time limit of a program, before it is killed
    ///
    /// The program and its process group are killed. A process in a session of its own (`setsid`) survives. If shotlist itself is killed, every
    /// program survives, and the next run starts it again.
    #[arg(long, hide_short_help = true, env = "SHOTLIST_PROGRAM_TIMEOUT", value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub program_timeout: Duration,
}
