//! A ledger in a database: queries on a read-only connection, and locks of batches.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::MutexGuard;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio_postgres::Client;

use super::address::PostgresAddress;
use super::facts::total_slots;
use super::schema::{IDENTITY, LIVE, create, recognize, recognize_durable};
use super::store::PostgresStore;
use super::transaction::{LOCK, PostgresError, READING, Transaction, WRITING, connect, is_canceled, is_lost};
use crate::domain::{BatchKey, displayed};
use crate::ledger::locked::{SharedState, WriterHandle};
use crate::ledger::row::{Kind, Value};
use crate::ledger::sql::{self, Sql as _, set_limit};
use crate::ledger::views::CopyPart;
use crate::ledger::{Contents, CopyError, HoldError, LedgerError, LedgerLimit, LockedBatch, Unavailable};

/// The maximum number of repetitions of a read after a broken connection or a cancellation.
const MAX_TRIES: u32 = 20;
/// The time limit of one read.
const READ_TIMEOUT: Duration = Duration::from_mins(2);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// A change of only the freeze, and of nothing else after a failover.
const FREEZE: &str = "UPDATE ledger SET frozen = $1 WHERE id = 1";
/// A copy waits for its other side without a limit.
const PATIENT: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

/// A ledger in a PostgreSQL database, shared by runners on several machines. The first lock of a batch creates its tables.
#[derive(Clone, Debug)]
pub struct PostgresLedger {
    address: PostgresAddress,
    pub(in crate::ledger) kind: Kind,
    /// The read-only connection, once it has found a ledger.
    reader: Arc<tokio::sync::Mutex<Option<Arc<Client>>>>,
    writer: Arc<Mutex<Weak<WriterHandle>>>,
    /// The number of the next locked batch.
    next: Arc<AtomicUsize>,
}

impl PostgresLedger {
    pub(in crate::ledger) fn new(address: PostgresAddress, kind: Kind) -> Self {
        Self { address, kind, reader: Arc::default(), writer: Arc::default(), next: Arc::default() }
    }

    /// A snapshot that is not started, and the guard of its connection; `None` without a ledger.
    async fn snapshot(&self) -> Result<Option<(MutexGuard<'_, Option<Arc<Client>>>, Transaction)>, PostgresError> {
        let mut reader = self.reader.lock().await;
        if reader.as_ref().is_none_or(|client| client.is_closed()) {
            let client = Arc::new(connect(&self.address).await?);
            *reader = recognize(&client, self.kind).await?.then_some(client);
        }
        let Some(client) = reader.clone() else { return Ok(None) };
        Ok(Some((reader, Transaction::new(client, READING, self.kind))))
    }

    /// Queries one snapshot. Returns `nothing` without a ledger. Repeats the query after a broken connection or a cancellation: it changes nothing.
    pub(in crate::ledger) async fn ask<T>(
        &self,
        nothing: T,
        question: impl AsyncFn(&Transaction) -> Result<T, PostgresError>,
    ) -> Result<T, Unavailable> {
        let mut tries = 0;
        loop {
            let asked = async {
                let Some((_guard, snapshot)) = self.snapshot().await? else { return Ok(None) };
                // In one round trip. The error of the start is the cause of others.
                let (started, answer) = futures::join!(snapshot.start(), question(&snapshot));
                started.and(answer).map(Some)
            };
            let asked = tokio::time::timeout(READ_TIMEOUT, asked).await;
            match asked.unwrap_or(Err(PostgresError::Silent)) {
                Err(PostgresError::Sql(error)) if tries < MAX_TRIES && (is_lost(&error) || is_canceled(&error)) => {
                    tries += 1;
                    *self.reader.lock().await = None;
                    tokio::time::sleep(BETWEEN_TRIES * tries).await;
                }
                answered => return Ok(answered?.unwrap_or(nothing)),
            }
        }
    }

    /// A transaction for writes without a purchase. Creates a missing ledger.
    async fn begin(&self) -> Result<Transaction, PostgresError> {
        let client = Arc::new(connect(&self.address).await?);
        if !recognize_durable(&client, self.kind).await? {
            create(&client, self.kind).await?;
        }
        Transaction::begin(client, WRITING, self.kind).await
    }

    async fn write(&self, sql: &str, values: &[Value<'_>]) -> Result<(), PostgresError> {
        let transaction = self.begin().await?;
        transaction.change(sql, values).await.map_err(PostgresError::in_general)?;
        transaction.commit().await
    }

    /// Refuses a database that is read-only, may lose commits, or lacks permissions. Changes nothing. Returns whether it has a ledger.
    pub async fn check_usable(&self) -> Result<bool, Unavailable> {
        let client = connect(&self.address).await?;
        let has_ledger = recognize_durable(&client, self.kind).await?;
        let right = if has_ledger {
            format!("has_table_privilege('{}.attempt', 'INSERT')", self.kind.schema())
        } else {
            "has_database_privilege(current_database(), 'CREATE')".to_owned()
        };
        let sql = format!("SELECT current_setting('transaction_read_only') = 'off' AND {right}");
        let row = client.query_typed_one(&sql, &[]).await.map_err(PostgresError::from)?;
        if !row.try_get(0).map_err(PostgresError::from)? {
            return Err(PostgresError::ReadOnly.into());
        }
        Ok(has_ledger)
    }

    /// Sets the maximum number of active tasks of all runners, which live ones share equally. With `None`, each has its `--concurrency`.
    pub async fn set_slots(&self, slots: Option<u32>) -> Result<(), Unavailable> {
        let slots = slots.map(|slots| i32::try_from(slots).unwrap_or(i32::MAX).to_string());
        Ok(self.write("UPDATE ledger SET slots = $1::integer WHERE id = 1", &[slots.as_deref().into()]).await?)
    }

    /// The maximum number of active tasks of all runners, if it is set.
    pub async fn slots(&self) -> Result<Option<i64>, Unavailable> {
        self.ask(None, total_slots).await
    }

    /// Freezes purchases for this reason, or unfreezes them. By that, the user confirms that no purchase is missing on this server.
    pub async fn set_freeze(&self, why: Option<&str>) -> Result<(), Unavailable> {
        let identity = if why.is_some() { "identity" } else { IDENTITY };
        let sql = format!("UPDATE ledger SET frozen = $1, by_failover = false, identity = {identity} WHERE id = 1");
        Ok(self.write(&sql, &[why.into()]).await?)
    }

    /// Changes the reason of a freeze, or ends it. Does not confirm a failover.
    pub(in crate::ledger) async fn refreeze(&self, why: Option<&str>) -> Result<(), Unavailable> {
        Ok(self.write(FREEZE, &[why.into()]).await?)
    }

    /// Freezes purchases unless a runner lives, in one transaction.
    pub(in crate::ledger) async fn freeze_for_copy(&self, why: &str) -> Result<(), CopyError> {
        let transaction = self.begin_existing(WRITING).await?;
        transaction.batch_execute(LOCK).await.map_err(PostgresError::from)?;
        let live = format!("SELECT string_agg(name, ', ') FROM runner WHERE id IN ({LIVE})");
        let live = transaction.query_typed_one(&live, &[]).await.and_then(|row| row.try_get::<_, Option<String>>(0));
        if let Some(runners) = live.map_err(PostgresError::from)? {
            return Err(CopyError::Busy(runners));
        }
        transaction.change(FREEZE, &[why.into()]).await?;
        Ok(transaction.commit().await?)
    }

    /// Sends all parts of one snapshot.
    pub(in crate::ledger) async fn send_all(&self, parts: Sender<CopyPart>) -> Result<(), CopyError> {
        let transaction = self.begin_existing(READING).await?;
        transaction.batch_execute(PATIENT).await.map_err(PostgresError::from)?;
        Ok(sql::send_all(&transaction, &parts).await?)
    }

    /// A transaction of an existing ledger.
    async fn begin_existing(&self, mode: &str) -> Result<Transaction, CopyError> {
        let client = Arc::new(connect(&self.address).await?);
        if !recognize(&client, self.kind).await? {
            return Err(CopyError::Missing(self.to_string()));
        }
        Ok(Transaction::begin(client, mode, self.kind).await?)
    }

    /// Writes all received parts into a new or empty ledger. Creates nothing before the first part.
    pub(in crate::ledger) async fn fill(
        &self,
        frozen: Option<String>,
        mut parts: Receiver<CopyPart>,
    ) -> Result<Contents, CopyError> {
        let first = parts.recv().await.ok_or(CopyError::CutOff)?;
        let transaction = self.begin().await?;
        transaction.batch_execute(LOCK).await.map_err(PostgresError::from)?;
        if !sql::is_empty(&transaction).await? {
            return Err(CopyError::NotEmpty(self.to_string()));
        }
        transaction.batch_execute(PATIENT).await.map_err(PostgresError::from)?;
        let contents = sql::receive_all(&transaction, Some(first), parts).await?.ok_or(CopyError::CutOff)?;
        // A copy does not end a freeze of its target.
        let freeze = "UPDATE ledger SET frozen = coalesce(frozen, $1) WHERE id = 1";
        transaction.change(freeze, &[frozen.as_deref().into()]).await?;
        transaction.commit().await.map_err(|error| match error {
            PostgresError::Sql(lost) if is_lost(&lost) => CopyError::Unknown(PostgresError::Sql(lost).into()),
            error => error.into(),
        })?;
        Ok(contents)
    }

    /// The writer of this process. The first lock of a batch starts it.
    fn writer(&self) -> Result<Arc<WriterHandle>, Unavailable> {
        let mut writer = self.writer.lock();
        if let Some(writer) = writer.upgrade() {
            return Ok(writer);
        }
        let (address, kind, shared) = (self.address.clone(), self.kind, Arc::new(SharedState::default()));
        let own = Arc::clone(&shared);
        let open = move || PostgresStore::new(address, kind, own);
        let started = Arc::new(WriterHandle::start(open, Some(shared)).map_err(Unavailable::no_thread)?);
        *writer = Arc::downgrade(&started);
        Ok(started)
    }

    pub(in crate::ledger) async fn lock(&self, batch: &BatchKey) -> Result<LockedBatch, HoldError> {
        let writer = self.writer()?;
        let own = self.next.fetch_add(1, Ordering::Relaxed);
        LockedBatch::new(writer, own, batch, None).await.map_err(|error| match error {
            LedgerError::Locked(holder) => HoldError::Busy { batch: batch.clone(), holder: format!(" ({holder})") },
            LedgerError::Unavailable(error) => error.into(),
            other => Unavailable::new(other, "try once more").into(),
        })
    }

    pub(in crate::ledger) async fn set_limit(&self, limit: LedgerLimit, is_kept: bool) -> Result<(), Unavailable> {
        let transaction = self.begin().await?;
        set_limit(&transaction, &limit, is_kept).await?;
        Ok(transaction.commit().await?)
    }
}

displayed!(PostgresLedger(it): it.address);
