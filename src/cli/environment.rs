//! Variables of the environment. They have less say than the command line.
//!
//! A variable that is empty is not set: CI systems hand out empty ones for what no one gave. A word for one command's form of an
//! answer says nothing to a command that has no such form. And what is said on the command line beats what is in the
//! environment, also where the two would exclude each other.

use std::ffi::OsString;

use clap::builder::PossibleValue;
use clap::{Arg, Command, ValueEnum};

use super::args::{PlanFormat, SpendFormat};

/// A variable that is read by its name; nothing if it is empty.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A command that listens to the environment as far as it should, with these words on its command line.
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
        is_beaten || is_unset(arg) || is_for_another_command(arg)
    })
}

fn heed(command: Command, is_deaf: &dyn Fn(&Arg) -> bool) -> Command {
    let command = command.mut_args(|arg| if is_deaf(&arg) { arg.env(None::<&str>) } else { arg });
    command.mut_subcommands(|command| heed(command, is_deaf))
}

fn said(arg: &Arg) -> Option<OsString> {
    std::env::var_os(arg.get_env()?)
}

fn is_unset(arg: &Arg) -> bool {
    said(arg).is_some_and(|value| value.is_empty())
}

/// `--format` has more forms for a plan and for the ledger than for other answers, and one variable.
fn is_for_another_command(arg: &Arg) -> bool {
    let value = said(arg).and_then(|value| value.into_string().ok()).filter(|_| arg.get_id() == "format");
    value.is_some_and(|value| {
        let is_one = |forms: Vec<PossibleValue>| forms.iter().any(|form| form.matches(&value, false));
        let of_a_plan = PlanFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let of_books = SpendFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        is_one(of_a_plan.chain(of_books).collect()) && !is_one(arg.get_possible_values())
    })
}
