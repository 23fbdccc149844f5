//! How each transaction begins. Everything that holds for it is said in it: behind a pooler, no two of them need meet the same
//! session.

use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::error::PostgresError;
use super::kind::Kind;
use crate::ledger::times::Times;

/// Begins transactions.
pub(super) struct Begin;

impl Begin {
    /// One that writes, and whose commit is on the disk before it is acknowledged.
    pub(super) async fn writing(client: &mut Client, kind: Kind) -> Result<Transaction<'_>, PostgresError> {
        // Whatever the server's own default is: each statement sees what was committed before it, behind the lock that it waits for.
        let transaction = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
        transaction.batch_execute(&settings(kind)).await?;
        Ok(transaction)
    }

    /// One that reads everything as it was at one moment.
    pub(super) async fn reading(client: &mut Client, kind: Kind) -> Result<Transaction<'_>, PostgresError> {
        let one_moment = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let transaction = one_moment.start().await?;
        transaction.batch_execute(&settings(kind)).await?;
        Ok(transaction)
    }
}

fn settings(kind: Kind) -> String {
    let Times { answer, lock, standstill, .. } = Times::usual();
    let (statement_ms, lock_ms, standstill_ms) = (answer.as_millis(), lock.as_millis(), standstill.as_millis());
    format!(
        "SET LOCAL search_path = {}, pg_catalog; SET LOCAL synchronous_commit = on; \
         SET LOCAL statement_timeout = {statement_ms}; SET LOCAL lock_timeout = {lock_ms}; \
         SET LOCAL idle_in_transaction_session_timeout = {standstill_ms}; SET LOCAL timezone = 'UTC'; SET LOCAL jit = off",
        kind.schema()
    )
}

/// The database's clock, in microseconds since 1970.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
