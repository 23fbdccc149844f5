//! A transaction of a runner, which renews the lease and counts as one of its writes, and the facts that decide whether intents are admitted.
//!
//! The ledger's row is locked first, so one runner decides at a time, and sees all decisions of the others. All questions
//! travel together, in one round trip.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::OnceCell;
use tokio_postgres::types::Type;

use super::runner::{Runner, is_any_lost, micros};
use super::schema::{HAS_SLOT, LIVE, lock_ledger};
use super::statements::{ROW, locked_rows, now, read_row, write_rows_last};
use super::transaction::{LOCK, LeaseStatus, NOW, PostgresError, Transaction, Typed};
use crate::domain::{Account, AttemptId, JobId, TaskId};
use crate::ledger::record::TIMES;
use crate::ledger::row::Row;
use crate::ledger::rules::{BatchIntent, Changes, Facts, OtherRunnersFacts, SlotStatus};
use crate::ledger::sql::{self, Sql as _};
use crate::ledger::store::{self, Locked};
use crate::ledger::{Event, LedgerError, SpendLimit};

/// The start of attempt numbers, in milliseconds since 1970: 2020-01-01.
const FIRST_MS: i64 = 1_577_836_800_000;
/// The random bits of a number.
const RANDOM_BITS: u32 = 22;
/// The largest distance between the numbers of two intents of one commit.
const GAP: i64 = 1024;

/// The highest number of an attempt of these batches; 0 without one.
async fn newest_id(transaction: &Transaction, batches: &[i64]) -> Result<i64, PostgresError> {
    let sql = "SELECT coalesce(max(newest), 0) FROM unnest($1) AS of
         CROSS JOIN LATERAL (SELECT max(id) AS newest FROM attempt WHERE batch = of) AS attempts";
    Ok(transaction.query_typed_one(sql, &[(&batches, Type::INT8_ARRAY)]).await?.try_get(0)?)
}

/// A number that is higher than the newest of its batch, and that no other runner has likely chosen: clock and randomness make it, so that a
/// database that lost an attempt does not give its number to the next. The primary key refuses one that exists.
fn next_id(newest: i64, now_us: i64) -> i64 {
    let by_the_clock = ((now_us / 1000 - FIRST_MS).max(0) << RANDOM_BITS) + fastrand::i64(0..1 << (RANDOM_BITS - 1));
    by_the_clock.max(newest)
}

/// The attempts of each job.
async fn attempts(
    transaction: &Transaction,
    asked: &[BatchIntent<'_>],
) -> Result<HashMap<(i64, JobId), Vec<Row>>, PostgresError> {
    let sql = format!(
        "SELECT {ROW} FROM unnest($1, $2) AS asked (its_batch, its_job)
         CROSS JOIN LATERAL (SELECT * FROM attempt WHERE batch = its_batch AND job = its_job OFFSET 0) AS attempt ORDER BY attempt.id"
    );
    let jobs: HashSet<(i64, &str)> =
        asked.iter().map(|asked| (asked.batch, asked.intent.purchase.job.as_str())).collect();
    let (batches, jobs): (Vec<i64>, Vec<&str>) = jobs.into_iter().unzip();
    let values: [Typed<'_>; 2] = [(&batches, Type::INT8_ARRAY), (&jobs, Type::TEXT_ARRAY)];
    let mut attempts: HashMap<_, Vec<Row>> = HashMap::new();
    for row in transaction.query_typed(&sql, &values).await? {
        let row = read_row(&row)?;
        attempts.entry((row.batch, row.attempt.job().clone())).or_default().push(row);
    }
    Ok(attempts)
}

/// The time after which a task without a live runner takes no slot: several times the longest generation (interface §4). The next run of its
/// batch polls it.
const ABANDONED: Duration = Duration::from_hours(1);
/// The longest wait before a paused account is checked again.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The maximum number of active tasks of all runners, if it is set.
pub(super) async fn total_slots(transaction: &Transaction) -> Result<Option<i64>, PostgresError> {
    let row = transaction.query_typed_one("SELECT slots::bigint FROM ledger WHERE id = 1", &[]).await?;
    Ok(row.try_get(0)?)
}

/// The free slots of an account for a runner: at most its equal share, and at most the free ones. Unlimited if no number is set: `--concurrency` limits
/// each runner.
pub(super) async fn slots(
    transaction: &Transaction,
    runner: &Runner,
    account: &Account,
) -> Result<SlotStatus, PostgresError> {
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
        return Ok(SlotStatus::Paused(Duration::from_micros(paused_us.unsigned_abs()).min(MAX_PAUSE)));
    }
    let Some(slots) = slots else { return Ok(SlotStatus::Free(i64::MAX)) };
    let (live, total, own): (i64, i64, i64) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
    let share = (slots / live.max(1)).max(1);
    let free = (share - own).min(slots - total);
    Ok(if free <= 0 && total > own { SlotStatus::Taken } else { SlotStatus::Free(free) })
}

/// Stops all submissions for an account for a while. A shorter wait never ends a longer one.
pub(super) async fn pause(transaction: &Transaction, account: &Account, wait: Duration) -> Result<(), PostgresError> {
    let sql = format!(
        "INSERT INTO account VALUES ($1, $2, {NOW} + $3)
         ON CONFLICT (service, key) DO UPDATE SET paused_us = greatest(account.paused_us, excluded.paused_us)"
    );
    transaction.change(&sql, &[(&*account.service).into(), (&*account.key).into(), micros(wait).into()]).await
}

/// A transaction of a runner.
pub(in crate::ledger) struct RunnerTransaction {
    pub(super) transaction: Transaction,
    pub(super) runner: Runner,
    /// The ledger limits at the last intent.
    pub(super) known_limits: Vec<SpendLimit>,
    pub(super) is_registered: bool,
    /// The state of the lease, once the transaction has started.
    pub(super) lease: OnceCell<Result<LeaseStatus, PostgresError>>,
}

impl RunnerTransaction {
    /// Starts the transaction. What is polled after the first poll of this travels with the start.
    pub(super) async fn start(&self) -> &Result<LeaseStatus, PostgresError> {
        let start = async || {
            let client = &self.transaction;
            let registers = async { if self.is_registered { Ok(()) } else { self.runner.register(client).await } };
            let (begun, registered, renewed) =
                futures::join!(client.start(), registers, self.runner.renew_lease(client));
            begun?;
            registered?;
            renewed
        };
        self.lease.get_or_init(start).await
    }

    /// The state of the lease. Fails if this runner has unsettled writes: check it before reading rows of an earlier write.
    pub(super) async fn lease(&self) -> Result<LeaseStatus, PostgresError> {
        match self.start().await {
            Ok(lease @ (LeaseStatus::Valid | LeaseStatus::Expired)) => Ok(*lease),
            Ok(unsettled) => Err(PostgresError::Unsettled(*unsettled)),
            // The store reports the fault of the start itself.
            Err(_) => Err(PostgresError::Silent),
        }
    }

    async fn rows(&self, sql: &str, values: &[Typed<'_>]) -> Result<Vec<Row>, PostgresError> {
        self.transaction.query_typed(sql, values).await?.iter().map(read_row).collect()
    }

    /// The name of another runner that is live, or expired recently enough to receive a pending response.
    async fn waiting_runner(&self, runner: Option<i64>) -> Result<Option<String>, PostgresError> {
        let sql = format!(
            "SELECT name FROM runner WHERE id = $1 AND id <> $3 AND ended_us IS NULL
             AND (expired_us IS NULL OR expired_us > {NOW} - $2)"
        );
        let response = micros(TIMES.response);
        let values: [Typed<'_>; 3] = [(&runner, Type::INT8), (&response, Type::INT8), (&self.runner.id, Type::INT8)];
        Ok(self.transaction.query_typed_opt(&sql, &values).await?.map(|row| row.try_get(0)).transpose()?)
    }
}

impl store::Transaction for RunnerTransaction {
    type Error = PostgresError;
    type Sql = Transaction;

    fn sql(&self) -> &Transaction {
        &self.transaction
    }

    fn runner(&self) -> Option<i64> {
        Some(self.runner.id)
    }

    /// Locks the ledger's row first.
    async fn facts(&self, asked: &[BatchIntent<'_>]) -> Result<Facts, PostgresError> {
        let transaction = &self.transaction;
        let Some(first) = asked.first() else { return Ok(Facts::default()) };
        let account = first.intent.account.clone();
        let batches: Vec<i64> = asked.iter().map(|asked| asked.batch).collect::<HashSet<_>>().into_iter().collect();
        let spans = asked.iter().flat_map(|asked| asked.intent.limits.iter()).chain(&self.known_limits);
        // After the lock, each statement sees all earlier commits. Earlier writes of this transaction lock sums, so they also come after the lock.
        let (lease, locked, written, is_lost, slots, newest, attempts, paid, limits, used) = futures::join!(
            self.lease(),
            lock_ledger(transaction),
            transaction.execute_queued(),
            is_any_lost(transaction, &self.runner, &batches),
            slots(transaction, &self.runner, &account),
            newest_id(transaction, &batches),
            attempts(transaction, asked),
            sql::paid(transaction, asked),
            sql::limits(transaction),
            sql::sums(transaction, spans)
        );
        let (lease, (now_us, freeze)) = (lease?, locked?);
        written?;
        let (is_lost, slots, newest, attempts) = (is_lost?, slots?, newest?, attempts?);
        let (paid, limits, mut used) = (paid?, limits?, used?);
        let now = Timestamp::from_microsecond(now_us).unwrap_or(Timestamp::MAX);
        let limits: Vec<SpendLimit> =
            limits.iter().filter(|_| freeze.is_none()).map(|limit| limit.spend_limit(now)).collect();
        // A limit that was set since the last intent takes a round trip more.
        let unknown = limits.iter().filter(|limit| !used.contains_key(&limit.key()));
        let more = sql::sums(transaction, unknown).await?;
        used.extend(more);
        let shared = Some(OtherRunnersFacts {
            runner: self.runner.id,
            is_expired: lease == LeaseStatus::Expired || is_lost,
            account,
            slots,
            retry_after: TIMES.poll_interval,
        });
        Ok(Facts { now, newest: next_id(newest, now_us), gap: GAP, freeze, attempts, paid, limits, used, shared })
    }

    async fn locked(&self, attempts: &[AttemptId], names: &[&TaskId]) -> Result<Locked, PostgresError> {
        let (lease, rows, named, now) = futures::join!(
            self.lease(),
            locked_rows(&self.transaction, attempts),
            self.transaction.named(names),
            now(&self.transaction)
        );
        lease?;
        Ok(Locked { rows: rows?, named: named?, now: now? })
    }

    async fn locked_batch(&self, batch: i64) -> Result<Vec<Row>, PostgresError> {
        self.lease().await?;
        // Blocks purchases of the batch meanwhile.
        self.transaction.batch_execute(LOCK).await?;
        let sql = format!("SELECT {ROW} FROM attempt WHERE batch = $1 ORDER BY id FOR UPDATE");
        self.rows(&sql, &[(&batch, Type::INT8)]).await
    }

    /// Intents of runners that released their batch or ended, and of those that expired as long ago as a response may take. One that lives while
    /// another has its batch, as after a failover, may still get its response.
    async fn abandoned(&self, batch: Option<i64>) -> Result<Vec<Row>, PostgresError> {
        let sql = format!(
            "SELECT {ROW} FROM attempt JOIN batch ON batch.id = attempt.batch LEFT JOIN runner AS its ON its.id = attempt.runner
             WHERE state = 'intended' AND ($1 = 0 OR attempt.batch = $1)
                 AND (its.id IS NULL OR its.ended_us IS NOT NULL OR its.expired_us < {NOW} - $2
                     OR its.expired_us IS NULL AND batch.runner IS NULL)
             ORDER BY attempt.id FOR UPDATE OF attempt"
        );
        let (batch, unanswered) = (batch.unwrap_or_default(), micros(TIMES.response));
        self.rows(&sql, &[(&batch, Type::INT8), (&unanswered, Type::INT8)]).await
    }

    async fn objection(&self, row: &Row, event: &Event) -> Result<Option<LedgerError>, PostgresError> {
        Ok(match event {
            // Another runner may have the batch, but only this one knows the response to its submission.
            event if self.lease().await? == LeaseStatus::Expired && !event.is_of_sender() => {
                Some(LedgerError::LeaseExpired)
            }
            // An attempt that its sender put in doubt has its response.
            Event::Denied if row.attempt.answered_at.is_none() => {
                let waiting = self.waiting_runner(row.shared.runner).await?;
                waiting.map(|runner| LedgerError::SenderMayLive { job: row.attempt.job().to_string(), runner })
            }
            _ => None,
        })
    }

    async fn save(&self, changes: &Changes<'_>) -> Result<(), PostgresError> {
        write_rows_last(&self.transaction, changes)
    }
}
