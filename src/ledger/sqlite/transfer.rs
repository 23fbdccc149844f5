//! All of a ledger in a file, read and written at once.

use std::path::Path;

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params, params_from_iter};

use super::backup::{CheckError, verify};
use super::columns::ATTEMPT;
use super::lock::RunLock;
use super::open::{OpenError, open, open_to_read, store_error};
use super::read::{attempt, batches};
use super::schema::Kind;
use super::witness::{self, Witness};
use super::{checksum, limits};
use crate::domain::BatchKey;
use crate::ledger::stored::Stored;
use crate::ledger::transfer::{Books, CopyError};

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
    let before = limits::stopped(&connection).map_err(store)?;
    let lock = |(_, key): &(i64, BatchKey)| RunLock::acquire(path, key);
    let locked = batches(&connection).map_err(store)?;
    let mut locks: Vec<RunLock> = locked.iter().map(lock).collect::<Result<_, _>>()?;
    let connection = open(path, kind)?;
    limits::stop(&connection, Some(why)).map_err(store)?;
    // A batch that began before the freeze.
    let new = batches(&connection).map_err(store)?;
    let new = new.iter().filter(|batch| !locked.contains(batch)).map(lock).collect::<Result<Vec<_>, _>>();
    match new {
        Ok(new) => locks.extend(new),
        Err(error) => {
            limits::stop(&connection, before.as_deref()).map_err(store)?;
            return Err(error.into());
        }
    }
    Ok(locks)
}

/// Reads everything.
pub(super) fn take_all(path: &Path, kind: Kind) -> Result<Books, CopyError> {
    let connection = open_to_read(path, kind)?.ok_or_else(|| CopyError::Missing(path.display().to_string()))?;
    let store = |error| CopyError::from(store_error(path, error));
    let batches = batches(&connection).map_err(store)?;
    // A damaged ledger must not become a sound one.
    verify(&connection, path).map_err(|error| match error {
        CheckError::Unavailable(error) => CopyError::Unavailable(error),
        other => CopyError::Damaged(other.to_string()),
    })?;
    books(&connection, &batches).map_err(store)
}

fn books(connection: &Connection, batches: &[(i64, BatchKey)]) -> rusqlite::Result<Books> {
    let place = |id: i64| batches.iter().position(|(own, _)| *own == id).unwrap_or_default();
    let mut statement = connection.prepare(&format!("SELECT {}, batch AS of FROM attempt ORDER BY id", *ATTEMPT))?;
    let attempts = statement.query_map([], |row| Ok((place(row.get("of")?), Stored::from(&attempt(row, None)?))))?;
    let mut statement = connection.prepare("SELECT batch, job, reason, at_us FROM unsent")?;
    let unsent = statement.query_map([], |row| Ok((place(row.get(0)?), row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let mut statement = connection.prepare("SELECT sha256, command, url, at_us FROM picture_address")?;
    let addresses = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let retake = |id: i64| connection.query_row("SELECT retake FROM batch WHERE id = ?1", [id], |row| row.get(0));
    let with_retake = |(id, key): &(i64, BatchKey)| Ok((key.clone(), retake(*id)?));
    Ok(Books {
        frozen: None,
        batches: batches.iter().map(with_retake).collect::<rusqlite::Result<_>>()?,
        attempts: attempts.collect::<rusqlite::Result<_>>()?,
        unsent: unsent.collect::<rusqlite::Result<_>>()?,
        addresses: addresses.collect::<rusqlite::Result<_>>()?,
        limits: limits::read(connection)?,
    })
}

/// Writes everything into a ledger that is new or empty, in one transaction.
pub(super) fn fill(path: &Path, kind: Kind, books: &Books) -> Result<(), CopyError> {
    let mut connection = open(path, kind)?;
    let store = |error| CopyError::from(store_error(path, error));
    let transaction = connection.transaction().map_err(store)?;
    let is_empty = "SELECT NOT EXISTS (SELECT 1 FROM batch) AND NOT EXISTS (SELECT 1 FROM owner_limit)";
    if !transaction.query_row(is_empty, [], |row| row.get::<_, bool>(0)).map_err(store)? {
        return Err(CopyError::NotEmpty(path.display().to_string()));
    }
    write(&transaction, books).map_err(store)?;
    let commits = witness::count(&transaction).map_err(store)?;
    transaction.commit().map_err(store)?;
    let witness = Witness::open(path).map_err(|source| OpenError::Witness { path: path.to_owned(), source });
    witness?.note(commits);
    Ok(())
}

fn write(connection: &Connection, books: &Books) -> rusqlite::Result<()> {
    let id = |place: usize| i64::try_from(place + 1).unwrap_or(i64::MAX);
    for (place, (key, retake)) in books.batches.iter().enumerate() {
        let values = params![id(place), key.name, key.batch, retake];
        connection.execute("INSERT INTO batch (id, name, batch, retake) VALUES (?1, ?2, ?3, ?4)", values)?;
    }
    for (place, stored) in &books.attempts {
        let row =
            serde_json::to_value(stored).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let cells = row.as_object().into_iter().flatten();
        let (names, values): (Vec<&str>, Vec<Cell>) = cells.map(|(name, value)| (name.as_str(), cell(value))).unzip();
        let holders = vec!["?"; names.len() + 1].join(", ");
        let sql = format!("INSERT INTO attempt ({}, batch) VALUES ({holders})", names.join(", "));
        let values = values.into_iter().chain([Cell::Integer(id(*place))]);
        connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    }
    for (place, job, reason, at) in &books.unsent {
        connection.execute("INSERT INTO unsent VALUES (?1, ?2, ?3, ?4)", params![id(*place), job, reason, at])?;
    }
    for (sha256, command, url, at) in &books.addresses {
        let checksum = checksum::digest_of_address(sha256, command, url, *at);
        let values = params![sha256, command, url, at, checksum];
        connection.execute("INSERT INTO picture_address VALUES (?1, ?2, ?3, ?4, ?5)", values)?;
    }
    books.limits.iter().try_for_each(|limit| limits::set(connection, limit, true))?;
    limits::stop(connection, books.frozen.as_deref())
}

fn cell(value: &serde_json::Value) -> Cell {
    match value {
        serde_json::Value::String(text) => Cell::Text(text.clone()),
        serde_json::Value::Number(number) => number.as_i64().map_or(Cell::Null, Cell::Integer),
        _ => Cell::Null,
    }
}
