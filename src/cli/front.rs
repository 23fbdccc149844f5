//! The front of the help: the way from a spreadsheet to a choice, then the commands.

use std::fmt::Write as _;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::args::Cli;
use crate::reference::{TOPICS, Topic};

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
    let front = text(&program);
    program.override_help(front)
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
        // That an option could be given as a value helps no one here: no value begins with a dash.
        usage.remove(ContextKind::Suggested);
    }
    usage
}

fn tip(usage: &clap::Error) -> Option<&'static str> {
    let said = |kind| match usage.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (usage.kind(), said(ContextKind::InvalidSubcommand), said(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some("plan" | "price" | "cost" | "estimate"), _) => {
            Some("`shotlist run MANIFEST --plan` prices a manifest and sends nothing")
        }
        (ErrorKind::InvalidSubcommand, Some("validate" | "check" | "lint"), _) => {
            Some("`shotlist run MANIFEST --plan` checks a manifest and sends nothing")
        }
        (ErrorKind::InvalidSubcommand, Some("open" | "view" | "show"), _) => {
            Some("`shotlist report MANIFEST` writes the contact sheet, and shows how to open it")
        }
        (ErrorKind::InvalidSubcommand, Some(topic), _) if Topic::named(topic).is_some() => {
            Some("a topic of the reference is shown by `shotlist help TOPIC`")
        }
        (ErrorKind::InvalidSubcommand, Some(file), _) if is_manifest(file) => {
            Some("a command comes first: `shotlist run MANIFEST`")
        }
        (ErrorKind::UnknownArgument, _, Some("-n" | "--dry" | "--check" | "--validate")) => {
            Some("`--plan` prices a manifest and sends nothing")
        }
        _ => None,
    }
}

fn is_manifest(word: &str) -> bool {
    [".yaml", ".yml"].iter().any(|ending| word.to_lowercase().ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_names_each_command_once() {
        let program = Cli::program();
        assert!(DAILY.iter().all(|name| program.find_subcommand(name).is_some()));
        insta::assert_snapshot!(text(&program));
    }
}
