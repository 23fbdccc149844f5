//! What can be said to `run`, in headed groups.

use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};

use super::groups::{ManifestArgs, ReportArgs, SelectArgs, ServiceArgs, at_least_one, duration};
use super::monitors::MonitorArgs;
use super::programs::ProgramArgs;
use crate::domain::Usd;

/// Options of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    /// Take what looks like a slip in the manifest, and is only told otherwise, for an error
    #[arg(long, help_heading = "Manifest", env = "SHOTLIST_STRICT", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub strict: bool,
    #[command(flatten)]
    pub selection: SelectArgs,
    #[command(flatten)]
    pub few: FewArgs,
    #[command(flatten)]
    pub money: MoneyArgs,
    #[command(flatten)]
    pub again: AgainArgs,
    #[command(flatten)]
    pub pace: PaceArgs,
    #[command(flatten)]
    pub reports: ReportArgs,
    #[command(flatten)]
    pub videos: VideoArgs,
    #[command(flatten)]
    pub programs: ProgramArgs,
    #[command(flatten)]
    pub monitors: MonitorArgs,
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// How many of the due jobs.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which jobs")]
#[group(multiple = false)]
pub(crate) struct FewArgs {
    /// Buy only N of the due jobs, spread over their models, the same ones each time: a first look, which the next run goes on from
    #[arg(long, env = "SHOTLIST_SAMPLE", hide_env_values = true, value_name = "N", value_parser = at_least_one)]
    pub sample: Option<usize>,
    /// Buy only the first N of the due jobs
    #[arg(long, env = "SHOTLIST_LIMIT", hide_env_values = true, value_name = "N", value_parser = at_least_one)]
    pub limit: Option<usize>,
}

/// What may be spent.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Money")]
pub(crate) struct MoneyArgs {
    /// Price and show; sends nothing, needs no key and no network, writes nothing
    #[arg(long, alias = "dry-run", overrides_with = "plan", env = "SHOTLIST_PLAN", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub plan: bool,
    /// The form of the plan, and of what is wrong with the manifest, on stdout
    #[arg(long, env = "SHOTLIST_FORMAT", hide_env_values = true, value_name = "FORMAT", default_value = "text")]
    pub format: PlanFormat,
    /// Spend without being asked
    #[arg(long, env = "SHOTLIST_YES", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub yes: bool,
    /// The most that this run may newly spend; counts as consent up to that sum [default: the manifest's budget.run]
    #[arg(long, env = "SHOTLIST_MAX_COST", hide_env_values = true, value_name = "USD")]
    pub max_cost: Option<Usd>,
    /// Run only if the plan matches this digest (64 digits) or saved plan
    ///
    /// Counts as consent. Save a plan with `--plan --format json`. A killed run continues under the same approval
    #[arg(long, env = "SHOTLIST_APPROVED", hide_env_values = true, value_name = "DIGEST|FILE")]
    pub approved: Option<String>,
}

/// Which jobs are paid for again.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Paying again")]
pub(crate) struct AgainArgs {
    /// New paid generations for a job whose task failed, in this run
    #[arg(long, env = "SHOTLIST_RETRIES", hide_env_values = true, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub retries: u32,
    /// Failed jobs of earlier runs are due again
    #[arg(long, env = "SHOTLIST_RETRY_FAILED", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub retry_failed: bool,
    /// Completed jobs whose id matches are due again, each time that this is given; or @FILE for those that were asked for again on the page,
    /// once for each video. What else is due is bought, too, unless --select leaves it out; repeatable
    #[arg(long, env = "SHOTLIST_RETAKE", hide_env_values = true, value_name = "GLOB|@FILE")]
    pub retake: Vec<String>,
    /// Repurchase jobs that are already paid for; the plan prints the pattern; repeatable
    #[arg(long, env = "SHOTLIST_BUY_AGAIN", hide_env_values = true, value_name = "GLOB")]
    pub buy_again: Vec<String>,
    /// Treat 500, 502, 503 and 504 on submission as refused (for services known not to charge them)
    #[arg(long, env = "SHOTLIST_RETRY_SERVER_ERRORS", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub retry_server_errors: bool,
}

/// The form of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PlanFormat {
    Text,
    Json,
    Markdown,
    /// A page for a browser.
    Html,
}

/// How fast.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pace")]
pub(crate) struct PaceArgs {
    /// The most tasks outstanding at the service
    #[arg(long, env = "SHOTLIST_CONCURRENCY", hide_env_values = true, value_name = "N", default_value = "8", value_parser = concurrency)]
    pub concurrency: usize,
    /// The longest pause between two polls of one task, once it may be ready [default: 10s]
    #[arg(long, env = "SHOTLIST_POLL_INTERVAL", hide_env_values = true, value_name = "DURATION", value_parser = duration)]
    pub poll_interval: Option<Duration>,
    /// The shortest pause between two polls of one task [default: 1s]
    #[arg(long, env = "SHOTLIST_POLL_FLOOR", hide_env_values = true, value_name = "DURATION", value_parser = duration)]
    pub poll_floor: Option<Duration>,
    /// When to poll a task for the first time [default: learned, starting from its family's typical minimum]
    #[arg(long, env = "SHOTLIST_FIRST_POLL", hide_env_values = true, value_name = "DURATION", value_parser = duration)]
    pub first_poll: Option<Duration>,
    /// How long to wait for one task; then it is left at the service and picked up by the next run
    #[arg(long, env = "SHOTLIST_DEADLINE", hide_env_values = true, value_name = "DURATION", default_value = "30m", value_parser = duration)]
    pub deadline: Duration,
    /// Time box: at its end nothing more is submitted, and what is not done is left for the next run
    #[arg(long, env = "SHOTLIST_MAX_DURATION", hide_env_values = true, value_name = "DURATION", value_parser = duration)]
    pub max_duration: Option<Duration>,
    /// Stop submitting after this many jobs that failed, were rejected or are in doubt; what is at the service is still collected
    #[arg(long, env = "SHOTLIST_MAX_FAILURES", hide_env_values = true, value_name = "N", value_parser = at_least_one)]
    pub max_failures: Option<usize>,
    /// Stop submitting after this many doubts in a row
    #[arg(long, env = "SHOTLIST_MAX_DOUBTS", hide_env_values = true, value_name = "N", default_value = "3", value_parser = at_least_one)]
    pub max_doubts: usize,
    /// The most requests a second, submissions and polls together [default: as many as the service takes]
    #[arg(long, env = "SHOTLIST_RPS", hide_env_values = true, value_name = "X", value_parser = rps)]
    pub rps: Option<f64>,
}

/// What is kept of the videos.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct VideoArgs {
    /// Leave the videos at their addresses, which expire
    #[arg(long, env = "SHOTLIST_NO_DOWNLOAD", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub no_download: bool,
    /// Write beside each video what it is, FILE.json: request, task, price, times, hash, labels, and that a model made it
    #[arg(long, env = "SHOTLIST_SIDECAR", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub sidecar: bool,
    /// Leave what earlier batches of the same name have at the service; it is collected otherwise, which costs nothing
    #[arg(long, env = "SHOTLIST_NO_COLLECT", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub no_collect: bool,
}

fn concurrency(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=100_000) => Ok(count),
        _ => Err("write a whole number from 1 to 100000".to_owned()),
    }
}

fn rps(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rps| (0.01..=100_000.0).contains(rps))
        .ok_or_else(|| "write a number from 0.01 to 100000".to_owned())
}
