//! All of a ledger in a file, read and written at once.

use std::path::Path;

use futures::executor::block_on;
use rusqlite::Connection;
use tokio::sync::mpsc::{Receiver, Sender};

use super::backup::{check, give_name, verify};
use super::commit_counter::{self, CommitCounter};
use super::freeze;
use super::lock::RunLock;
use super::open::{is_there, make_directory_of, open, open_to_read, store_error};
use crate::files::temporary;
use crate::ledger::sql;
use crate::ledger::transfer::{Contents, CopyError, Part};
use crate::ledger::value::Kind;

/// Keeps all writers away from a ledger, as long as it lives.
#[derive(Debug)]
pub(in crate::ledger) struct WriteLock(#[expect(dead_code, reason = "holds a transaction")] Connection);

/// Freezes purchases, and keeps all writers away while the ledger is copied. Changes nothing if a run has a batch.
///
/// After the freeze, no intent is recorded. So a run that holds a batch now is the only one that may have a submission in flight, and a run that
/// begins later has none.
pub(super) fn freeze_for_copy(path: &Path, kind: Kind, why: &str) -> Result<WriteLock, CopyError> {
    if !is_there(path)? {
        return Err(CopyError::Missing(path.display().to_string()));
    }
    let connection = open(path, kind)?;
    let store = |error| CopyError::from(store_error(path, error));
    let before = freeze::frozen(&connection).map_err(store)?;
    let freeze = |why: Option<&str>| freeze::commit(&connection, path, |connection| freeze::set(connection, why));
    freeze(Some(why))?;
    let lock = || {
        // One at a time: a ledger may have more batches than a process may open files.
        for (_, key) in block_on(sql::batches(&connection)).map_err(store)? {
            RunLock::acquire(path, &key)?;
        }
        connection.execute_batch("BEGIN IMMEDIATE").map_err(store)
    };
    if let Err(error) = lock() {
        freeze(before.as_ref().map(|freeze| &*freeze.why))?;
        return Err(error);
    }
    Ok(WriteLock(connection))
}

/// Sends everything, until no one receives it any more.
pub(super) fn send_all(path: &Path, kind: Kind, parts: &Sender<Part>) -> Result<(), CopyError> {
    let connection = open_to_read(path, kind)?.ok_or_else(|| CopyError::Missing(path.display().to_string()))?;
    // A damaged ledger must not become a sound one.
    verify(&connection, path)?;
    let sent = connection.unchecked_transaction().and_then(|moment| block_on(sql::send_all(&*moment, parts)));
    sent.map_err(|error| store_error(path, error).into())
}

/// Writes everything that is received into a ledger that is empty, or new: a new one has its name only once it is whole.
pub(super) fn fill(
    path: &Path,
    kind: Kind,
    frozen: Option<&str>,
    parts: Receiver<Part>,
) -> Result<Contents, CopyError> {
    if is_there(path)? {
        let contents = fill_empty(path, kind, frozen, parts)?;
        // The copy is committed: if it can't be read, both may be able to buy.
        return verified(path, kind, contents).map_err(|error| match error {
            CopyError::Unavailable(error) => CopyError::Unknown(error),
            error => error,
        });
    }
    let failed = |source| CopyError::NotWritable { path: path.to_owned(), source };
    let on_its_way = temporary().tempdir_in(make_directory_of(path)?).map_err(failed)?;
    let copy = on_its_way.path().join("ledger.db");
    let contents = fill_empty(&copy, kind, frozen, parts)?;
    let contents = verified(&copy, kind, contents)?;
    give_name(&copy, path).map_err(failed)?;
    Ok(contents)
}

/// Writes everything that is received into a ledger that is empty, in one transaction.
fn fill_empty(path: &Path, kind: Kind, frozen: Option<&str>, mut parts: Receiver<Part>) -> Result<Contents, CopyError> {
    let mut connection = open(path, kind)?;
    let store = |error| CopyError::from(store_error(path, error));
    let transaction = connection.transaction().map_err(store)?;
    if !block_on(sql::is_empty(&*transaction)).map_err(store)? {
        return Err(CopyError::NotEmpty(path.display().to_string()));
    }
    let mut counter = CommitCounter::open(path)?;
    let received = block_on(sql::receive_all(&*transaction, parts.blocking_recv(), parts));
    let contents = received.map_err(store)?.ok_or(CopyError::CutOff)?;
    if freeze::frozen(&transaction).map_err(store)?.is_none() {
        freeze::set(&transaction, frozen).map_err(store)?;
    }
    let commits = commit_counter::count(&transaction).map_err(store)?;
    transaction.commit().map_err(store)?;
    counter.note(commits);
    // SQLite hides a full disk if it moves the log into the file on closing.
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).map_err(store)?;
    connection.close().map_err(|(_, error)| store(error))?;
    if is_busy { Err(CopyError::CutOff) } else { Ok(contents) }
}

/// Verifies a copy, and that it has what was written into it.
fn verified(path: &Path, kind: Kind, written: Contents) -> Result<Contents, CopyError> {
    let found = check(path, kind)?;
    if found == written { Ok(found) } else { Err(CopyError::CutOff) }
}
