//! Questions about one batch, and about who bought what.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::rows::{read_row, restored, storable};
use super::transaction::{NOW, Transaction};
use crate::domain::{Attempt, AttemptState, BatchKey, Fingerprint, History, JobId, TaskId, Usd};
use crate::ledger::stored::{Unreadable, unfinished};
use crate::ledger::{BoughtElsewhere, OpenElsewhere};

type Value<'a> = (&'a (dyn ToSql + Sync), Type);

/// The name and the batch, as a question begins.
fn key(batch: &BatchKey) -> [Value<'_>; 2] {
    [(&batch.name, Type::TEXT), (&batch.batch, Type::TEXT)]
}

fn job(text: &str) -> Result<JobId, PostgresError> {
    JobId::new(text).map_err(|_| PostgresError::Unreadable(Unreadable::sum("job", text)))
}

/// What time it is by the database's clock.
pub(super) async fn now(transaction: &Transaction<'_>) -> Result<Timestamp, PostgresError> {
    let micros = transaction.query_typed_one(&format!("SELECT {NOW}"), &[]).await?.try_get(0)?;
    Ok(Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX))
}

/// Every attempt of a batch, oldest first.
pub(super) async fn history(transaction: &Transaction<'_>, batch: &BatchKey) -> Result<History, PostgresError> {
    let sql = "SELECT row_to_json(attempt)::text FROM attempt JOIN batch ON batch.id = attempt.batch
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
        let mut attempt = read_row(row.try_get(0)?)?.attempt()?;
        // Most belong to the account of the one before, and share its name.
        if let Some(before) = attempts.last()
            && before.account == attempt.account
        {
            attempt.account = before.account.clone();
        }
        attempts.push(attempt);
    }
    let unsent = unsent.iter().map(|row| Ok((job(row.try_get(0)?)?, restored(row.try_get(1)?))));
    let unsent = unsent.collect::<Result<BTreeMap<_, _>, PostgresError>>()?;
    let retake = retake.map(|row| row.try_get::<_, Option<String>>(0)).transpose()?.flatten();
    let unreadable = |text: &str| PostgresError::Unreadable(Unreadable::sum("retake", text));
    let retake = retake.map(|text| serde_json::from_str(&restored(text.clone())).map_err(|_| unreadable(&text)));
    Ok(History::new(attempts).with_unsent(unsent).with_retake(retake.transpose()?))
}

/// The job and the state of each attempt of a batch, oldest first.
pub(super) async fn states(
    transaction: &Transaction<'_>,
    batch: &BatchKey,
) -> Result<Vec<(JobId, AttemptState)>, PostgresError> {
    let sql = "SELECT job, state FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE name = $1 AND batch.batch = $2 ORDER BY attempt.id";
    let rows = transaction.query_typed(sql, &key(batch)).await?;
    let state = |name: &str| AttemptState::named(name).ok_or_else(|| Unreadable::sum("state", name));
    rows.iter().map(|row| Ok((job(row.try_get(0)?)?, state(row.try_get(1)?)?))).collect()
}

/// Everything that was submitted since a moment in any batch, oldest first.
pub(super) async fn submitted_since(
    transaction: &Transaction<'_>,
    since: Timestamp,
) -> Result<Vec<(BatchKey, Attempt)>, PostgresError> {
    let sql = "SELECT name, batch.batch, row_to_json(attempt)::text FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE intended_us >= $1 ORDER BY attempt.id";
    let rows = transaction.query_typed(sql, &[(&since.as_microsecond(), Type::INT8)]).await?;
    rows.iter().map(|row| Ok((batch_key(row)?, read_row(row.try_get(2)?)?.attempt()?))).collect()
}

fn batch_key(row: &tokio_postgres::Row) -> Result<BatchKey, PostgresError> {
    Ok(BatchKey { name: row.try_get(0)?, batch: row.try_get(1)? })
}

/// The newest attempts elsewhere that asked for one of these normalized requests, unless they certainly cost nothing.
pub(super) async fn bought_elsewhere(
    transaction: &Transaction<'_>,
    batch: &BatchKey,
    requests: &impl Fn() -> Vec<Fingerprint>,
) -> Result<Vec<BoughtElsewhere>, PostgresError> {
    let batches = transaction.query_typed("SELECT name, batch FROM batch", &[]).await?;
    let others = batches.iter().map(batch_key).collect::<Result<Vec<_>, _>>()?;
    if !others.iter().any(|other| batch.may_repeat(other)) {
        return Ok(Vec::new());
    }
    let sql = "SELECT name, batch.batch, newest, jobs, attempts FROM (
             SELECT attempt.batch AS of, (array_agg(row_to_json(attempt)::text ORDER BY id DESC))[1] AS newest,
                 count(DISTINCT job) AS jobs, count(*) AS attempts
             FROM attempt WHERE normalized = ANY($1) AND state NOT IN ('void', 'rejected')
             GROUP BY attempt.batch, normalized) AS bought
         JOIN batch ON batch.id = of";
    let requests = requests();
    let requests: Vec<&str> = requests.iter().map(Fingerprint::as_str).collect();
    let rows = transaction.query_typed(sql, &[(&requests, Type::TEXT_ARRAY)]).await?;
    let by_batch = rows.iter().map(|row| {
        let count = |place| Ok::<_, PostgresError>(u32::try_from(row.try_get::<_, i64>(place)?).unwrap_or(u32::MAX));
        let attempt = read_row(row.try_get(2)?)?.attempt()?;
        Ok(BoughtElsewhere { batch: batch_key(row)?, attempt, jobs: count(3)?, attempts: count(4)? })
    });
    Ok(BoughtElsewhere::of(batch, by_batch.collect::<Result<Vec<_>, PostgresError>>()?))
}

/// What is open in other batches of the same name.
pub(super) async fn open_elsewhere(
    transaction: &Transaction<'_>,
    batch: &BatchKey,
) -> Result<Vec<OpenElsewhere>, PostgresError> {
    let sql = concat!(
        "SELECT name, batch.batch, count(*) FILTER (WHERE state IN ('queued', 'in_progress')),
             count(*) FILTER (WHERE state = 'in_doubt'), count(*) FILTER (WHERE state = 'intended'),
             count(*) FILTER (WHERE state = 'completed' AND file IS NULL),
             (coalesce(sum(price_micros) FILTER (WHERE state = 'in_doubt'), 0))::bigint,
             count(*) FILTER (WHERE state = 'completed' AND exec_error IS NOT NULL)
         FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE name = $1 AND batch.batch <> $2 AND ",
        unfinished!(),
        " GROUP BY name, batch.batch
         ORDER BY count(*) FILTER (WHERE state IN ('queued', 'in_progress', 'intended')) > 0 DESC, max(attempt.id) DESC"
    );
    let rows = transaction.query_typed(sql, &key(batch)).await?;
    rows.iter()
        .map(|row| {
            let count =
                |place| Ok::<_, PostgresError>(u32::try_from(row.try_get::<_, i64>(place)?).unwrap_or(u32::MAX));
            Ok(OpenElsewhere {
                batch: batch_key(row)?,
                outstanding: count(2)?,
                doubtful: count(3)?,
                unanswered: count(4)?,
                unfetched: count(5)?,
                at_risk: Usd::from_micros(row.try_get(6)?),
                unexecuted: count(7)?,
            })
        })
        .collect()
}

/// The rows whose task has one of these names. The indexes are over digests, because a name may be longer than an index takes. Each line
/// repeats the condition of one index: otherwise PostgreSQL reads every row.
const IS_NAMED: &str = "(md5(task) = ANY(ARRAY(SELECT md5(name) FROM unnest($1) AS name)) AND task = ANY($1) AND task IS NOT NULL AND NOT was_forgotten
    OR md5(task) = ANY(ARRAY(SELECT md5(name) FROM unnest($1) AS name)) AND task = ANY($1) AND task IS NOT NULL AND was_forgotten
    OR md5(alias) = ANY(ARRAY(SELECT md5(name) FROM unnest($1) AS name)) AND alias = ANY($1) AND alias IS NOT NULL)";

/// Whose task this is: the job and its batch.
pub(super) async fn owner(
    transaction: &Transaction<'_>,
    task: &TaskId,
) -> Result<Option<(JobId, BatchKey)>, PostgresError> {
    let sql = format!(
        "SELECT name, batch.batch, job FROM attempt JOIN batch ON batch.id = attempt.batch WHERE {IS_NAMED} LIMIT 1"
    );
    let names = vec![storable(task.as_str())];
    let row = transaction.query_typed_opt(&sql, &[(&names, Type::TEXT_ARRAY)]).await?;
    row.map(|row| Ok((job(row.try_get(2)?)?, batch_key(&row)?))).transpose()
}

/// The attempts at the same services, besides these, whose task has one of the names: of each name, whose it is.
pub(super) async fn owners_of_names(
    transaction: &Transaction<'_>,
    names: &[String],
) -> Result<Vec<Named>, PostgresError> {
    let sql = format!(
        "SELECT name, batch.batch, job, attempt.id, service, task, alias
         FROM attempt JOIN batch ON batch.id = attempt.batch WHERE {IS_NAMED}"
    );
    let rows = transaction.query_typed(&sql, &[(&names, Type::TEXT_ARRAY)]).await?;
    rows.iter()
        .map(|row| {
            let names: [Option<String>; 2] = [row.try_get(5)?, row.try_get(6)?];
            Ok(Named {
                batch: batch_key(row)?,
                job: row.try_get(2)?,
                attempt: row.try_get(3)?,
                service: row.try_get(4)?,
                names: names.into_iter().flatten().map(restored).collect(),
            })
        })
        .collect()
}

/// An attempt, and the names of its task.
pub(super) struct Named {
    pub(super) batch: BatchKey,
    pub(super) job: String,
    pub(super) attempt: i64,
    pub(super) service: String,
    pub(super) names: Vec<String>,
}
