//! The command line: options in groups with headings, each also as an environment variable.
//!
//! The variants of a choice have no doc comments: clap would spread every option over several lines to show them.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::groups::{
    LedgerParser, LogFormat, ManifestArgs, NamedLedger, PassedOptions, PathParser, ReportArgs, SelectArgs, ServiceArgs,
    StatusFormat,
};
use super::others::{DoctorArgs, FetchArgs, LimitArgs, SandboxArgs, StoreArgs};
use super::run::RunArgs;
use crate::domain::{Choice, JobId};
use crate::report::JobState;

/// Batch runner for a paid video generation service: prices, submits, polls, and downloads the jobs of a manifest.
#[derive(Debug, Parser)]
#[command(name = "shotlist", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// The options for output.
    #[command(flatten)]
    pub terminal: TerminalArgs,
}

/// The rule for variables, below the help of a command.
const VARIABLES: &str =
    "Most options can be set by a variable, such as `--max-cost` by `SHOTLIST_MAX_COST`. The command line comes first.";

impl Cli {
    /// Returns the command line. Its help names a variable only if it is not called like its option, and never shows a value: some are secret.
    pub(crate) fn program() -> &'static clap::Command {
        static PROGRAM: LazyLock<clap::Command> = LazyLock::new(|| with_plain_help(Cli::command()));
        fn with_plain_help(command: clap::Command) -> clap::Command {
            let command = command.mut_args(|arg| {
                let usual = arg.get_long().map(|long| format!("SHOTLIST_{}", long.to_uppercase().replace('-', "_")));
                let is_usual = usual.is_some_and(|usual| arg.get_env() == Some(usual.as_ref()));
                arg.hide_env_values(true).hide_env(is_usual)
            });
            command.after_long_help(VARIABLES).mut_subcommands(with_plain_help)
        }
        &PROGRAM
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Validate, price, submit, poll, download, and report; stop after the price with --plan
    Run(Box<RunArgs>),
    /// Show job states from the ledger
    Status(StatusArgs),
    /// Rewrite the reports from the ledger
    Report(ReportCommandArgs),
    /// Record what reviewers chose on the contact sheet
    Choose(ChooseArgs),
    /// List jobs in doubt, or record their outcome
    Resolve(ResolveArgs),
    /// Show spending by day, batch, model, or label
    Spend(SpendArgs),
    /// Compare the service's bill with the ledger
    Reconcile(ReconcileArgs),
    /// Download videos that are missing on this machine; costs nothing
    Fetch(Box<FetchArgs>),
    /// Record videos that left the output directory, or move them
    Archive(ArchiveArgs),
    /// Record tasks that the ledger lost, or that another program bought; costs nothing
    Import(ImportArgs),
    /// Set or show ledger limits, which no manifest can raise
    Limit(LimitArgs),
    /// Copy, back up, or verify a ledger
    Ledger(LedgerArgs),
    /// Check the service, key, ledger, and disk before a run
    Doctor(Box<DoctorArgs>),
    /// Write a starter manifest, or one for a spreadsheet
    Init(InitArgs),
    /// Serve the simulator of the service
    Sandbox(SandboxArgs),
    /// Print a JSON Schema
    Schema(SchemaArgs),
    /// Write the man pages
    Man(ManArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Show help for a command, or a topic of the reference
    Help(HelpArgs),
}

/// Terminal habits, the same for every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Terminal")]
pub(crate) struct TerminalArgs {
    /// Print only results and errors
    #[arg(short, long, global = true, env = "SHOTLIST_QUIET", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more; repeatable
    #[arg(short, long, global = true, env = "SHOTLIST_VERBOSE", action = ArgAction::Count)]
    pub verbose: u8,
    /// When to show a progress bar
    #[arg(long, global = true, hide_short_help = true, default_value = "auto")]
    #[arg(env = "SHOTLIST_PROGRESS", value_name = "WHEN")]
    pub progress: When,
    /// When to use color; `NO_COLOR` applies
    #[arg(long, global = true, hide_short_help = true, default_value = "auto")]
    #[arg(env = "SHOTLIST_COLOR", value_name = "WHEN")]
    pub color: When,
    /// Format of log lines on stderr
    #[arg(long, global = true, hide_short_help = true, default_value = "text")]
    #[arg(env = "SHOTLIST_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: LogFormat,
}

/// The condition for something that only a terminal can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
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
    /// Directory with the videos [default: as for `run`]
    #[arg(value_parser = PathParser, long, env = "SHOTLIST_OUT", value_name = "DIR", help_heading = "Files")]
    pub out: Option<PathBuf>,
    /// Show only jobs in this state; repeatable
    #[arg(long, env = "SHOTLIST_STATE", help_heading = "Jobs", value_name = "STATE", value_delimiter = ',', value_parser = state())]
    pub state: Vec<JobState>,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: StatusFormat,
}

/// Options of `choose`.
#[derive(Debug, Args)]
pub(crate) struct ChooseArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    /// Files that the contact sheet saved, such as `~/Downloads/choices.json`
    #[arg(value_parser = PathParser, help_heading = "Arguments", index = 2, display_order = 2, value_name = "FILE", required_unless_present_any = ["decide", "withdraw"])]
    pub files: Vec<PathBuf>,
    /// Reviewer [default: the name in the file, or your user name]
    #[arg(long, env = "SHOTLIST_REVIEWER", value_name = "NAME", help_heading = "Choices")]
    pub by: Option<String>,
    /// End a conflict about a job: earlier choices no longer count; repeatable
    #[arg(long, value_name = "JOB=keep|retake", value_parser = decision, help_heading = "Choices")]
    pub decide: Vec<(JobId, Choice)>,
    /// Take back your choice about a job; repeatable
    #[arg(long, value_name = "JOB", value_parser = job, help_heading = "Choices")]
    pub withdraw: Vec<JobId>,
    /// Directory with the videos [default: as for `run`]
    #[arg(value_parser = PathParser, long, env = "SHOTLIST_OUT", value_name = "DIR", help_heading = "Files")]
    pub out: Option<PathBuf>,
}

/// A job and the choice about it.
fn decision(text: &str) -> Result<(JobId, Choice), String> {
    let (job, choice) = text.split_once('=').unwrap_or((text, ""));
    let choice = match choice {
        "keep" => Choice::Keep,
        "retake" => Choice::Retake,
        _ => return Err("it must be JOB=keep or JOB=retake".to_owned()),
    };
    Ok((self::job(job)?, choice))
}

fn job(text: &str) -> Result<JobId, String> {
    JobId::new(text).map_err(|error| error.to_string())
}

/// Options of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    /// JSON report, or CSV with the columns `id` and `task_id`, and perhaps `submitted_at`
    #[arg(value_parser = PathParser, help_heading = "Arguments", index = 2, display_order = 2, value_name = "FILE")]
    pub file: PathBuf,
    /// Directory with the videos [default: as for `run`]
    #[arg(value_parser = PathParser, long, env = "SHOTLIST_OUT", value_name = "DIR", help_heading = "Files")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// Options of `archive`.
#[derive(Debug, Args)]
#[command(override_usage = "shotlist archive [OPTIONS] <MANIFEST> <--kept|JOB…>")]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    /// Job IDs or patterns
    #[arg(index = 2, display_order = 2, value_name = "JOB")]
    #[arg(help_heading = "Arguments", required_unless_present = "kept")]
    pub jobs: Vec<String>,
    /// Archive the video of each job that has a kept one
    #[arg(long, help_heading = "Jobs")]
    pub kept: bool,
    /// Move the videos to this directory; verified by hash, never overwriting
    #[arg(value_parser = PathParser, long, value_name = "DIR", help_heading = "Files")]
    pub to: Option<PathBuf>,
    /// Directory with the videos [default: as for `run`]
    #[arg(value_parser = PathParser, long, env = "SHOTLIST_OUT", value_name = "DIR", help_heading = "Files")]
    pub out: Option<PathBuf>,
}

/// Options of `resolve`.
#[derive(Debug, Args)]
#[command(
    override_usage = "shotlist resolve [OPTIONS] <MANIFEST> [<JOB> <--task <ID>|--never-created|--abandon[=<ID>]|--undo>]"
)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    pub manifest: ManifestArgs,
    /// Job ID or pattern; without it, the command lists jobs in doubt
    #[arg(help_heading = "Arguments", index = 2, display_order = 2)]
    pub job: Option<String>,
    #[command(flatten)]
    pub verdict: Verdict,
    /// Accept a task with another model, duration, shape, or time than the job
    #[arg(long, requires = "task", help_heading = "Outcome")]
    pub anyway: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// The outcome of a submission in doubt.
#[derive(Debug, Args)]
#[command(next_help_heading = "Outcome")]
#[group(required = false, multiple = false)]
pub(crate) struct Verdict {
    /// The job has this task; the service must confirm it
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// The job certainly has no task: the next run may buy it
    #[arg(long)]
    pub never_created: bool,
    /// Take back your last statement about the job, while nothing was bought on it
    #[arg(long)]
    pub undo: bool,
    /// Give up a task that never ends; its charge stays as it is
    ///
    /// The job counts as failed, and `run --retry-failed` buys it again: twice in all, if the task still runs. A job with several active tasks needs the ID
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub abandon: Option<String>,
}

/// Options of `spend`.
#[derive(Debug, Args)]
pub(crate) struct SpendArgs {
    /// Manifest beside the ledger [default: the working directory's ledger]
    #[arg(value_parser = PathParser)]
    pub manifest: Option<PathBuf>,
    /// Show spending since this day, for example 2026-11-01
    #[arg(long, value_name = "DATE", value_parser = day)]
    pub since: Option<jiff::civil::Date>,
    /// Ledger [default: .shotlist/ledger.db beside the manifest]
    #[arg(value_parser = LedgerParser, long, env = "SHOTLIST_LEDGER", value_name = "PATH|postgres://…")]
    pub ledger: Option<NamedLedger>,
    /// Use the simulator's ledger
    #[arg(long, env = "SHOTLIST_SANDBOX", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub sandbox: bool,
    /// Sum by day, batch, model, or label [default: the first three together]
    #[arg(long, env = "SHOTLIST_BY", value_name = "day|batch|model|LABEL", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub by: Option<String>,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: SpendFormat,
}

/// The form of the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SpendFormat {
    Text,
    Json,
    Csv,
}

/// Options of `reconcile`.
#[derive(Debug, Args)]
pub(crate) struct ReconcileArgs {
    // The first field: each later one removes its value from the matches.
    #[command(flatten)]
    pub passed: PassedOptions,
    /// Bill as CSV
    #[arg(value_parser = PathParser)]
    pub bill: PathBuf,
    /// Manifest beside the ledger [default: the working directory's ledger]
    #[arg(value_parser = PathParser)]
    pub manifest: Option<PathBuf>,
    /// Column with task IDs
    #[arg(long, value_name = "COLUMN")]
    pub task_column: String,
    /// Column with amounts in USD
    #[arg(long, value_name = "COLUMN")]
    pub usd_column: String,
    /// Column with times, which helps to match jobs in doubt
    #[arg(long, value_name = "COLUMN")]
    pub time_column: Option<String>,
    /// First day of the bill, for example 2026-11-01
    #[arg(long, value_name = "DATE", requires = "until", value_parser = day)]
    pub since: Option<jiff::civil::Date>,
    /// Last day of the bill
    ///
    /// With both days, a task without a line was not charged, if all lines match and the task ended 36 hours inside the period
    #[arg(long, value_name = "DATE", requires = "since", value_parser = day)]
    pub until: Option<jiff::civil::Date>,
    /// Record what the bill settles
    #[arg(long)]
    pub apply: bool,
    /// Ledger [default: .shotlist/ledger.db beside the manifest]
    #[arg(value_parser = LedgerParser, long, env = "SHOTLIST_LEDGER", value_name = "PATH|postgres://…")]
    pub ledger: Option<NamedLedger>,
}

/// Options of `ledger`.
#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    /// Action
    #[command(subcommand)]
    pub command: LedgerCommand,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// The operations on a ledger.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Move a ledger into an empty one: from a file to a database, or back
    Copy {
        /// Ledger to read
        #[arg(value_parser = LedgerParser, value_name = "PATH|postgres://…")]
        from: NamedLedger,
        /// Ledger to write, which must be empty
        #[arg(value_parser = LedgerParser, value_name = "PATH|postgres://…")]
        to: NamedLedger,
    },
    /// Copy a ledger to a new file while runs use it
    Backup {
        /// File to write; never overwritten
        #[arg(value_parser = PathParser)]
        file: PathBuf,
    },
    /// Verify the file, its attempts, its sums, and its age
    Check,
}

/// Options of `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Manifest to write; never overwritten [default: shotlist.yaml, or the spreadsheet's name]. A spreadsheet or a directory means `--from`
    #[arg(value_parser = PathParser)]
    pub file: Option<PathBuf>,
    /// Draft jobs from the rows of this spreadsheet (csv, tsv, xlsx, xls, xlsb, ods), or from the images of this directory
    #[arg(value_parser = PathParser, long, value_name = "SHEET")]
    pub from: Option<PathBuf>,
    /// Sheet of the workbook [default: the first visible one that names a prompt]
    #[arg(long, value_name = "NAME")]
    pub sheet: Option<String>,
    /// Model of the jobs [default: the cheapest that fits the columns]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

/// Options of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Schema to print
    #[arg(value_name = "manifest|plan|report|spend|diagnostics")]
    pub of: SchemaOf,
}

/// The subject of a schema.
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
    /// Shell
    pub shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory for man1; without it, the first page is printed
    #[arg(value_parser = PathParser)]
    pub dir: Option<PathBuf>,
}

/// Options of `help`.
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Command or topic
    #[arg(value_name = "COMMAND|TOPIC")]
    pub words: Vec<String>,
}

/// Knows the states by their names, and offers them.
fn state() -> impl TypedValueParser<Value = JobState> {
    PossibleValuesParser::new(JobState::ALL.map(JobState::name))
        .try_map(|name| JobState::named(&name).ok_or("unknown state"))
}

fn day(text: &str) -> Result<jiff::civil::Date, String> {
    text.parse().map_err(|_| "write a day such as 2026-11-01".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::program().clone().debug_assert();
    }
}
