//! Printed commands with the options that were given.

use std::path::Path;

use clap::Arg;

use super::args::{Cli, GivenOptions, ManifestArgs};
use crate::domain::BatchKey;
use crate::report::NextCommand;

/// The headings of options that a printed command has of its own: which jobs it is about, and what may be bought.
const OWN: [&str; 5] = ["Jobs", "Money", "Buying again", "Choices", "Outcome"];
/// The headings of options that a page may show, which others read: a program or an address may be a secret.
const ON_A_PAGE: [&str; 2] = ["Manifest", "Files"];
/// The options that a plan and its approval don't share.
const OF_THE_PLAN: [&str; 4] = ["plan", "format", "yes", "approved"];

/// The commands for a batch of a manifest, with each given option that a command has.
pub(super) fn again(args: &ManifestArgs, key: &BatchKey) -> NextCommand {
    with_options(&args.given, &args.manifest, key, |arg| !OWN.contains(&heading(arg)))
}

/// The commands on a page.
pub(super) fn on_page(args: &ManifestArgs, key: &BatchKey) -> NextCommand {
    with_options(&args.given, &args.manifest, key, |arg| ON_A_PAGE.contains(&heading(arg)))
}

/// The commands for another batch of this ledger, which may be the unnamed one.
pub(super) fn elsewhere(given: &GivenOptions, manifest: &Path, key: &BatchKey) -> NextCommand {
    with_options(&given.clone().with("batch", &key.batch), manifest, key, |arg| !OWN.contains(&heading(arg)))
}

/// The command for the same plan, with all given options, and the jobs to buy again.
pub(super) fn in_full(args: &ManifestArgs, key: &BatchKey, buy_again: Option<&str>) -> NextCommand {
    let given = args.given.clone();
    let given = if let Some(jobs) = buy_again { given.with("buy_again", jobs) } else { given };
    with_options(&given, &args.manifest, key, |arg| !OF_THE_PLAN.contains(&arg.get_id().as_str()))
}

fn heading(arg: &Arg) -> &str {
    arg.get_help_heading().unwrap_or_default()
}

fn with_options(given: &GivenOptions, manifest: &Path, key: &BatchKey, is_wanted: fn(&Arg) -> bool) -> NextCommand {
    // Said in full: a template of today gives another batch tomorrow.
    let given = if key.batch.is_empty() { given.clone() } else { given.clone().with("batch", &key.batch) };
    let program = Cli::program();
    let commands = program.get_subcommands().map(|command| {
        let options = command.get_arguments().filter(|arg| is_wanted(arg)).flat_map(|arg| given.words(arg));
        (command.get_name().to_owned(), options.collect())
    });
    NextCommand::new(manifest, commands.collect())
}
