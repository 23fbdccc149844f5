//! `shotlist completions`: what a shell needs to complete the command line.

use crate::cli::args::CompletionsArgs;
use crate::cli::completion;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::domain::RefusalCode;
use crate::ui::{Page, Terminal};

/// Prints the completions of a shell.
pub(super) fn print(args: &CompletionsArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let shell = args.shell.to_string();
    let script = completion::script(&shell);
    let script = script
        .ok_or_else(|| Failure::plain(RefusalCode::OptionInvalid, format!("found no completions for `{shell}`")))?;
    terminal.result(&Page::own(script));
    Ok(Exit::Done)
}
