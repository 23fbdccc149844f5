//! Batches: who is at one, what they agreed on, and who polls a task.

use std::collections::{BTreeMap, HashSet};

use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::runner::Runner;
use super::schema::{HAS_SLOT, IS_ACTIVE};
use super::transaction::{Transaction, Typed};
use crate::domain::{AttemptId, BatchKey, Digest};
use crate::ledger::{Joining, LedgerError, OtherRunners};

/// A batch that is held, by the number that orders name it with.
#[derive(Clone, Debug)]
pub(super) struct RunnerBatch {
    pub(super) key: BatchKey,
    /// Its number in the database, which another server may give anew.
    pub(super) number: i64,
    pub(super) is_buying: bool,
    /// The newest attempt of which it is known who made it.
    pub(super) seen: i64,
}

/// The batches that this runner has locked, by the numbers that commands name them with.
pub(super) type LockedBatches = BTreeMap<usize, RunnerBatch>;

/// Runners of a batch that live.
const LIVE: &str = "SELECT runner_batch.runner FROM runner_batch JOIN runner ON runner.id = runner_batch.runner
    WHERE expired_us IS NULL AND ended_us IS NULL";

/// Records that a runner runs a batch.
pub(super) async fn begin(transaction: &Transaction, runner: &Runner, work: &RunnerBatch) -> Result<(), PostgresError> {
    let sql = "INSERT INTO runner_batch VALUES ($1, $2, $3) ON CONFLICT (runner, batch) DO UPDATE SET is_buying = $3";
    let values: [Typed<'_>; 3] = [(&runner.id, Type::INT8), (&work.number, Type::INT8), (&work.is_buying, Type::BOOL)];
    transaction.execute_typed(sql, &values).await?;
    Ok(())
}

/// Records that it runs the batch no more, and waits for no response.
pub(super) async fn end(transaction: &Transaction, runner: &Runner, batch: i64) -> Result<(), PostgresError> {
    let sql = "DELETE FROM runner_batch WHERE runner = $1 AND batch = $2";
    transaction.execute_typed(sql, &[(&runner.id, Type::INT8), (&batch, Type::INT8)]).await?;
    Ok(())
}

/// Begins to buy by a plan, with all who buy by the same; says how many they are. The first of them says which plan it is.
pub(super) async fn join(
    transaction: &Transaction,
    runner: &Runner,
    batch: i64,
    joining: &Joining,
) -> Result<Result<u32, LedgerError>, PostgresError> {
    let others =
        format!("SELECT count(*) FROM ({LIVE} AND batch = $1 AND runner_batch.runner <> $2 AND is_buying) AS others");
    let key: [Typed<'_>; 2] = [(&batch, Type::INT8), (&runner.id, Type::INT8)];
    let account = &joining.account;
    // Neither of the two could poll the other's tasks.
    let foreign = format!(
        "SELECT name FROM runner JOIN runner_batch ON runner_batch.runner = runner.id WHERE batch = $1 AND runner.id <> $2 AND is_buying
             AND runner.id IN ({LIVE}) AND (service, key) <> ($3, $4) LIMIT 1"
    );
    let (service, api_key) = (&*account.service, &*account.key);
    let values: [Typed<'_>; 4] =
        [(&batch, Type::INT8), (&runner.id, Type::INT8), (&service, Type::TEXT), (&api_key, Type::TEXT)];
    let (agreed, others, foreign) = futures::join!(
        transaction.query_typed_one("SELECT plan FROM batch WHERE id = $1 FOR UPDATE", &key[..1]),
        transaction.query_typed_one(&others, &key),
        transaction.query_typed_opt(&foreign, &values),
    );
    let (agreed, others): (Option<String>, i64) = (agreed?.try_get(0)?, others?.try_get(0)?);
    if let Some(row) = foreign?.filter(|_| !joining.is_same_account) {
        return Ok(Err(LedgerError::OtherAccount { runner: row.try_get(0)? }));
    }
    let own = joining.digest.as_str();
    if others > 0 && agreed.as_deref() != Some(own) {
        return Ok(Err(LedgerError::OtherPlan));
    }
    // A run begins with its first runner.
    let begin = "UPDATE batch SET plan = $2, run_micros = 0,
         began = coalesce((SELECT max(id) FROM attempt WHERE attempt.batch = $1), 0) WHERE id = $1 AND $3 = 0";
    let begin_values: [Typed<'_>; 3] = [(&batch, Type::INT8), (&own, Type::TEXT), (&others, Type::INT8)];
    let join = "UPDATE runner_batch SET is_buying = true, service = $3, key = $4 WHERE batch = $1 AND runner = $2";
    let want = "UPDATE runner SET concurrency = greatest(concurrency, $2) WHERE id = $1";
    let want_values: [Typed<'_>; 2] = [(&runner.id, Type::INT8), (&joining.concurrency, Type::INT4)];
    let (begun, joined, wanted) = futures::join!(
        transaction.execute_typed(begin, &begin_values),
        transaction.execute_typed(join, &values),
        transaction.execute_typed(want, &want_values),
    );
    begun.and(joined).and(wanted)?;
    Ok(Ok(u32::try_from(others).unwrap_or(u32::MAX)))
}

/// Claims those of these tasks that have no live runner: active ones, and completed ones whose video was never downloaded.
pub(super) async fn take_over(
    transaction: &Transaction,
    runner: &Runner,
    attempts: &[AttemptId],
) -> Result<HashSet<AttemptId>, PostgresError> {
    let sql = format!(
        "UPDATE attempt SET assigned_runner = $1, version = version + 1 WHERE id IN (SELECT id FROM attempt WHERE id = ANY($2) ORDER BY id FOR UPDATE)
             AND ({IS_ACTIVE} OR needs_download)
             AND (assigned_runner IS NULL OR assigned_runner <> $1 AND assigned_runner NOT IN ({LIVE} AND runner_batch.batch = attempt.batch)) RETURNING id"
    );
    let ids: Vec<i64> = attempts.iter().map(|id| id.0).collect();
    let rows = transaction.query_typed(&sql, &[(&runner.id, Type::INT8), (&ids, Type::INT8_ARRAY)]).await?;
    rows.iter().map(|row| Ok(AttemptId(row.try_get(0)?))).collect()
}

/// The work of other runners in a batch.
pub(super) async fn others(
    transaction: &Transaction,
    runner: &Runner,
    batch: i64,
    videos: bool,
) -> Result<OtherRunners, PostgresError> {
    let sql = format!(
        "WITH alive AS ({LIVE} AND batch = $1 AND runner_batch.runner <> $2)
         SELECT (SELECT plan FROM batch WHERE id = $1 AND EXISTS
                 (SELECT 1 FROM alive JOIN runner_batch USING (runner) WHERE runner_batch.batch = $1 AND is_buying)),
             (SELECT count(*) FROM alive),
             count(*) FILTER (WHERE NOT needs_download AND assigned_runner IN (SELECT runner FROM alive)),
             count(*) FILTER (WHERE state <> 'intended' AND coalesce(assigned_runner, 0) <> $2
                 AND NOT EXISTS (SELECT 1 FROM alive WHERE alive.runner = assigned_runner))
         FROM attempt WHERE batch = $1 AND ({HAS_SLOT} OR $3 AND needs_download)"
    );
    let values: [Typed<'_>; 3] = [(&batch, Type::INT8), (&runner.id, Type::INT8), (&videos, Type::BOOL)];
    let row = transaction.query_typed_one(&sql, &values).await?;
    let count = |place| Ok::<_, PostgresError>(u32::try_from(row.try_get::<_, i64>(place)?).unwrap_or(u32::MAX));
    let plan = row.try_get::<_, Option<&str>>(0)?.and_then(Digest::parse);
    Ok(OtherRunners { plan, alive: count(1)?, assigned: count(2)?, orphans: count(3)? })
}
