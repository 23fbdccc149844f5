//! Who bought what: the owner of a task, the same request under other names, and what is open in other batches.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::columns::ATTEMPT;
use super::read::{attempt, keys};
use super::refused::Refused;
use crate::domain::{Attempt, AttemptId, BatchKey, Fingerprint, JobId, TaskId, TaskNames, Usd};
use crate::ledger::stored::unfinished;
use crate::ledger::{BoughtElsewhere, LedgerError, OpenElsewhere};

/// Refuses a task that another attempt at the same service has: one of the two was told wrong, and nobody knows which. Gives
/// its names, without a second one that is another's; that is not worth a doubt.
pub(super) fn claim_task(
    connection: &Connection,
    attempt: AttemptId,
    mut task: TaskNames,
) -> Result<TaskNames, Refused> {
    claim_name(connection, attempt, &task.id)?;
    if let Some(alias) = &task.alias {
        match claim_name(connection, attempt, alias) {
            Err(Refused::By(LedgerError::TaskTaken { .. })) => task.alias = None,
            claimed => claimed?,
        }
    }
    Ok(task)
}

/// Refuses a name that a task of another attempt at the same service has.
pub(super) fn claim_name(connection: &Connection, attempt: AttemptId, task: &TaskId) -> Result<(), Refused> {
    let sql = "SELECT job, name, batch.batch FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE (task = ?2 OR alias = ?2) AND attempt.id <> ?1
         AND service = (SELECT service FROM attempt WHERE id = ?1) LIMIT 1";
    let owner = connection.prepare_cached(sql)?.query_row(params![attempt.0, task.as_str()], |row| {
        Ok((row.get::<_, String>(0)?, BatchKey { name: row.get(1)?, batch: row.get(2)? }))
    });
    match owner.optional()? {
        Some((job, batch)) => Err(LedgerError::TaskTaken { task: task.clone(), job, batch }.into()),
        None => Ok(()),
    }
}

/// The newest attempts elsewhere that asked for one of these normalized requests, unless they certainly cost nothing.
pub(super) fn bought_elsewhere(
    connection: &Connection,
    batch: &BatchKey,
    requests: &impl Fn() -> Vec<Fingerprint>,
) -> rusqlite::Result<Vec<BoughtElsewhere>> {
    if !keys(connection)?.iter().any(|other| batch.may_repeat(other)) {
        return Ok(Vec::new());
    }
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.execute_batch("CREATE TEMP TABLE wanted (wanted TEXT PRIMARY KEY) WITHOUT ROWID")?;
    let mut insert = connection.prepare("INSERT INTO wanted VALUES (?1) ON CONFLICT DO NOTHING")?;
    for request in requests() {
        insert.execute([request.as_str()])?;
    }
    // In this order: a ledger has many more attempts than a plan has jobs.
    let sql = format!(
        "SELECT {}, batch.name AS batch_name, batch.batch AS batch_value, max(attempt.id), count(DISTINCT job) AS jobs,
             count(*) AS attempts
         FROM wanted CROSS JOIN attempt ON normalized = wanted JOIN batch ON batch.id = attempt.batch
         WHERE state NOT IN ('void', 'rejected') GROUP BY normalized, attempt.batch",
        *ATTEMPT
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| {
        let batch = BatchKey { name: row.get("batch_name")?, batch: row.get("batch_value")? };
        Ok(BoughtElsewhere {
            batch,
            attempt: attempt(row, None)?,
            jobs: row.get("jobs")?,
            attempts: row.get("attempts")?,
        })
    })?;
    Ok(BoughtElsewhere::of(batch, rows.collect::<rusqlite::Result<Vec<_>>>()?))
}

/// The number of attempts elsewhere that may have paid for this normalized request, with the batch of the newest.
pub(super) fn paid_elsewhere(
    connection: &Connection,
    batch: &BatchKey,
    request: &Fingerprint,
) -> rusqlite::Result<(u32, Option<BatchKey>)> {
    let sql = "SELECT name, batch.batch, count(*) FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE normalized = ?1 AND state NOT IN ('void', 'rejected') GROUP BY attempt.batch ORDER BY max(attempt.id)";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([request.as_str()], |row| {
        Ok((BatchKey { name: row.get(0)?, batch: row.get(1)? }, row.get::<_, u32>(2)?))
    })?;
    let (mut paid, mut newest) = (0, None);
    for row in rows {
        let (other, attempts) = row?;
        if batch.may_repeat(&other) {
            (paid, newest) = (paid + attempts, Some(other));
        }
    }
    Ok((paid, newest))
}

/// Everything that was submitted since a moment in any batch, oldest first.
pub(super) fn submitted_since(connection: &Connection, since: Timestamp) -> rusqlite::Result<Vec<(BatchKey, Attempt)>> {
    let sql = format!(
        "SELECT {}, batch.name AS batch_name, batch.batch AS batch_value
         FROM attempt JOIN batch ON batch.id = attempt.batch WHERE intended_us >= ?1 ORDER BY attempt.id",
        *ATTEMPT
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([since.as_microsecond()], |row| {
        Ok((BatchKey { name: row.get("batch_name")?, batch: row.get("batch_value")? }, attempt(row, None)?))
    })?;
    rows.collect()
}

/// What is open in other batches of the same name.
pub(super) fn open_elsewhere(connection: &Connection, batch: &BatchKey) -> rusqlite::Result<Vec<OpenElsewhere>> {
    let sql = concat!(
        "SELECT batch.batch, sum(state IN ('queued', 'in_progress')), sum(state = 'in_doubt'),
             sum(state = 'intended'), sum(state = 'completed' AND file IS NULL), sum(iif(state = 'in_doubt', price_micros, 0)),
             sum(state = 'completed' AND exec_error IS NOT NULL)
         FROM attempt INDEXED BY attempt_unfinished JOIN batch ON batch.id = attempt.batch
         WHERE name = ?1 AND batch.batch <> ?2 AND ",
        unfinished!(),
        " GROUP BY batch.batch ORDER BY sum(state IN ('queued', 'in_progress', 'intended')) > 0 DESC, max(attempt.id) DESC"
    );
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![batch.name, batch.batch], |row| {
        Ok(OpenElsewhere {
            batch: BatchKey { name: batch.name.clone(), batch: row.get(0)? },
            outstanding: row.get(1)?,
            doubtful: row.get(2)?,
            unanswered: row.get(3)?,
            unfetched: row.get(4)?,
            at_risk: Usd::from_micros(row.get(5)?),
            unexecuted: row.get(6)?,
        })
    })?;
    rows.collect()
}

/// Whose task this is: the job and its batch.
pub(super) fn owner(connection: &Connection, task: &TaskId) -> rusqlite::Result<Option<(JobId, BatchKey)>> {
    let sql = format!(
        "SELECT {}, batch.name AS batch_name, batch.batch AS batch_value
         FROM attempt JOIN batch ON batch.id = attempt.batch WHERE task = ?1 OR alias = ?1 LIMIT 1",
        *ATTEMPT
    );
    let owner = connection.query_row(&sql, [task.as_str()], |row| {
        Ok((attempt(row, None)?.job, BatchKey { name: row.get("batch_name")?, batch: row.get("batch_value")? }))
    });
    owner.optional()
}
