//! All of a ledger in a database, read and written at once.

use tokio::sync::mpsc::{Receiver, Sender};

use super::error::PostgresError;
use super::rows::{self, key};
use super::transaction::Transaction;
use super::{batches, limits, read};
use crate::ledger::row::Row;
use crate::ledger::transfer::{Contents, CopyError, Part};
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

/// A copy waits for its other side for as long as that takes.
const PATIENT: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

/// Sends everything, until no one receives it any more.
pub(super) async fn send_all(transaction: &Transaction, parts: &Sender<Part>) -> Result<(), PostgresError> {
    transaction.batch_execute(PATIENT).await?;
    for row in transaction.query_typed("SELECT name, batch FROM batch ORDER BY id", &[]).await? {
        let key = key(&row, 0)?;
        let history = read::history(transaction, &key).await?;
        if parts.send(Part::Batch(key, history)).await.is_err() {
            return Ok(());
        }
    }
    let _received = parts.send(Part::Limits(limits::read(transaction).await?)).await;
    Ok(())
}

/// Returns whether nothing was ever written into it.
pub(super) async fn is_empty(transaction: &Transaction) -> Result<bool, PostgresError> {
    transaction.query_typed("SELECT id FROM ledger WHERE id = 1 FOR UPDATE", &[]).await?;
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM attempt) AND NOT EXISTS (SELECT 1 FROM ledger_limit)
         AND NOT EXISTS (SELECT 1 FROM unsent)";
    Ok(transaction.query_typed_one(sql, &[]).await?.try_get(0)?)
}

/// Writes parts up to the last one. Returns nothing if it is missing.
pub(super) async fn fill(
    transaction: &Transaction,
    first: Part,
    mut parts: Receiver<Part>,
) -> Result<Option<Contents>, PostgresError> {
    transaction.batch_execute(PATIENT).await?;
    let (mut next, mut contents) = (Some(first), Contents::default());
    while let Some(part) = next {
        let (key, history) = match part {
            Part::Batch(key, history) => (key, history),
            Part::Limits(limits) => {
                for limit in &limits {
                    limits::set(transaction, limit, true).await?;
                }
                return Ok(Some(contents));
            }
        };
        contents.batches += 1;
        history.attempts().for_each(|attempt| contents.count(attempt));
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
        next = parts.recv().await;
    }
    Ok(None)
}
