//! Options of `run`, in headed groups.

use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};

use super::groups::{ManifestArgs, ReportArgs, SelectArgs, ServiceArgs, at_least_one, decimal, duration};
use crate::domain::Usd;

/// Options of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    /// Treat manifest warnings as errors
    #[arg(long, hide_short_help = true, help_heading = "Manifest", env = "SHOTLIST_STRICT", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub strict: bool,
    /// Buy without a terminal although a warning may mean that the wrong thing is bought
    #[arg(long, hide_short_help = true, help_heading = "Manifest", env = "SHOTLIST_ACCEPT_WARNINGS", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub accept_warnings: bool,
    #[command(flatten)]
    pub selection: SelectArgs,
    /// Submit a fixed sample of N due jobs, spread over models
    #[arg(long, help_heading = "Jobs", env = "SHOTLIST_SAMPLE", value_name = "N", value_parser = at_least_one)]
    pub sample: Option<usize>,
    #[command(flatten)]
    pub money: MoneyArgs,
    #[command(flatten)]
    pub again: RepeatArgs,
    #[command(flatten)]
    pub pace: PaceArgs,
    #[command(flatten)]
    pub reports: ReportArgs,
    #[command(flatten)]
    pub videos: VideoArgs,
    #[command(flatten)]
    pub hooks: HookArgs,
    /// Maximum wait for another run of the batch, before exit 75
    #[arg(long, hide_short_help = true, help_heading = "Unattended runs", env = "SHOTLIST_LOCK_WAIT", value_name = "DURATION", value_parser = duration)]
    pub lock_wait: Option<Duration>,
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// The confirmation of spending.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Money")]
pub(crate) struct MoneyArgs {
    /// Show the plan and its price, then exit (dry run)
    ///
    /// Sends nothing, writes nothing, and needs no key and no network
    #[arg(long, alias = "dry-run", overrides_with = "plan", env = "SHOTLIST_PLAN", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub plan: bool,
    /// Format of the plan and of diagnostics on stdout
    #[arg(long, hide_short_help = true, env = "SHOTLIST_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub format: PlanFormat,
    /// Spend without a question, within the limits
    #[arg(long, env = "SHOTLIST_YES", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub yes: bool,
    /// Maximum to spend in this run, in place of `budget.run`; confirms a plan that costs no more
    #[arg(long, env = "SHOTLIST_MAX_COST", value_name = "USD")]
    pub max_cost: Option<Usd>,
    /// Run only if the plan matches this digest (64 digits) or saved plan
    ///
    /// Confirms that plan. Save a plan with `--plan --format json`. A killed run continues under the same approval
    #[arg(long, env = "SHOTLIST_APPROVED", value_name = "DIGEST|FILE")]
    pub approved: Option<String>,
}

/// The jobs to buy again.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Buying again")]
pub(crate) struct RepeatArgs {
    /// Paid retries of a failed task in this run, 0 to 3
    #[arg(long, hide_short_help = true, env = "SHOTLIST_RETRIES", value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(0..=3))]
    pub retries: u32,
    /// Retry jobs that failed in earlier runs; costs money
    #[arg(long, env = "SHOTLIST_RETRY_FAILED", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub retry_failed: bool,
    /// Buy another take of completed jobs; repeatable
    ///
    /// A pattern, or a list of IDs in `@FILE`, buys one take of each job per run, and the other due jobs, too. A choices file in `@FILE` is
    /// recorded in the ledger; then only its retakes are bought, once each. `@ledger` buys the recorded ones
    #[arg(long, env = "SHOTLIST_RETAKE", value_name = "GLOB|@FILE|@ledger")]
    pub retake: Vec<String>,
    /// Buy jobs again that are already paid for; the plan prints the pattern; repeatable
    #[arg(long, env = "SHOTLIST_BUY_AGAIN", value_name = "GLOB")]
    pub buy_again: Vec<String>,
}

/// The form of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PlanFormat {
    Text,
    Json,
    Markdown,
}

/// The pace.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pace")]
pub(crate) struct PaceArgs {
    /// Maximum number of active tasks
    #[arg(long, hide_short_help = true, env = "SHOTLIST_CONCURRENCY", value_name = "N", default_value = "8", value_parser = concurrency)]
    pub concurrency: usize,
    /// Longest interval between two polls of one task [default: 8s]
    #[arg(long, hide = true, env = "SHOTLIST_POLL_INTERVAL", value_name = "DURATION", value_parser = duration)]
    pub poll_interval: Option<Duration>,
    /// Shortest interval between two polls of one task [default: 1s]
    #[arg(long, hide = true, env = "SHOTLIST_POLL_FLOOR", value_name = "DURATION", value_parser = duration)]
    pub poll_floor: Option<Duration>,
    /// Age of a task at its first poll [default: a quarter of the shortest typical time]
    #[arg(long, hide = true, env = "SHOTLIST_FIRST_POLL", value_name = "DURATION", value_parser = duration)]
    pub first_poll: Option<Duration>,
    /// Maximum wait for one task; the next run resumes it
    #[arg(long, hide_short_help = true, env = "SHOTLIST_DEADLINE", value_name = "DURATION", default_value = "30m", value_parser = duration)]
    pub deadline: Duration,
    /// Stop submitting after N jobs that failed, were rejected, or are in doubt
    ///
    /// Active tasks are still polled to the end
    #[arg(long, hide_short_help = true, env = "SHOTLIST_MAX_FAILURES", value_name = "N", value_parser = at_least_one)]
    pub max_failures: Option<usize>,
    /// Stop submitting after N jobs in doubt in a row
    #[arg(long, hide_short_help = true, env = "SHOTLIST_MAX_DOUBTS", value_name = "N", default_value = "3", value_parser = at_least_one)]
    pub max_doubts: usize,
    /// Submit on although the videos of a model differ from what is paid for
    #[arg(long, hide_short_help = true, env = "SHOTLIST_ACCEPT_MISMATCH", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub accept_mismatch: bool,
    /// Maximum requests per second, including polls [default: learned]
    #[arg(long, hide_short_help = true, env = "SHOTLIST_RPS", value_name = "X", value_parser = decimal(0.01..=100_000.0))]
    pub rps: Option<f64>,
}

/// The treatment of videos.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct VideoArgs {
    /// Skip downloads; the URLs in the reports expire
    #[arg(long, hide_short_help = true, env = "SHOTLIST_NO_DOWNLOAD", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub no_download: bool,
    /// Skip other batches of the same name
    ///
    /// Otherwise, each run finishes them free of charge
    #[arg(long, hide_short_help = true, env = "SHOTLIST_SKIP_OTHER_BATCHES", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub skip_other_batches: bool,
}

fn concurrency(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=100_000).contains(count));
    count.ok_or_else(|| "write a whole number from 1 to 100000".to_owned())
}

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
