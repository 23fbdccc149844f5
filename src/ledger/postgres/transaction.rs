//! Transactions whose statements travel together.
//!
//! Far from the database, the number of round trips decides how long a write takes, and how long it keeps others waiting. What needs no
//! earlier answer is joined: the first poll of a statement sends it, so `join!` sends its statements in order, and awaits all answers. Faults are
//! checked in that order, too, because what follows one only says that the transaction is aborted. Everything that holds for a transaction is said
//! as it begins: behind a pooler, no two of them need meet the same session.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use crate::ledger::limits::Times;
use crate::ledger::value::Kind;

/// The database's clock, in microseconds since 1970.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Blocks purchases until the end of the transaction.
pub(super) const LOCK: &str = "SELECT id FROM ledger WHERE id = 1 FOR UPDATE";

/// A value of a statement, with its type: the server is not asked for it.
pub(super) type Typed<'v> = (&'v (dyn ToSql + Sync), Type);

/// A transaction. Dropped, it is rolled back.
pub(in crate::ledger) struct Transaction {
    client: Arc<Client>,
    /// The statements that begin it. If they fail, the server refuses all that was sent behind them.
    pub(super) beginning: String,
    /// Statements with a value each, which travel with the commit.
    last: Mutex<Vec<(Cow<'static, str>, String)>>,
    is_over: bool,
}

impl Transaction {
    /// A transaction that writes, once its `beginning` is sent. Its commit is durable before it is acknowledged.
    pub(super) fn that_writes(client: Arc<Client>, kind: Kind) -> Self {
        // Independent of the server's default: each statement sees the commits before it, behind the lock that it waits
        // for.
        Self::new(client, "READ COMMITTED", kind)
    }

    /// A transaction that writes, and whose beginning travels with its first statement.
    pub(super) fn writing(client: Arc<Client>, kind: Kind) -> Self {
        Self::that_writes(client, kind).begun()
    }

    /// A transaction that reads everything as it was at one moment, and whose beginning travels with its first question.
    pub(super) fn reading(client: Arc<Client>, kind: Kind) -> Self {
        Self::new(client, "REPEATABLE READ, READ ONLY", kind).begun()
    }

    fn begun(self) -> Self {
        // The first poll sends it. If it fails, so does all that follows.
        drop(self.client.batch_execute(&self.beginning).now_or_never());
        self
    }

    fn new(client: Arc<Client>, mode: &str, kind: Kind) -> Self {
        let Times { answer, lock, standstill, .. } = Times::usual();
        let (statement_ms, lock_ms, standstill_ms) = (answer.as_millis(), lock.as_millis(), standstill.as_millis());
        let beginning = format!(
            "BEGIN ISOLATION LEVEL {mode}; SET LOCAL search_path = {}, pg_catalog; SET LOCAL synchronous_commit = on; \
             SET LOCAL statement_timeout = {statement_ms}; SET LOCAL lock_timeout = {lock_ms}; \
             SET LOCAL idle_in_transaction_session_timeout = {standstill_ms}; SET LOCAL timezone = 'UTC'; SET LOCAL jit = off",
            kind.schema()
        );
        Self { client, beginning, last: Mutex::default(), is_over: false }
    }

    /// Executes a statement with one text, at the latest together with the commit.
    pub(super) fn execute_last(&self, sql: impl Into<Cow<'static, str>>, text: String) {
        self.last.lock().push((sql.into(), text));
    }

    /// Executes what is left to do, and commits, in one round trip. If a statement fails, the server rolls back instead.
    pub(super) async fn commit(mut self) -> Result<(), PostgresError> {
        self.is_over = true;
        // The answer to the commit is awaited in any case: until then, the connection is not at rest.
        let (executed, committed) = futures::join!(self.execute_queued(), self.client.batch_execute("COMMIT"));
        executed?;
        Ok(committed?)
    }

    /// Executes what is left to do, in order. The first poll sends all of it.
    pub(super) async fn execute_queued(&self) -> Result<(), PostgresError> {
        let queued = std::mem::take(&mut *self.last.lock());
        let executed = queued.iter().map(|(sql, text)| execute(&self.client, sql, text));
        let executed = futures::future::join_all(executed).await;
        executed.into_iter().try_for_each(|result| result.map(drop))?;
        Ok(())
    }

    /// Ends it without a change.
    pub(super) async fn rollback(mut self) -> Result<(), PostgresError> {
        self.is_over = true;
        Ok(self.client.batch_execute("ROLLBACK").await?)
    }
}

impl Deref for Transaction {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

async fn execute(client: &Client, sql: &str, text: &str) -> Result<u64, tokio_postgres::Error> {
    client.execute_typed(sql, &[(&text, Type::TEXT)]).await
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_over {
            // The first poll sends it. The next transaction need not wait for the answer.
            drop(self.client.batch_execute("ROLLBACK").now_or_never());
        }
    }
}
