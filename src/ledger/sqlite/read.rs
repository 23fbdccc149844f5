//! One batch, read back and verified.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::checksum::{BatchRow, damaged, digest, expect, sum_of, verified_batch};
use super::rows::{attempt, key, unreadable};
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
    // One statement: a second one could take another index, which may be sound where this one is not.
    let digest = digest("attempt", "attempt");
    let sql = format!("SELECT id, record, {digest} FROM attempt WHERE batch = ?1 ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let count = "SELECT count(*) FROM attempt WHERE batch = ?1";
    let count: u32 = connection.prepare_cached(count)?.query_row([id], |row| row.get(0))?;
    let (mut attempts, mut sum) = (Vec::with_capacity(count as usize), 0_i64);
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        sum = sum.wrapping_add(row.get(2)?);
        let last: Option<&Attempt> = attempts.last();
        let attempt = attempt(row, last)?;
        // A checksum is of rows in any order, and the newest one decides.
        if last.is_some_and(|last| last.id >= attempt.id) {
            return Err(damaged("the attempts of the batch are out of order"));
        }
        attempts.push(attempt);
    }
    sum = sum.wrapping_add(sum_of(connection, "unsent", &format!("batch = {id}"))?);
    expect(expected, sum, "the attempts of the batch")?;
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
