//! Batches: which runner has one.
//!
//! The lock of a batch is a column of its row, and as good as the lease of the runner that it names. A lock of a session would end with a
//! connection, while its runner may still send.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::runner::Runner;
use super::schema::LIVE;
use super::transaction::{NOW, Transaction, Typed};
use crate::domain::BatchKey;

/// A locked batch.
#[derive(Clone, Debug)]
pub(super) struct RunnerBatch {
    pub(super) key: BatchKey,
    /// The number in the database, which differs on another server.
    pub(super) number: i64,
}

/// The batches that this runner has locked, by the numbers of the commands.
pub(super) type LockedBatches = BTreeMap<usize, RunnerBatch>;

/// Locks a batch for a runner, unless a live one has it. Returns the description of that one.
pub(super) async fn lock(
    transaction: &Transaction,
    runner: &Runner,
    batch: i64,
) -> Result<Option<String>, PostgresError> {
    let values: [Typed<'_>; 2] = [(&batch, Type::INT8), (&runner.id, Type::INT8)];
    // Behind the lock of the row, the next statement sees the runner that a commit before this one named.
    let row = transaction.query_typed("SELECT id FROM batch WHERE id = $1 FOR NO KEY UPDATE", &values[..1]);
    let take = format!("UPDATE batch SET runner = $2 WHERE id = $1 AND (runner IS NULL OR runner NOT IN ({LIVE}))");
    let holder = format!(
        "SELECT runner.name, ({NOW} - heartbeat_us) / 1000000 FROM batch JOIN runner ON runner.id = batch.runner
         WHERE batch.id = $1 AND runner.id <> $2"
    );
    let (row, taken, holder) =
        futures::join!(row, transaction.execute_typed(&take, &values), transaction.query_typed_opt(&holder, &values));
    row.map(drop).and(taken.map(drop))?;
    let described = |row: tokio_postgres::Row| {
        let (name, silent_s): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok(format!("{name}, last heartbeat {} s ago", silent_s.max(0)))
    };
    holder?.map(described).transpose()
}

/// Releases a batch of a runner.
pub(super) async fn release(transaction: &Transaction, runner: &Runner, batch: i64) -> Result<(), PostgresError> {
    let release = "UPDATE batch SET runner = NULL WHERE id = $1 AND runner = $2";
    transaction.execute_typed(release, &[(&batch, Type::INT8), (&runner.id, Type::INT8)]).await?;
    Ok(())
}

/// Returns whether another runner has one of these batches, or none has it.
pub(super) async fn is_any_lost(
    transaction: &Transaction,
    runner: &Runner,
    batches: &[i64],
) -> Result<bool, PostgresError> {
    let lost = "SELECT EXISTS (SELECT 1 FROM batch WHERE id = ANY($1) AND runner IS DISTINCT FROM $2)";
    let values: [Typed<'_>; 2] = [(&batches, Type::INT8_ARRAY), (&runner.id, Type::INT8)];
    Ok(transaction.query_typed_one(lost, &values).await?.try_get(0)?)
}
