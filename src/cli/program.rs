//! The way of a command line: read, obeyed, and turned into an exit code.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::FromArgMatches as _;
use clap::error::ErrorKind;

use super::args::{Cli, LogFormat, TerminalArgs, When};
use super::exit::Exit;
use super::{commands, environment, front};
use crate::catalog::Catalog;
use crate::manifest::WORKBOOK_THREAD;
use crate::ui::{self, Terminal};

/// Reads the command line, does what it says, and says how that ended.
pub fn main() -> ExitCode {
    hide_caught_panics();
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match command_line(&words) {
        Ok(cli) => cli,
        Err(usage) if usage.kind() == ErrorKind::DisplayVersion => return version(),
        Err(usage) => return shown(&front::with_tip(usage)),
    };
    let terminal = terminal(&cli.terminal);
    ui::start_log(&terminal);
    let ended = commands::execute(cli.command, &terminal);
    let exit = ended.unwrap_or_else(|failure| {
        let exit = failure.exit;
        failure.show(&terminal);
        exit
    });
    if terminal.tell_lost_results() { exit.max(Exit::CannotWrite).into() } else { exit.into() }
}

/// Says nothing of panics in the library that reads workbooks: they are caught, and the workbook is refused.
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
    Cli::from_arg_matches(&environment::heeded(front::command(), words).try_get_matches_from(words)?)
}

/// Prints a help text to stdout, or a usage error to stderr. A closed pipe is no error.
fn shown(usage: &clap::Error) -> ExitCode {
    let _reader_is_gone = usage.print();
    ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
}

/// Prints which build this is, and how old its prices are. Only then are they looked up.
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
