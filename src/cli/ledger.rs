//! `shotlist ledger`: copies a ledger whole, and verifies one.

use std::path::Path;

use super::args::{LedgerArgs, LedgerCommand};
use super::exit::Exit;
use super::failure::{Failure, chain};
use super::paths;
use super::refusal;
use crate::ledger::{self, CheckError, Contents};
use crate::ui::{Page, Terminal};

/// Copies or verifies a ledger. Changes nothing in it.
pub fn ledger(args: &LedgerArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let (kind, path) =
        (paths::kind_of(args.sandbox), paths::ledger_of(args.ledger.as_deref(), Path::new(""), args.sandbox)?);
    let (done, contents) = match &args.command {
        LedgerCommand::Backup { file } => (format!("copied to {}", file.display()), ledger::backup(&path, kind, file)),
        LedgerCommand::Check => ("is whole".to_owned(), ledger::check(&path, kind)),
    };
    let Contents { batches, attempts, price } = contents.map_err(|error| refuse(&error))?;
    if !terminal.is_quiet {
        let path = path.display();
        let batches = if batches == 1 { "1 batch".to_owned() } else { format!("{batches} batches") };
        let attempts = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
        let mut page = Page::new();
        page.line(format_args!("{path} {done}: {batches}, {attempts}, ${price} spent, at risk or unknown"));
        terminal.result(&page);
    }
    Ok(Exit::Done)
}

fn refuse(error: &CheckError) -> Failure {
    let help = match error {
        CheckError::Open(error) => return Failure { money: None, ..refusal::ledger(error) },
        CheckError::Missing(_) => "name it with --ledger; it lies in .shotlist beside the manifest",
        CheckError::Damaged { .. } => {
            "bring back a copy that `shotlist ledger check` finds whole; without its ledger, shotlist can't know what was paid for"
        }
        CheckError::Copy { .. } => "name a new file, in a folder that can be written and on a disk with room",
    };
    let exit = if matches!(error, CheckError::Missing(_)) { Exit::Usage } else { Exit::CannotWrite };
    Failure::plain(exit, chain(error)).with_help(help)
}
