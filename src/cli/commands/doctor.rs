//! `shotlist doctor`: finds the problems of a later run. Leaves no file, and creates no task.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};

use crate::cli::args::{DoctorArgs, NO_MANIFEST, SelectArgs};
use crate::cli::exit::{Exit, Failure, failure};
use crate::cli::manifest::{Wanted, catalog, load};
use crate::cli::options;
use crate::cli::program::block_on;
use crate::cli::service::connect;
use crate::domain::{BatchKey, count};
use crate::files::try_write;
use crate::ledger::Controls;
use crate::plan::PRICES_AGE;
use crate::service::{Probe, Readiness};
use crate::session::{Refusal, StopReason};
use crate::ui::{self, Page, Terminal};

/// The free space below which videos may not fit: a hundred clips of some megabytes each.
const MIN_SPACE: u64 = 1 << 30;
/// The statuses of a response that a task does not exist: a service that refuses the key has others.
const UNKNOWN_TASK: [u16; 3] = [400, 404, 410];
/// The largest difference to the clock of the service: a `Date` header has whole seconds, and a response takes some.
const CLOCK: SignedDuration = SignedDuration::from_mins(1);

/// The subject of a check, and its result, or the failure of a command that depends on it.
type Check = (&'static str, Result<String, Failure>);

/// Checks everything that a run needs.
pub(super) fn doctor(args: &DoctorArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let checks = block_on(async { Ok(all(args, terminal).await) })?;
    terminal.result(&page(&checks));
    Ok(if checks.iter().all(|(_, found)| found.is_ok()) { Exit::Done } else { Exit::SomeFailed })
}

async fn all(args: &DoctorArgs, terminal: &Terminal) -> Vec<Check> {
    let (manifest, key) = manifest(args, terminal);
    let mut checks = Vec::from_iter(manifest);
    checks.push(("prices", prices(args)));
    checks.push(("hooks", hooks(args)));
    checks.push(("output", output(args, key.as_ref())));
    checks.push(("ledger", ledger(args).await));
    checks.extend(service(args).await);
    checks
}

/// The manifest if there is one, and the batch of its videos.
fn manifest(args: &DoctorArgs, terminal: &Terminal) -> (Option<Check>, Option<BatchKey>) {
    if args.manifest.manifest == Path::new(NO_MANIFEST) {
        return (None, None);
    }
    let wanted = Wanted { secret: args.service.api_key_file.as_deref(), ..Wanted::default() };
    match load(&args.manifest, &SelectArgs::default(), wanted, terminal) {
        Ok(chosen) => {
            let jobs = count(chosen.manifest.jobs.len(), "job");
            (Some(("manifest", Ok(format!("{jobs}, without errors")))), Some(chosen.manifest.key))
        }
        Err(failure) => (Some(("manifest", Err(failure))), None),
    }
}

fn prices(args: &DoctorArgs) -> Result<String, Failure> {
    let taken_on = catalog(args.manifest.catalog.as_deref())?.prices_taken_on;
    let days = (Zoned::now().date() - taken_on).get_days();
    if days <= PRICES_AGE {
        return Ok(format!("of {taken_on}"));
    }
    let help = "compare them with the service's, and name a `--catalog` with the date";
    Err(failure!(CatalogInvalid, "of {taken_on}, {days} days old"; "{help}"))
}

fn hooks(args: &DoctorArgs) -> Result<String, Failure> {
    options::check_hooks(&args.hooks)?;
    let named = [&args.hooks.asset_command, &args.hooks.exec].into_iter().flatten().count();
    Ok(if named == 0 { "none set".to_owned() } else { "found".to_owned() })
}

/// The directory of the videos; without a manifest or a name, the working directory.
fn output(args: &DoctorArgs, key: Option<&BatchKey>) -> Result<String, Failure> {
    match key {
        Some(key) => check_space(&options::out(&args.manifest, args.out.as_deref(), key)?),
        None => check_space(args.out.as_deref().unwrap_or(Path::new("."))),
    }
}

/// Checks the space of a directory, and returns it as text. Refuses one that can't be written to, or that is nearly full.
fn check_space(directory: &Path) -> Result<String, Failure> {
    let shown = directory.display();
    let help = "name another directory, or make room";
    let free =
        try_write(directory).map_err(|error| failure!(NotWritable, "can't write to `{shown}`: {error}"; "{help}"))?;
    match free {
        Some(free) if free < MIN_SPACE => {
            Err(failure!(NotWritable, "`{shown}` has only {} MiB free", free >> 20; "{help}"))
        }
        Some(free) => Ok(format!("`{shown}` is writable, {} GiB free", free >> 30)),
        None => Ok(format!("`{shown}` is writable")),
    }
}

/// The ledger, which a run must be able to write.
async fn ledger(args: &DoctorArgs) -> Result<String, Failure> {
    let ledger = options::ledger(&args.manifest)?;
    let named = |failure: Failure| failure.of_this_ledger(&ledger, &args.manifest);
    let Controls { freeze, .. } = ledger.controls().await?;
    if let Some(freeze) = freeze {
        return Err(named(Refusal::from(freeze).into()));
    }
    let is_there = ledger.check_usable().await?;
    if let Some(directory) = ledger.path().map(|path| path.parent().unwrap_or(Path::new(""))) {
        try_write(directory).map_err(|error| {
            failure!(NotWritable, "can't write to `{}`: {error}", directory.display();
                "check the permissions, and the free space")
        })?;
    }
    Ok(format!("{ledger} is {}", if is_there { "usable" } else { "to be created" }))
}

/// The service, its key, and its clock.
async fn service(args: &DoctorArgs) -> Vec<Check> {
    let connection = match connect(None, &args.manifest, &args.service, Duration::ZERO).await {
        Ok(connection) => connection,
        Err(failure) => return vec![("service", Err(failure))],
    };
    let origin = connection.service().base_url();
    let unusable = |message: String, help: &str| Err(failure!(UrlInvalid, "{message}"; "{help}"));
    let unreachable = ui::help_after(StopReason::Unreachable);
    let Probe { readiness, status, date } = match connection.service().probe().await {
        Ok(probe) => probe,
        Err(why) => return vec![("service", unusable(why, unreachable))],
    };
    let found = match readiness {
        Readiness::Usable if status.is_some_and(|status| UNKNOWN_TASK.contains(&status)) => {
            Ok(format!("{origin} responds, and does not refuse the API key"))
        }
        Readiness::Usable => {
            let found = status.map_or("nothing".to_owned(), |status| status.to_string());
            let message = format!("{origin} must answer 404 for a task that does not exist, found {found}");
            unusable(message, "check the base URL, the key, and what is in between")
        }
        Readiness::KeyRefused(error) => {
            let help = ui::help_after(StopReason::KeyRefused);
            Err(failure!(KeyInvalid, "{}", error.message; "{help}"))
        }
        Readiness::Waits(message) => unusable(message, "check again later; a run waits by itself"),
        Readiness::Unusable(message) | Readiness::Untrusted(message) => unusable(message, unreachable),
    };
    let clock = date.map(|date| ("clock", clock(date)));
    [("service", found)].into_iter().chain(clock).collect()
}

/// Compares the clock of this machine with the service's.
fn clock(date: Timestamp) -> Result<String, Failure> {
    let off = Timestamp::now().duration_since(date);
    if off.abs() <= CLOCK {
        return Ok("agrees with the service's".to_owned());
    }
    let way = if off.is_positive() { "ahead of" } else { "behind" };
    Err(failure!(OptionInvalid, "{:#} {way} the service's", SignedDuration::from_secs(off.abs().as_secs());
        "set this machine's clock: limits count by its days"))
}

/// One line for each check.
fn page(checks: &[Check]) -> Page {
    let mut page = Page::new();
    for (name, found) in checks {
        match found {
            Ok(message) => page.line(format_args!("ok       {name}: {message}")),
            Err(Failure { message, help, .. }) => {
                let help = help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
                page.line(format_args!("problem  {name}: {message}{help}"));
            }
        }
    }
    page
}
