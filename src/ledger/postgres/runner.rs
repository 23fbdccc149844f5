//! A runner and its lease.
//!
//! A runner is a process: it has a number of its own, which is random at each start, and its row is never taken over and never
//! revived. Each of its writes counts one up in that row. So one number tells three things: whether a commit whose answer was
//! lost was made; whether the database has forgotten a commit that it acknowledged; and, because the row also says who is dead,
//! whether this runner may still buy.

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::error::LeaseStatus;
use super::error::PostgresError;
use super::heartbeats::Heartbeats;
use super::schema::LIVE;
use super::transaction::{NOW, Transaction, Typed};
use crate::domain::random;
use crate::ledger::limits::Times;
use crate::ledger::this_machine;

/// A process that runs.
#[derive(Clone, Debug)]
pub(super) struct Runner {
    /// Random, never taken twice.
    pub(super) id: i64,
    /// The machine that it runs on.
    pub(super) machine: String,
    /// The number of acknowledged writes.
    pub(super) writes: i64,
    /// True if the next write may exist already: the response to its commit was lost.
    pub(super) is_unsure: bool,
}

impl Runner {
    pub(super) fn new() -> Self {
        // Never negative, so that nothing is lost on the way.
        let id = (random() >> 2).cast_signed();
        Self { id, machine: this_machine(), writes: 0, is_unsure: false }
    }

    /// Registers the runner, or registers it again after the database lost it.
    pub(super) async fn register(&self, client: &Client) -> Result<(), PostgresError> {
        let sql = format!(
            "INSERT INTO runner (id, name, since_us, heartbeat_us, writes)
             VALUES ($1, $2, {NOW}, {NOW}, $3) ON CONFLICT (id) DO UPDATE SET writes = $3, heartbeat_us = {NOW}"
        );
        let name = format!("{} process {}", self.machine, std::process::id());
        let values: [Typed<'_>; 3] = [(&self.id, Type::INT8), (&name, Type::TEXT), (&self.writes, Type::INT8)];
        client.execute_typed(&sql, &values).await?;
        Ok(())
    }

    /// Renews the lease, counts the write of this transaction, and returns the lease's state. No other runner expires this one before the
    /// transaction ends.
    pub(super) async fn renew_lease(&self, client: &Client) -> Result<LeaseStatus, PostgresError> {
        let sql = format!(
            "UPDATE runner SET writes = writes + 1, heartbeat_us = {NOW}
             WHERE id = $1 AND writes = $2 RETURNING expired_us IS NOT NULL"
        );
        let values: [Typed<'_>; 2] = [(&self.id, Type::INT8), (&self.writes, Type::INT8)];
        if let Some(row) = client.query_typed_opt(&sql, &values).await? {
            return Ok(if row.try_get(0)? { LeaseStatus::Expired } else { LeaseStatus::Valid });
        }
        let sql = "SELECT writes FROM runner WHERE id = $1";
        let found = client.query_typed_opt(sql, &[(&self.id, Type::INT8)]).await?;
        match found.map(|row| row.try_get::<_, i64>(0)).transpose()? {
            Some(writes) if writes == self.writes + 1 && self.is_unsure => Ok(LeaseStatus::Written),
            Some(writes) if writes > self.writes => Err(PostgresError::Impersonated),
            _ => Ok(LeaseStatus::Forgotten),
        }
    }
}

/// Expires the runners whose heartbeat is still the one that this runner has seen for the whole of a lease.
pub(super) async fn expire_silent(
    transaction: &Transaction,
    heartbeats: &Heartbeats,
    times: &Times,
) -> Result<(), PostgresError> {
    let (runners, beats) = heartbeats.expired(times);
    if runners.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "UPDATE runner SET expired_us = {NOW} FROM unnest($1, $2) AS silent (its_id, its_beat) WHERE id = its_id AND heartbeat_us = its_beat
             AND expired_us IS NULL"
    );
    transaction.execute_typed(&sql, &[(&runners, Type::INT8_ARRAY), (&beats, Type::INT8_ARRAY)]).await?;
    Ok(())
}

/// Expires runners whose lease is over by the database's clock, for a run that begins and has seen no heartbeat yet. Does nothing while the
/// server has been up for less than a lease, because the others may not be back yet.
pub(super) async fn expire_at_start(transaction: &Transaction, times: &Times) -> Result<(), PostgresError> {
    let sql = format!(
        "UPDATE runner SET expired_us = {NOW} WHERE id IN (SELECT id FROM runner WHERE expired_us IS NULL AND ended_us IS NULL
             AND heartbeat_us < {NOW} - $1 ORDER BY id) AND expired_us IS NULL AND heartbeat_us < {NOW} - $1
             AND (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint < {NOW} - $1"
    );
    transaction.execute_typed(&sql, &[(&micros(times.lease), Type::INT8)]).await?;
    Ok(())
}

/// The latest heartbeat of each live runner.
pub(super) async fn heartbeats(transaction: &Transaction) -> Result<Vec<(i64, i64)>, PostgresError> {
    let sql = format!("SELECT id, heartbeat_us FROM runner WHERE id IN ({LIVE})");
    let rows = transaction.query_typed(&sql, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

pub(super) fn micros(span: std::time::Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

impl Runner {
    /// Registers the runner after the database lost some of its writes; this is one more.
    pub(super) async fn register_again(&self, transaction: &Transaction) -> Result<(), PostgresError> {
        Self { writes: self.writes + 1, ..self.clone() }.register(transaction).await
    }

    /// Deregisters the runner, and releases its batches.
    pub(super) fn deregister(&self, transaction: &Transaction) {
        transaction.execute_last("UPDATE batch SET runner = NULL WHERE runner = $1::bigint", self.id.to_string());
        let sql = format!("UPDATE runner SET ended_us = {NOW} WHERE id = $1::bigint");
        transaction.execute_last(sql, self.id.to_string());
    }
}
