//! The freeze after a failover.
//!
//! A standby that takes over may lack commits of any runner, also of one whose first commit it never saw. What survived can't prove that nothing
//! is missing. So a change of timeline freezes purchases until the user unfreezes them, unless a synchronous standby acknowledged every
//! write since the last unfreeze.
//!
//! Without such a standby, the ledger says so from its first row on: a standby may have the ledger, but not the first intent.

use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::schema::{IS_ALONE, TIMELINE};
use super::transaction::{NOW, Transaction};
use crate::domain::Freeze;

/// The loss that a change of timeline shows.
const ANOTHER_SERVER: &str = "another database server took over";

/// Locks the ledger's row, and freezes purchases if a server took over that may lack commits. Returns the time by the database's clock, in
/// microseconds, and the freeze, if purchases are frozen.
pub(super) async fn lock(transaction: &Transaction) -> Result<(i64, Option<Freeze>), PostgresError> {
    let sql = format!(
        "SELECT frozen, by_failover, timeline <> {TIMELINE}, unacknowledged, {IS_ALONE}, {NOW}
         FROM ledger WHERE id = 1 FOR UPDATE"
    );
    let row = transaction.query_typed_one(&sql, &[]).await?;
    let (reason, by_failover): (Option<String>, bool) = (row.try_get(0)?, row.try_get(1)?);
    let (has_moved, may_lack_commits, is_alone): (bool, bool, bool) =
        (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
    let now_us = row.try_get(5)?;
    if has_moved || (is_alone && !may_lack_commits) {
        let sql =
            format!("UPDATE ledger SET timeline = {TIMELINE}, unacknowledged = unacknowledged OR $1 WHERE id = 1");
        transaction.execute_typed(&sql, &[(&is_alone, Type::BOOL)]).await?;
    }
    if has_moved && may_lack_commits && !by_failover {
        return Ok((now_us, Some(freeze(transaction, ANOTHER_SERVER).await?)));
    }
    Ok((now_us, reason.map(|why| Freeze { why: why.into(), by_failover })))
}

/// The freeze, if purchases are frozen, or the next intent will freeze them. Changes nothing, also on a standby.
pub(super) async fn frozen(transaction: &Transaction) -> Result<Option<Freeze>, PostgresError> {
    let sql = format!(
        "SELECT frozen, by_failover, unacknowledged AND CASE WHEN pg_is_in_recovery() THEN false ELSE timeline <> {TIMELINE} END
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
