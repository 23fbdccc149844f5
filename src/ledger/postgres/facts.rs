//! The facts that decide whether intents are admitted.
//!
//! The ledger's row is locked first, so of all runners one decides at a time, and sees everything that the others decided. All questions
//! travel together, in one round trip.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::error::LeaseStatus;
use super::error::PostgresError;
use super::freeze;
use super::rows::{ROW, read_row};
use super::runner::Runner;
use super::slots::slots;
use super::transaction::{Transaction, Typed};
use crate::domain::{JobId, Usd};
use crate::ledger::SpendLimit;
use crate::ledger::limits::Times;
use crate::ledger::row::Row;
use crate::ledger::rules::{Asked, Facts, OtherRunnersFacts, Slots, Taken};
use crate::ledger::sql;

/// The start of attempt numbers, in milliseconds since 1970: 2020-01-01.
const FIRST_MS: i64 = 1_577_836_800_000;
/// The random bits of a number.
const RANDOM_BITS: u32 = 22;
/// The largest distance between the numbers of two intents of one commit.
const GAP: i64 = 1024;

/// Facts that a runner knows from earlier decisions.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// The newest attempt of each batch that it has seen.
    pub(super) seen: HashMap<i64, i64>,
    /// The ledger limits, as they were at the last intent.
    pub(super) limits: Vec<SpendLimit>,
}

/// Locks the ledger's row, and returns the facts for these intents.
pub(super) async fn facts(
    transaction: &Transaction,
    runner: &Runner,
    lease: impl Future<Output = Result<LeaseStatus, PostgresError>>,
    asked: &[Asked<'_>],
    known: &Known,
    times: &Times,
) -> Result<Facts, PostgresError> {
    let Some(first) = asked.first() else { return Ok(Facts::default()) };
    let account = first.intent.account.clone();
    let batches: Vec<i64> = asked.iter().map(|asked| asked.batch).collect::<HashSet<_>>().into_iter().collect();
    let spans = asked.iter().flat_map(|asked| asked.intent.limits.iter()).chain(&known.limits);
    // Behind the lock, each statement sees what was committed before it. What earlier work of this transaction writes locks sums, so it
    // follows the lock, too.
    let (lease, locked, written, slots, newest, attempts, paid, taken, runs, limits, used) = futures::join!(
        lease,
        freeze::lock(transaction),
        transaction.execute_queued(),
        slots(transaction, runner, &account, times),
        newest_id(transaction, &batches),
        attempts(transaction, asked),
        sql::paid(transaction, asked),
        taken_by_others(transaction, runner, asked, &known.seen),
        runs(transaction, &batches),
        sql::limits(transaction),
        sql::sums(transaction, spans)
    );
    let (lease, (now_us, freeze)) = (lease?, locked?);
    written?;
    let (slots, newest, attempts) = (slots?, newest?, attempts?);
    let (paid, taken, runs, limits, mut used) = (paid?, taken?, runs?, limits?, used?);
    if !matches!(slots, Slots::Free(free) if free >= i64::try_from(asked.len()).unwrap_or(i64::MAX)) {
        runner.wait(transaction);
    }
    let now = Timestamp::from_microsecond(now_us).unwrap_or(Timestamp::MAX);
    let limits: Vec<SpendLimit> = limits.iter().filter(|_| freeze.is_none()).map(|limit| limit.at(now)).collect();
    // A limit that was set since the last intent takes a round trip more.
    let unknown = limits.iter().filter(|limit| !used.contains_key(&limit.key()));
    let more = sql::sums(transaction, unknown).await?;
    used.extend(more);
    let shared = Some(OtherRunnersFacts {
        runner: runner.id,
        is_expired: lease == LeaseStatus::Expired,
        account,
        slots,
        retry_after: times.look_again,
        runs,
        taken,
    });
    Ok(Facts { now, newest: next_id(newest, now_us), gap: GAP, freeze, attempts, paid, limits, used, shared })
}

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
    asked: &[Asked<'_>],
) -> Result<HashMap<(i64, JobId), Vec<Row>>, PostgresError> {
    let sql = format!(
        "SELECT {ROW} FROM unnest($1, $2) AS asked (its_batch, its_job)
         CROSS JOIN LATERAL (SELECT * FROM attempt WHERE batch = its_batch AND job = its_job OFFSET 0) AS attempt ORDER BY attempt.id"
    );
    let jobs: HashSet<(i64, &str)> = asked.iter().map(|asked| (asked.batch, asked.intent.job.as_str())).collect();
    let (batches, jobs): (Vec<i64>, Vec<&str>) = jobs.into_iter().unzip();
    let values: [Typed<'_>; 2] = [(&batches, Type::INT8_ARRAY), (&jobs, Type::TEXT_ARRAY)];
    let mut attempts: HashMap<_, Vec<Row>> = HashMap::new();
    for row in transaction.query_typed(&sql, &values).await? {
        let row = read_row(&row)?;
        attempts.entry((row.batch, row.attempt.job.clone())).or_default().push(row);
    }
    Ok(attempts)
}

/// The jobs of these batches that other runners claimed since the last look, or, at first, since the plan.
async fn taken_by_others(
    transaction: &Transaction,
    runner: &Runner,
    asked: &[Asked<'_>],
    seen: &HashMap<i64, i64>,
) -> Result<Vec<Taken>, PostgresError> {
    let since: HashMap<i64, i64> = asked
        .iter()
        .map(|Asked { batch, intent, .. }| {
            let known = intent.known.map_or(0, |known| known.0);
            (*batch, seen.get(batch).copied().unwrap_or_default().max(known))
        })
        .collect();
    let (batches, since): (Vec<i64>, Vec<i64>) = since.into_iter().unzip();
    let sql = "SELECT attempt.batch, id, job FROM unnest($1, $2) AS asked (its_batch, since)
         JOIN attempt ON attempt.batch = its_batch AND id > since WHERE runner <> $3 AND state <> 'void'";
    let values: [Typed<'_>; 3] = [(&batches, Type::INT8_ARRAY), (&since, Type::INT8_ARRAY), (&runner.id, Type::INT8)];
    let rows = transaction.query_typed(sql, &values).await?;
    rows.iter()
        .map(|row| Ok(Taken { batch: row.try_get(0)?, attempt: row.try_get(1)?, job: row.try_get(2)? }))
        .collect()
}

/// For each batch, the newest attempt from before its runners began, and what they have spent since.
async fn runs(transaction: &Transaction, batches: &[i64]) -> Result<HashMap<i64, (i64, Usd)>, PostgresError> {
    let sql = "SELECT id, began, run_micros FROM batch WHERE id = ANY($1)";
    let rows = transaction.query_typed(sql, &[(&batches, Type::INT8_ARRAY)]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, (row.try_get(1)?, Usd::from_micros(row.try_get(2)?))))).collect()
}
