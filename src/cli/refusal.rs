//! What to say when the ledger, a lock or a report can't be had.

use super::exit::Exit;
use super::failure::{Failure, chain};
use crate::ledger::{LockError, OpenError};

/// A batch that can't be locked.
pub fn lock(error: &LockError) -> Failure {
    match error {
        LockError::Held { .. } => Failure::before_sending(Exit::Busy, chain(error))
            .with_help("wait for it to end; what it does is in the ledger, and the next run goes on from there"),
        LockError::File { .. } => cannot_write(error),
    }
}

/// A ledger that can't be opened.
pub fn ledger(error: &OpenError) -> Failure {
    let help = match error {
        OpenError::Newer { .. } => "use the newer shotlist, or another ledger with --ledger",
        OpenError::Foreign(_) | OpenError::OtherKind { .. } => "name another file with --ledger",
        OpenError::Gone(_) => {
            "bring it back, or remove those files if you mean to start anew: everything would then be paid for again"
        }
        OpenError::Damaged(_) => "bring back a copy of it; without its ledger, shotlist can't know what was paid for",
        OpenError::Older { .. } => {
            "an older copy took its place, or its log (`-wal`) was left behind. Bring the newer one back; if it is lost for \
             good, look up at the service what was bought since, and remove the file that ends in `.witness` to go on \
             without it: what this copy does not know would then be paid for again"
        }
        OpenError::TwoNames(_) => "remove the other name (`find . -samefile` finds it), or copy the file",
        OpenError::Link(_) => "name the file itself with --ledger, or remove the link",
        OpenError::NoLog(_) => "put the ledger on a local disk with --ledger",
        OpenError::Thread(_) => "too many processes or threads are running: try again when there are fewer",
        OpenError::Folder { .. }
        | OpenError::Store { .. }
        | OpenError::Unreachable { .. }
        | OpenError::Witness { .. } => WRITABLE,
    };
    Failure::before_sending(Exit::CannotWrite, chain(error)).with_help(help)
}

/// Something else that can't be written, before anything was sent.
pub fn cannot_write(error: &dyn std::error::Error) -> Failure {
    Failure::before_sending(Exit::CannotWrite, chain(error)).with_help(WRITABLE)
}

const WRITABLE: &str = "check the path, the permissions of its folder and the free space";
