//! The commands that a database executes for its locked batches.

use std::time::Duration;

use tokio::time::Instant;

use super::batches::{self, RunnerBatch};
use super::error::LeaseStatus;
use super::error::PostgresError;
use super::runner::{expire_at_start, heartbeats};
use super::runner_transaction::RunnerTransaction;
use super::slots::{pause, slots};
use super::store::PostgresStore;
use crate::domain::{Account, AttemptId, AttemptState, BatchKey};
use crate::ledger::LedgerError;
use crate::ledger::row::Row;
use crate::ledger::rules::{Facts, Slots};
use crate::ledger::sql::ensure_batch;
use crate::ledger::writing::{SharingCommand, Store, at_batch, operations};

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
        let locked = self.transact_all(async |it| {
            let transaction = &it.transaction;
            let (ensures, expires) = (ensure_batch(transaction, &key), expire_at_start(transaction, &times));
            let (lease, number, expired) = futures::join!(it.lease(), ensures, expires);
            lease?;
            let work = RunnerBatch { key: key.clone(), number: number?, is_buying: false, seen: 0 };
            expired?;
            let begins = batches::begin(transaction, &it.runner, &work);
            let recovers = operations::recover_intents(it, Some(work.number));
            let (begun, recovered, latest) = futures::join!(begins, recovers, heartbeats(transaction));
            begun?;
            Ok((work, recovered?, latest?))
        });
        let (work, recovered, latest) = locked.await?;
        self.note_heartbeats(latest);
        self.last_heartbeat = Instant::now();
        self.locked.insert(own, work);
        recovered
    }

    async fn release(&mut self, own: usize) {
        let Some(work) = self.locked.remove(&own) else { return };
        let released = self.transact_all(async |it| batches::end(&it.transaction, &it.runner, work.number).await).await;
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

    fn waits_for_slot(&self) -> bool {
        self.waits_for_slot
    }

    async fn slot(&mut self, account: &Account) -> Result<(), LedgerError> {
        match self.transact_all(async |it| wait_for_slot(it, account).await).await? {
            Duration::ZERO => Ok(()),
            wait => Err(LedgerError::Deferred(wait)),
        }
    }

    fn note_decisions(&mut self, facts: Facts, is_deferred: bool) {
        self.waits_for_slot = is_deferred;
        let Some(shared) = facts.shared.filter(|shared| facts.freeze.is_none() && !shared.is_expired) else { return };
        if let Slots::Free(_) = shared.slots {
            self.limits = facts.limits;
        }
        // This runner skips jobs that another runner took.
        let mut known = self.shared.taken.lock();
        for taken in shared.taken {
            let Some((own, work)) = self.locked.iter_mut().find(|(_, work)| work.number == taken.batch) else {
                continue;
            };
            work.seen = work.seen.max(taken.attempt);
            let newest = known.entry(*own).or_default().entry(taken.job).or_insert(AttemptId(taken.attempt));
            *newest = AttemptId(taken.attempt).max(*newest);
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

    async fn share(&mut self, command: SharingCommand) {
        match command {
            SharingCommand::Join(own, joining, answer) => {
                let join = async |it: &RunnerTransaction, (batch, _): &(i64, BatchKey)| {
                    batches::join(&it.transaction, &it.runner, *batch, &joining).await
                };
                let joined = at_batch(self, own, join).await;
                if joined.is_ok()
                    && let Some(work) = self.locked.get_mut(&own)
                {
                    work.is_buying = true;
                    self.runner.concurrency = joining.concurrency;
                }
                drop(answer.send(joined));
            }
            SharingCommand::Others(own, videos, answer) => {
                let others = async |it: &RunnerTransaction, (batch, _): &(i64, BatchKey)| {
                    batches::others(&it.transaction, &it.runner, *batch, videos).await.map(Ok)
                };
                drop(answer.send(at_batch(self, own, others).await));
            }
            SharingCommand::TakeOver(attempts, answer) => {
                let take =
                    async |it: &RunnerTransaction| batches::take_over(&it.transaction, &it.runner, &attempts).await;
                drop(answer.send(self.transact(take).await));
            }
            SharingCommand::Pause(account, wait, answer) => {
                let pauses = async |it: &RunnerTransaction| pause(&it.transaction, &account, wait).await;
                drop(answer.send(self.transact(pauses).await));
            }
        }
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

/// The wait until a slot for this runner may be free; zero if one is. Takes no lock that others wait for: where slots are short, most intents
/// only ask for one.
async fn wait_for_slot(it: &RunnerTransaction, account: &Account) -> Result<Duration, PostgresError> {
    let (lease, slots, frozen) = futures::join!(
        it.lease(),
        slots(&it.transaction, &it.runner, account, &it.times),
        it.transaction.query_typed_one("SELECT frozen IS NOT NULL FROM ledger WHERE id = 1", &[])
    );
    let (lease, slots, frozen) = (lease?, slots?, frozen?);
    if lease == LeaseStatus::Expired || frozen.try_get(0)? {
        // Its intents are refused, and that is no wait.
        return Ok(Duration::ZERO);
    }
    it.runner.wait(&it.transaction);
    Ok(match slots {
        Slots::Paused(wait) => wait,
        Slots::Free(..=0) => it.times.look_again,
        Slots::Free(..) => Duration::ZERO,
    })
}
