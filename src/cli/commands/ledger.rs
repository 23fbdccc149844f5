//! `shotlist ledger`: copies a ledger whole, and verifies one.

use std::path::Path;

use crate::cli::args::{LedgerArgs, LedgerCommand};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::{paths, runtime};
use crate::domain::with_causes;
use crate::ledger::{AnyLedger, CheckError, Contents};
use crate::ui::{Page, Terminal};

/// Copies or verifies a ledger. Changes nothing in it.
pub(super) fn ledger(args: &LedgerArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let AnyLedger::File(ledger) = paths::ledger_of(args.ledger.as_deref(), Path::new(""), args.sandbox)? else {
        let failure = Failure::plain(Exit::Usage, "this is about a ledger in a file");
        return Err(failure.with_help("a database is backed up by its own tools, pg_dump for example"));
    };
    let (done, contents) = runtime::block_on(async {
        Ok(match &args.command {
            LedgerCommand::Backup { file } => (format!("copied to {}", file.display()), ledger.backup(file).await),
            LedgerCommand::Check => ("is whole".to_owned(), ledger.check().await),
        })
    })?;
    let Contents { batches, attempts, price } = contents.map_err(|error| refuse(&error))?;
    if !terminal.is_quiet {
        let batches = if batches == 1 { "1 batch".to_owned() } else { format!("{batches} batches") };
        let attempts = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
        let mut page = Page::new();
        page.line(format_args!("{ledger} {done}: {batches}, {attempts}, ${price} spent, at risk or unknown"));
        terminal.result(&page);
    }
    Ok(Exit::Done)
}

fn refuse(error: &CheckError) -> Failure {
    let exit = if matches!(error, CheckError::Missing(_)) { Exit::Usage } else { Exit::CannotWrite };
    Failure::plain(exit, with_causes(error)).with_help(error.help())
}
