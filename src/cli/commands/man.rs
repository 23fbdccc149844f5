//! `shotlist man` and `shotlist completions`: man pages and shell completions.

use std::io::{IsTerminal as _, Write as _};

use crate::cli::args::{Cli, CompletionsArgs, ManArgs};
use crate::cli::exit::{Exit, Failure};
use crate::domain::{NoticeCode, RefusalCode};
use crate::files::{make_directories, replace};
use crate::ui::{Page, Terminal};

/// Writes all pages below a directory, as `man -M DIR` looks for them; without a directory, prints the first.
pub(super) fn write(args: &ManArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let mut program = Cli::program().disable_help_subcommand(true);
    program.build();
    let Some(directory) = &args.dir else {
        if std::io::stdout().is_terminal() {
            let failure = Failure::new(RefusalCode::OptionInvalid, "a man page can't be printed on a terminal");
            return Err(failure.with_help(
                "write all pages with `shotlist man DIR`, or show the first with `shotlist man | man -l -`",
            ));
        }
        terminal.result(&Page::own(page(&program, "shotlist")));
        return Ok(Exit::Done);
    };
    let mut pages = vec![("shotlist".to_owned(), page(&program, "shotlist"))];
    add_commands(&program, "shotlist", &mut pages);
    for (name, text) in &pages {
        let path = directory.join("man1").join(format!("{name}.1"));
        let made = path.parent().map_or(Ok(()), make_directories);
        let written = made.and_then(|()| replace(&path, |_, file| file.write_all(text.as_bytes())));
        written.map_err(|error| {
            Failure::new(RefusalCode::NotWritable, format!("can't write `{}`: {error}", path.display()))
        })?;
    }
    let wrote = format!("wrote {} pages; read one with `man -M {} shotlist`", pages.len(), directory.display());
    terminal.note(NoticeCode::Written, &wrote);
    Ok(Exit::Done)
}

/// The pages of the commands below a command.
fn add_commands(above: &clap::Command, name: &str, pages: &mut Vec<(String, String)>) {
    for command in above.get_subcommands() {
        let name = format!("{name}-{}", command.get_name());
        pages.push((name.clone(), page(command, &name)));
        add_commands(command, &name, pages);
    }
}

fn page(command: &clap::Command, name: &str) -> String {
    let mut command = command.clone().display_name(name);
    // As the help has it: all options in a row say nothing.
    let usage = command.render_usage().to_string();
    let command = command.override_usage(usage.trim_start_matches("Usage: ").to_owned());
    let mut page = Vec::new();
    // Writing into memory never fails.
    let _always = clap_mangen::Man::new(command)
        .title(name.to_uppercase())
        .manual("shotlist")
        .source(concat!("shotlist ", env!("CARGO_PKG_VERSION")))
        .render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

/// Prints the completions of a shell.
pub(super) fn print_completions(args: &CompletionsArgs, terminal: &Terminal) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::program(), "shotlist", &mut script);
    terminal.result(&Page::own(String::from_utf8_lossy(&script).into_owned()));
    Exit::Done
}
