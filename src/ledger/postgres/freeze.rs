//! The freeze after a failover or a restore.
//!
//! A standby that takes over may lack commits of any runner, and a restored dump lacks all later ones. The tables that survived can't prove that
//! nothing is missing: a note that every commit was acknowledged would itself be among the missing commits. So any change of the server's
//! timeline, its cluster, or the ledger's table freezes purchases until the user unfreezes them. Synchronous standbys are no exception.
//!
//! A copy of the disk has the same identity, and is not detected.

use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::schema::{IDENTITY, check_version};
use super::transaction::{NOW, Transaction};
use crate::domain::Freeze;

/// The loss that a change of identity shows.
const ANOTHER_SERVER: &str = "another database server took over, or a dump was restored";

/// Locks the ledger's row, refuses a ledger of another version, and freezes purchases if the ledger may lack commits. Returns the time by the
/// database's clock, in microseconds, and the freeze, if purchases are frozen.
pub(super) async fn lock(transaction: &Transaction) -> Result<(i64, Option<Freeze>), PostgresError> {
    let sql = format!(
        "SELECT frozen, by_failover, identity <> {IDENTITY}, {NOW}, version FROM ledger WHERE id = 1 FOR UPDATE"
    );
    let row = transaction.query_typed_one(&sql, &[]).await?;
    let (reason, by_failover): (Option<String>, bool) = (row.try_get(0)?, row.try_get(1)?);
    let (has_moved, now_us): (bool, i64) = (row.try_get(2)?, row.try_get(3)?);
    check_version(row.try_get(4)?)?;
    if has_moved {
        let sql = format!("UPDATE ledger SET identity = {IDENTITY} WHERE id = 1");
        transaction.execute_typed(&sql, &[]).await?;
    }
    if has_moved && !by_failover {
        return Ok((now_us, Some(freeze(transaction, ANOTHER_SERVER).await?)));
    }
    Ok((now_us, reason.map(|why| Freeze { why: why.into(), by_failover })))
}

/// The freeze, if purchases are frozen, or the next intent will freeze them. Changes nothing, also on a standby.
pub(super) async fn frozen(transaction: &Transaction) -> Result<Option<Freeze>, PostgresError> {
    let sql = format!(
        "SELECT frozen, by_failover, CASE WHEN pg_is_in_recovery() THEN false ELSE identity <> {IDENTITY} END
         FROM ledger WHERE id = 1"
    );
    let row = transaction.query_typed_one(&sql, &[]).await?;
    let (reason, by_failover): (Option<String>, bool) = (row.try_get(0)?, row.try_get(1)?);
    if row.try_get(2)? && !by_failover {
        return Ok(Some(lost(transaction, ANOTHER_SERVER).await?));
    }
    Ok(reason.map(|why| Freeze { why: why.into(), by_failover }))
}

/// Freezes purchases because the database may have lost some.
pub(super) async fn freeze(transaction: &Transaction, what: &str) -> Result<Freeze, PostgresError> {
    let freeze = lost(transaction, what).await?;
    let sql = "UPDATE ledger SET frozen = $1, by_failover = true WHERE id = 1";
    transaction.execute_typed(sql, &[(&&*freeze.why, Type::TEXT)]).await?;
    Ok(freeze)
}

/// The freeze for a loss, with the time in which purchases may be missing: from the last intent that survived until now. Intents are never written on another
/// server before the freeze, but heartbeats are.
async fn lost(transaction: &Transaction, what: &str) -> Result<Freeze, PostgresError> {
    let sql = format!(
        "SELECT (SELECT max(intended_us) FROM attempt WHERE NOT was_forgotten), {NOW}, CASE WHEN NOT by_failover THEN frozen END
         FROM ledger WHERE id = 1"
    );
    let row = transaction.query_typed_one(&sql, &[]).await?;
    let (last, now): (Option<i64>, i64) = (row.try_get(0)?, row.try_get(1)?);
    let at = |micros| format!("{:.0}", Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX));
    let from = last.map_or_else(|| "the beginning".to_owned(), at);
    // The user's reason still holds, such as a copy that is in use elsewhere.
    let earlier = row.try_get::<_, Option<String>>(2)?.map(|why| format!("{why}; ")).unwrap_or_default();
    let why = format!("{earlier}{what}, and purchases from {from} to {} may be missing", at(now));
    Ok(Freeze { why: why.into(), by_failover: true })
}
