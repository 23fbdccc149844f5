//! The way into the database: questions through a connection that only reads, and batches to hold.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::MutexGuard;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Transaction};

use super::address::PostgresAddress;
use super::connect::{check_that_it_lasts, connect};
use super::error::PostgresError;
use super::held::{PostgresBatch, WriterHandle};
use super::schema::{Found, Kind, create, recognise};
use super::transaction::{Begin, NOW};
use super::{books, limits, read, runners};
use crate::domain::{Attempt, AttemptState, BatchKey, Fingerprint, History, JobId, Label, TaskId, Usd};
use crate::ledger::{
    BoughtElsewhere, HoldError, Ledger, LedgerError, OpenElsewhere, OwnerLimit, RunnerSeen, Spending, Unavailable,
};

/// For how long a runner that was declared dead is still shown.
const STILL_TOLD: Duration = Duration::from_hours(24);

/// A ledger in a PostgreSQL database, which runners on several machines share. Its tables are made when a batch of it is held
/// for the first time.
#[derive(Clone, Debug)]
pub struct PostgresLedger {
    address: PostgresAddress,
    kind: Kind,
    reader: Arc<tokio::sync::Mutex<Option<Client>>>,
    writer: Arc<Mutex<Weak<WriterHandle>>>,
}

impl PostgresLedger {
    /// The books of real money, in this database.
    #[must_use]
    pub fn real(address: PostgresAddress) -> Self {
        Self { address, kind: Kind::Real, reader: Arc::default(), writer: Arc::default() }
    }

    /// The simulator's. What was never paid must not look as if it was: neither kind is taken for the other.
    #[must_use]
    pub fn simulated(address: PostgresAddress) -> Self {
        Self { kind: Kind::Simulated, ..Self::real(address) }
    }

    /// The connection that reads; none if there is no ledger.
    async fn reader(&self) -> Result<Reader<'_>, PostgresError> {
        let mut client = self.reader.lock().await;
        // One that was at rest may have been closed by whoever stands in between.
        if let Some(idle) = client.as_ref()
            && idle.simple_query("").await.is_err()
        {
            *client = None;
        }
        if client.is_none() {
            let new = connect(&self.address).await?;
            if recognise(&new, self.kind).await? == Found::Ledger {
                *client = Some(new);
            }
        }
        Ok(Reader { client, kind: self.kind })
    }

    /// A connection that writes what is no purchase, to a ledger that is made if there is none.
    async fn writable(&self) -> Result<Client, PostgresError> {
        let mut client = connect(&self.address).await?;
        check_that_it_lasts(&client).await?;
        if recognise(&client, self.kind).await? == Found::Nothing {
            create(&mut client, self.kind).await?;
        }
        Ok(client)
    }

    async fn write(&self, sql: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Result<(), PostgresError> {
        let mut client = self.writable().await?;
        let transaction = Begin::writing(&mut client, self.kind).await?;
        transaction.execute_typed(sql, values).await.map_err(PostgresError::of_statement)?;
        Ok(transaction.commit().await?)
    }

    /// How many tasks all runners together may have at the service; without a number, as many as the most that one of them was given.
    pub async fn set_slots(&self, slots: Option<u32>) -> Result<(), Unavailable> {
        let slots = slots.map(|slots| i32::try_from(slots).unwrap_or(i32::MAX));
        Ok(self.write("UPDATE ledger SET slots = $1 WHERE id = 1", &[(&slots, Type::INT4)]).await?)
    }

    /// How many that are, if the owner said so, and why nobody may buy, if that is so.
    pub async fn rule(&self) -> Result<(Option<u32>, Option<String>), Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok((None, None)) };
        let row = look.query_typed_one("SELECT slots, stopped FROM ledger WHERE id = 1", &[]).await;
        let row = row.map_err(PostgresError::from)?;
        let slots: Option<i32> = row.try_get(0).map_err(PostgresError::from)?;
        let stopped = row.try_get(1).map_err(PostgresError::from)?;
        Ok((slots.and_then(|slots| u32::try_from(slots).ok()), stopped))
    }

    /// Lets everybody buy again, after a person has looked.
    pub async fn lift_the_stop(&self) -> Result<(), Unavailable> {
        let sql = "UPDATE ledger SET stopped = NULL, moved_us = 0, quarantined_us = 0 WHERE id = 1";
        Ok(self.write(sql, &[]).await?)
    }

    /// The writer of this process, which is started for the first batch that is held.
    fn writer(&self) -> Result<Arc<WriterHandle>, PostgresError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writer.upgrade() {
            return Ok(writer);
        }
        let started = Arc::new(WriterHandle::start(self.address.clone(), self.kind)?);
        *writer = Arc::downgrade(&started);
        Ok(started)
    }
}

impl fmt::Display for PostgresLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Ledger for PostgresLedger {
    type Held = PostgresBatch;

    fn is_simulated(&self) -> bool {
        self.kind == Kind::Simulated
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn hold(&self, batch: &BatchKey) -> Result<PostgresBatch, HoldError> {
        let writer = self.writer().map_err(Unavailable::from)?;
        PostgresBatch::take(writer, batch).await.map_err(|error| match error {
            LedgerError::Unavailable(error) => error.into(),
            other => Unavailable::new(other, "try once more").into(),
        })
    }

    async fn history(&self, batch: &BatchKey) -> Result<History, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(History::default()) };
        Ok(read::history(&look, batch).await?)
    }

    async fn states(&self, batch: &BatchKey) -> Result<Vec<(JobId, AttemptState)>, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(Vec::new()) };
        Ok(read::states(&look, batch).await?)
    }

    async fn used_since(&self, since: Timestamp, label: Option<Label>) -> Result<Usd, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(Usd::ZERO) };
        Ok(books::used(&look, since, label.as_ref()).await?)
    }

    async fn spending(&self, since: Timestamp) -> Result<Vec<Spending>, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(Vec::new()) };
        Ok(books::spending(&look, since).await?)
    }

    async fn submitted_since(&self, since: Timestamp) -> Result<Vec<(BatchKey, Attempt)>, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(Vec::new()) };
        Ok(read::submitted_since(&look, since).await?)
    }

    async fn open_elsewhere(&self, batch: &BatchKey) -> Result<Vec<OpenElsewhere>, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(Vec::new()) };
        Ok(read::open_elsewhere(&look, batch).await?)
    }

    async fn bought_under_other_names(
        &self,
        name: &str,
        requests: Vec<Fingerprint>,
    ) -> Result<Vec<BoughtElsewhere>, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(Vec::new()) };
        Ok(read::bought_under_other_names(&look, name, &requests).await?)
    }

    async fn known_tasks(&self, tasks: Vec<TaskId>) -> Result<HashSet<TaskId>, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(HashSet::new()) };
        Ok(read::known_tasks(&look, &tasks).await?)
    }

    async fn owner(&self, task: &TaskId) -> Result<Option<(JobId, BatchKey)>, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(None) };
        Ok(read::owner(&look, task).await?)
    }

    async fn now(&self) -> Result<Timestamp, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(Timestamp::now()) };
        let row = look.query_typed_one(&format!("SELECT {NOW}"), &[]).await.map_err(PostgresError::from)?;
        let micros = row.try_get(0).map_err(PostgresError::from)?;
        Ok(Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX))
    }

    async fn owner_limits(&self) -> Result<Vec<OwnerLimit>, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(Vec::new()) };
        Ok(limits::read(&look).await?)
    }

    async fn set_owner_limit(&self, limit: OwnerLimit, is_kept: bool) -> Result<(), Unavailable> {
        let mut client = self.writable().await?;
        let transaction = Begin::writing(&mut client, self.kind).await.map_err(Unavailable::from)?;
        limits::set(&transaction, &limit, is_kept).await?;
        Ok(transaction.commit().await.map_err(PostgresError::from)?)
    }

    async fn runners(&self) -> Result<Vec<RunnerSeen>, Unavailable> {
        let mut reader = self.reader().await?;
        let Some(look) = reader.begin().await? else { return Ok(Vec::new()) };
        Ok(runners::seen(&look, STILL_TOLD).await?)
    }
}

/// The connection that reads, while a question is asked.
struct Reader<'l> {
    client: MutexGuard<'l, Option<Client>>,
    kind: Kind,
}

impl Reader<'_> {
    /// Everything as it is at this moment; nothing if there is no ledger.
    async fn begin(&mut self) -> Result<Option<Transaction<'_>>, PostgresError> {
        let Some(client) = self.client.as_mut() else { return Ok(None) };
        Ok(Some(Begin::reading(client, self.kind).await?))
    }
}
