//! The commands that messages and pages print. Each repeats the options that the user passed and that the command takes, but no confirmation: a
//! confirmation covers only the shown plan. The command for that plan has those that the plan shows.

use std::path::Path;

use clap::Arg;

use super::args::{Cli, ManifestArgs, PassedOptions};
use crate::domain::BatchKey;
use crate::report::NextCommand;

/// The headings of options that each printed command sets itself: jobs and money.
const SET_BY_COMMAND: [&str; 5] = ["Jobs", "Money", "Buying again", "Choices", "Outcome"];
/// The headings of options on a page, which other people read: programs and addresses may contain secrets.
const ON_PAGE: [&str; 2] = ["Manifest", "Files"];
/// The IDs of options that confirm something.
const CONFIRMATIONS: [&str; 4] = ["accept_mismatch", "accept_warnings", "buy_again", "same_account"];

/// The commands for a batch of a manifest.
pub(super) fn for_batch(args: &ManifestArgs, key: &BatchKey) -> NextCommand {
    with_options(&args.passed, &args.manifest, key, |arg| !SET_BY_COMMAND.contains(&heading(arg)) && !confirms(arg))
}

/// The commands for another batch of the ledger, also for the unnamed batch.
pub(super) fn for_other_batch(passed: &PassedOptions, manifest: &Path, key: &BatchKey) -> NextCommand {
    let passed = passed.clone().with("batch", &key.batch);
    with_options(&passed, manifest, key, |arg| !SET_BY_COMMAND.contains(&heading(arg)) && !confirms(arg))
}

/// The commands on a page.
pub(super) fn for_page(args: &ManifestArgs, key: &BatchKey) -> NextCommand {
    with_options(&args.passed, &args.manifest, key, |arg| ON_PAGE.contains(&heading(arg)))
}

/// The command for the same jobs.
pub(super) fn for_same_jobs(args: &ManifestArgs, key: &BatchKey) -> NextCommand {
    with_options(&args.passed, &args.manifest, key, |arg| heading(arg) != "Money" && !confirms(arg))
}

/// The command for the same plan, which has the same limit and warnings.
pub(super) fn for_same_plan(args: &ManifestArgs, key: &BatchKey) -> NextCommand {
    with_options(&args.passed, &args.manifest, key, |arg| match arg.get_id().as_str() {
        "max_cost" | "accept_warnings" => true,
        _ => heading(arg) != "Money" && !confirms(arg),
    })
}

fn confirms(arg: &Arg) -> bool {
    CONFIRMATIONS.contains(&arg.get_id().as_str())
}

fn heading(arg: &Arg) -> &str {
    arg.get_help_heading().unwrap_or_default()
}

fn with_options(passed: &PassedOptions, manifest: &Path, key: &BatchKey, is_wanted: fn(&Arg) -> bool) -> NextCommand {
    // The resolved batch: tomorrow, a template may have another value.
    let passed = if key.batch.is_empty() { passed.clone() } else { passed.clone().with("batch", &key.batch) };
    let program = Cli::program();
    let commands = program.get_subcommands().map(|command| {
        let wanted = command.get_arguments().filter(|arg| is_wanted(arg));
        (command.get_name().to_owned(), wanted.flat_map(|arg| passed.words(arg)).collect())
    });
    NextCommand::new(manifest, commands.collect())
}
