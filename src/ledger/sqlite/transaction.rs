//! Transactions that write.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::rows::{self, attempt, key, of_batch};
use super::{image_urls, limits, spending};
use crate::domain::{AttemptId, AttemptState, BatchKey, JobId, TaskId, UnfinishedRetake};
use crate::ledger::row::Row;
use crate::ledger::rules::{Asked, Facts, Named, Sums};
use crate::ledger::writing::{Changes, ImageUrlKey, Locked, Transaction};
use crate::ledger::{Event, LedgerError};

/// A transaction on a connection that no one else uses. No other process writes before it ends.
pub(in crate::ledger) struct SqliteTransaction {
    pub(super) connection: Rc<Connection>,
    now: Timestamp,
}

impl SqliteTransaction {
    pub(super) fn new(connection: Rc<Connection>) -> Self {
        Self { connection, now: Timestamp::now() }
    }

    fn rows(&self, sql: &str, batch: i64) -> rusqlite::Result<Vec<Row>> {
        self.connection.prepare_cached(sql)?.query_map([batch], |row| of_batch(row, batch))?.collect()
    }
}

impl Transaction for SqliteTransaction {
    type Error = rusqlite::Error;

    fn runner(&self) -> Option<i64> {
        None
    }

    async fn facts(&self, intents: &[Asked<'_>]) -> Result<Facts, rusqlite::Error> {
        let connection = &*self.connection;
        let newest = "SELECT coalesce(max(id), 0) FROM attempt";
        let mut facts = Facts {
            now: self.now,
            newest: connection.prepare_cached(newest)?.query_row([], |row| row.get(0))?,
            freeze: limits::frozen(connection)?,
            limits: limits::read(connection)?.iter().map(|limit| limit.at(self.now)).collect(),
            ..Facts::default()
        };
        let of_job = "SELECT id, record FROM attempt WHERE batch = ?1 AND job = ?2 ORDER BY id";
        for Asked { batch, intent, .. } in intents {
            if let Entry::Vacant(unread) = facts.attempts.entry((*batch, intent.job.clone())) {
                let mut statement = connection.prepare_cached(of_job)?;
                let rows = statement.query_map(params![batch, intent.job.as_str()], |row| of_batch(row, *batch))?;
                unread.insert(rows.collect::<rusqlite::Result<_>>()?);
            }
            if intent.paid_elsewhere.is_some() && !facts.paid.contains_key(&intent.normalized) {
                facts.paid.insert(intent.normalized.clone(), spending::paid(connection, &intent.normalized)?);
            }
            for limit in intent.limits.iter().chain(&facts.limits).filter(|limit| limit.is_about(&intent.labels)) {
                if let Entry::Vacant(unread) = facts.used.entry(limit.key()) {
                    unread.insert(spending::used(connection, limit.since, limit.label.as_ref())?);
                }
            }
        }
        Ok(facts)
    }

    async fn locked(&self, attempts: &[AttemptId], names: &[&TaskId]) -> Result<Locked, rusqlite::Error> {
        let by_id = "SELECT id, record, batch FROM attempt WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(by_id)?;
        let mut rows = BTreeMap::new();
        for id in attempts {
            let found = statement.query_map([id.0], |row| of_batch(row, row.get(2)?))?;
            rows.extend(found.map(|row| Ok((*id, row?))).collect::<rusqlite::Result<Vec<_>>>()?);
        }
        let mut named = Vec::new();
        for name in names {
            named.extend(find_task(&self.connection, name)?);
        }
        Ok(Locked { rows, named, now: self.now })
    }

    async fn locked_batch(&self, batch: i64) -> Result<Vec<Row>, rusqlite::Error> {
        self.rows("SELECT id, record FROM attempt WHERE batch = ?1 ORDER BY id", batch)
    }

    async fn abandoned(&self, batch: Option<i64>) -> Result<Vec<Row>, rusqlite::Error> {
        // The lock of the batch says that no other run waits for a response.
        let sql = "SELECT id, record FROM attempt WHERE batch = ?1 AND is_unfinished ORDER BY id";
        let mut rows = batch.map(|batch| self.rows(sql, batch)).transpose()?.unwrap_or_default();
        rows.retain(|row| row.attempt.state == AttemptState::Intended);
        Ok(rows)
    }

    async fn objection(&self, _: &Row, _: &Event) -> Result<Option<LedgerError>, rusqlite::Error> {
        Ok(None)
    }

    async fn save(&self, Changes { new, changed, sums }: &Changes<'_>) -> Result<(), rusqlite::Error> {
        for row in new {
            rows::insert(&self.connection, row)?;
            let sql = "DELETE FROM unsent WHERE batch = ?1 AND job = ?2";
            self.connection.prepare_cached(sql)?.execute(params![row.batch, row.attempt.job.as_str()])?;
        }
        changed.iter().try_for_each(|row| rows::replace(&self.connection, row))?;
        add_sums(&self.connection, sums)
    }

    async fn note_unsent(&self, batch: i64, job: &JobId, reason: &str) -> Result<(), rusqlite::Error> {
        note_unsent(&self.connection, batch, job, reason)
    }

    async fn keep_retake(&self, batch: i64, retake: Option<&UnfinishedRetake>) -> Result<(), rusqlite::Error> {
        keep_retake(&self.connection, batch, retake)
    }

    async fn image_url(&self, key: &ImageUrlKey, since: Timestamp) -> Result<Option<String>, rusqlite::Error> {
        image_urls::find(&self.connection, key, since)
    }

    async fn keep_image_url(&self, key: &ImageUrlKey, url: &str) -> Result<(), rusqlite::Error> {
        image_urls::keep(&self.connection, key, url, self.now.as_microsecond())
    }
}

/// The number of a batch, which is created if it does not exist.
pub(super) fn ensure_batch(connection: &Connection, key: &BatchKey) -> rusqlite::Result<i64> {
    let values = params![key.name, key.batch];
    connection.execute("INSERT INTO batch (name, batch) VALUES (?1, ?2) ON CONFLICT DO NOTHING", values)?;
    connection.query_row("SELECT id FROM batch WHERE name = ?1 AND batch = ?2", values, |row| row.get(0))
}

/// Stores why a job was not sent.
pub(super) fn note_unsent(connection: &Connection, batch: i64, job: &JobId, reason: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO unsent VALUES (?1, ?2, ?3) ON CONFLICT (batch, job) DO UPDATE SET reason = excluded.reason";
    connection.prepare_cached(sql)?.execute(params![batch, job.as_str(), reason])?;
    Ok(())
}

/// Stores the retake that a run began, or removes it.
pub(super) fn keep_retake(
    connection: &Connection,
    batch: i64,
    retake: Option<&UnfinishedRetake>,
) -> rusqlite::Result<()> {
    let text = retake.map(serde_json::to_string).transpose().map_err(rows::unwritable)?;
    connection.execute("UPDATE batch SET retake = ?2 WHERE id = ?1", params![batch, text])?;
    Ok(())
}

/// Adds to the sums that limits are checked against.
pub(super) fn add_sums(connection: &Connection, sums: &Sums) -> rusqlite::Result<()> {
    let sql = "INSERT INTO spent VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (label, value, hour) DO UPDATE SET micros = micros + excluded.micros";
    for change in sums.spent() {
        let values = params![change.label, change.value, change.hour, change.micros];
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}

/// The attempts that have a task of this name, with their batches.
pub(super) fn find_task(connection: &Connection, name: &TaskId) -> rusqlite::Result<Vec<Named>> {
    let sql = "SELECT attempt.id, record, name, batch.batch FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE task = ?1 OR alias = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let named =
        statement.query_map([name.as_str()], |row| Ok(Named { attempt: attempt(row, None)?, batch: key(row, 2)? }))?;
    named.collect()
}
