//! All of a ledger in a file, read and written at once.

use std::path::Path;

use futures::executor::block_on;
use tokio::sync::mpsc::{Receiver, Sender};

use super::backup::{give_name, verify};
use super::commit_counter::{self, CommitCounter};
use super::freeze;
use super::lock::RunLock;
use super::open::{is_there, make_directory_of, open, open_to_read, store_error};
use crate::domain::BatchKey;
use crate::ledger::kind::Kind;
use crate::ledger::sql;
use crate::ledger::transfer::{Contents, CopyError, Part};

/// Locks every batch and freezes purchases, so that nothing is written while it is copied. Changes nothing if a run has a batch.
pub(super) fn freeze_for_copy(path: &Path, kind: Kind, why: &str) -> Result<Vec<RunLock>, CopyError> {
    let missing = || CopyError::Missing(path.display().to_string());
    let connection = open_to_read(path, kind)?.ok_or_else(missing)?;
    let store = |error| CopyError::from(store_error(path, error));
    let before = freeze::frozen(&connection).map_err(store)?;
    let batches = || block_on(sql::batches(&connection)).map_err(store);
    let lock = |(_, key): &(i64, BatchKey)| RunLock::acquire(path, key);
    let locked = batches()?;
    let mut locks: Vec<RunLock> = locked.iter().map(lock).collect::<Result<_, _>>()?;
    let connection = open(path, kind)?;
    let freeze = |why: Option<&str>| freeze::commit(&connection, path, |connection| freeze::set(connection, why));
    freeze(Some(why))?;
    // A batch that began before the freeze.
    let new = batches()?;
    let new = new.iter().filter(|batch| !locked.contains(batch)).map(lock).collect::<Result<Vec<_>, _>>();
    match new {
        Ok(new) => locks.extend(new),
        Err(error) => {
            freeze(before.as_ref().map(|freeze| &*freeze.why))?;
            return Err(error.into());
        }
    }
    Ok(locks)
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
        return fill_empty(path, kind, frozen, parts);
    }
    let failed = |source| CopyError::NotWritable { path: path.to_owned(), source };
    let on_its_way =
        tempfile::Builder::new().prefix(".shotlist-").tempdir_in(make_directory_of(path)?).map_err(failed)?;
    let copy = on_its_way.path().join("ledger.db");
    let contents = fill_empty(&copy, kind, frozen, parts)?;
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
    freeze::set(&transaction, frozen).map_err(store)?;
    let commits = commit_counter::count(&transaction).map_err(store)?;
    transaction.commit().map_err(store)?;
    counter.note(commits);
    Ok(contents)
}
