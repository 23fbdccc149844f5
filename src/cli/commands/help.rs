//! `shotlist help`: the help of a command, or a topic of the reference.

use crate::cli::args::{Cli, HelpArgs};
use crate::cli::exit::{Exit, Failure};
use crate::domain::RefusalCode;
use crate::manifest::nearest;
use crate::reference::{TOPICS, Topic};
use crate::ui::{Page, Terminal};

/// The width of a topic, at most: longer lines are hard to read.
const MAX_COLUMNS: u16 = 100;

/// Prints what is known of a command or a topic; without a word, of the program.
pub(super) fn print(args: &HelpArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let program = Cli::program();
    let command = args.words.iter().try_fold(&program, |command, word| command.find_subcommand(word));
    if command.is_none() {
        let topic = Topic::named(&args.words.join("-")).ok_or_else(|| unknown(&args.words))?;
        terminal.result(&Page::own(topic.wrapped(terminal.width().min(MAX_COLUMNS).into())));
        return Ok(Exit::Done);
    }
    // The same text that the command gives itself.
    let words = ["shotlist"].into_iter().chain(args.words.iter().map(String::as_str)).chain(["--help"]);
    if let Err(help) = crate::cli::program::command().try_get_matches_from(words) {
        let _reader_is_gone = help.print();
    }
    Ok(Exit::Done)
}

fn unknown(words: &[String]) -> Failure {
    let said = words.join(" ");
    let program = Cli::program();
    let commands = program.get_subcommands().map(clap::Command::get_name);
    let topics = TOPICS.map(|topic| topic.name);
    let known: Vec<&str> = commands.chain(topics).collect();
    let help = match nearest(&said, known.iter().copied()) {
        Some(near) => format!("a similar topic exists: `shotlist help {near}`"),
        None => format!("name a topic: {}; `shotlist help` lists the commands", topics.join(", ")),
    };
    Failure::new(RefusalCode::TopicUnknown, format!("found no command or topic `{said}`")).with_help(help)
}
