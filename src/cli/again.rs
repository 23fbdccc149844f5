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
/// Consents: each covers what was shown when it was given.
const CONSENTS: [&str; 4] = ["accept_mismatch", "accept_warnings", "buy_again", "same_account"];

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

/// The command for the same jobs, without a confirmation.
pub(super) fn same_jobs(args: &ManifestArgs, key: &BatchKey) -> NextCommand {
    with_options(&args.given, &args.manifest, key, |arg| heading(arg) != "Money")
}

/// The command for the same plan, without a confirmation.
pub(super) fn same_plan(args: &ManifestArgs, key: &BatchKey) -> NextCommand {
    with_options(&args.given, &args.manifest, key, |arg| heading(arg) != "Money" || arg.get_id() == "max_cost")
}

fn heading(arg: &Arg) -> &str {
    arg.get_help_heading().unwrap_or_default()
}

fn with_options(given: &GivenOptions, manifest: &Path, key: &BatchKey, is_wanted: fn(&Arg) -> bool) -> NextCommand {
    // Said in full: a template of today gives another batch tomorrow.
    let given = if key.batch.is_empty() { given.clone() } else { given.clone().with("batch", &key.batch) };
    let program = Cli::program();
    let commands = program.get_subcommands().map(|command| {
        let wanted = command.get_arguments();
        let wanted = wanted.filter(|arg| is_wanted(arg) && !CONSENTS.contains(&arg.get_id().as_str()));
        let options = wanted.flat_map(|arg| given.words(arg));
        (command.get_name().to_owned(), options.collect())
    });
    NextCommand::new(manifest, commands.collect())
}
