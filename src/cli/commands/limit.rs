//! `shotlist limit`: the owner's limits, which stand in the ledger.

use std::path::Path;

use jiff::tz::TimeZone;

use crate::cli::args::{Amount, LimitArgs, LimitCommand, LimitSetArgs};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::{paths, runtime};
use crate::domain::{NoticeCode, RefusalCode, Usd};
use crate::ledger::{Ledger, LedgerLimit, Span};
use crate::ui::{Page, Terminal};

/// Sets or shows the owner's limits.
pub(super) fn limit(args: &LimitArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let ledger = paths::ledger_of(args.ledger.as_deref(), Path::new(""), args.sandbox)?;
    let is_missing = !paths::is_there(&ledger);
    if let LimitCommand::Set(LimitSetArgs { unfreeze: true, .. }) = &args.command
        && is_missing
    {
        let failure =
            Failure::plain(RefusalCode::LedgerMissing, format!("can't unfreeze `{ledger}`: found no ledger there"));
        return Err(failure.with_help("pass the ledger of the refused run with `--ledger`"));
    }
    let done = runtime::block_on(async {
        if let LimitCommand::Set(set) = &args.command {
            change(&ledger, set).await?;
            if is_missing {
                let begun = format!("created ledger `{ledger}`; the limits apply to runs that use it");
                terminal.note(NoticeCode::LedgerBegun, &begun);
            }
            if terminal.is_quiet {
                return Ok(());
            }
        }
        terminal.result(&shown(&ledger).await?);
        Ok(())
    });
    done.map_err(Failure::without_money)?;
    Ok(Exit::Done)
}

async fn change(ledger: &Ledger, set: &LimitSetArgs) -> Result<(), Failure> {
    let zone = match &set.timezone {
        Some(zone) => zone.clone(),
        // A machine whose zone has no name counts in UTC, and that is shown.
        None => TimeZone::system().iana_name().unwrap_or("UTC").to_owned(),
    };
    for (span, amount) in [(Span::Day, set.day), (Span::Month, set.month)] {
        let Some(Amount(amount)) = amount else { continue };
        let usd = amount.unwrap_or(Usd::ZERO);
        let limit = LedgerLimit { label: set.label.clone(), span, usd, zone: zone.clone() };
        ledger.set_limit(limit, amount.is_some()).await?;
    }
    if set.freeze || set.unfreeze {
        let why = set.freeze.then_some("`shotlist limit set --freeze`");
        ledger.set_freeze(why).await?;
    }
    let Some(slots) = set.slots else { return Ok(()) };
    let Some(database) = ledger.database() else {
        let failure = Failure::plain(RefusalCode::OptionInvalid, "`--slots` requires a ledger on PostgreSQL");
        return Err(failure.with_help("pass `--concurrency` to each run instead"));
    };
    Ok(database.set_slots(slots.0).await?)
}

async fn shown(ledger: &Ledger) -> Result<Page, Failure> {
    let (mut page, now) = (Page::new(), ledger.now().await?);
    let limits = ledger.limits().await?;
    for limit in &limits {
        let now_limit = limit.at(now);
        let used = ledger.used_since(now_limit.since, now_limit.label.clone()).await?;
        let (left, zone) = (limit.usd.saturating_sub(used), &limit.zone);
        page.line(format_args!("{}: ${} ({zone}), ${used} used, ${left} left", limit.name(), limit.usd));
    }
    if limits.is_empty() {
        page.line("no limit is set");
    }
    if let Some(database) = ledger.database()
        && let Some(slots) = database.slots().await?
    {
        page.line(format_args!("tasks at the service: {slots} for all runners together"));
    }
    if let Some(freeze) = ledger.frozen().await? {
        page.line(format_args!("{freeze}; `shotlist limit set --unfreeze` allows them again"));
    }
    Ok(page)
}
