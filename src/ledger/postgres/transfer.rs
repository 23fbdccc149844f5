//! All of a ledger in a database, read and written at once.

use std::collections::HashMap;

use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::rows::{self, read_attempt, restored, storable};
use super::transaction::Transaction;
use super::{batches, limits};
use crate::domain::BatchKey;
use crate::ledger::row::Row;
use crate::ledger::transfer::{CopyError, Dump};
use crate::ledger::writing::Changes;

/// How many attempts one statement writes.
const AT_ONCE: usize = 500;

impl From<PostgresError> for CopyError {
    fn from(error: PostgresError) -> Self {
        Self::Unavailable(error.into())
    }
}

/// The runners that live, if there are any.
pub(super) async fn at_it(transaction: &Transaction) -> Result<Option<String>, PostgresError> {
    // Nobody buys while this is held.
    transaction.query_typed("SELECT id FROM ledger WHERE id = 1 FOR UPDATE", &[]).await?;
    let sql = "SELECT string_agg(name, ', ') FROM runner WHERE expired_us IS NULL AND ended_us IS NULL";
    Ok(transaction.query_typed_one(sql, &[]).await?.try_get(0)?)
}

/// Reads everything.
pub(super) async fn take_all(transaction: &Transaction) -> Result<Dump, PostgresError> {
    let (mut places, mut keys) = (HashMap::new(), Vec::new());
    for row in transaction.query_typed("SELECT id, name, batch, retake FROM batch ORDER BY id", &[]).await? {
        places.insert(row.try_get::<_, i64>(0)?, keys.len());
        let retake = row.try_get::<_, Option<String>>(3)?.map(restored);
        keys.push((BatchKey { name: row.try_get(1)?, batch: row.try_get(2)? }, retake));
    }
    let place = |id: i64| places.get(&id).copied().unwrap_or_default();
    let mut attempts = Vec::new();
    for row in transaction.query_typed("SELECT id, record, batch FROM attempt ORDER BY id", &[]).await? {
        attempts.push((place(row.try_get(2)?), read_attempt(&row, 0, None)?));
    }
    let mut unsent = Vec::new();
    for row in transaction.query_typed("SELECT batch, job, reason, at_us FROM unsent", &[]).await? {
        unsent.push((place(row.try_get(0)?), row.try_get(1)?, restored(row.try_get(2)?), row.try_get(3)?));
    }
    let mut addresses = Vec::new();
    for row in transaction.query_typed("SELECT sha256, command, url, at_us FROM picture_address", &[]).await? {
        addresses.push((row.try_get(0)?, restored(row.try_get(1)?), restored(row.try_get(2)?), row.try_get(3)?));
    }
    Ok(Dump { frozen: None, batches: keys, attempts, unsent, addresses, limits: limits::read(transaction).await? })
}

/// Whether nothing was ever written into it.
pub(super) async fn is_empty(transaction: &Transaction) -> Result<bool, PostgresError> {
    transaction.query_typed("SELECT id FROM ledger WHERE id = 1 FOR UPDATE", &[]).await?;
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM attempt) AND NOT EXISTS (SELECT 1 FROM ledger_limit)
         AND NOT EXISTS (SELECT 1 FROM unsent)";
    Ok(transaction.query_typed_one(sql, &[]).await?.try_get(0)?)
}

/// Writes everything.
pub(super) async fn fill(transaction: &Transaction, dump: &Dump) -> Result<(), PostgresError> {
    let mut numbers = Vec::with_capacity(dump.batches.len());
    for (key, retake) in &dump.batches {
        let number = batches::ensure(transaction, key).await?;
        let retake = retake.as_deref().map(storable);
        let values: [(&(dyn ToSql + Sync), Type); 2] = [(&number, Type::INT8), (&retake, Type::TEXT)];
        transaction.execute_typed("UPDATE batch SET retake = $2 WHERE id = $1", &values).await?;
        numbers.push(number);
    }
    for some in dump.attempts.chunks(AT_ONCE) {
        let new: Vec<Row> = some.iter().map(|(place, attempt)| Row::copied(attempt.clone(), numbers[*place])).collect();
        let mut changes = Changes::default();
        for row in &new {
            changes.insert(row);
        }
        rows::write(transaction, &changes).await?;
    }
    for (place, job, reason, at) in &dump.unsent {
        let reason = storable(reason);
        let values: [(&(dyn ToSql + Sync), Type); 4] =
            [(&numbers[*place], Type::INT8), (job, Type::TEXT), (&reason, Type::TEXT), (at, Type::INT8)];
        transaction.execute_typed("INSERT INTO unsent VALUES ($1, $2, $3, $4)", &values).await?;
    }
    for (sha256, command, url, at) in &dump.addresses {
        let (command, url) = (storable(command), storable(url));
        let values: [(&(dyn ToSql + Sync), Type); 4] =
            [(sha256, Type::TEXT), (&command, Type::TEXT), (&url, Type::TEXT), (at, Type::INT8)];
        transaction.execute_typed("INSERT INTO picture_address VALUES ($1, $2, $3, $4)", &values).await?;
    }
    for limit in &dump.limits {
        limits::set(transaction, limit, true).await?;
    }
    transaction.execute_typed("UPDATE ledger SET frozen = $1 WHERE id = 1", &[(&dump.frozen, Type::TEXT)]).await?;
    Ok(())
}
