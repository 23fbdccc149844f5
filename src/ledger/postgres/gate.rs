//! Whether anybody may buy at all: not while it is unknown whether the database has forgotten something.

use std::time::Duration;

use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::runner::micros;
use super::schema::TIMELINE;
use super::transaction::NOW;
use crate::domain::Freeze;
use crate::ledger::times::Times;

/// Whether anybody may buy at all.
pub(super) enum Gate {
    /// Yes; it is now, by the database's clock.
    Open(i64),
    /// In a while: another server has taken over, and everybody looks first whether it knows what they know.
    Waits(Duration),
    /// Not before a person has looked.
    Frozen(Freeze),
}

/// Locks the ledger's row, and looks whether the database is the one that everybody wrote to.
///
/// A standby that took over may lack the last commits of any runner. Each finds that out when it next gives a sign of life. So nobody buys until
/// all have had the time for it; who was alive and gave none may be the one whose purchases are missing.
pub(super) async fn gate(transaction: &Transaction<'_>, times: &Times) -> Result<Gate, PostgresError> {
    let sql =
        format!("SELECT stopped, timeline <> {TIMELINE}, quarantined_us, {NOW} FROM ledger WHERE id = 1 FOR UPDATE");
    let row = transaction.query_typed_one(&sql, &[]).await?;
    let (stopped, has_moved): (Option<String>, bool) = (row.try_get(0)?, row.try_get(1)?);
    let (until, now): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
    if let Some(why) = stopped {
        return Ok(Gate::Frozen(Freeze { why: why.into(), by_failover: until != 0 }));
    }
    if has_moved {
        let missing = format!(
            "UPDATE runner SET is_missing = true WHERE died_us IS NULL AND left_us IS NULL AND timeline <> {TIMELINE}"
        );
        transaction.execute_typed(&missing, &[]).await?;
        let sql = format!("UPDATE ledger SET timeline = {TIMELINE}, quarantined_us = $1 WHERE id = 1");
        transaction.execute_typed(&sql, &[(&(now + micros(times.dead)), Type::INT8)]).await?;
        return Ok(Gate::Waits(times.look_again));
    }
    if until > now {
        return Ok(Gate::Waits(times.look_again));
    }
    if until == 0 {
        return Ok(Gate::Open(now));
    }
    let sql = "SELECT string_agg(name, ', ' ORDER BY name) FROM runner WHERE left_us IS NULL AND is_missing";
    let missing: Option<String> = transaction.query_typed_one(sql, &[]).await?.try_get(0)?;
    if let Some(missing) = missing {
        let why = format!("another server has taken over, and {missing} never said what it had bought before");
        stop(transaction, &why).await?;
        return Ok(Gate::Frozen(Freeze { why: why.into(), by_failover: true }));
    }
    transaction.execute_typed("UPDATE ledger SET quarantined_us = 0 WHERE id = 1", &[]).await?;
    Ok(Gate::Open(now))
}

/// Freezes purchases after a failover, until a person has looked. The first reason stays.
pub(super) async fn stop(transaction: &Transaction<'_>, why: &str) -> Result<(), PostgresError> {
    let sql =
        "UPDATE ledger SET stopped = coalesce(stopped, $1), quarantined_us = greatest(quarantined_us, 1) WHERE id = 1";
    transaction.execute_typed(sql, &[(&why, Type::TEXT)]).await?;
    Ok(())
}
