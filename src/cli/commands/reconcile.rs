//! `shotlist reconcile`: compares the service's bill with the ledger.

use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use sha2::{Digest as _, Sha256};

use crate::bill::{BillError, Columns, Period, compare, depends_on, read};
use crate::catalog::Catalog;
use crate::cli::args::ReconcileArgs;
use crate::cli::exit::{Exit, Failure, failure};
use crate::cli::program::block_on;
use crate::cli::{next_commands, options};
use crate::domain::{BatchKey, NoticeCode, hex};
use crate::files::{own_zone, read_at_most};
use crate::manifest::{Options, load};
use crate::session::settle_bill;
use crate::ui::{self, Terminal};

/// The shown digits of a bill's SHA-256, which distinguish bills of one name.
const DIGITS: usize = 12;

/// The maximum size of a bill, in bytes.
const MAX_BILL: u64 = 512 << 20;

/// Shows the differences between bill and ledger. With `--apply`, records the settled charges.
pub(super) fn reconcile(args: &ReconcileArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let unread = |why: String| failure!(BillInvalid, "bill `{}`: {why}", args.bill.display());
    let bytes = read_at_most(&args.bill, MAX_BILL).map_err(|error| unread(format!("can't read the file: {error}")))?;
    let source = source(&args.bill, &bytes);
    let columns = Columns { task: &args.task_column, usd: &args.usd_column, time: args.time_column.as_deref() };
    let bill = read(bytes, &columns).map_err(|error| {
        let failure = unread(error.to_string());
        match error {
            BillError::NoColumn(..) => failure.with_help(
                "name the columns as in the first line of the bill: `--task-column COLUMN --usd-column COLUMN`",
            ),
            _ => failure,
        }
    })?;
    let ledger = options::existing_ledger(args.ledger.as_ref(), args.manifest.as_deref(), false)?;
    let period = period(args)?;
    let bought = block_on(async { Ok(ledger.submissions(depends_on(&bill, period)).await?) })?;
    let comparison = compare(&bill, &bought, period);
    let loaded = args.manifest.as_deref().map(|path| load(&Options::new(path), Catalog::embedded()));
    let own = loaded.and_then(|loaded| Some(loaded.manifest?.key.name));
    // A batch may belong to another manifest: the command must not resolve a job of this manifest with the same ID.
    let manifest = |key: &BatchKey| args.manifest.as_deref().filter(|_| own.as_ref() == Some(&key.name));
    let again = |key: &BatchKey| {
        next_commands::for_other_batch(&args.passed, manifest(key).unwrap_or(Path::new("MANIFEST")), key)
    };
    terminal.result(&ui::reconciliation(&bill, &comparison, period.is_said, &again));
    if args.apply && !bill.unread.is_empty() {
        return Err(failure!(BillInvalid, "can't apply the bill: some of its lines can't be read";
            "fix those lines, or export the bill again"));
    }
    if args.apply {
        block_on(async {
            let mut recorded = 0;
            let applied = settle_bill(&ledger, &bill, &comparison, &source, &mut recorded).await;
            if recorded > 0 {
                terminal.note(NoticeCode::BillApplied, &format!("attempts settled by {source}: {recorded}"));
            }
            Ok(applied?)
        })?;
    } else if comparison.settled().next().is_some() {
        terminal.note(NoticeCode::BillNotApplied, "nothing was recorded; `--apply` records what the bill settles");
    }
    Ok(if comparison.agrees() && bill.unread.is_empty() { Exit::Done } else { Exit::SomeFailed })
}

/// The period of the bill in this machine's time zone: `--since` to `--until`, or everything.
fn period(args: &ReconcileArgs) -> Result<Period, Failure> {
    let zone = own_zone()?;
    let start = |day: Date| {
        let start = day.to_zoned(zone.clone());
        start.map(|start| start.timestamp()).map_err(|error| failure!(OptionInvalid, "{error}"))
    };
    let (Some(since), Some(until)) = (args.since, args.until) else {
        return Ok(Period { from: Timestamp::MIN, to: Timestamp::MAX, is_said: false });
    };
    if until < since {
        return Err(failure!(OptionInvalid, "`--until {until}` is before `--since {since}`"));
    }
    let behind = until.tomorrow().map_err(|error| failure!(OptionInvalid, "{error}"))?;
    // A bill has no future charges.
    Ok(Period { from: start(since)?, to: start(behind)?.min(Timestamp::now()), is_said: true })
}

/// The name of a bill, recorded with its charges.
fn source(path: &Path, bytes: &[u8]) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let digest = hex(&Sha256::digest(bytes));
    format!("{name} (sha256 {})", digest.get(..DIGITS).unwrap_or_default())
}
