//! A transaction of a runner: it renews the lease, and counts as one of the runner's writes.

use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::error::LeaseStatus;
use super::error::PostgresError;
use super::facts::facts;
use super::rows::{self, ROW, read_row};
use super::runner::{Runner, micros};
use super::statements::now;
use super::transaction::{LOCK, NOW, Transaction, Typed};
use crate::domain::{AttemptId, TaskId};
use crate::ledger::limits::Times;
use crate::ledger::row::Row;
use crate::ledger::rules::{Asked, Changes, Facts};
use crate::ledger::sql::Sql as _;
use crate::ledger::value::Kind;
use crate::ledger::writing::{self, Locked};
use crate::ledger::{Event, LedgerError, SpendLimit};

/// A transaction of a runner.
pub(in crate::ledger) struct RunnerTransaction {
    pub(super) transaction: Transaction,
    pub(super) runner: Runner,
    pub(super) times: Times,
    /// The ledger limits at the last intent.
    known_limits: Vec<SpendLimit>,
    is_registered: bool,
    /// The state of the lease, once the transaction has started.
    pub(super) lease: OnceCell<Result<LeaseStatus, PostgresError>>,
}

impl RunnerTransaction {
    /// A transaction that is not started.
    pub(super) fn new(
        client: Arc<Client>,
        kind: Kind,
        runner: Runner,
        times: Times,
        known_limits: Vec<SpendLimit>,
        is_registered: bool,
    ) -> Self {
        let transaction = Transaction::that_writes(client, kind);
        Self { transaction, runner, times, known_limits, is_registered, lease: OnceCell::new() }
    }

    /// Starts the transaction. What is polled after the first poll of this travels with the start.
    pub(super) async fn start(&self) -> &Result<LeaseStatus, PostgresError> {
        let start = async || {
            let client = &self.transaction;
            let registers = async { if self.is_registered { Ok(()) } else { self.runner.register(client).await } };
            let (begun, registered, renewed) =
                futures::join!(client.batch_execute(&client.beginning), registers, self.runner.renew_lease(client));
            begun?;
            registered?;
            renewed
        };
        self.lease.get_or_init(start).await
    }

    /// The state of the lease. Fails where this runner must first settle its own writes: whatever needs the rows of an earlier write asks first.
    pub(super) async fn lease(&self) -> Result<LeaseStatus, PostgresError> {
        match self.start().await {
            Ok(lease @ (LeaseStatus::Valid | LeaseStatus::Expired)) => Ok(*lease),
            Ok(unsettled) => Err(PostgresError::Unsettled(*unsettled)),
            // The store reports the fault of the start itself.
            Err(_) => Err(PostgresError::Silent),
        }
    }

    async fn rows(&self, sql: &str, values: &[Typed<'_>]) -> Result<Vec<Row>, PostgresError> {
        self.transaction.query_typed(sql, values).await?.iter().map(read_row).collect()
    }

    /// The name of another runner that lives, or expired so lately that it may still have the response for which it waited.
    async fn waiting_runner(&self, runner: Option<i64>) -> Result<Option<String>, PostgresError> {
        let sql = format!(
            "SELECT name FROM runner WHERE id = $1 AND id <> $3 AND ended_us IS NULL
             AND (expired_us IS NULL OR expired_us > {NOW} - $2)"
        );
        let response = micros(self.times.response);
        let values: [Typed<'_>; 3] = [(&runner, Type::INT8), (&response, Type::INT8), (&self.runner.id, Type::INT8)];
        let waiting = self.transaction.query_typed_opt(&sql, &values).await?;
        Ok(waiting.map(|row| row.try_get(0)).transpose()?)
    }
}

impl writing::Transaction for RunnerTransaction {
    type Error = PostgresError;
    type Sql = Transaction;

    fn sql(&self) -> &Transaction {
        &self.transaction
    }

    fn runner(&self) -> Option<i64> {
        Some(self.runner.id)
    }

    async fn facts(&self, intents: &[Asked<'_>]) -> Result<Facts, PostgresError> {
        Box::pin(facts(&self.transaction, &self.runner, self.lease(), intents, &self.known_limits, &self.times)).await
    }

    async fn locked(&self, attempts: &[AttemptId], names: &[&TaskId]) -> Result<Locked, PostgresError> {
        let (lease, rows, named, now) = futures::join!(
            self.lease(),
            rows::locked(&self.transaction, attempts),
            self.transaction.named(names),
            now(&self.transaction)
        );
        lease?;
        Ok(Locked { rows: rows?, named: named?, now: now? })
    }

    async fn locked_batch(&self, batch: i64) -> Result<Vec<Row>, PostgresError> {
        self.lease().await?;
        // Blocks purchases of the batch meanwhile.
        self.transaction.batch_execute(LOCK).await?;
        let sql = format!("SELECT {ROW} FROM attempt WHERE batch = $1 ORDER BY id FOR UPDATE");
        self.rows(&sql, &[(&batch, Type::INT8)]).await
    }

    /// Intents of runners that released their batch or ended, and of those that expired as long ago as a response may take. One that lives while
    /// another has its batch, as after a failover, may still get its response.
    async fn abandoned(&self, batch: Option<i64>) -> Result<Vec<Row>, PostgresError> {
        let sql = format!(
            "SELECT {ROW} FROM attempt JOIN batch ON batch.id = attempt.batch LEFT JOIN runner AS its ON its.id = attempt.runner
             WHERE state = 'intended' AND ($1 = 0 OR attempt.batch = $1)
                 AND (its.id IS NULL OR its.ended_us IS NOT NULL OR its.expired_us < {NOW} - $2
                     OR its.expired_us IS NULL AND batch.runner IS NULL)
             ORDER BY attempt.id FOR UPDATE OF attempt"
        );
        let (batch, unanswered) = (batch.unwrap_or_default(), micros(self.times.response));
        self.rows(&sql, &[(&batch, Type::INT8), (&unanswered, Type::INT8)]).await
    }

    async fn objection(&self, row: &Row, event: &Event) -> Result<Option<LedgerError>, PostgresError> {
        Ok(match event {
            // Another runner may have the batch, but only this one knows the response to its submission.
            event if self.lease().await? == LeaseStatus::Expired && !event.is_of_sender() => {
                Some(LedgerError::LeaseExpired)
            }
            // An attempt that its sender put in doubt has its response.
            Event::Denied if row.attempt.answered_at.is_none() => {
                let waiting = self.waiting_runner(row.shared.runner).await?;
                waiting.map(|runner| LedgerError::SenderMayLive { job: row.attempt.job.to_string(), runner })
            }
            _ => None,
        })
    }

    async fn save(&self, changes: &Changes<'_>) -> Result<(), PostgresError> {
        rows::write_last(&self.transaction, changes)
    }
}
