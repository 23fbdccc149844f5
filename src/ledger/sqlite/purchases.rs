//! Purchases of other batches, and of all.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use super::read::batches;
use super::rows::{attempt, key, unwritable};
use crate::domain::{Attempt, BatchKey, Fingerprint};
use crate::ledger::views::Submissions;
use crate::ledger::{BoughtElsewhere, OpenElsewhere};

/// The newest attempts elsewhere that asked for one of these normalized requests, unless they certainly cost nothing.
pub(super) fn bought_elsewhere(
    connection: &Connection,
    batch: &BatchKey,
    requests: &impl Fn() -> Vec<Fingerprint>,
) -> rusqlite::Result<Vec<BoughtElsewhere>> {
    if !batches(connection)?.iter().any(|(_, other)| batch.may_repeat(other)) {
        return Ok(Vec::new());
    }
    let wanted: BTreeSet<Fingerprint> = requests().into_iter().collect();
    let wanted = serde_json::to_string(&wanted).map_err(unwritable)?;
    // In this order: a ledger has many more attempts than a plan has jobs. The record is the one of the newest attempt.
    let sql = "SELECT max(attempt.id), record, name, batch.batch, count(DISTINCT job), count(*)
         FROM json_each(?1) AS wanted CROSS JOIN attempt ON normalized = wanted.value JOIN batch ON batch.id = attempt.batch
         WHERE state NOT IN ('void', 'rejected') GROUP BY normalized, attempt.batch";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([wanted], |row| {
        let (batch, attempt) = (key(row, 2)?, attempt(row, None)?);
        Ok(BoughtElsewhere { batch, attempt, jobs: row.get(4)?, attempts: row.get(5)? })
    })?;
    Ok(BoughtElsewhere::of(batch, rows.collect::<rusqlite::Result<Vec<_>>>()?))
}

/// The submissions of all batches that a question is about, oldest first.
pub(super) fn submissions(
    connection: &Connection,
    is_asked: &impl Fn(&Attempt) -> bool,
) -> rusqlite::Result<Vec<(BatchKey, Attempt)>> {
    let sql = "SELECT attempt.id, record, name, batch.batch FROM attempt JOIN batch ON batch.id = attempt.batch
         ORDER BY attempt.id";
    let (mut statement, mut submissions) = (connection.prepare(sql)?, Submissions::about(is_asked));
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        submissions.add(key(row, 2)?, attempt(row, None)?);
    }
    Ok(submissions.found)
}

/// The open work of other batches of the same name.
pub(super) fn open_elsewhere(connection: &Connection, batch: &BatchKey) -> rusqlite::Result<Vec<OpenElsewhere>> {
    let sql = "SELECT attempt.id, record, name, batch.batch
         FROM attempt INDEXED BY attempt_unfinished JOIN batch ON batch.id = attempt.batch
         WHERE name = ?1 AND batch.batch <> ?2 AND is_unfinished ORDER BY attempt.id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![batch.name, batch.batch], |row| Ok((key(row, 2)?, attempt(row, None)?)))?;
    Ok(OpenElsewhere::of(rows.collect::<rusqlite::Result<Vec<_>>>()?))
}
