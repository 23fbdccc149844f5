//! What to say when the ledger, a lock or a report can't be had.

use super::exit::Exit;
use super::failure::{Failure, chain};
use crate::ledger::{LockError, OpenError};

/// A batch that can't be locked.
pub fn lock(error: &LockError) -> Failure {
    match error {
        LockError::Held { .. } => Failure::before_sending(Exit::Busy, chain(error))
            .with_help("wait for it to end, or give this run another --batch"),
        LockError::File { .. } => cannot_write(error),
    }
}

/// A ledger that can't be opened.
pub fn ledger(error: &OpenError) -> Failure {
    let help = match error {
        OpenError::Newer { .. } => "use the newer shotlist, or another ledger with --ledger",
        OpenError::Foreign(_) | OpenError::OtherKind { .. } => "name another file with --ledger",
        OpenError::Gone(_) => {
            "bring it back, or remove its lock files if you mean to start anew: everything would then be paid for again"
        }
        OpenError::Damaged(_) => "bring back a copy of it; without its ledger, shotlist can't know what was paid for",
        OpenError::Folder { .. } | OpenError::Store { .. } | OpenError::Unreachable { .. } => WRITABLE,
    };
    Failure::before_sending(Exit::CannotWrite, chain(error)).with_help(help)
}

/// Something else that can't be written, before anything was sent.
pub fn cannot_write(error: &dyn std::error::Error) -> Failure {
    Failure::before_sending(Exit::CannotWrite, chain(error)).with_help(WRITABLE)
}

const WRITABLE: &str = "check the path, the permissions of its folder and the free space";
