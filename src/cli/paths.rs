//! Where the ledger, the reports and the videos of a command are.

use std::path::{Path, PathBuf};

use super::args::{ManifestArgs, RunArgs};
use super::environment;
use super::failure::Failure;
use crate::domain::{BatchKey, RefusalCode};
use crate::ledger::{AddressError, Ledger, PostgresAddress};
use crate::manifest::is_stream;
use crate::session::{Home, Options};
use crate::ui::Again;

/// The ledger.
pub(super) fn ledger(args: &ManifestArgs) -> Result<Ledger, Failure> {
    ledger_of(args.ledger.as_deref(), &args.manifest, args.sandbox)
}

/// The same of a command that may do without a manifest.
pub(super) fn ledger_of(given: Option<&Path>, manifest: &Path, sandbox: bool) -> Result<Ledger, Failure> {
    match given {
        Some(given) => named_ledger(given, sandbox),
        None => Ok(home_of(manifest, sandbox).ledger()?),
    }
}

/// The ledger in a file, or in a database.
pub(super) fn named_ledger(given: &Path, sandbox: bool) -> Result<Ledger, Failure> {
    let text = given.to_string_lossy();
    if PostgresAddress::is_nearly_one(&text) {
        let message = "`--ledger` looks like a URL, but not a PostgreSQL URL";
        let help = "write `postgres://USER@HOST:PORT/DATABASE`, or `./NAME` for a file of that name";
        return Err(Failure::new(RefusalCode::LedgerUrlInvalid, message).with_help(help));
    }
    let Some(address) = given.to_str().filter(|text| PostgresAddress::is_one(text)) else {
        return Ok(if sandbox { Ledger::of_simulator_in_file(given) } else { Ledger::in_file(given) });
    };
    let address = PostgresAddress::new(address, &|name| std::env::var_os(name)).map_err(|error| {
        let failure = Failure::new(RefusalCode::LedgerUrlInvalid, error.to_string());
        match error {
            AddressError::NotOne(_) => failure.with_help("write `postgres://USER@HOST:PORT/DATABASE`"),
            AddressError::HasPassword => failure
                .with_help("set the password in `PGPASSWORD` or `PGPASSFILE`, or the whole URL in `SHOTLIST_LEDGER`"),
            AddressError::OpenPasswordFile(_) => failure,
        }
    })?;
    Ok(Ledger::in_database(address, sandbox))
}

/// Whether there is such a ledger; of a database, only the database knows.
pub(super) fn is_there(ledger: &Ledger) -> bool {
    ledger.path().is_none_or(Path::exists)
}

/// The files of a ledger that is a file: itself, and what SQLite and shotlist put beside it.
fn ledger_files(args: &ManifestArgs) -> Vec<PathBuf> {
    let Ok(ledger) = ledger(args) else { return Vec::new() };
    let Some(path) = ledger.path() else { return Vec::new() };
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    ["", "-wal", "-shm", "-journal", ".commits"].map(beside).to_vec()
}

/// The files that the options name: no video may take their place.
pub(super) fn own_files(args: &RunArgs) -> Vec<PathBuf> {
    let RunArgs { manifest, again, selection, money, monitors, service, .. } = args;
    let lists = again.retake.iter().chain(&selection.select).filter_map(|word| word.strip_prefix('@'));
    let ledger = ledger_files(manifest);
    let named = [&manifest.catalog, &monitors.metrics, &monitors.summary, &service.api_key_file];
    let others = named.into_iter().flatten().cloned().chain(ledger).chain(lists.map(PathBuf::from));
    others.chain(money.approved.iter().map(PathBuf::from)).chain([manifest.manifest.clone()]).collect()
}

/// What names a ledger in a command that is shown: never with a password.
pub(super) fn ledger_name(given: &Path) -> String {
    let text = given.to_string_lossy();
    // An address can be shown only as it was understood.
    if !PostgresAddress::is_one(&text) {
        return text.into_owned();
    }
    named_ledger(given, false).map_or_else(|_| "postgres://…".to_owned(), |ledger| ledger.to_string())
}

/// Returns whether the ledger is a database whose address stands in `SHOTLIST_LEDGER`. A command names it without `--ledger`, because
/// a password may stand there, too.
pub(super) fn is_known_to_the_shell(given: &Path) -> bool {
    let is_set = environment::variable("SHOTLIST_LEDGER").is_some_and(|address| address == given.as_os_str());
    is_set && PostgresAddress::is_one(&given.to_string_lossy())
}

/// A ledger that is there, of a command that may do without a manifest.
pub(super) fn existing_ledger(given: Option<&Path>, manifest: Option<&Path>, sandbox: bool) -> Result<Ledger, Failure> {
    if let Some(manifest) = manifest.filter(|manifest| !manifest.exists() && !is_stream(manifest)) {
        let failure =
            Failure::plain(RefusalCode::ManifestMissing, format!("found no manifest `{}`", manifest.display()));
        return Err(failure
            .with_help("name a manifest, or its ledger with `--ledger`; without either, the command uses the working directory's ledger"));
    }
    let ledger = ledger_of(given, manifest.unwrap_or(Path::new("")), sandbox)?;
    if is_there(&ledger) {
        return Ok(ledger);
    }
    let failure = Failure::plain(RefusalCode::LedgerMissing, format!("found no ledger at `{ledger}`"));
    if manifest.is_some() && given.is_none() {
        return Err(failure.with_help("run the manifest first; `--sandbox` selects the simulator's ledger"));
    }
    Err(failure.with_help("name a manifest, or the ledger with `--ledger`; it is in `.shotlist` beside the manifest"))
}

fn home_of(manifest: &Path, sandbox: bool) -> Home {
    if sandbox { Home::of_rehearsals(manifest) } else { Home::of(manifest) }
}

/// The folder for reports and videos.
pub(super) fn out(args: &ManifestArgs, given: Option<&Path>, key: &BatchKey) -> Result<PathBuf, Failure> {
    match given {
        // The environment may name the folder of the real reports; a rehearsal must not replace them.
        Some(given) if args.sandbox => Ok(given.join("sandbox")),
        Some(given) => Ok(given.to_owned()),
        None => Ok(home_of(&args.manifest, args.sandbox).out(key)?),
    }
}

/// What is wanted of a manifest's batch: every job once, with reports and videos in this folder.
pub(super) fn options(args: &ManifestArgs, given: Option<&Path>, key: &BatchKey) -> Result<Options, Failure> {
    Ok(Options::new(home_of(&args.manifest, args.sandbox), out(args, given, key)?))
}

/// What leads another command to another batch of this manifest, which may have a name where that one has none.
pub(super) fn again_elsewhere(args: &ManifestArgs, key: &BatchKey) -> Again {
    again(&ManifestArgs { no_batch: key.batch.is_empty(), ..args.clone() }, key)
}

/// What leads another command back to this manifest, batch and ledger.
pub(super) fn again(args: &ManifestArgs, key: &BatchKey) -> Again {
    let mut again = Again::about(&args.manifest);
    // Said in full: a template of today gives another batch tomorrow.
    if !key.batch.is_empty() {
        again = again.with("--batch", &key.batch);
    } else if args.no_batch {
        again = again.with_switch("--no-batch");
    }
    if let Some(ledger) = args.ledger.as_deref().filter(|ledger| !is_known_to_the_shell(ledger)) {
        again = again.with("--ledger", &ledger_name(ledger));
    }
    if let Some(catalog) = &args.catalog {
        again = again.with("--catalog", &catalog.to_string_lossy());
    }
    for (name, value) in &args.set {
        again = again.with("--set", &format!("{name}={value}"));
    }
    if args.sandbox { again.with_switch("--sandbox") } else { again }
}
