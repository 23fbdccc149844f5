//! Questions about one batch, and about who bought what.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::rows::{key as batch_key, read_attempt, restored, storable};
use super::transaction::{NOW, Transaction, Value};
use crate::domain::{Attempt, BatchKey, Fingerprint, History, JobId, TaskId};
use crate::ledger::row::Unreadable;
use crate::ledger::rules::Named;
use crate::ledger::views::Submissions;
use crate::ledger::{BoughtElsewhere, OpenElsewhere};

/// The name and the batch, as a question begins.
fn key(batch: &BatchKey) -> [Value<'_>; 2] {
    [(&batch.name, Type::TEXT), (&batch.batch, Type::TEXT)]
}

fn job(text: &str) -> Result<JobId, PostgresError> {
    JobId::new(text).map_err(|_| PostgresError::Unreadable(Unreadable::value("job", text)))
}

/// The time by the database's clock.
pub(super) async fn now(transaction: &Transaction) -> Result<Timestamp, PostgresError> {
    let micros = transaction.query_typed_one(&format!("SELECT {NOW}"), &[]).await?.try_get(0)?;
    Ok(Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX))
}

/// Every attempt of a batch, oldest first.
pub(super) async fn history(transaction: &Transaction, batch: &BatchKey) -> Result<History, PostgresError> {
    let sql = "SELECT attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE name = $1 AND batch.batch = $2 ORDER BY attempt.id";
    let unsent =
        "SELECT job, reason FROM unsent JOIN batch ON batch.id = unsent.batch WHERE name = $1 AND batch.batch = $2";
    let retake = "SELECT retake FROM batch WHERE name = $1 AND batch = $2";
    let key = key(batch);
    let (rows, unsent, retake) = futures::try_join!(
        transaction.query_typed(sql, &key),
        transaction.query_typed(unsent, &key),
        transaction.query_typed_opt(retake, &key)
    )?;
    let mut attempts: Vec<Attempt> = Vec::with_capacity(rows.len());
    for row in rows {
        let attempt = read_attempt(&row, 0, attempts.last())?;
        attempts.push(attempt);
    }
    let unsent = unsent.iter().map(|row| Ok((job(row.try_get(0)?)?, restored(row.try_get(1)?))));
    let unsent = unsent.collect::<Result<BTreeMap<_, _>, PostgresError>>()?;
    let retake = retake.map(|row| row.try_get::<_, Option<String>>(0)).transpose()?.flatten();
    let unreadable = |text: &str| PostgresError::Unreadable(Unreadable::value("retake", text));
    let retake = retake.map(|text| serde_json::from_str(&restored(text.clone())).map_err(|_| unreadable(&text)));
    Ok(History::new(attempts).with_unsent(unsent).with_retake(retake.transpose()?))
}

/// The submissions of all batches that a question is about, oldest first.
pub(super) async fn submissions(
    transaction: &Transaction,
    is_asked: &impl Fn(&Attempt) -> bool,
) -> Result<Vec<(BatchKey, Attempt)>, PostgresError> {
    let sql = "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
         ORDER BY attempt.id";
    let none: [(&str, Type); 0] = [];
    let (mut rows, mut submissions) =
        (pin!(transaction.query_typed_raw(sql, none).await?), Submissions::about(is_asked));
    while let Some(row) = rows.try_next().await? {
        submissions.add(batch_key(&row, 0)?, read_attempt(&row, 2, None)?);
    }
    Ok(submissions.found)
}

/// The newest attempts elsewhere that asked for one of these normalized requests, unless they certainly cost nothing.
pub(super) async fn bought_elsewhere(
    transaction: &Transaction,
    batch: &BatchKey,
    requests: &impl Fn() -> Vec<Fingerprint>,
) -> Result<Vec<BoughtElsewhere>, PostgresError> {
    let batches = transaction.query_typed("SELECT name, batch FROM batch", &[]).await?;
    let others = batches.iter().map(|row| batch_key(row, 0)).collect::<Result<Vec<_>, _>>()?;
    if !others.iter().any(|other| batch.may_repeat(other)) {
        return Ok(Vec::new());
    }
    let sql = "SELECT name, batch.batch, attempt.id, record, jobs, attempts FROM (
             SELECT max(id) AS newest, count(DISTINCT job) AS jobs, count(*) AS attempts
             FROM attempt WHERE normalized = ANY($1) AND state NOT IN ('void', 'rejected') GROUP BY batch, normalized) AS bought
         JOIN attempt ON attempt.id = newest JOIN batch ON batch.id = attempt.batch";
    let requests = requests();
    let requests: Vec<&str> = requests.iter().map(Fingerprint::as_str).collect();
    let rows = transaction.query_typed(sql, &[(&requests, Type::TEXT_ARRAY)]).await?;
    let by_batch = rows.iter().map(|row| {
        let count = |place| Ok::<_, PostgresError>(u32::try_from(row.try_get::<_, i64>(place)?).unwrap_or(u32::MAX));
        let attempt = read_attempt(row, 2, None)?;
        Ok(BoughtElsewhere { batch: batch_key(row, 0)?, attempt, jobs: count(4)?, attempts: count(5)? })
    });
    Ok(BoughtElsewhere::of(batch, by_batch.collect::<Result<Vec<_>, PostgresError>>()?))
}

/// The open work of other batches of the same name.
pub(super) async fn open_elsewhere(
    transaction: &Transaction,
    batch: &BatchKey,
) -> Result<Vec<OpenElsewhere>, PostgresError> {
    let sql = "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE name = $1 AND batch.batch <> $2 AND is_unfinished ORDER BY attempt.id";
    let rows = transaction.query_typed(sql, &key(batch)).await?;
    let rows = rows.iter().map(|row| Ok((batch_key(row, 0)?, read_attempt(row, 2, None)?)));
    Ok(OpenElsewhere::of(rows.collect::<Result<Vec<_>, PostgresError>>()?))
}

/// The rows whose task has one of these names. The indexes are over digests, because a name may be longer than an index takes. Each line
/// repeats the condition of one index: otherwise PostgreSQL reads every row.
const IS_NAMED: &str = "(md5(task) = ANY(ARRAY(SELECT md5(name) FROM unnest($1) AS name)) AND task = ANY($1) AND task IS NOT NULL AND NOT was_forgotten
    OR md5(task) = ANY(ARRAY(SELECT md5(name) FROM unnest($1) AS name)) AND task = ANY($1) AND task IS NOT NULL AND was_forgotten
    OR md5(alias) = ANY(ARRAY(SELECT md5(name) FROM unnest($1) AS name)) AND alias = ANY($1) AND alias IS NOT NULL)";

/// The attempts whose task has one of these names.
pub(super) async fn named(transaction: &Transaction, names: &[&TaskId]) -> Result<Vec<Named>, PostgresError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch WHERE {IS_NAMED}"
    );
    let names: Vec<String> = names.iter().map(|name| storable(name.as_str())).collect();
    let rows = transaction.query_typed(&sql, &[(&names, Type::TEXT_ARRAY)]).await?;
    let named = |row| Ok(Named { batch: batch_key(row, 0)?, attempt: read_attempt(row, 2, None)? });
    rows.iter().map(named).collect()
}
