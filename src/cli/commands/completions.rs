//! `shotlist completions`: what a shell needs to complete the command line.

use clap::CommandFactory as _;

use crate::cli::args::{Cli, CompletionsArgs};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::ui::{Page, Terminal};

/// Prints the completions of a shell.
pub(super) fn print(args: &CompletionsArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "shotlist", &mut script);
    let script = String::from_utf8(script);
    let script = script.map_err(|error| Failure::plain(Exit::CannotWrite, error.to_string()))?;
    terminal.result(&Page::own(script));
    Ok(Exit::Done)
}
