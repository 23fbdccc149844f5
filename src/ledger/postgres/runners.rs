//! The runners, for whoever looks.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::runner::micros;
use super::schema::HAS_SLOT;
use super::transaction::{NOW, Transaction};
use crate::domain::{AttemptState, BatchKey, RunnerSeen};

/// The live runners, and those that expired at most this long ago, in the order of their start.
pub(super) async fn seen(transaction: &Transaction, expired: Duration) -> Result<Vec<RunnerSeen>, PostgresError> {
    let sql = format!(
        "SELECT id, name, since_us, greatest({NOW} - heartbeat_us, 0), expired_us IS NOT NULL FROM runner
         WHERE ended_us IS NULL AND (expired_us IS NULL OR expired_us > {NOW} - $1) ORDER BY since_us, id"
    );
    let mut batches = batches(transaction).await?;
    let mut open = open(transaction).await?;
    let rows = transaction.query_typed(&sql, &[(&micros(expired), Type::INT8)]).await?;
    rows.iter()
        .map(|row| {
            let (id, since, silent): (i64, i64, i64) = (row.try_get(0)?, row.try_get(2)?, row.try_get(3)?);
            Ok(RunnerSeen {
                name: row.try_get(1)?,
                since: Timestamp::from_microsecond(since).unwrap_or(Timestamp::MIN),
                silent_for: Duration::from_micros(silent.unsigned_abs()),
                is_expired: row.try_get(4)?,
                batches: batches.remove(&id).unwrap_or_default(),
                open: open.remove(&id).unwrap_or_default(),
            })
        })
        .collect()
}

async fn batches(transaction: &Transaction) -> Result<HashMap<i64, Vec<BatchKey>>, PostgresError> {
    let sql = "SELECT runner, name, batch FROM batch WHERE runner IS NOT NULL ORDER BY name, batch";
    let mut batches: HashMap<i64, Vec<BatchKey>> = HashMap::new();
    for row in transaction.query_typed(sql, &[]).await? {
        let key = BatchKey { name: row.try_get(1)?, batch: row.try_get(2)? };
        batches.entry(row.try_get(0)?).or_default().push(key);
    }
    Ok(batches)
}

async fn open(transaction: &Transaction) -> Result<HashMap<i64, Vec<(AttemptState, u32)>>, PostgresError> {
    let sql = format!(
        "SELECT batch.runner, state, count(*) FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE {HAS_SLOT} AND batch.runner IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2"
    );
    let mut open: HashMap<i64, Vec<(AttemptState, u32)>> = HashMap::new();
    for row in transaction.query_typed(&sql, &[]).await? {
        let count = u32::try_from(row.try_get::<_, i64>(2)?).unwrap_or(u32::MAX);
        if let Some(state) = AttemptState::named(row.try_get(1)?) {
            open.entry(row.try_get(0)?).or_default().push((state, count));
        }
    }
    Ok(open)
}
