//! The facts that decide whether intents are admitted.
//!
//! The ledger's row is locked first, so one runner decides at a time, and sees all decisions of the others. All questions
//! travel together, in one round trip.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::error::LeaseStatus;
use super::error::PostgresError;
use super::rows::{ROW, read_row};
use super::runner::Runner;
use super::slots::slots;
use super::transaction::{Transaction, Typed};
use super::{batches, freeze};
use crate::domain::JobId;
use crate::ledger::SpendLimit;
use crate::ledger::limits::Times;
use crate::ledger::row::Row;
use crate::ledger::rules::{Asked, Facts, OtherRunnersFacts};
use crate::ledger::sql;

/// The start of attempt numbers, in milliseconds since 1970: 2020-01-01.
const FIRST_MS: i64 = 1_577_836_800_000;
/// The random bits of a number.
const RANDOM_BITS: u32 = 22;
/// The largest distance between the numbers of two intents of one commit.
const GAP: i64 = 1024;

/// Locks the ledger's row, and returns the facts for these intents. `known_limits` are the ledger limits at the last intent.
pub(super) async fn facts(
    transaction: &Transaction,
    runner: &Runner,
    lease: impl Future<Output = Result<LeaseStatus, PostgresError>>,
    asked: &[Asked<'_>],
    known_limits: &[SpendLimit],
    times: &Times,
) -> Result<Facts, PostgresError> {
    let Some(first) = asked.first() else { return Ok(Facts::default()) };
    let account = first.intent.account.clone();
    let batches: Vec<i64> = asked.iter().map(|asked| asked.batch).collect::<HashSet<_>>().into_iter().collect();
    let spans = asked.iter().flat_map(|asked| asked.intent.limits.iter()).chain(known_limits);
    // Behind the lock, each statement sees what was committed before it. What earlier work of this transaction writes locks sums, so it
    // follows the lock, too.
    let (lease, locked, written, is_lost, slots, newest, attempts, paid, limits, used) = futures::join!(
        lease,
        freeze::lock(transaction),
        transaction.execute_queued(),
        batches::is_any_lost(transaction, runner, &batches),
        slots(transaction, runner, &account),
        newest_id(transaction, &batches),
        attempts(transaction, asked),
        sql::paid(transaction, asked),
        sql::limits(transaction),
        sql::sums(transaction, spans)
    );
    let (lease, (now_us, freeze)) = (lease?, locked?);
    written?;
    let (slots, newest, attempts) = (slots?, newest?, attempts?);
    let (is_lost, paid, limits, mut used) = (is_lost?, paid?, limits?, used?);
    let now = Timestamp::from_microsecond(now_us).unwrap_or(Timestamp::MAX);
    let limits: Vec<SpendLimit> = limits.iter().filter(|_| freeze.is_none()).map(|limit| limit.at(now)).collect();
    // A limit that was set since the last intent takes a round trip more.
    let unknown = limits.iter().filter(|limit| !used.contains_key(&limit.key()));
    let more = sql::sums(transaction, unknown).await?;
    used.extend(more);
    let shared = Some(OtherRunnersFacts {
        runner: runner.id,
        is_expired: lease == LeaseStatus::Expired || is_lost,
        account,
        slots,
        retry_after: times.look_again,
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
