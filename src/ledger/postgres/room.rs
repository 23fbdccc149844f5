//! The places at the service that an account has for its runners.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::limits;
use super::runner::{Runner, micros};
use crate::domain::Account;
use crate::ledger::times::Times;

/// For how long a task that nobody looks after counts as being at the service: several times what any takes (interface §4). Whoever runs its batch
/// learns what became of it.
const ABANDONED: Duration = Duration::from_hours(1);

/// How many times as long as the pause between two tries somebody is thought to wait for a place.
const WAITS: u32 = 4;

/// The places that the account has for this runner.
pub(super) enum Room {
    /// So many, with how many runners live, this one included.
    Free(i64, u32),
    Paused(Duration),
}

/// All runners of an account share its places: as many as the most that one of them was given. Who has fewer than its share
/// goes before who has more; nobody keeps a place that no other wants.
pub(super) async fn room(
    transaction: &Transaction<'_>,
    runner: &Runner,
    account: &Account,
    now: i64,
    times: &Times,
) -> Result<Room, PostgresError> {
    let key: [(&(dyn ToSql + Sync), Type); 2] = [(&&*account.service, Type::TEXT), (&&*account.key, Type::TEXT)];
    let paused = "SELECT paused_us FROM account WHERE service = $1 AND key = $2";
    let paused = transaction.query_typed_opt(paused, &key).await?;
    let paused: i64 = paused.map_or(Ok(0), |row| row.try_get(0))?;
    if paused > now {
        let wait = Duration::from_micros(u64::try_from(paused - now).unwrap_or_default());
        return Ok(Room::Paused(wait.min(Duration::from_secs(5))));
    }
    let open = "SELECT coalesce(keeper, 0), count(*) FROM attempt WHERE service = $1 AND key = $2
         AND state IN ('intended', 'queued', 'in_progress') AND (intended_us > $3 OR EXISTS (SELECT 1 FROM runner
             WHERE runner.id = keeper AND died_us IS NULL AND left_us IS NULL)) GROUP BY 1";
    let mut open_of: HashMap<i64, i64> = HashMap::new();
    let since = now - micros(ABANDONED);
    let [service, name] = key;
    for row in transaction.query_typed(open, &[service, name, (&since, Type::INT8)]).await? {
        open_of.insert(row.try_get(0)?, row.try_get(1)?);
    }
    let sql =
        "SELECT id, concurrency, waited_us > $2 FROM runner WHERE died_us IS NULL AND left_us IS NULL AND beat_us > $1";
    // Whoever was refused a place a moment ago asks again, and waits until then.
    let (alive, waits) = (now - micros(times.dead), now - micros(times.look_again * WAITS));
    let alive = transaction.query_typed(sql, &[(&alive, Type::INT8), (&waits, Type::INT8)]).await?;
    // Who never said how many it wants is not held back.
    let wanted = if runner.concurrency == 0 { i64::MAX } else { runner.concurrency.into() };
    let (mut slots, mut sharing, mut hungry) = (wanted, 1, Vec::new());
    let living = u32::try_from(alive.len()).unwrap_or(u32::MAX);
    for row in alive {
        let (id, concurrency, is_waiting): (i64, i32, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if id == runner.id {
            continue;
        }
        slots = slots.max(concurrency.into());
        let open = open_of.get(&id).copied().unwrap_or_default();
        sharing += i64::from(is_waiting || open > 0);
        if is_waiting {
            hungry.push(open);
        }
    }
    let slots = limits::slots(transaction).await?.unwrap_or(slots);
    let share = (slots / sharing).max(1);
    let free = (slots - open_of.values().sum::<i64>()).max(0);
    let own = open_of.get(&runner.id).copied().unwrap_or_default();
    let is_generous = hungry.iter().any(|open| *open < share);
    Ok(Room::Free(if is_generous { free.min((share - own).max(0)) } else { free }, living))
}
