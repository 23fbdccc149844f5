//! All of a ledger in a database, read and written at once.

use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::rows::{self, key};
use super::transaction::Transaction;
use super::{batches, limits, read};
use crate::ledger::row::Row;
use crate::ledger::transfer::{CopyError, Dump};
use crate::ledger::writing::Changes;

/// The number of attempts in one statement.
const AT_ONCE: usize = 500;

impl From<PostgresError> for CopyError {
    fn from(error: PostgresError) -> Self {
        Self::Unavailable(error.into())
    }
}

/// The runners that live, if there are any.
pub(super) async fn at_it(transaction: &Transaction) -> Result<Option<String>, PostgresError> {
    // Blocks purchases while it is locked.
    transaction.query_typed("SELECT id FROM ledger WHERE id = 1 FOR UPDATE", &[]).await?;
    let sql = "SELECT string_agg(name, ', ') FROM runner WHERE expired_us IS NULL AND ended_us IS NULL";
    Ok(transaction.query_typed_one(sql, &[]).await?.try_get(0)?)
}

/// Reads everything.
pub(super) async fn take_all(transaction: &Transaction) -> Result<Dump, PostgresError> {
    let mut batches = Vec::new();
    for row in transaction.query_typed("SELECT name, batch FROM batch ORDER BY id", &[]).await? {
        let key = key(&row, 0)?;
        let history = read::history(transaction, &key).await?;
        batches.push((key, history));
    }
    Ok(Dump { frozen: None, batches, limits: limits::read(transaction).await? })
}

/// Returns whether nothing was ever written into it.
pub(super) async fn is_empty(transaction: &Transaction) -> Result<bool, PostgresError> {
    transaction.query_typed("SELECT id FROM ledger WHERE id = 1 FOR UPDATE", &[]).await?;
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM attempt) AND NOT EXISTS (SELECT 1 FROM ledger_limit)
         AND NOT EXISTS (SELECT 1 FROM unsent)";
    Ok(transaction.query_typed_one(sql, &[]).await?.try_get(0)?)
}

/// Writes everything.
pub(super) async fn fill(transaction: &Transaction, dump: Dump) -> Result<(), PostgresError> {
    for (key, history) in dump.batches {
        let number = batches::ensure(transaction, &key).await?;
        let (attempts, unsent, retake) = history.into_parts();
        let new: Vec<Row> = attempts.into_iter().map(|attempt| Row::copied(attempt, number)).collect();
        for some in new.chunks(AT_ONCE) {
            let mut changes = Changes::default();
            for row in some {
                changes.insert(row);
            }
            rows::write(transaction, &changes).await?;
        }
        for (job, reason) in &unsent {
            batches::note_unsent(transaction, number, job, reason).await?;
        }
        batches::keep_retake(transaction, number, retake.as_ref()).await?;
    }
    for limit in &dump.limits {
        limits::set(transaction, limit, true).await?;
    }
    transaction.execute_typed("UPDATE ledger SET frozen = $1 WHERE id = 1", &[(&dump.frozen, Type::TEXT)]).await?;
    Ok(())
}
