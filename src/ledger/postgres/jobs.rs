//! What is written of jobs, besides their attempts: why one was not sent, new ids, and another account.

use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::rows::storable;
use super::transaction::{NOW, Transaction};
use crate::domain::{Account, JobId, Move, UnfinishedRetake, new_ids};
use crate::ledger::LedgerError;
use crate::ledger::stored::Unreadable;

/// Keeps why a job was not sent, in the place of what was said before.
pub(super) async fn note_unsent(
    transaction: &Transaction<'_>,
    batch: i64,
    job: &JobId,
    reason: &str,
) -> Result<(), PostgresError> {
    let sql = format!(
        "INSERT INTO unsent VALUES ($1, $2, $3, {NOW})
         ON CONFLICT (batch, job) DO UPDATE SET reason = excluded.reason, at_us = excluded.at_us"
    );
    let reason = storable(reason);
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&batch, Type::INT8), (&job.as_str(), Type::TEXT), (&reason, Type::TEXT)];
    transaction.execute_typed(&sql, &values).await?;
    Ok(())
}

/// Remembers a retake that has begun, or forgets it because its run has ended.
pub(super) async fn keep_retake(
    transaction: &Transaction<'_>,
    batch: i64,
    retake: Option<&UnfinishedRetake>,
) -> Result<(), PostgresError> {
    let text = retake.map(|retake| storable(&serde_json::json!(retake).to_string()));
    let values: [(&(dyn ToSql + Sync), Type); 2] = [(&batch, Type::INT8), (&text, Type::TEXT)];
    transaction.execute_typed("UPDATE batch SET retake = $2 WHERE id = $1", &values).await?;
    Ok(())
}

/// Gives what was bought under old ids to the new ones: all of them, or none.
pub(super) async fn move_all(
    transaction: &Transaction<'_>,
    batch: i64,
    moves: &[Move],
) -> Result<Result<(), LedgerError>, PostgresError> {
    // Nothing may be bought of it meanwhile.
    transaction.query_typed("SELECT id FROM ledger WHERE id = 1 FOR UPDATE", &[]).await?;
    let sql = "SELECT job, bool_or(state NOT IN ('void', 'rejected')) FROM attempt WHERE batch = $1 GROUP BY job";
    let mut submitted = Vec::new();
    for row in transaction.query_typed(sql, &[(&batch, Type::INT8)]).await? {
        let job: &str = row.try_get(0)?;
        let id = JobId::new(job).map_err(|_| PostgresError::Unreadable(Unreadable::sum("job", job)))?;
        submitted.push((id, row.try_get::<_, bool>(1)?));
    }
    if let Err(moved_onto) = new_ids(submitted.iter().map(|(id, is_bought)| (id, *is_bought)), moves) {
        return Ok(Err(moved_onto.into()));
    }
    let sql = "UPDATE attempt SET job = $3, bought_as = nullif(coalesce(bought_as, job), $3), version = version + 1
         WHERE job = $2 AND batch = $1";
    for Move { from, to } in moves {
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&batch, Type::INT8), (&from.as_str(), Type::TEXT), (&to.as_str(), Type::TEXT)];
        transaction.execute_typed(sql, &values).await?;
    }
    Ok(Ok(()))
}

/// Gives the tasks of the batch that can still be asked about to another account.
pub(super) async fn adopt(transaction: &Transaction<'_>, batch: i64, account: &Account) -> Result<(), PostgresError> {
    let sql = "UPDATE attempt SET service = $2, key = $3, version = version + 1
         WHERE state IN ('queued', 'in_progress', 'in_doubt', 'completed') AND batch = $1 AND (service, key) <> ($2, $3)";
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&batch, Type::INT8), (&&*account.service, Type::TEXT), (&&*account.key, Type::TEXT)];
    transaction.execute_typed(sql, &values).await?;
    Ok(())
}
