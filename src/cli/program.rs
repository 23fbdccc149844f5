//! The way of a command line: read with the environment, executed until its end or a signal, and turned into an exit code.
//!
//! The command line beats the environment, also for options that exclude each other. An empty variable is not set: CI systems define empty
//! ones.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, FromArgMatches as _};
#[cfg(unix)]
use tokio::signal::unix::SignalKind;

use super::args::{Cli, LogFormat, TerminalArgs, When};
use super::commands;
use super::exit::{Exit, Failure};
use crate::catalog::Catalog;
use crate::domain::{JobId, NoticeCode, Usd};
use crate::manifest::{WORKBOOK_THREAD, is_spreadsheet};
use crate::reference::{TOPICS, Topic};
use crate::session::{RunEvent, Stop, StopReason};
use crate::ui::{self, Terminal};

/// Reads the command line, runs the command, and returns its exit code.
pub fn main() -> ExitCode {
    hide_caught_panics();
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match command_line(&words) {
        Ok(cli) => cli,
        Err(usage) if usage.kind() == ErrorKind::DisplayVersion => return version(),
        Err(usage) => return shown(&with_tip(usage)),
    };
    let terminal = terminal(&cli.terminal);
    ui::start_log(&terminal);
    ExitCode::from(Exit::shown(commands::execute(&cli.command, &terminal), &terminal).code())
}

/// Hides panics in the library for workbooks: they are caught, and the workbook is refused.
fn hide_caught_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(WORKBOOK_THREAD) {
            report(panic);
        }
    }));
}

/// Parses the command line and the environment.
fn command_line(words: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&heeded(command(), words).try_get_matches_from(words)?)
}

/// Prints a help text to stdout, or a usage error to stderr. A closed pipe is no error.
fn shown(usage: &clap::Error) -> ExitCode {
    let _reader_is_gone = usage.print();
    ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
}

/// Prints the version and the day of the prices. Reads the catalog only for this.
fn version() -> ExitCode {
    let (number, build) = (env!("CARGO_PKG_VERSION"), env!("SHOTLIST_BUILD"));
    let prices = &Catalog::embedded().prices_taken_on;
    let _reader_is_gone = writeln!(std::io::stdout(), "shotlist {number} {build}\nprices of {prices}");
    ExitCode::SUCCESS
}

fn terminal(args: &TerminalArgs) -> Terminal {
    let color = match args.color {
        When::Auto => anstream::ColorChoice::Auto,
        When::Always => anstream::ColorChoice::Always,
        When::Never => anstream::ColorChoice::Never,
    };
    color.write_global();
    let is_wanted = match args.progress {
        When::Auto => !args.quiet && args.log_format == LogFormat::Text,
        When::Always => true,
        When::Never => false,
    };
    Terminal {
        is_quiet: args.quiet,
        verbosity: args.verbose,
        // Without a terminal, no cursor is moved.
        shows_bar: is_wanted && std::io::stderr().is_terminal(),
        logs_json: args.log_format == LogFormat::Json,
        has_lost_results: Arc::default(),
    }
}

/// The commands of every day; the others follow under "More".
const DAILY: [&str; 6] = ["init", "run", "status", "resolve", "spend", "fetch"];

/// The first commands of a new user, in order.
const JOURNEY: [(&str, &str); 5] = [
    ("shotlist init --from products.csv", "write a manifest for a spreadsheet"),
    ("shotlist run products.yaml --plan", "show the price; sends nothing"),
    ("shotlist run products.yaml --sandbox", "run on the simulator; spends nothing"),
    ("shotlist run products.yaml", "show the plan, ask, and run"),
    ("shotlist run products.yaml --retake @choices.json", "buy another take of each video that you chose"),
];

/// Returns the command line with its front.
pub(super) fn command() -> Command {
    let program = Cli::program();
    program.clone().override_help(text(program))
}

fn text(program: &Command) -> String {
    let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{}\n\nUsage: shotlist <COMMAND>\n\nFrom a spreadsheet to a choice:\n", about(program));
    let line = |text: &mut String, name: &str, width: usize, what: &str| {
        let _infallible = writeln!(text, "  {name:width$}  {what}");
    };
    for (words, what) in JOURNEY {
        line(&mut text, words, 49, what);
    }
    let named = |name: &str| program.get_subcommands().find(|command| command.get_name() == name);
    text.push_str("\nDaily commands:\n");
    for command in DAILY.into_iter().filter_map(named) {
        line(&mut text, command.get_name(), 11, &about(command));
    }
    text.push_str("\nMore:\n");
    for command in program.get_subcommands().filter(|command| !DAILY.contains(&command.get_name())) {
        line(&mut text, command.get_name(), 11, &about(command));
    }
    let topics = TOPICS.map(|topic| topic.name).join(", ");
    text.push_str("\n`shotlist COMMAND -h` shows the usual options, and `shotlist help COMMAND` all of them.\n");
    let _infallible = writeln!(text, "`shotlist help TOPIC` shows a page of the reference: {topics}.");
    text
}

/// A usage error, with a suggestion.
pub(super) fn with_tip(mut usage: clap::Error) -> clap::Error {
    if let Some(tip) = tip(&usage) {
        usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        // Words that are only spelled alike.
        usage.remove(ContextKind::SuggestedSubcommand);
    } else if usage.kind() == ErrorKind::UnknownArgument {
        // No value starts with a dash, so the suggestion to pass the option as a value is wrong here.
        usage.remove(ContextKind::Suggested);
    }
    usage
}

fn tip(usage: &clap::Error) -> Option<&'static str> {
    let said = |kind| if let Some(ContextValue::String(text)) = usage.get(kind) { Some(text.as_str()) } else { None };
    match (usage.kind(), said(ContextKind::InvalidSubcommand), said(ContextKind::InvalidArg)) {
        (
            ErrorKind::InvalidSubcommand,
            Some("plan" | "price" | "cost" | "estimate" | "validate" | "check" | "lint"),
            _,
        ) => Some("`shotlist run MANIFEST --plan` checks and prices a manifest, and sends nothing"),
        (ErrorKind::InvalidSubcommand, Some("open" | "view" | "show"), _) => {
            Some("`shotlist report MANIFEST` writes the contact sheet, and shows how to open it")
        }
        (ErrorKind::InvalidSubcommand, Some(topic), _) if Topic::named(topic).is_some() => {
            Some("a topic of the reference is shown by `shotlist help TOPIC`")
        }
        (ErrorKind::InvalidSubcommand, Some(file), _) if [".yaml", ".yml"].iter().any(|end| file.ends_with(end)) => {
            Some("a command comes first: `shotlist run MANIFEST`")
        }
        (ErrorKind::InvalidSubcommand, Some(file), _) if is_spreadsheet(Path::new(file)) => {
            Some("`shotlist init SHEET` writes a manifest from a spreadsheet")
        }
        (ErrorKind::UnknownArgument, _, Some("-n" | "--dry" | "--check" | "--validate")) => {
            Some("`--plan` prices a manifest and sends nothing")
        }
        _ => None,
    }
}

/// Runs a future to its end, on one thread: waking another thread for each response costs more than the rest of a command.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::cannot_write(&error))?;
    let done = runtime.block_on(async {
        catch_file_size_limit();
        work.await
    });
    // A download that was given up may still be writing.
    runtime.shutdown_background();
    done
}

/// Lets a write beyond the limit on file sizes fail like one on a full disk, in place of a signal that kills the process.
fn catch_file_size_limit() {
    #[cfg(unix)]
    {
        // Its handler stays for the life of the process. Without one, the ledger covers a kill.
        let _uncaught = tokio::signal::unix::signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    }
}

/// Signals that come within this time are one.
const ONE_WISH: Duration = Duration::from_millis(300);

/// Turns signals into reasons to stop. Returns at the second one, with its number and the jobs in doubt.
pub(super) async fn watch_signals(stop: &Stop, tell: &(dyn Fn(RunEvent) + Sync)) -> (i32, BTreeMap<JobId, Usd>) {
    let first = first_signal().await;
    stop.because(StopReason::Signal(first));
    let in_flight = stop.in_flight();
    let jobs = in_flight.keys().map(JobId::as_str).collect::<Vec<_>>().join(", ");
    let usd = price_of(&in_flight);
    let responses = match in_flight.len() {
        0 => "a second signal exits now".to_owned(),
        _ => format!("waiting for the response to {jobs}: a second signal would leave {usd:#} in doubt"),
    };
    let message = format!("active tasks can't be canceled, and the next run finishes them; {responses}");
    tell(RunEvent::Stopping { reason: StopReason::Signal(first), message });
    // Some senders signal the process and then its group: that is one wish, not two.
    tokio::time::sleep(ONE_WISH).await;
    let second = first_signal().await;
    (second, stop.in_flight())
}

/// The price of submissions.
pub(super) fn price_of(in_flight: &BTreeMap<JobId, Usd>) -> Usd {
    in_flight.values().copied().sum()
}

/// The first signal that comes, by its number.
#[cfg(unix)]
pub(super) async fn first_signal() -> i32 {
    // `nohup` ignores the hang-up so that the run survives its terminal; catching it would undo that.
    let hang_up = Some(SignalKind::hangup()).filter(|kind| !is_ignored(kind.as_raw_value()));
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hang_up);
    futures::future::select_all(kinds.map(|kind| Box::pin(received(kind)))).await.0
}

#[cfg(unix)]
async fn received(kind: SignalKind) -> i32 {
    let number = kind.as_raw_value();
    match tokio::signal::unix::signal(kind) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(error) => never_caught(&error).await,
    }
    number
}

/// Returns whether the parent of this process ignores a signal for it, where the system reports that: Linux does.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Ctrl-C, as the number of its signal elsewhere.
#[cfg(not(unix))]
pub(super) async fn first_signal() -> i32 {
    if let Err(error) = tokio::signal::ctrl_c().await {
        never_caught(&error).await;
    }
    2
}

async fn never_caught(error: &std::io::Error) {
    tracing::warn!(
        code = NoticeCode::SignalIgnored.code(),
        "can't catch a signal, which would end the run at once: {error}"
    );
    std::future::pending::<()>().await;
}

/// A variable that is read by its name; nothing if it is empty.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A command with only the environment variables that apply to these words of its command line.
pub(super) fn heeded(command: Command, words: &[OsString]) -> Command {
    let options = || words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let says = |long: &str| options().any(|word| word.split_once('=').map_or(word, |(name, _)| name) == long);
    let says_short =
        |short| options().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains::<char>(short));
    let (quiet, verbose) = (says("--quiet") || says_short('q'), says("--verbose") || says_short('v'));
    heed(command, &|arg| {
        let is_beaten = match arg.get_id().as_str() {
            "quiet" => verbose,
            "verbose" => quiet,
            _ => false,
        };
        is_beaten || said(arg).is_some_and(|value| value.is_empty())
    })
}

fn heed(command: Command, is_deaf: &dyn Fn(&Arg) -> bool) -> Command {
    let command = command.mut_args(|arg| if is_deaf(&arg) { arg.env(None::<&str>) } else { arg });
    command.mut_subcommands(|command| heed(command, is_deaf))
}

fn said(arg: &Arg) -> Option<OsString> {
    std::env::var_os(arg.get_env()?)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn front_names_each_command_once() {
        let program = Cli::program();
        assert!(DAILY.iter().all(|name| program.find_subcommand(name).is_some()));
        insta::assert_snapshot!(text(program));
    }

    #[test]
    fn documented_commands_are_accepted() {
        let mut tried = 0;
        for folder in
            ["", "packaging", "src/reference", "examples", "examples/chain", "examples/cron", "examples/spring"]
        {
            let files = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).read_dir().unwrap();
            let is_text =
                |path: &PathBuf| path.extension().is_some_and(|form| form == "md" || form == "yaml" || form == "yml");
            for path in files.map(|entry| entry.unwrap().path()).filter(is_text) {
                let text = std::fs::read_to_string(&path).unwrap();
                for command in text.lines().flat_map(commands) {
                    let parsed = Cli::program().clone().try_get_matches_from(shlex::split(command).unwrap());
                    assert!(parsed.is_ok(), "{}: {command}: {}", path.display(), parsed.unwrap_err());
                    tried += 1;
                }
            }
        }
        assert!(tried > 60, "{tried} commands are no longer all");
    }

    /// The commands of a line that name a manifest. A command without one is often just mentioned, as `shotlist resolve` is.
    fn commands(line: &str) -> impl Iterator<Item = &str> {
        line.match_indices("shotlist ").filter_map(move |(start, _)| {
            let is_word =
                line[..start].chars().next_back().is_none_or(|before| before == '`' || before.is_whitespace());
            let command = line[start..].split(['`', ';', '|', '>', '&', '#']).next()?;
            let command = command.split("  ").next()?.trim_end();
            let is_manifest =
                |word: &str| word == "MANIFEST" || Path::new(word).extension().is_some_and(|form| form == "yaml");
            let names_manifest = command.split(' ').any(is_manifest);
            (is_word && names_manifest).then_some(command)
        })
    }
}
