//! The command line: what can be said, in headed groups, each option also in the environment.
//!
//! The variants of a choice have no doc comments: clap would spread every option over several lines to show them.

use std::path::PathBuf;

use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::groups::{ManifestArgs, ReportArgs, SelectArgs, ServiceArgs, at_least_one};
use super::owner::{FetchArgs, LimitArgs};
use super::run::RunArgs;
use crate::report::JobState;
use crate::sandbox::Fault;

/// Turns a YAML list of video jobs into finished videos, and never pays twice by itself.
#[derive(Debug, Parser)]
#[command(name = "shotlist", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How to show it.
    #[command(flatten)]
    pub terminal: TerminalArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Validate, price, submit, poll, download and report; with --plan, stop after pricing
    Run(Box<RunArgs>),
    /// Show where each job stands, from the ledger alone
    Status(StatusArgs),
    /// Write the reports again, from the ledger alone
    Report(ReportCommandArgs),
    /// List what is in doubt, settle it, or give up a task that never ends
    Resolve(ResolveArgs),
    /// Show money by day, batch, model or label, from the ledger
    Spend(SpendArgs),
    /// Hold the service's bill against the ledger
    Reconcile(ReconcileArgs),
    /// Fetch the videos that are not on this machine; nothing is bought
    Fetch(Box<FetchArgs>),
    /// Set or show the owner's limits, which no manifest can raise
    Limit(LimitArgs),
    /// Copy the ledger whole, or verify it
    Ledger(LedgerArgs),
    /// Write a commented starter manifest
    Init(InitArgs),
    /// Serve the local simulator of the service
    Sandbox(SandboxArgs),
    /// Print a JSON Schema
    Schema(SchemaArgs),
    /// Write the man pages
    Man(ManArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the help of a command, or a topic: manifest, money, exit-codes, reports, cron, machines, videos, programs, service
    Help(HelpArgs),
}

/// Terminal habits, the same for every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Terminal")]
pub(crate) struct TerminalArgs {
    /// Say nothing but results and errors
    #[arg(short, long, global = true, env = "SHOTLIST_QUIET", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more; twice for even more
    #[arg(short, long, global = true, env = "SHOTLIST_VERBOSE", hide_env_values = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// When to show a progress bar
    #[arg(
        long,
        global = true,
        env = "SHOTLIST_PROGRESS",
        hide_env_values = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub progress: When,
    /// When to use colour; the environment's `NO_COLOR` is honoured
    #[arg(
        long,
        global = true,
        env = "SHOTLIST_COLOR",
        hide_env_values = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub color: When,
    /// The form of log lines on stderr
    #[arg(
        long,
        global = true,
        env = "SHOTLIST_LOG_FORMAT",
        hide_env_values = true,
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub log_format: LogFormat,
}

/// When to do something that only a terminal can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// The form of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportCommandArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    #[command(flatten)]
    pub reports: ReportArgs,
}

/// Options of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    #[command(flatten)]
    pub selection: SelectArgs,
    /// The folder with the videos [default: as for `run`]
    #[arg(long, env = "SHOTLIST_OUT", hide_env_values = true, value_name = "DIR", help_heading = "Files")]
    pub out: Option<PathBuf>,
    /// Only jobs in this state; repeatable
    #[arg(long, env = "SHOTLIST_STATE", hide_env_values = true, help_heading = "Which jobs", value_name = "STATE", value_delimiter = ',', value_parser = state())]
    pub state: Vec<JobState>,
    /// The form of the answer
    #[arg(long, env = "SHOTLIST_FORMAT", hide_env_values = true, value_name = "FORMAT", default_value = "text")]
    pub format: StatusFormat,
}

/// The form of a status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StatusFormat {
    Text,
    Json,
}

/// Options of `resolve`.
#[derive(Debug, Args)]
#[command(override_usage = "shotlist resolve [OPTIONS] <MANIFEST> [<JOB> <--task <ID>|--never-created|--lost[=<ID>]>]")]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    /// The id of the job in doubt, a glob over ids, or the id of the job whose task never ends; without it, what is in doubt
    /// is listed
    #[arg(help_heading = "Arguments", index = 2, display_order = 2)]
    pub job: Option<String>,
    #[command(flatten)]
    pub verdict: Verdict,
    /// Record the task even if its model, duration, shape, or time differs from the job's
    #[arg(long, requires = "task", help_heading = "What became of it")]
    pub anyway: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// What became of a doubtful submission.
#[derive(Debug, Args)]
#[command(next_help_heading = "What became of it")]
#[group(required = false, multiple = false)]
pub(crate) struct Verdict {
    /// It made this task; the service is asked before it is believed
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// It never made a task: the job is due again, and costs again
    #[arg(long)]
    pub never_created: bool,
    /// Its task will never end: nobody asks about it any more, and what it cost stays as it is, known or not. The job
    /// counts as failed, and `run --retry-failed` buys it again. With more than one task at the service, say which
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub lost: Option<String>,
}

/// Options of `spend`.
#[derive(Debug, Args)]
pub(crate) struct SpendArgs {
    /// A manifest whose ledger it is; without one, the ledger of the working folder
    pub manifest: Option<PathBuf>,
    /// Only what was spent on this day or later, for example 2026-11-01
    #[arg(long, value_name = "DATE", value_parser = day)]
    pub since: Option<jiff::civil::Date>,
    /// The ledger [default: .shotlist/ledger.db beside the manifest]
    #[arg(long, env = "SHOTLIST_LEDGER", hide_env_values = true, value_name = "PATH|postgres://…")]
    pub ledger: Option<PathBuf>,
    /// The simulator's books
    #[arg(long, env = "SHOTLIST_SANDBOX", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub sandbox: bool,
    /// Sums by day, by batch, by model, or by the values of a label; without it, by the first three together
    #[arg(long, env = "SHOTLIST_BY", hide_env_values = true, value_name = "day|batch|model|LABEL", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub by: Option<String>,
    /// The form of the answer
    #[arg(long, env = "SHOTLIST_FORMAT", hide_env_values = true, value_name = "FORMAT", default_value = "text")]
    pub format: SpendFormat,
}

/// The form of the books.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SpendFormat {
    Text,
    Json,
    Csv,
}

/// Options of `reconcile`.
#[derive(Debug, Args)]
pub(crate) struct ReconcileArgs {
    /// The bill as CSV
    pub bill: PathBuf,
    /// A manifest whose ledger it is; without one, the ledger of the working folder
    pub manifest: Option<PathBuf>,
    /// The column with the service's names of tasks
    #[arg(long, value_name = "COLUMN")]
    pub task: String,
    /// The column with the amounts in dollars
    #[arg(long, value_name = "COLUMN")]
    pub usd: String,
    /// The column with times, by which doubts find their lines
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// The first day that the bill covers, for example 2026-11-01
    #[arg(long, value_name = "DATE", requires = "until", value_parser = day)]
    pub since: Option<jiff::civil::Date>,
    /// The last day that the bill covers. With both, what a bill does not have that ended well inside of these days was not charged, if
    /// every line of the bill is explained
    #[arg(long, value_name = "DATE", requires = "since", value_parser = day)]
    pub until: Option<jiff::civil::Date>,
    /// Write what the bill settles into the ledger; without it, nothing is written
    #[arg(long)]
    pub apply: bool,
    /// The ledger [default: .shotlist/ledger.db beside the manifest]
    #[arg(long, env = "SHOTLIST_LEDGER", hide_env_values = true, value_name = "PATH|postgres://…")]
    pub ledger: Option<PathBuf>,
}

/// Options of `ledger`.
#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    /// What to do with it
    #[command(subcommand)]
    pub command: LedgerCommand,
    /// The ledger [default: .shotlist/ledger.db in the working folder, with --sandbox sandbox.db]
    #[arg(long, global = true, env = "SHOTLIST_LEDGER", hide_env_values = true, value_name = "PATH|postgres://…")]
    pub ledger: Option<PathBuf>,
    /// It is one of the simulator
    #[arg(long, global = true, env = "SHOTLIST_SANDBOX", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub sandbox: bool,
}

/// What can be done with a ledger.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Carry all of a ledger into an empty one: from a file into a database, or back
    Copy {
        /// The ledger that is read
        #[arg(value_name = "PATH|postgres://…")]
        from: PathBuf,
        /// The one that is written, which must be empty
        #[arg(value_name = "PATH|postgres://…")]
        to: PathBuf,
    },
    /// Copy a ledger to a new file while runs use it
    Backup {
        /// The copy; an existing file is never replaced
        file: PathBuf,
    },
    /// Verify the file, each attempt in it, its sums, and that it did not go back in time
    Check,
}

/// Options of `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Where to write it; an existing file is never overwritten [default: shotlist.yaml, and with --from the sheet's name beside
    /// it]
    pub file: Option<PathBuf>,
    /// Make jobs of the rows of this spreadsheet (csv, tsv, xlsx), with what its columns seem to mean as comments
    #[arg(long, value_name = "SHEET")]
    pub from: Option<PathBuf>,
    /// The sheet of the workbook [default: its first one]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub sheet: Option<String>,
    /// The model for these jobs [default: what the columns ask for, else the cheapest]
    #[arg(long, value_name = "MODEL", requires = "from")]
    pub model: Option<String>,
}

/// Options of `sandbox`.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// The port on 127.0.0.1; 0 for any that is free
    #[arg(long, value_name = "N", default_value = "8787")]
    pub port: u16,
    /// How many times faster than the real thing; a run against it expects the real times unless it is told --first-poll
    #[arg(long, value_name = "X", default_value = "1", value_parser = speed)]
    pub speed: f64,
    /// Makes generation times and failures repeatable
    #[arg(long, value_name = "S", default_value = "0")]
    pub seed: u64,
    /// The share of tasks that fail, 0 to 1
    #[arg(long, value_name = "P", default_value = "0", value_parser = probability)]
    pub fail_rate: f64,
    /// A fault and how often it strikes, 0 to 1; repeatable. On any answer: lost-answer (obeyed, then the connection is
    /// cut), truncated, malformed, slow, server-error, retry-after (429 in seconds), retry-after-date; on a task's state:
    /// unknown-status, no-url, backwards; on a video: expired-url
    #[arg(long, value_name = "NAME=P", value_parser = fault)]
    pub fault: Vec<(Fault, f64)>,
    /// A catalogue that adds models or changes prices
    #[arg(long, env = "SHOTLIST_CATALOG", hide_env_values = true, value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// The most requests in a second; more get a 429
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_rps: Option<u32>,
    /// The most tasks at once; a submission beyond gets a 429
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_outstanding: Option<usize>,
}

/// Options of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Of what
    #[arg(value_name = "manifest|plan|report|spend|diagnostics")]
    pub of: SchemaOf,
}

/// What there is a schema of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SchemaOf {
    Manifest,
    Plan,
    // Of `status --format json`, too.
    Report,
    Spend,
    Diagnostics,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    pub shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder to write all of them into, as man1, man5 and man7; without it, the first one is printed
    pub dir: Option<PathBuf>,
}

/// Options of `help`.
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// A command, or a topic
    #[arg(value_name = "COMMAND|TOPIC")]
    pub words: Vec<String>,
}

/// Knows the states by their names, and offers them.
fn state() -> impl TypedValueParser<Value = JobState> {
    PossibleValuesParser::new(JobState::ALL.map(JobState::name)).try_map(|name| {
        let state = JobState::ALL.into_iter().find(|state| state.name() == name);
        state.ok_or("there is no such state")
    })
}

fn day(text: &str) -> Result<jiff::civil::Date, String> {
    text.parse().map_err(|_| "write a day such as 2026-11-01".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|speed| (0.01..=1_000_000.0).contains(speed))
        .ok_or_else(|| "write 0.01 to 1000000".to_owned())
}

fn fault(text: &str) -> Result<(Fault, f64), String> {
    let (name, share) = text.split_once('=').ok_or("write NAME=P, for example slow=0.1")?;
    let known = || Fault::ALL.map(Fault::name).join(", ");
    let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name);
    Ok((fault.ok_or_else(|| format!("there is no fault `{name}`: write one of {}", known()))?, probability(share)?))
}

fn probability(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "write a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
