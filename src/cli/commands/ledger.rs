//! `shotlist ledger`: copies a ledger whole, verifies one, and carries one from a file into a database or back.

use crate::cli::args::{LedgerArgs, LedgerCommand};
use crate::cli::exit::{Exit, Failure};
use crate::cli::paths;
use crate::cli::program::block_on;
use crate::domain::{RefusalCode, count};
use crate::ledger::{Contents, SqliteLedger};
use crate::ui::{Page, Terminal};

/// Copies or verifies a ledger. Changes nothing in it.
pub(super) fn ledger(args: &LedgerArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let (what, contents) = match &args.command {
        LedgerCommand::Backup { file: to } => {
            let ledger = paths::ledger_of(&args.store)?;
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
        page.line(format_args!("{what}: {batches}, {attempts}, ${price} spent, at risk or unknown"));
        terminal.result(&page);
    }
    Ok(Exit::Done)
}

/// The ledger in a file.
fn file(args: &LedgerArgs) -> Result<SqliteLedger, Failure> {
    let ledger = paths::ledger_of(&args.store)?;
    ledger.file().cloned().ok_or_else(|| {
        Failure::new(RefusalCode::OptionInvalid, format!("can't check `{ledger}`: it is a database"))
            .with_help("run `shotlist ledger backup FILE`, then `shotlist ledger check --ledger FILE`")
    })
}
