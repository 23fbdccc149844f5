//! `shotlist completions`: a script that completes the command line in a shell.

use crate::cli::args::{Cli, CompletionsArgs};
use crate::cli::exit::Exit;
use crate::ui::{Page, Terminal};

/// Prints the completions of a shell.
pub(super) fn print(args: &CompletionsArgs, terminal: &Terminal) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::program(), "shotlist", &mut script);
    terminal.result(&Page::own(String::from_utf8_lossy(&script).into_owned()));
    Exit::Done
}
