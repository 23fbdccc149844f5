//! Programs of the user's that a run starts.

use std::time::Duration;

use clap::Args;

use super::groups::duration;

/// Which programs, and for how long each may run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Programs")]
pub(crate) struct ProgramArgs {
    /// Gives a picture of this machine (`image_file`) an address: gets its path as the last argument, and prints one URL
    #[arg(long, env = "SHOTLIST_ASSET_COMMAND", hide_env_values = true, value_name = "CMD")]
    pub asset_command: Option<String>,
    /// For how long such an address is good, also for later runs [default: this run]
    #[arg(long, env = "SHOTLIST_ASSET_TTL", hide_env_values = true, value_name = "DURATION", value_parser = duration)]
    pub asset_ttl: Option<Duration>,
    /// Start this for each video once it is verified and in its place, with its path as the last argument and what it is in
    /// `SHOTLIST_ID`, `SHOTLIST_PROMPT` and so on; what failed is started again by the next run
    #[arg(long, env = "SHOTLIST_EXEC", hide_env_values = true, value_name = "CMD")]
    pub exec: Option<String>,
    /// How long a program may take before it is killed and counts as failed
    ///
    /// The program and the processes of its group are killed. A process that starts a session of its own (`setsid`) survives, and so does
    /// every program if shotlist itself is killed: the next run starts it again beside that.
    #[arg(long, env = "SHOTLIST_PROGRAM_TIMEOUT", hide_env_values = true, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub program_timeout: Duration,
}
