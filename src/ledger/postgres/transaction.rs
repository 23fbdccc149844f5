//! How each transaction begins. Everything that holds for it is said in it: behind a pooler, no two of them need meet the same
//! session.

use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::error::PostgresError;
use super::kind::Kind;

/// How long a statement may take, how long it may wait for another transaction, and how long a transaction may stand still, in
/// milliseconds. A runner that stands still must not keep the others waiting.
const STATEMENT_MS: u32 = 60_000;
const LOCK_MS: u32 = 20_000;
const STANDSTILL_MS: u32 = 15_000;

/// Begins transactions.
pub(super) struct Begin;

impl Begin {
    /// One that writes, and whose commit is on the disk before it is acknowledged.
    pub(super) async fn writing(client: &mut Client, kind: Kind) -> Result<Transaction<'_>, PostgresError> {
        let transaction = client.transaction().await?;
        transaction.batch_execute(&settings(kind, "on")).await?;
        Ok(transaction)
    }

    /// One that reads everything as it was at one moment.
    pub(super) async fn reading(client: &mut Client, kind: Kind) -> Result<Transaction<'_>, PostgresError> {
        let one_moment = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let transaction = one_moment.start().await?;
        transaction.batch_execute(&settings(kind, "on")).await?;
        Ok(transaction)
    }
}

fn settings(kind: Kind, synchronous: &str) -> String {
    format!(
        "SET LOCAL search_path = {}, pg_catalog; SET LOCAL synchronous_commit = {synchronous}; \
         SET LOCAL statement_timeout = {STATEMENT_MS}; SET LOCAL lock_timeout = {LOCK_MS}; \
         SET LOCAL idle_in_transaction_session_timeout = {STANDSTILL_MS}; SET LOCAL timezone = 'UTC'",
        kind.schema()
    )
}

/// The database's clock, in microseconds since 1970.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
