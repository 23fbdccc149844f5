//! All of a ledger in a file, read and written at once.

use std::path::Path;

use rusqlite::Connection;

use super::backup::verify;
use super::commit_counter::{self, CommitCounter};
use super::lock::RunLock;
use super::open::{OpenError, open, open_to_read, store_error};
use super::read::{self, batches};
use super::transaction::{add_sums, ensure_batch, keep_retake, note_unsent};
use super::{limits, rows};
use crate::domain::BatchKey;
use crate::ledger::kind::Kind;
use crate::ledger::row::Row;
use crate::ledger::rules::Sums;
use crate::ledger::transfer::{CopyError, Dump};

impl From<OpenError> for CopyError {
    fn from(error: OpenError) -> Self {
        Self::Unavailable(error.into())
    }
}

/// Locks every batch and freezes purchases, so that nothing is written while it is copied. Changes nothing if a run has a batch.
pub(super) fn freeze_for_copy(path: &Path, kind: Kind, why: &str) -> Result<Vec<RunLock>, CopyError> {
    let missing = || CopyError::Missing(path.display().to_string());
    let connection = open_to_read(path, kind)?.ok_or_else(missing)?;
    let store = |error| CopyError::from(store_error(path, error));
    let before = limits::frozen(&connection).map_err(store)?;
    let lock = |(_, key): &(i64, BatchKey)| RunLock::acquire(path, key);
    let locked = batches(&connection).map_err(store)?;
    let mut locks: Vec<RunLock> = locked.iter().map(lock).collect::<Result<_, _>>()?;
    let connection = open(path, kind)?;
    limits::freeze(&connection, Some(why)).map_err(store)?;
    // A batch that began before the freeze.
    let new = batches(&connection).map_err(store)?;
    let new = new.iter().filter(|batch| !locked.contains(batch)).map(lock).collect::<Result<Vec<_>, _>>();
    match new {
        Ok(new) => locks.extend(new),
        Err(error) => {
            limits::freeze(&connection, before.as_ref().map(|freeze| &*freeze.why)).map_err(store)?;
            return Err(error.into());
        }
    }
    Ok(locks)
}

/// Reads everything.
pub(super) fn take_all(path: &Path, kind: Kind) -> Result<Dump, CopyError> {
    let connection = open_to_read(path, kind)?.ok_or_else(|| CopyError::Missing(path.display().to_string()))?;
    // A damaged ledger must not become a sound one.
    verify(&connection, path)?;
    let read = || -> rusqlite::Result<Dump> {
        let moment = connection.unchecked_transaction()?;
        let batches = batches(&moment)?.into_iter().map(|(_, key)| Ok((key.clone(), read::history(&moment, &key)?)));
        Ok(Dump { frozen: None, batches: batches.collect::<rusqlite::Result<_>>()?, limits: limits::read(&moment)? })
    };
    read().map_err(|error| store_error(path, error).into())
}

/// Writes everything into a ledger that is new or empty, in one transaction.
pub(super) fn fill(path: &Path, kind: Kind, dump: Dump) -> Result<(), CopyError> {
    let mut connection = open(path, kind)?;
    let store = |error| CopyError::from(store_error(path, error));
    let transaction = connection.transaction().map_err(store)?;
    let is_empty = "SELECT NOT EXISTS (SELECT 1 FROM attempt) AND NOT EXISTS (SELECT 1 FROM ledger_limit)
         AND NOT EXISTS (SELECT 1 FROM unsent)";
    if !transaction.query_row(is_empty, [], |row| row.get::<_, bool>(0)).map_err(store)? {
        return Err(CopyError::NotEmpty(path.display().to_string()));
    }
    write(&transaction, dump).map_err(store)?;
    let commits = commit_counter::count(&transaction).map_err(store)?;
    transaction.commit().map_err(store)?;
    let counter =
        CommitCounter::open(path).map_err(|source| OpenError::CommitCounter { path: path.to_owned(), source });
    counter?.note(commits);
    Ok(())
}

fn write(connection: &Connection, dump: Dump) -> rusqlite::Result<()> {
    let mut sums = Sums::default();
    for (key, history) in dump.batches {
        let number = ensure_batch(connection, &key)?;
        let (attempts, unsent, retake) = history.into_parts();
        for attempt in attempts {
            sums.add(number, None, &attempt);
            rows::insert(connection, &Row::copied(attempt, number))?;
        }
        unsent.iter().try_for_each(|(job, reason)| note_unsent(connection, number, job, reason))?;
        keep_retake(connection, number, retake.as_ref())?;
    }
    add_sums(connection, &sums)?;
    dump.limits.iter().try_for_each(|limit| limits::set(connection, limit, true))?;
    limits::freeze(connection, dump.frozen.as_deref())
}
