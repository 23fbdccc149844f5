//! The slots of an account for its runners.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::runner::{Runner, micros};
use super::schema::{HAS_SLOT, LIVE};
use super::transaction::{NOW, Transaction, Typed};
use crate::domain::Account;
use crate::ledger::rules::Slots;

/// The time after which a task without a live runner takes no slot: several times the longest generation (interface §4). The next run of its
/// batch polls it.
const ABANDONED: Duration = Duration::from_hours(1);
/// The longest wait before a paused account is checked again.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The maximum number of active tasks of all runners, if it is set.
pub(super) async fn most(transaction: &Transaction) -> Result<Option<i64>, PostgresError> {
    let row = transaction.query_typed_one("SELECT slots::bigint FROM ledger WHERE id = 1", &[]).await?;
    Ok(row.try_get(0)?)
}

/// The free slots of an account for a runner: its equal share of those that are set, as far as all together leave that. Unlimited if none are set:
/// `--concurrency` limits each runner.
pub(super) async fn slots(
    transaction: &Transaction,
    runner: &Runner,
    account: &Account,
) -> Result<Slots, PostgresError> {
    let sql = format!(
        "SELECT coalesce((SELECT paused_us - {NOW} FROM account WHERE service = $1 AND key = $2), 0), slots::bigint,
             (SELECT count(*) FROM ({LIVE}) AS live), coalesce(open.total, 0), coalesce(open.own, 0)
         FROM ledger LEFT JOIN LATERAL (
             SELECT count(*) AS total, count(*) FILTER (WHERE batch.runner = $3) AS own
             FROM attempt JOIN batch ON batch.id = attempt.batch
             WHERE service = $1 AND key = $2 AND {HAS_SLOT} AND (intended_us > {NOW} - $4 OR batch.runner IN ({LIVE}))
         ) AS open ON slots IS NOT NULL WHERE ledger.id = 1"
    );
    let abandoned = micros(ABANDONED);
    let values: [Typed<'_>; 4] = [
        (&&*account.service, Type::TEXT),
        (&&*account.key, Type::TEXT),
        (&runner.id, Type::INT8),
        (&abandoned, Type::INT8),
    ];
    let row = transaction.query_typed_one(&sql, &values).await?;
    let (paused_us, slots): (i64, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
    if paused_us > 0 {
        return Ok(Slots::Paused(Duration::from_micros(paused_us.unsigned_abs()).min(MAX_PAUSE)));
    }
    let Some(slots) = slots else { return Ok(Slots::Free(i64::MAX)) };
    let (live, total, own): (i64, i64, i64) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
    let share = (slots / live.max(1)).max(1);
    Ok(Slots::Free((share - own).min(slots - total)))
}

/// Stops all submissions for an account for a while. A shorter wait never ends a longer one.
pub(super) async fn pause(transaction: &Transaction, account: &Account, wait: Duration) -> Result<(), PostgresError> {
    let sql = format!(
        "INSERT INTO account VALUES ($1, $2, {NOW} + $3)
         ON CONFLICT (service, key) DO UPDATE SET paused_us = greatest(account.paused_us, excluded.paused_us)"
    );
    let values: [Typed<'_>; 3] =
        [(&&*account.service, Type::TEXT), (&&*account.key, Type::TEXT), (&micros(wait), Type::INT8)];
    transaction.execute_typed(&sql, &values).await?;
    Ok(())
}
