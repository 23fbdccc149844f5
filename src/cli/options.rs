//! The options of a session: its ledger, its directory, its reports and hooks, from the arguments of a command.

use std::path::{Path, PathBuf};

use super::args::{HookArgs, ManifestArgs, NamedLedger, ReportArgs, RunArgs, StoreArgs};
use super::choices::{self, Patterns, path_of};
use super::exit::{Failure, failure};
use super::manifest::Chosen;
use super::next_commands;
use crate::domain::{BatchKey, with_causes};
use crate::files::with_suffix;
use crate::ledger::Ledger;
use crate::manifest::is_stream;
use crate::report::{NextCommand, Writer, form_of};
use crate::session::{DefaultPaths, Options, Program, RepeatOptions, Settings};

/// The ledger.
pub(super) fn ledger(args: &ManifestArgs) -> Result<Ledger, Failure> {
    named_or_at_home(args.ledger.as_ref(), &args.manifest, args.sandbox)
}

/// The ledger of a command without a manifest.
pub(super) fn ledger_of(store: &StoreArgs) -> Result<Ledger, Failure> {
    named_or_at_home(store.ledger.as_ref(), Path::new(""), store.sandbox)
}

fn named_or_at_home(named: Option<&NamedLedger>, manifest: &Path, sandbox: bool) -> Result<Ledger, Failure> {
    Ok(if let Some(named) = named { named.address.ledger(sandbox) } else { home_of(manifest, sandbox).ledger()? })
}

/// Returns whether such a ledger exists; of a database, only the database knows.
pub(super) fn is_there(ledger: &Ledger) -> bool {
    ledger.path().is_none_or(Path::exists)
}

/// The files that the options name: no video may take their place.
pub(super) fn own_files(args: &RunArgs) -> Vec<PathBuf> {
    let RunArgs { manifest, again, selection, money, service, .. } = args;
    let lists = again.retake.iter().chain(&selection.select).filter_map(|word| word.strip_prefix('@'));
    // The ledger file, and the files of SQLite and shotlist in its directory.
    let path = ledger(manifest).ok().and_then(|ledger| ledger.path().map(Path::to_owned));
    let ledger = ["", "-wal", "-shm", "-journal", ".commits"]
        .map(|suffix| path.iter().map(move |path| with_suffix(path, suffix)));
    let named = [&manifest.catalog, &service.api_key_file];
    let others = named.into_iter().flatten().cloned().chain(ledger.into_iter().flatten()).chain(lists.map(path_of));
    others.chain(money.approved.iter().map(PathBuf::from)).chain([manifest.manifest.clone()]).collect()
}

/// A ledger that is there, of a command that may do without a manifest.
pub(super) fn existing_ledger(
    named: Option<&NamedLedger>,
    manifest: Option<&Path>,
    sandbox: bool,
) -> Result<Ledger, Failure> {
    if let Some(manifest) = manifest.filter(|manifest| !manifest.exists() && !is_stream(manifest)) {
        return Err(failure!(ManifestMissing, "found no manifest `{}`", manifest.display();
            "name a manifest, or its ledger with `--ledger`; without either, the command uses the working directory's ledger"));
    }
    let ledger = named_or_at_home(named, manifest.unwrap_or(Path::new("")), sandbox)?;
    if is_there(&ledger) {
        return Ok(ledger);
    }
    let help = match (manifest, named) {
        (Some(_), None) => "run the manifest first; `--sandbox` selects the simulator's ledger",
        _ => "name a manifest, or the ledger with `--ledger`; it is in `.shotlist` beside the manifest",
    };
    Err(failure!(LedgerMissing, "found no ledger at `{ledger}`"; "{help}"))
}

fn home_of(manifest: &Path, sandbox: bool) -> DefaultPaths {
    if sandbox { DefaultPaths::of_sandbox(manifest) } else { DefaultPaths::new(manifest) }
}

/// The directory for reports and videos.
pub(super) fn out(args: &ManifestArgs, given: Option<&Path>, key: &BatchKey) -> Result<PathBuf, Failure> {
    match given {
        // The environment may name the directory of the real reports; a sandbox run must not replace them.
        Some(given) if args.sandbox => Ok(given.join("sandbox")),
        Some(given) => Ok(given.to_owned()),
        None => Ok(home_of(&args.manifest, args.sandbox).out(key)?),
    }
}

/// The options for a manifest's batch: every job once, with reports and videos in this directory.
pub(super) fn options(args: &ManifestArgs, given: Option<&Path>, key: &BatchKey) -> Result<Options, Failure> {
    Ok(Options::new(home_of(&args.manifest, args.sandbox), out(args, given, key)?))
}

/// All files that are written, with the commands on a page.
pub(super) fn writer(reports: &ReportArgs, out: &Path, on_page: NextCommand) -> Result<Writer, Failure> {
    let usual = Writer::usual(out, Some(on_page)).with_track(reports.track.as_deref());
    reports.report.iter().try_fold(usual, |writer, path| {
        let Some(form) = form_of(path) else {
            return Err(failure!(OptionInvalid, "`--report {}` has no ending of a report", path.display();
                "name a file that ends in `.csv`, `.xlsx`, `.json`, `.html`, or `.otio`"));
        };
        Ok(writer.with_file(path.clone(), form))
    })
}

/// The options for the chosen jobs, but for the approval.
pub(super) fn run_options(args: &RunArgs, chosen: &Chosen) -> Result<Options, Failure> {
    let key = &chosen.manifest.key;
    let retake = Patterns::read(&args.again.retake, choices::Chosen::Retake)?;
    retake.check(key, &chosen.manifest.jobs)?;
    retake.expect_matches("--retake", &chosen.selected)?;
    if args.hooks.exec.is_some() && args.videos.no_download {
        return Err(failure!(OptionInvalid, "`--exec` requires downloads, found `--no-download`";
            "leave out one of the two"));
    }
    let retakes = retake.retakes();
    let retakes = retakes.map_err(|error| failure!(OptionInvalid, "{error}"))?;
    let on_page = next_commands::for_page(&args.manifest, key);
    let usual = options(&args.manifest, args.reports.out.as_deref(), key)?;
    Ok(Options {
        selection: chosen.selection.clone(),
        redo: RepeatOptions {
            retries: args.again.retries,
            retry_failed: args.again.retry_failed,
            retake: retakes,
            reviews: retake.reviews,
        },
        own_files: own_files(args),
        sample: args.sample,
        max_cost: args.money.max_cost,
        downloads: !args.videos.no_download,
        finishes_other_batches: !args.videos.skip_other_batches,
        assets: hook("--asset-command", args.hooks.asset_command.as_deref(), &args.hooks)?,
        exec: hook("--exec", args.hooks.exec.as_deref(), &args.hooks)?,
        // A plan writes none.
        reports: if args.money.plan { usual.reports.clone() } else { writer(&args.reports, &usual.out, on_page)? },
        settings: settings(args),
        ..usual
    })
}

/// The settings with the pace of the options.
fn settings(args: &RunArgs) -> Settings {
    let pace = &args.pace;
    Settings {
        concurrency: pace.concurrency,
        poll_interval: pace.poll_interval,
        poll_floor: pace.poll_floor,
        first_poll: pace.first_poll,
        deadline: pace.deadline,
        max_failures: pace.max_failures,
        max_doubts: pace.max_doubts,
        accepts_mismatch: pace.accept_mismatch,
        rps: pace.rps,
    }
}

/// Refuses a hook that can't be started, before a purchase.
pub(super) fn check_hooks(args: &HookArgs) -> Result<(), Failure> {
    for (option, command) in [("--asset-command", &args.asset_command), ("--exec", &args.exec)] {
        let Some(program) = hook(option, command.as_deref(), args)? else { continue };
        program.find().map_err(|error| {
            let help = "name an executable program, by its path or by its name on the PATH";
            failure!(ProgramInvalid, "`{option}`: {}", with_causes(&error)).with_help(help)
        })?;
    }
    Ok(())
}

/// The program of an option, if it is set.
fn hook(option: &str, command: Option<&str>, args: &HookArgs) -> Result<Option<Program>, Failure> {
    command.map(|command| Program::parse(command, args.program_timeout)).transpose().map_err(|error| {
        let help = "write a program and its arguments, quoted as for a shell; put pipes and variables into a script";
        failure!(ProgramInvalid, "`{option}`: {error}").with_help(help)
    })
}
