//! The commands that a database executes for its locked batches.

use std::time::Duration;

use tokio::time::Instant;

use super::batches::{self, RunnerBatch};
use super::error::LeaseStatus;
use super::error::PostgresError;
use super::runner::{expire_at_start, heartbeats};
use super::runner_transaction::RunnerTransaction;
use super::slots::pause;
use super::store::PostgresStore;
use crate::domain::{Account, AttemptState, BatchKey};
use crate::ledger::LedgerError;
use crate::ledger::row::Row;
use crate::ledger::rules::Facts;
use crate::ledger::sql::ensure_batch;
use crate::ledger::writing::{Store, operations};

impl Store for PostgresStore {
    type Transaction = RunnerTransaction;

    async fn transact<T: Clone>(
        &mut self,
        work: impl AsyncFn(&RunnerTransaction) -> Result<T, PostgresError>,
    ) -> Result<T, LedgerError> {
        Ok(self.transact_all(work).await?)
    }

    async fn lock(&mut self, own: usize, key: BatchKey) -> Result<usize, LedgerError> {
        let times = self.times;
        if self.locked.values().any(|locked| locked.key == key) {
            return Err(LedgerError::Locked("this process".to_owned()));
        }
        let locked = self.transact_all(async |it| {
            let transaction = &it.transaction;
            let (ensures, expires) = (ensure_batch(transaction, &key), expire_at_start(transaction, &times));
            let (lease, number, expired) = futures::join!(it.lease(), ensures, expires);
            let (lease, number) = (lease?, number?);
            expired?;
            if lease == LeaseStatus::Expired {
                return Err(PostgresError::Locked("this process, whose lease expired".to_owned()));
            }
            // The runner before this one is still in the batch's row.
            let recovers = operations::recover_intents(it, Some(number));
            let locks = batches::lock(transaction, &it.runner, number);
            let (recovered, holder, latest) = futures::join!(recovers, locks, heartbeats(transaction));
            let (recovered, latest) = (recovered?, latest?);
            match holder? {
                // Rolled back, so a runner that only waits for a batch is not registered.
                Some(holder) => Err(PostgresError::Locked(holder)),
                None => Ok((RunnerBatch { key: key.clone(), number }, recovered, latest)),
            }
        });
        let (work, recovered, latest) = locked.await?;
        self.note_heartbeats(latest);
        self.last_heartbeat = Instant::now();
        self.locked.insert(own, work);
        recovered
    }

    async fn release(&mut self, own: usize) {
        let Some(work) = self.locked.remove(&own) else { return };
        let released =
            self.transact_all(async |it| batches::release(&it.transaction, &it.runner, work.number).await).await;
        if let Err(error) = released {
            tracing::debug!("can't release {}: {error}", work.key);
        }
    }

    fn batch(&self, own: usize) -> Option<(i64, &BatchKey)> {
        self.locked.get(&own).map(|work| (work.number, &work.key))
    }

    fn is_down(&self) -> bool {
        self.broken_since.is_some()
    }

    fn note_decisions(&mut self, facts: Facts) {
        // A frozen ledger's limits were not read.
        if facts.freeze.is_none() {
            self.limits = facts.limits;
        }
    }

    fn note_row(&mut self, own: usize, row: &Row) {
        if row.attempt.state == AttemptState::Intended {
            let mut send_by = self.shared.send_by.lock();
            send_by.insert(row.attempt.id, self.send_by);
        }
        // A released batch needs no memory.
        if let Some(work) = self.locked.get(&own) {
            self.acknowledged.keep(&work.key, row.clone());
        }
    }

    async fn pause(&mut self, account: &Account, wait: Duration) -> Result<(), LedgerError> {
        self.transact(async |it| pause(&it.transaction, account, wait).await).await
    }

    fn until_heartbeat(&self) -> Option<Duration> {
        self.is_registered.then(|| self.times.heartbeat.saturating_sub(self.last_heartbeat.elapsed()))
    }

    async fn heartbeat(&mut self) {
        self.send_heartbeat().await;
    }

    async fn end(&mut self) {
        // The process may end while it waits.
        self.rescue();
        if self.is_registered {
            self.deregister().await;
        }
    }
}
