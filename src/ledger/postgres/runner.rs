//! A runner and its lease.
//!
//! A runner is a process with a random number, and its row is never reused. Each of its writes increments a counter in that row. The counter answers three
//! questions: was a commit made after its response was lost, did the database lose an acknowledged commit, and, because an expired runner is marked in the
//! same row, may this runner still buy?
//!
//! The lock of a batch is a column of its row, and valid during the lease of its runner. A session lock would end with a connection, although its runner may
//! still send.
//!
//! After an outage, all other runners are silent for the first one that returns, and a database's clock may jump. So a runner expires another one only
//! after it observed the same heartbeat for a whole lease, without a longer gap between its own observations.
//!
//! The database may lose acknowledged writes when a standby takes over that lagged behind. The runner that notices restores them: the missing attempts, and those of which the database has an older
//! state. Then purchases freeze until the user has checked, because another runner's purchases may be missing, too.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::schema::{LIVE, freeze_after_loss};
use super::statements::locked_rows;
use super::transaction::{BEGUN, LeaseStatus, NOW, PostgresError, Transaction, Typed};
use crate::domain::{AttemptId, AttemptState, BatchKey, Charge, random};
use crate::ledger::record::TIMES;
use crate::ledger::row::{Row, Shared};
use crate::ledger::rules::Changes;
use crate::ledger::sql::{Sql as _, ensure_batch};
use crate::ledger::this_machine;

/// A runner: one process.
#[derive(Clone, Debug)]
pub(super) struct Runner {
    /// A random number, unique.
    pub(super) id: i64,
    /// The number of acknowledged writes.
    pub(super) writes: i64,
    /// True if the response to the last commit was lost: the next write may exist.
    pub(super) is_unsure: bool,
}

impl Runner {
    pub(super) fn new() -> Self {
        // Positive in every representation.
        let id = (random() >> 2).cast_signed();
        Self { id, writes: 0, is_unsure: false }
    }

    /// Registers the runner, also again after the database lost it.
    pub(super) async fn register(&self, client: &Client) -> Result<(), PostgresError> {
        let sql = format!(
            "INSERT INTO runner (id, name, since_us, heartbeat_us, writes)
             SELECT $1, $2, {NOW}, {NOW}, $3 WHERE {BEGUN} ON CONFLICT (id) DO UPDATE SET writes = $3, heartbeat_us = {NOW}"
        );
        let name = format!("{} process {}", this_machine(), std::process::id());
        let values: [Typed<'_>; 3] = [(&self.id, Type::INT8), (&name, Type::TEXT), (&self.writes, Type::INT8)];
        client.execute_typed(&sql, &values).await?;
        Ok(())
    }

    /// Renews the lease, counts the write of this transaction, and returns the lease's state. No other runner expires this one before the
    /// transaction ends.
    pub(super) async fn renew_lease(&self, client: &Client) -> Result<LeaseStatus, PostgresError> {
        let sql = format!(
            "UPDATE runner SET writes = writes + 1, heartbeat_us = {NOW}
             WHERE id = $1 AND writes = $2 AND {BEGUN} RETURNING expired_us IS NOT NULL"
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

    /// Deregisters the runner, and releases its batches.
    pub(super) fn deregister(&self, transaction: &Transaction) {
        transaction.execute_last("UPDATE batch SET runner = NULL WHERE runner = $1::bigint", self.id.to_string());
        let sql = format!("UPDATE runner SET ended_us = {NOW} WHERE id = $1::bigint");
        transaction.execute_last(sql, self.id.to_string());
    }
}

/// Expires the runners without a new heartbeat for a whole lease.
pub(super) async fn expire_silent(transaction: &Transaction, heartbeats: &Heartbeats) -> Result<(), PostgresError> {
    let (runners, beats) = heartbeats.expired();
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

/// Expires runners by the database's clock, for a new run without an observed heartbeat. Does nothing until the server has been up for a
/// lease: the other runners may still reconnect.
pub(super) async fn expire_at_start(transaction: &Transaction) -> Result<(), PostgresError> {
    let sql = format!(
        "UPDATE runner SET expired_us = {NOW} WHERE id IN (SELECT id FROM runner WHERE expired_us IS NULL AND ended_us IS NULL
             AND heartbeat_us < {NOW} - $1 ORDER BY id) AND expired_us IS NULL AND heartbeat_us < {NOW} - $1
             AND (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint < {NOW} - $1"
    );
    transaction.change(&sql, &[micros(TIMES.lease).into()]).await
}

/// The latest heartbeat of each live runner.
pub(super) async fn heartbeats(transaction: &Transaction) -> Result<Vec<(i64, i64)>, PostgresError> {
    let sql = format!("SELECT id, heartbeat_us FROM runner WHERE id IN ({LIVE})");
    transaction.query_typed(&sql, &[]).await?.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

pub(super) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// The batches that this runner has locked, by the number in commands. Their number in the database may differ on another server.
pub(super) type LockedBatches = BTreeMap<usize, (i64, BatchKey)>;

/// Locks a batch for a runner. Returns the description of a live runner that has it.
pub(super) async fn lock_batch(
    transaction: &Transaction,
    runner: &Runner,
    batch: i64,
) -> Result<Option<String>, PostgresError> {
    let values: [Typed<'_>; 2] = [(&batch, Type::INT8), (&runner.id, Type::INT8)];
    // With the row locked, the next statement sees the runner of earlier commits.
    let row = transaction.query_typed("SELECT id FROM batch WHERE id = $1 FOR NO KEY UPDATE", &values[..1]);
    let take = format!("UPDATE batch SET runner = $2 WHERE id = $1 AND (runner IS NULL OR runner NOT IN ({LIVE}))");
    let holder = format!(
        "SELECT runner.name, ({NOW} - heartbeat_us) / 1000000 FROM batch JOIN runner ON runner.id = batch.runner
         WHERE batch.id = $1 AND runner.id <> $2"
    );
    let (row, taken, holder) =
        futures::join!(row, transaction.execute_typed(&take, &values), transaction.query_typed_opt(&holder, &values));
    row.map(drop).and(taken.map(drop))?;
    let described = |row: tokio_postgres::Row| {
        let (name, silent_s): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok(format!("{name}, last heartbeat {} s ago", silent_s.max(0)))
    };
    holder?.map(described).transpose()
}

/// Releases a batch of a runner.
pub(super) async fn release_batch(transaction: &Transaction, runner: &Runner, batch: i64) -> Result<(), PostgresError> {
    let release = "UPDATE batch SET runner = NULL WHERE id = $1 AND runner = $2";
    transaction.change(release, &[batch.into(), runner.id.into()]).await
}

/// Returns whether one of these batches is no longer this runner's.
pub(super) async fn is_any_lost(
    transaction: &Transaction,
    runner: &Runner,
    batches: &[i64],
) -> Result<bool, PostgresError> {
    let lost = "SELECT EXISTS (SELECT 1 FROM batch WHERE id = ANY($1) AND runner IS DISTINCT FROM $2)";
    let values: [Typed<'_>; 2] = [(&batches, Type::INT8_ARRAY), (&runner.id, Type::INT8)];
    Ok(transaction.query_typed_one(lost, &values).await?.try_get(0)?)
}

/// The latest heartbeat of each runner, with the time of its first observation.
#[derive(Debug)]
pub(super) struct Heartbeats {
    seen: HashMap<i64, (i64, Instant)>,
    looked: Instant,
}

impl Heartbeats {
    pub(super) fn new() -> Self {
        Self { seen: HashMap::new(), looked: Instant::now() }
    }

    /// Notes the latest heartbeat of each live runner, as the database's time in microseconds.
    pub(super) fn note(&mut self, latest: Vec<(i64, i64)>) {
        let now = Instant::now();
        let has_gap = self.has_gap();
        let since = |runner: i64, beat: i64| match self.seen.get(&runner) {
            Some((seen, since)) if *seen == beat && !has_gap => *since,
            _ => now,
        };
        self.seen = latest.into_iter().map(|(runner, beat)| (runner, (beat, since(runner, beat)))).collect();
        self.looked = now;
    }

    /// The runners whose lease has expired, each with its last heartbeat.
    pub(super) fn expired(&self) -> (Vec<i64>, Vec<i64>) {
        if self.has_gap() {
            return (Vec::new(), Vec::new());
        }
        let is_expired = |since: Instant| since.elapsed() >= TIMES.lease;
        self.seen
            .iter()
            .filter(|(_, (_, since))| is_expired(*since))
            .map(|(runner, (beat, _))| (*runner, *beat))
            .unzip()
    }

    /// Returns whether this runner has not observed for so long that it may have missed heartbeats.
    fn has_gap(&self) -> bool {
        // After a shorter outage, each runner has half a lease to reconnect.
        self.looked.elapsed() > TIMES.lease / 2
    }
}

/// The latest row of every attempt that this runner wrote, with its batch.
#[derive(Debug, Default)]
pub(super) struct AcknowledgedWrites {
    rows: HashMap<AttemptId, (BatchKey, Row)>,
}

impl AcknowledgedWrites {
    /// Adds a row of an acknowledged commit.
    pub(super) fn keep(&mut self, batch: &BatchKey, row: Row) {
        self.rows.insert(row.attempt.id, (batch.clone(), row));
    }

    /// A line for each attempt that may have been charged.
    pub(super) fn charged(&self) -> impl Iterator<Item = String> {
        let charged = self.rows.values().filter(|(_, row)| row.attempt.charge() != Charge::None);
        charged.map(|(batch, Row { attempt, .. })| {
            let job = attempt.job();
            attempt.task.as_ref().map_or_else(
                || format!("{job} of {batch} was submitted, with an unknown outcome"),
                |task| {
                    let task = &task.id;
                    format!("the task of {job} of {batch} is {task}; `shotlist resolve MANIFEST {job} --task {task}` records it")
                },
            )
        })
    }

    /// Restores lost rows, freezes purchases, and returns a description.
    pub(super) async fn put_back(
        &self,
        transaction: &Transaction,
        runner: &Runner,
        locked: &mut LockedBatches,
    ) -> Result<String, PostgresError> {
        // Registers the runner as one more write.
        Runner { writes: runner.writes + 1, ..runner.clone() }.register(transaction).await?;
        let mut numbers: HashMap<&BatchKey, i64> = HashMap::new();
        for (key, _) in self.rows.values() {
            if !numbers.contains_key(key) {
                numbers.insert(key, ensure_batch(transaction, key).await?);
            }
        }
        for (number, key) in locked.values_mut() {
            *number = ensure_batch(transaction, key).await?;
            // Purchases freeze, so another runner may keep the batch.
            lock_batch(transaction, runner, *number).await?;
        }
        let ids: Vec<AttemptId> = self.rows.keys().copied().collect();
        let there = locked_rows(transaction, &ids).await?;
        let (mut missing, mut older) = (Vec::new(), Vec::new());
        for (id, (key, known)) in &self.rows {
            let batch = numbers.get(key).copied().unwrap_or(known.batch);
            let put_back = |version| {
                let shared = Shared { version, was_forgotten: true, ..known.shared };
                Row { attempt: known.attempt.clone(), batch, shared }
            };
            match there.get(id) {
                None => missing.push(put_back(known.shared.version)),
                Some(found) if knows_more(known, found) => {
                    older.push((found, put_back(known.shared.version.max(found.shared.version) + 1)));
                }
                Some(_) => {}
            }
        }
        let (gone, aged) = (missing.len(), older.len());
        let changes = Changes::new(&missing, older.iter().map(|(found, row)| (*found, row)));
        transaction.save_now(&changes).await?;
        let shown = format!(
            "the database has forgotten what it had acknowledged: {} put {gone} attempts and {aged} newer states back",
            this_machine()
        );
        freeze_after_loss(transaction, &shown).await?;
        Ok(shown)
    }
}

/// Returns whether this runner has a newer state of an attempt than the database. A terminal state by another runner stays, and a task that
/// only this runner knows is never lost.
fn knows_more(known: &Row, found: &Row) -> bool {
    let is_final = matches!(found.attempt.state, AttemptState::Completed | AttemptState::Failed);
    let has_the_task = known.attempt.task.is_some() && found.attempt.task.is_none();
    !is_final && (has_the_task || known.shared.version > found.shared.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observes every second until `seconds`, and returns the expired runners.
    async fn expired_after(heartbeats: &mut Heartbeats, seconds: u64, beat: impl Fn(u64) -> i64) -> Vec<i64> {
        for second in 0..seconds {
            heartbeats.note(vec![(7, beat(second))]);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        heartbeats.expired().0
    }

    #[tokio::test(start_paused = true)]
    async fn silent_runner_expires_after_a_lease_of_observation() {
        let mut heartbeats = Heartbeats::new();
        assert_eq!(expired_after(&mut heartbeats, 59, |_| 1).await, [0; 0]);
        assert_eq!(expired_after(&mut heartbeats, 2, |_| 1).await, [7]);
    }

    #[tokio::test(start_paused = true)]
    async fn live_runner_never_expires() {
        let mut heartbeats = Heartbeats::new();
        let every_five_seconds = |second: u64| i64::try_from(second / 5).expect("small");
        assert_eq!(expired_after(&mut heartbeats, 300, every_five_seconds).await, [0; 0]);
    }

    /// After an outage of the database, the first runner must not expire the others.
    #[tokio::test(start_paused = true)]
    async fn outage_gives_everyone_a_lease_to_come_back() {
        let mut heartbeats = Heartbeats::new();
        assert_eq!(expired_after(&mut heartbeats, 50, |_| 1).await, [0; 0]);
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(heartbeats.expired().0, [0; 0], "not before it has looked again");
        assert_eq!(expired_after(&mut heartbeats, 59, |_| 1).await, [0; 0]);
        assert_eq!(expired_after(&mut heartbeats, 2, |_| 1).await, [7]);
    }

    /// A jump of the database's clock changes heartbeats, but makes none old.
    #[tokio::test(start_paused = true)]
    async fn clock_jump_expires_no_runner() {
        let mut heartbeats = Heartbeats::new();
        let jump = |second: u64| if second < 30 { 1 } else { 600_000_000 };
        assert_eq!(expired_after(&mut heartbeats, 80, jump).await, [0; 0]);
    }
}
