//! `shotlist ledger` copies, backs up, and verifies a ledger. `shotlist limit` sets and shows the limits over all manifests.

use crate::cli::args::{LedgerArgs, LedgerCommand, LimitArgs, LimitCommand, LimitSetArgs, OrNone};
use crate::cli::exit::{Exit, Failure, failure};
use crate::cli::options;
use crate::cli::program::block_on;
use crate::domain::{NoticeCode, count};
use crate::files::own_zone_name;
use crate::ledger::{Contents, Ledger, LedgerLimit, Span, SqliteLedger};
use crate::session::{LedgerLimits, Refusal};
use crate::ui::{Page, Terminal};

/// Copies or verifies a ledger. Changes nothing in it.
pub(super) fn ledger(args: &LedgerArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let (what, contents) = match &args.command {
        LedgerCommand::Backup { file: to } => {
            let ledger = options::ledger_of(&args.store)?;
            let copied = block_on(async { Ok(ledger.backup(to).await?) })?;
            (format!("{ledger} copied to {}", to.display()), copied)
        }
        LedgerCommand::Check => {
            let ledger = file(args)?;
            let checked = block_on(async { Ok(ledger.check().await?) })?;
            (format!("{ledger} is whole"), checked)
        }
        LedgerCommand::Copy { from, to } => {
            let [from, to] = [from, to].map(|named| named.address.ledger(args.store.sandbox));
            let copied = block_on(async { Ok(from.copy_to(&to).await?) })?;
            (format!("{from} copied to {to}, which is to be used from now on"), copied)
        }
    };
    if !terminal.is_quiet {
        let Contents { batches, attempts, price } = contents;
        let (batches, attempts) = (count(batches, "batch"), count(attempts, "attempt"));
        let mut page = Page::new();
        page.line(format_args!("{what}: {batches}, {attempts}, {price:#} spent, at risk or unknown"));
        terminal.result(&page);
    }
    Ok(Exit::Done)
}

/// The ledger in a file.
fn file(args: &LedgerArgs) -> Result<SqliteLedger, Failure> {
    let ledger = options::ledger_of(&args.store)?;
    ledger.file().cloned().ok_or_else(|| {
        failure!(OptionInvalid, "can't check `{ledger}`: it is a database";
            "run `shotlist ledger backup FILE`, then `shotlist ledger check --ledger FILE`")
    })
}

/// Sets or shows the limits of a ledger.
pub(super) fn limit(args: &LimitArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let ledger = options::ledger_of(&args.store)?;
    let is_missing = !options::is_there(&ledger);
    if let LimitCommand::Set(LimitSetArgs { unfreeze: true, .. }) = &args.command
        && is_missing
    {
        return Err(failure!(LedgerMissing, "can't unfreeze `{ledger}`: found no ledger there";
            "pass the ledger of the refused run with `--ledger`"));
    }
    block_on(async {
        if let LimitCommand::Set(set) = &args.command {
            change(set, &ledger).await?;
            if is_missing {
                let begun = format!("created ledger `{ledger}`; the limits apply to runs that use it");
                terminal.note(NoticeCode::LedgerBegun, &begun);
            }
            if terminal.is_quiet {
                return Ok(Exit::Done);
            }
        }
        terminal.result(&page(&LedgerLimits::from_ledger(&ledger).await?));
        Ok(Exit::Done)
    })
}

/// Changes the limits, and creates a missing ledger. Changes nothing in a file if the change limits slots.
async fn change(set: &LimitSetArgs, ledger: &Ledger) -> Result<(), Failure> {
    let LimitSetArgs { day, month, label, timezone, slots, freeze, unfreeze } = set;
    if let Some(OrNone(slots)) = *slots
        && !ledger.set_slots(slots).await?
    {
        return Err(Refusal::SlotsOfFile.into());
    }
    for (span, amount) in [(Span::Day, day), (Span::Month, month)] {
        let Some(OrNone(amount)) = *amount else { continue };
        let zone = match timezone {
            Some(zone) => zone.clone(),
            // A limit that is removed counts nothing.
            None if amount.is_none() => String::new(),
            None => own_zone_name().map_err(Refusal::from)?,
        };
        let limit = LedgerLimit { label: label.clone(), span, usd: amount.unwrap_or_default(), zone };
        ledger.set_limit(limit, amount.is_some()).await?;
    }
    if *freeze || *unfreeze {
        ledger.set_freeze(freeze.then_some("`shotlist limit set --freeze`")).await?;
    }
    Ok(())
}

fn page(LedgerLimits { limits, slots, freeze }: &LedgerLimits) -> Page {
    let mut page = Page::new();
    for (limit, used) in limits {
        let (left, zone) = (limit.usd.saturating_sub(*used), &limit.zone);
        page.line(format_args!("{}: {:#} ({zone}), {used:#} used, {left:#} left", limit.name(), limit.usd));
    }
    if limits.is_empty() {
        page.line("no limit is set");
    }
    if let Some(slots) = slots {
        page.line(format_args!("tasks at the service: {slots} for all runners together"));
    }
    if let Some(freeze) = freeze {
        page.line(format_args!("{freeze}; `shotlist limit set --unfreeze` allows them again"));
    }
    page
}
