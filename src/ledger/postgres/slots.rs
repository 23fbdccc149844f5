//! The slots of an account for its runners.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::runner::{Runner, micros};
use super::schema::HAS_SLOT;
use super::transaction::{NOW, Transaction, Typed};
use crate::domain::Account;
use crate::ledger::limits::Times;
use crate::ledger::rules::Slots;

/// For how long a task that no one polls counts as being at the service: several times what any takes (interface §4). Whoever runs its batch
/// learns what became of it.
const ABANDONED: Duration = Duration::from_hours(1);

/// The time for which a runner counts as waiting for a slot, as a multiple of the pause between two tries.
const WAITS: u32 = 4;

/// The maximum number of active tasks of all runners, if it is set.
pub(super) async fn most(transaction: &Transaction) -> Result<Option<i64>, PostgresError> {
    let row = transaction.query_typed_one("SELECT slots::bigint FROM ledger WHERE id = 1", &[]).await?;
    Ok(row.try_get(0)?)
}

/// The slots for a runner. All runners of an account share its slots: as many as the most that one of them was given. A runner with
/// fewer than its share goes first; none keeps a slot that no other wants.
pub(super) async fn slots(
    transaction: &Transaction,
    runner: &Runner,
    account: &Account,
    times: &Times,
) -> Result<Slots, PostgresError> {
    let key: [Typed<'_>; 2] = [(&&*account.service, Type::TEXT), (&&*account.key, Type::TEXT)];
    let paused = format!("SELECT paused_us - {NOW} FROM account WHERE service = $1 AND key = $2");
    let open = format!(
        "SELECT coalesce(assigned_runner, 0), count(*) FROM attempt WHERE service = $1 AND key = $2
         AND {HAS_SLOT} AND (intended_us > {NOW} - $3 OR EXISTS (SELECT 1 FROM runner
             WHERE runner.id = assigned_runner AND expired_us IS NULL AND ended_us IS NULL)) GROUP BY 1"
    );
    let alive = format!(
        "SELECT id, concurrency, waited_us > {NOW} - $2 FROM runner WHERE expired_us IS NULL AND ended_us IS NULL AND heartbeat_us > {NOW} - $1"
    );
    let (abandoned, dead) = (micros(ABANDONED), micros(times.lease));
    // A runner without a slot asks again soon, and counts as waiting until then.
    let waits = micros(times.look_again * WAITS);
    let [service, name] = key.clone();
    let open_values = [service, name, (&abandoned as &(dyn ToSql + Sync), Type::INT8)];
    let alive_values: [Typed<'_>; 2] = [(&dead, Type::INT8), (&waits, Type::INT8)];
    let (paused, open, alive, fixed) = futures::try_join!(
        async { Ok(transaction.query_typed_opt(&paused, &key).await?) },
        async { Ok(transaction.query_typed(&open, &open_values).await?) },
        async { Ok(transaction.query_typed(&alive, &alive_values).await?) },
        most(transaction),
    )?;
    let paused: i64 = paused.map_or(Ok(0), |row| row.try_get(0))?;
    if paused > 0 {
        let wait = Duration::from_micros(paused.unsigned_abs());
        return Ok(Slots::Paused(wait.min(Duration::from_secs(5))));
    }
    let mut open_of: HashMap<i64, i64> = HashMap::new();
    for row in open {
        open_of.insert(row.try_get(0)?, row.try_get(1)?);
    }
    // A runner without a number is not limited.
    let wanted = if runner.concurrency == 0 { i64::MAX } else { runner.concurrency.into() };
    let (mut slots, mut sharing, mut below_share) = (wanted, 1, Vec::new());
    for row in alive {
        let (id, concurrency, is_waiting): (i64, i32, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if id == runner.id {
            continue;
        }
        slots = slots.max(concurrency.into());
        let open = open_of.get(&id).copied().unwrap_or_default();
        sharing += i64::from(is_waiting || open > 0);
        if is_waiting {
            below_share.push(open);
        }
    }
    let slots = fixed.unwrap_or(slots);
    let share = (slots / sharing).max(1);
    let free = (slots - open_of.values().sum::<i64>()).max(0);
    let own = open_of.get(&runner.id).copied().unwrap_or_default();
    let is_generous = below_share.iter().any(|open| *open < share);
    Ok(Slots::Free(if is_generous { free.min((share - own).max(0)) } else { free }))
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
