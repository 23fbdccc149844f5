//! All of a ledger in a file, read and written at once.

use std::path::Path;

use rusqlite::{Connection, params};

use super::backup::verify;
use super::commit_counter::{self, CommitCounter};
use super::lock::RunLock;
use super::open::{OpenError, open, open_to_read, store_error};
use super::read::batches;
use super::rows::{self, attempt};
use super::transaction::{add_sums, ensure_batch};
use super::{checksum, limits};
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
    let store = |error| CopyError::from(store_error(path, error));
    let batches = batches(&connection).map_err(store)?;
    // A damaged ledger must not become a sound one.
    verify(&connection, path)?;
    books(&connection, &batches).map_err(store)
}

fn books(connection: &Connection, batches: &[(i64, BatchKey)]) -> rusqlite::Result<Dump> {
    let place = |id: i64| batches.iter().position(|(own, _)| *own == id).unwrap_or_default();
    let mut statement = connection.prepare("SELECT id, record, batch FROM attempt ORDER BY id")?;
    let attempts = statement.query_map([], |row| Ok((place(row.get(2)?), attempt(row, None)?)))?;
    let mut statement = connection.prepare("SELECT batch, job, reason, at_us FROM unsent")?;
    let unsent = statement.query_map([], |row| Ok((place(row.get(0)?), row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let mut statement = connection.prepare("SELECT sha256, command, url, at_us FROM picture_address")?;
    let addresses = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let retake = |id: i64| connection.query_row("SELECT retake FROM batch WHERE id = ?1", [id], |row| row.get(0));
    let with_retake = |(id, key): &(i64, BatchKey)| Ok((key.clone(), retake(*id)?));
    Ok(Dump {
        frozen: None,
        batches: batches.iter().map(with_retake).collect::<rusqlite::Result<_>>()?,
        attempts: attempts.collect::<rusqlite::Result<_>>()?,
        unsent: unsent.collect::<rusqlite::Result<_>>()?,
        addresses: addresses.collect::<rusqlite::Result<_>>()?,
        limits: limits::read(connection)?,
    })
}

/// Writes everything into a ledger that is new or empty, in one transaction.
pub(super) fn fill(path: &Path, kind: Kind, dump: &Dump) -> Result<(), CopyError> {
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

fn write(connection: &Connection, dump: &Dump) -> rusqlite::Result<()> {
    let mut numbers = Vec::with_capacity(dump.batches.len());
    for (key, retake) in &dump.batches {
        let number = ensure_batch(connection, key)?;
        connection.execute("UPDATE batch SET retake = ?2 WHERE id = ?1", params![number, retake])?;
        numbers.push(number);
    }
    let mut sums = Sums::default();
    for (place, attempt) in &dump.attempts {
        rows::insert(connection, &Row::copied(attempt.clone(), numbers[*place]))?;
        sums.add(numbers[*place], None, attempt);
    }
    add_sums(connection, &sums)?;
    for (place, job, reason, at) in &dump.unsent {
        connection.execute("INSERT INTO unsent VALUES (?1, ?2, ?3, ?4)", params![numbers[*place], job, reason, at])?;
    }
    for (sha256, command, url, at) in &dump.addresses {
        let checksum = checksum::digest_of_address(sha256, command, url, *at);
        let values = params![sha256, command, url, at, checksum];
        connection.execute("INSERT INTO picture_address VALUES (?1, ?2, ?3, ?4, ?5)", values)?;
    }
    dump.limits.iter().try_for_each(|limit| limits::set(connection, limit, true))?;
    limits::freeze(connection, dump.frozen.as_deref())
}
