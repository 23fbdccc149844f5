//! The database as a store, which many runners write.
//!
//! A broken connection is made anew, and the work of its transaction is done again: the runner's own count of its writes says whether it was
//! committed already ([`runner`](super::runner)), so that every transaction may be repeated, and none is committed twice.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::address::PostgresAddress;
use super::facts::{RunnerTransaction, pause};
use super::runner::{
    AcknowledgedWrites, Heartbeats, LockedBatches, Runner, expire_at_start, expire_silent, heartbeats, lock_batch,
    release_batch,
};
use super::schema::{create, recognize_durable};
use super::transaction::{
    LeaseStatus, NOTHING_IS_LOST, PostgresError, Transaction, WRITING, connect, is_canceled, is_lost, is_without_tables,
};
use crate::domain::{Account, AttemptState, BatchKey, NoticeCode, SendBy, with_causes};
use crate::ledger::locked::SharedState;
use crate::ledger::record::TIMES;
use crate::ledger::row::{Kind, Row};
use crate::ledger::rules::Facts;
use crate::ledger::sql::ensure_batch;
use crate::ledger::store::{Store, crash_point, recover_intents};
use crate::ledger::{LedgerError, SpendLimit, Unavailable};

/// The first and the longest pause between two tries to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(3);
/// The maximum number of tries of a transaction that conflicts with others.
const MAX_TRIES: u32 = 20;
/// The maximum wait of an ending run for an unreachable database.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The database as the store of this runner.
pub(in crate::ledger) struct PostgresStore {
    address: PostgresAddress,
    kind: Kind,
    client: Option<Arc<Client>>,
    pub(super) is_registered: bool,
    pub(super) runner: Runner,
    pub(super) locked: LockedBatches,
    pub(super) acknowledged: AcknowledgedWrites,
    pub(super) shared: Arc<SharedState>,
    pub(super) last_heartbeat: Instant,
    pub(super) heartbeats: Heartbeats,
    /// True from missing tables until the next commit: acknowledged writes may be lost.
    has_lost_tables: bool,
    /// The start of the current outage, which all writes share. After its deadline, a write is tried once.
    pub(super) broken_since: Option<Instant>,
    /// The ledger limits at the last intent.
    pub(super) limits: Vec<SpendLimit>,
    /// The deadline for submissions of the last committed intents.
    pub(super) send_by: SendBy,
}

impl PostgresStore {
    pub(super) fn new(address: PostgresAddress, kind: Kind, shared: Arc<SharedState>) -> Self {
        Self {
            address,
            kind,
            client: None,
            is_registered: false,
            runner: Runner::new(),
            locked: LockedBatches::new(),
            acknowledged: AcknowledgedWrites::default(),
            shared,
            last_heartbeat: Instant::now(),
            heartbeats: Heartbeats::new(),
            has_lost_tables: false,
            broken_since: None,
            limits: Vec::new(),
            send_by: SendBy::within(Duration::ZERO),
        }
    }

    /// One try. `None` if the database was repaired first, and another try is due.
    async fn attempt<T: Clone>(
        &mut self,
        work: &impl AsyncFn(&RunnerTransaction) -> Result<T, PostgresError>,
        made: &mut Option<T>,
    ) -> Result<Option<T>, PostgresError> {
        if self.client.as_ref().is_none_or(|client| client.is_closed()) {
            let client = Arc::new(connect(&self.address).await?);
            if !recognize_durable(&client, self.kind).await? {
                // New tables would conflict with restored ones.
                if self.is_registered {
                    return Err(PostgresError::Gone);
                }
                create(&client, self.kind).await?;
            }
            self.client = Some(client);
        }
        let Some(client) = self.client.clone() else { return Ok(None) };
        let mut it = RunnerTransaction {
            transaction: Transaction::new(Arc::clone(&client), WRITING, self.kind),
            runner: self.runner.clone(),
            known_limits: self.limits.clone(),
            is_registered: self.is_registered,
            lease: OnceCell::new(),
        };
        // An unread response blocks later ones, so all are awaited together.
        let (_, done) = futures::join!(it.start(), work(&it));
        let lease = it.lease.take();
        if matches!(lease, Some(Ok(LeaseStatus::Expired))) {
            self.shared.expired.cancel();
        }
        // An unsettled write or a failed start is the cause of the later error.
        let done = match lease {
            Some(Err(error)) => Err(error),
            Some(Ok(unsettled @ (LeaseStatus::Written | LeaseStatus::Forgotten))) => {
                Err(PostgresError::Unsettled(unsettled))
            }
            _ => done,
        };
        match done {
            Err(PostgresError::Unsettled(LeaseStatus::Written)) => {
                it.transaction.rollback().await?;
                (self.runner.writes, self.runner.is_unsure) = (self.runner.writes + 1, false);
                Ok(made.take())
            }
            Err(PostgresError::Unsettled(_)) => {
                it.transaction.rollback().await?;
                // The work is repeated after the restored rows.
                *made = None;
                self.put_back(client).await?;
                Ok(None)
            }
            Err(error) => Err(error),
            Ok(done) => {
                *made = Some(done.clone());
                self.commit(it.transaction).await?;
                Ok(Some(done))
            }
        }
    }

    async fn put_back(&mut self, client: Arc<Client>) -> Result<(), PostgresError> {
        let transaction = Transaction::begin(client, WRITING, self.kind).await?;
        let put_back = self.acknowledged.put_back(&transaction, &self.runner, &mut self.locked).await?;
        self.runner.is_unsure = true;
        transaction.commit().await?;
        (self.runner.writes, self.runner.is_unsure) = (self.runner.writes + 1, false);
        tracing::error!(code = NoticeCode::PutBack.code(), "{put_back}");
        Ok(())
    }

    async fn commit(&mut self, transaction: Transaction) -> Result<(), PostgresError> {
        self.runner.is_unsure = true;
        crash_point("before-commit");
        // No other runner expires this one before the commit, which comes later than now.
        self.send_by = SendBy::within(TIMES.send);
        let committed = transaction.commit().await;
        crash_point("after-commit");
        // A pooler may respond without the outcome. The count of writes shows it.
        committed?;
        (self.runner.writes, self.runner.is_unsure, self.is_registered) = (self.runner.writes + 1, false, true);
        self.has_lost_tables = false;
        Ok(())
    }

    /// Prints everything that may have been charged, once, if the tables are missing: it is nowhere else.
    pub(super) fn rescue(&mut self) {
        if std::mem::take(&mut self.has_lost_tables) {
            self.acknowledged
                .charged()
                .for_each(|line| tracing::error!(code = NoticeCode::TaskNotRecorded.code(), "RESCUE: {line}"));
        }
    }

    /// Returns whether an error is about the connection, and not about the command.
    fn is_broken(&self, error: &PostgresError) -> bool {
        match error {
            PostgresError::Silent | PostgresError::Unreachable(_) => true,
            // A primary that steps down is read-only for a while; a new run on a standby gets the error immediately.
            PostgresError::ReadOnly => self.is_registered,
            PostgresError::Sql(error) => {
                let is_gone = error.code().is_none() && self.client.as_ref().is_none_or(|client| client.is_closed());
                is_lost(error) || is_canceled(error) || is_gone || self.client.is_none() && self.is_registered
            }
            // A registered runner waits until others have repaired the tables.
            _ => self.client.is_none() && self.is_registered,
        }
    }
}

/// Returns whether another transaction conflicts with this one.
fn is_in_the_way(error: &PostgresError) -> bool {
    let conflicts =
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    // An index sees a duplicate before a query does. The next try sees it.
    let is_conflict = |code: &SqlState| *code == SqlState::UNIQUE_VIOLATION || conflicts.contains(code);
    matches!(error, PostgresError::Sql(error) if error.code().is_some_and(is_conflict))
}

impl Store for PostgresStore {
    type Transaction = RunnerTransaction;

    async fn transact<T: Clone>(
        &mut self,
        work: impl AsyncFn(&RunnerTransaction) -> Result<T, PostgresError>,
    ) -> Result<T, LedgerError> {
        let (mut made, mut tries, mut pause) = (None, 0, FIRST_PAUSE);
        loop {
            let (longest, shutdown) = (TIMES.answer, self.shared.shutdown.clone());
            let answered = tokio::select! {
                answered = self.attempt(&work, &mut made) => answered,
                () = tokio::time::sleep(longest) => Err(PostgresError::Silent),
                () = async { shutdown.cancelled().await; tokio::time::sleep(SHUTDOWN_TIMEOUT).await; } => Err(PostgresError::Silent),
            };
            let error = match answered {
                Ok(Some(done)) => {
                    if self.broken_since.take().is_some() {
                        tracing::info!(code = NoticeCode::LedgerBack.code(), "the ledger is reachable again");
                    }
                    return Ok(done);
                }
                Ok(None) => continue,
                Err(error) => error.in_general(),
            };
            if is_in_the_way(&error) && tries < MAX_TRIES {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(fastrand::u64(1..20))).await;
                continue;
            }
            let is_without_tables = self.is_registered && is_without_tables(&error);
            if !is_without_tables && !self.is_broken(&error) {
                return Err(error.into());
            }
            self.has_lost_tables |= is_without_tables;
            let is_shutting_down = self.shared.shutdown.is_cancelled();
            // The process ends after this wait.
            if is_shutting_down {
                self.rescue();
            }
            self.client = None;
            let since = *self.broken_since.get_or_insert_with(|| {
                let why = with_causes(&error);
                tracing::warn!(
                    code = NoticeCode::LedgerLost.code(),
                    "lost the connection to the ledger; nothing is submitted until it is back: {why}"
                );
                Instant::now()
            });
            let most = if is_shutting_down { SHUTDOWN_TIMEOUT } else { TIMES.outage };
            // A new run gets the error immediately; a broken handshake is repeated.
            if !self.is_registered && !matches!(error, PostgresError::Sql(_)) {
                return Err(error.into());
            }
            if since.elapsed() > most {
                self.rescue();
                let what = format!("the ledger was unreachable for {} s", since.elapsed().as_secs());
                return Err(Unavailable::new(what, NOTHING_IS_LOST).into());
            }
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn lock(&mut self, own: usize, key: BatchKey) -> Result<usize, LedgerError> {
        if self.locked.values().any(|(_, locked)| *locked == key) {
            return Err(LedgerError::Locked("this process".to_owned()));
        }
        let locked = self.transact(async |it| {
            let transaction = &it.transaction;
            let (ensures, expires) = (ensure_batch(transaction, &key), expire_at_start(transaction));
            let (lease, number, expired) = futures::join!(it.lease(), ensures, expires);
            let (lease, number) = (lease?, number?);
            expired?;
            if lease == LeaseStatus::Expired {
                return Err(PostgresError::Locked("this process, whose lease expired".to_owned()));
            }
            // The row still names the previous runner.
            let recovers = recover_intents(it, Some(number));
            let locks = lock_batch(transaction, &it.runner, number);
            let (recovered, holder, latest) = futures::join!(recovers, locks, heartbeats(transaction));
            let (recovered, holder, latest) = (recovered?, holder?, latest?);
            match holder {
                // Rolled back: a waiting runner is not registered.
                Some(holder) => Err(PostgresError::Locked(holder)),
                None => Ok(((number, key.clone()), recovered, latest)),
            }
        });
        let (locked, recovered, latest) = locked.await?;
        self.heartbeats.note(latest);
        self.last_heartbeat = Instant::now();
        self.locked.insert(own, locked);
        recovered
    }

    async fn release(&mut self, own: usize) {
        let Some((number, key)) = self.locked.remove(&own) else { return };
        let released = self.transact(async |it| release_batch(&it.transaction, &it.runner, number).await).await;
        if let Err(error) = released {
            tracing::debug!("can't release {key}: {error}");
        }
    }

    fn batch(&self, own: usize) -> Option<(i64, &BatchKey)> {
        self.locked.get(&own).map(|(number, key)| (*number, key))
    }

    fn is_down(&self) -> bool {
        self.broken_since.is_some()
    }

    fn note_decisions(&mut self, facts: Facts) {
        // The limits of a frozen ledger were not read.
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
        if let Some((_, key)) = self.locked.get(&own) {
            self.acknowledged.keep(key, row.clone());
        }
    }

    async fn pause(&mut self, account: &Account, wait: Duration) -> Result<(), LedgerError> {
        self.transact(async |it| pause(&it.transaction, account, wait).await).await
    }

    fn until_heartbeat(&self) -> Option<Duration> {
        self.is_registered.then(|| TIMES.heartbeat.saturating_sub(self.last_heartbeat.elapsed()))
    }

    async fn heartbeat(&mut self) {
        let known = std::mem::replace(&mut self.heartbeats, Heartbeats::new());
        let latest = self
            .transact(async |it| {
                let expires = expire_silent(&it.transaction, &known);
                let recovers = recover_intents(it, None);
                let (expired, recovered, latest) = futures::join!(expires, recovers, heartbeats(&it.transaction));
                expired?;
                Ok((recovered?.map(drop), latest?))
            })
            .await;
        self.heartbeats = known;
        match latest {
            Ok((recovered, latest)) => {
                if let Err(error) = recovered {
                    tracing::warn!(code = NoticeCode::HeartbeatFailed.code(), "can't recover intents: {error}");
                }
                self.heartbeats.note(latest);
            }
            // The next heartbeat is a new try, and each write reports the error.
            Err(error) => {
                let why = with_causes(&error);
                tracing::warn!(code = NoticeCode::HeartbeatFailed.code(), "can't renew the lease: {why}");
            }
        }
        self.last_heartbeat = Instant::now();
    }

    async fn end(&mut self) {
        // The process may end during the wait.
        self.rescue();
        if !self.is_registered {
            return;
        }
        let left = self
            .transact(async |it| {
                it.runner.deregister(&it.transaction);
                Ok(())
            })
            .await;
        if let Err(error) = left {
            let why = with_causes(&error);
            tracing::debug!("the ledger does not know that this runner has ended: {why}");
        }
    }
}
