//! One batch, read back and verified.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::checksum::{BatchRow, Checksum, damaged, verified_batch};
use super::columns::{COLUMNS, RECORD};
use super::rows::{attempt_at, key, unreadable};
use crate::domain::{Attempt, BatchKey, History, JobId};

/// The batches with their numbers, in the order in which they were created.
pub(super) fn batches(connection: &Connection) -> rusqlite::Result<Vec<(i64, BatchKey)>> {
    let mut statement = connection.prepare("SELECT id, name, batch FROM batch ORDER BY id")?;
    statement.query_map([], |row| Ok((row.get(0)?, key(row, 1)?)))?.collect()
}

/// Every attempt of a batch, oldest first, verified against the checksums. Must be called in a transaction.
pub(super) fn history(connection: &Connection, batch: &BatchKey) -> rusqlite::Result<History> {
    let Some(BatchRow { id, checksum: expected, retake }) = verified_batch(connection, &batch.name, &batch.batch)?
    else {
        return Ok(History::default());
    };
    let sql = format!("SELECT {COLUMNS} FROM attempt WHERE batch = ?1 ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let count = "SELECT count(*) FROM attempt WHERE batch = ?1";
    let count: u32 = connection.prepare_cached(count)?.query_row([id], |row| row.get(0))?;
    let (mut attempts, mut checksum) = (Vec::with_capacity(count as usize), Checksum::default());
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        checksum.add_attempt(row)?;
        let last: Option<&Attempt> = attempts.last();
        let attempt = attempt_at(row, 0, RECORD, last)?;
        // A checksum is of rows in any order, and the newest one decides.
        if last.is_some_and(|last| last.id >= attempt.id) {
            return Err(damaged("the attempts of the batch are out of order"));
        }
        attempts.push(attempt);
    }
    checksum.add_unsent(connection, id)?;
    checksum.expect(expected, "the attempts of the batch")?;
    let retake = retake.map(|text| serde_json::from_str(&text)).transpose();
    let retake = retake.map_err(|_| damaged("the unfinished retake can't be read"))?;
    Ok(History::new(attempts).with_unsent(unsent(connection, id)?).with_retake(retake))
}

/// The reasons why jobs of a batch were not sent, where that is no submission.
fn unsent(connection: &Connection, batch: i64) -> rusqlite::Result<BTreeMap<JobId, String>> {
    let mut statement = connection.prepare_cached("SELECT job, reason FROM unsent WHERE batch = ?1")?;
    statement.query_map([batch], |row| Ok((job(row, 0)?, row.get(1)?)))?.collect()
}

fn job(row: &rusqlite::Row<'_>, place: usize) -> rusqlite::Result<JobId> {
    JobId::new(row.get::<_, String>(place)?).map_err(|error| unreadable(place, error))
}
