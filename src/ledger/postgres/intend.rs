//! Intents of one commit: what may be sent now is decided here, for all runners, under one lock.
//!
//! The ledger's row is locked first, so of all runners one decides at a time, and sees everything that the others decided. What
//! may not be sent now, because the account has no place or the service asked to wait, is given back with the time after which to
//! ask again; nothing is written of it, and nothing is reserved for it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::gate::{Gate, gate};
use super::limits;
use super::room::{Room, room};
use super::rows::{self, Row};
use super::runner::Runner;
use super::spending::{Asked, Spending, Sums};
use super::standing::Standing;
use super::transaction::{Opening, Sent, Transaction};
use crate::domain::{Account, Attempt, AttemptId, AttemptState, BatchKey, JobId, Particulars};
use crate::ledger::times::Times;
use crate::ledger::{Intent, LedgerError, SpendLimit};

/// When the numbers of attempts begin, in milliseconds since 1970: 2020-01-01.
const FIRST_MS: i64 = 1_577_836_800_000;
/// How many bits of a number are chance.
const CHANCE_BITS: u32 = 22;

/// Forgets why jobs were not sent, because they are sent now: rows of attempts, as JSON.
const FORGET_WHY_UNSENT: &str =
    "DELETE FROM unsent USING json_populate_recordset(NULL::attempt, $1::text::json) AS sent
     WHERE unsent.batch = sent.batch AND unsent.job = sent.job";

/// What came of an intent.
pub(super) type Answer = Result<Row, LedgerError>;

/// Intents that came in together.
pub(super) struct Question<'a> {
    pub(super) asked: &'a [Asked<'a>],
    /// The newest attempt of each batch that this runner has seen.
    pub(super) seen: &'a HashMap<i64, i64>,
    /// The ledger limits, as far as they are known. If they are others now, their sums take a round trip more.
    pub(super) limits: &'a [SpendLimit],
}

/// The decisions on the intents of one commit.
#[derive(Clone, Default)]
pub(super) struct Decided {
    /// For each of them, in their order.
    pub(super) answers: Vec<Answer>,
    /// The jobs that other runners have claimed meanwhile.
    pub(super) taken: Vec<Taken>,
    /// Facts for later intents, unless purchases are frozen or this runner has expired.
    pub(super) facts: Option<Facts>,
}

/// Facts that concern later intents.
#[derive(Clone)]
pub(super) struct Facts {
    /// The number of live runners.
    pub(super) alive: u32,
    /// The ledger limits.
    pub(super) limits: Vec<SpendLimit>,
}

/// Decides on intents, and writes those that may be sent. One round trip locks the ledger's row and asks for all facts, another one
/// writes and commits.
pub(super) async fn intend(
    transaction: &Transaction<'_>,
    runner: &Runner,
    opening: Opening<'_>,
    Question { asked, seen, limits: known_limits }: Question<'_>,
    times: &Times,
) -> Result<Decided, PostgresError> {
    let Some(first) = asked.first() else {
        return opening.await.map(|_| Decided::default());
    };
    let account = &first.intent.account;
    let batches: Vec<i64> = asked.iter().map(|asked| asked.batch).collect::<HashSet<_>>().into_iter().collect();
    let opened = Sent::now(opening).await;
    let gate = Sent::now(gate(transaction)).await;
    // Behind the lock: each statement sees what was committed before it.
    let room = Sent::now(room(transaction, runner, account, times)).await;
    let newest = Sent::now(newest_id(transaction, &batches)).await;
    let claimed = Sent::now(claimed(transaction, runner, asked)).await;
    let bought = Sent::now(bought_as_approved(transaction, asked)).await;
    let repeats = Sent::now(paid_elsewhere(transaction, asked)).await;
    let taken = Sent::now(taken_by_others(transaction, runner, asked, seen)).await;
    let limits = Sent::now(limits::read(transaction)).await;
    let sums = Sent::now(Sums::read(transaction, asked, known_limits)).await;
    let refuse = |error: LedgerError| {
        let answers = asked.iter().map(|_| Err(error.clone())).collect();
        Decided { answers, ..Decided::default() }
    };
    let (standing, gate) = (opened.answer().await?, gate.answer().await?);
    let (room, newest) = (room.answer().await?, newest.answer().await?);
    let (claimed, mut bought) = (claimed.answer().await?, bought.answer().await?);
    let (repeats, taken_by_others) = (repeats.answer().await?, taken.answer().await?);
    let (limits, sums) = (limits.answer().await?, sums.answer().await?);
    if standing == Standing::Dead {
        return Ok(refuse(LedgerError::DeclaredDead));
    }
    let now_us = match gate {
        Gate::Open(now_us) => now_us,
        Gate::Frozen(freeze) => return Ok(refuse(LedgerError::Frozen(freeze))),
    };
    let now = Timestamp::from_microsecond(now_us).unwrap_or(Timestamp::MAX);
    let mut next = next_id(newest, now_us);
    let limits: Vec<SpendLimit> = limits.iter().map(|limit| limit.at(now)).collect();
    let mut spending = Spending::new(&limits, sums);
    let mut answers = Vec::with_capacity(asked.len());
    let (mut taken, mut claims) = (0, HashSet::new());
    for (place, one @ Asked { batch, intent }) in asked.iter().enumerate() {
        let decided = async {
            if claimed.contains(&place) || claims.contains(&(*batch, &intent.job)) {
                return Ok(Err(LedgerError::Claimed(intent.job.clone())));
            }
            if let Some(approval) = &intent.approval
                && *bought.entry((*batch, &intent.job)).or_default() >= i64::from(approval.most)
            {
                return Ok(Err(LedgerError::Approved(intent.job.clone())));
            }
            if let Some(other) = repeats.get(&place) {
                return Ok(Err(LedgerError::PaidElsewhere { job: intent.job.clone(), other: other.clone() }));
            }
            if intent.account != *account {
                return Ok(Err(LedgerError::Later(Duration::ZERO)));
            }
            match room {
                Room::Paused(wait) => return Ok(Err(LedgerError::Later(wait))),
                Room::Free(free, _) if taken >= free => return Ok(Err(LedgerError::Later(times.look_again))),
                Room::Free(..) => {}
            }
            if let Some(passed) = spending.passed(transaction, one).await? {
                return Ok(Err(passed));
            }
            Ok::<_, PostgresError>(Ok(()))
        };
        answers.push(decided.await?.map(|()| {
            taken += 1;
            spending.take(one);
            claims.insert((*batch, &intent.job));
            *bought.entry((*batch, &intent.job)).or_default() += 1;
            next += 1 + fastrand::i64(0..1024);
            Row::new(&attempt(intent, AttemptId(next), now), *batch, Some(runner.id))
        }));
    }
    let written: Vec<&Row> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    if answers.iter().any(|answer| matches!(answer, Err(LedgerError::Later(_)))) {
        runner.wait(transaction);
    }
    if !written.is_empty() {
        rows::insert_last(transaction, &written);
        transaction.execute_last(FORGET_WHY_UNSENT, rows::as_json(&written));
    }
    let facts = if let Room::Free(_, alive) = room { Some(Facts { alive, limits }) } else { None };
    Ok(Decided { answers, taken: taken_by_others, facts })
}

/// The highest number of an attempt of these batches; 0 without one.
async fn newest_id(transaction: &Transaction<'_>, batches: &[i64]) -> Result<i64, PostgresError> {
    let sql = "SELECT coalesce(max(newest), 0) FROM unnest($1) AS of
         CROSS JOIN LATERAL (SELECT max(id) AS newest FROM attempt WHERE batch = of) AS attempts";
    Ok(transaction.query_typed_one(sql, &[(&batches, Type::INT8_ARRAY)]).await?.try_get(0)?)
}

/// The wait until a slot for this runner may be free; zero if one is. Takes no lock that others wait for: where slots are short, most of what is
/// asked is whether there is one.
pub(super) async fn wait_for_slot(
    transaction: &Transaction<'_>,
    runner: &Runner,
    opening: Opening<'_>,
    account: &Account,
    times: &Times,
) -> Result<Duration, PostgresError> {
    let opened = Sent::now(opening).await;
    let room = Sent::now(room(transaction, runner, account, times)).await;
    let frozen =
        Sent::now(transaction.query_typed_one("SELECT stopped IS NOT NULL FROM ledger WHERE id = 1", &[])).await;
    let (standing, room) = (opened.answer().await?, room.answer().await?);
    let is_frozen: bool = frozen.answer().await?.try_get(0)?;
    if standing == Standing::Dead || is_frozen {
        // Its intents are refused, and that is no wait.
        return Ok(Duration::ZERO);
    }
    runner.wait(transaction);
    Ok(match room {
        Room::Paused(wait) => wait,
        Room::Free(..=0, _) => times.look_again,
        Room::Free(..) => Duration::ZERO,
    })
}

/// A number that is higher than the newest of its batch, and that hardly another runner has thought of: the clock and chance make it, so that
/// a database that has forgotten an attempt does not give its number to the next. The primary key refuses one that is there.
fn next_id(newest: i64, now: i64) -> i64 {
    let by_the_clock = ((now / 1000 - FIRST_MS).max(0) << CHANCE_BITS) + fastrand::i64(0..1 << (CHANCE_BITS - 1));
    by_the_clock.max(newest)
}

/// The places of intents whose job is another's: an attempt of it is open, or was made since the job was found to be due. What another
/// runner of the batch did with it since the first of them began counts, too, so that nothing is taken twice because two were told to.
async fn claimed(
    transaction: &Transaction<'_>,
    runner: &Runner,
    asked: &[Asked<'_>],
) -> Result<HashSet<usize>, PostgresError> {
    let sql = "SELECT place FROM unnest($2, $3, $4, $5) WITH ORDINALITY AS asked (its_batch, its_job, its_request, known, place)
         WHERE EXISTS (SELECT 1 FROM attempt JOIN batch ON batch.id = attempt.batch
             WHERE attempt.batch = its_batch AND job = its_job
             AND (state IN ('intended', 'in_doubt') OR state IN ('queued', 'in_progress') AND fingerprint = its_request
                  OR attempt.id > known AND state NOT IN ('void', 'rejected')
                  OR (attempt.id > known OR attempt.id > began) AND runner <> $1 AND state <> 'void'
                     AND NOT (attempt.id = known AND keeper = $1)))";
    let batches: Vec<i64> = asked.iter().map(|asked| asked.batch).collect();
    let jobs: Vec<&str> = asked.iter().map(|asked| asked.intent.job.as_str()).collect();
    let requests: Vec<&str> = asked.iter().map(|asked| asked.intent.fingerprint.as_str()).collect();
    let known: Vec<i64> = asked.iter().map(|asked| asked.intent.known.map_or(0, |known| known.0)).collect();
    let values: [(&(dyn ToSql + Sync), Type); 5] = [
        (&runner.id, Type::INT8),
        (&batches, Type::INT8_ARRAY),
        (&jobs, Type::TEXT_ARRAY),
        (&requests, Type::TEXT_ARRAY),
        (&known, Type::INT8_ARRAY),
    ];
    let rows = transaction.query_typed(sql, &values).await?;
    rows.iter().map(|row| Ok(usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or_default())).collect()
}

/// A job that another runner has taken.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) batch: i64,
    pub(super) attempt: i64,
    pub(super) job: String,
}

/// What other runners have taken of these batches since this one last looked; at first, since its plan was made.
pub(super) async fn taken_by_others(
    transaction: &Transaction<'_>,
    runner: &Runner,
    asked: &[Asked<'_>],
    seen: &HashMap<i64, i64>,
) -> Result<Vec<Taken>, PostgresError> {
    let since: HashMap<i64, i64> = asked
        .iter()
        .map(|Asked { batch, intent }| {
            let known = intent.known.map_or(0, |known| known.0);
            (*batch, seen.get(batch).copied().unwrap_or_default().max(known))
        })
        .collect();
    let (batches, since): (Vec<i64>, Vec<i64>) = since.into_iter().unzip();
    let sql = "SELECT attempt.batch, id, job FROM unnest($1, $2) AS asked (its_batch, since)
         JOIN attempt ON attempt.batch = its_batch AND id > since WHERE runner <> $3 AND state <> 'void'";
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&batches, Type::INT8_ARRAY), (&since, Type::INT8_ARRAY), (&runner.id, Type::INT8)];
    let rows = transaction.query_typed(sql, &values).await?;
    rows.iter()
        .map(|row| Ok(Taken { batch: row.try_get(0)?, attempt: row.try_get(1)?, job: row.try_get(2)? }))
        .collect()
}

/// How often each job was bought as a part of the plan that somebody approved.
async fn bought_as_approved<'a>(
    transaction: &Transaction<'_>,
    asked: &[Asked<'a>],
) -> Result<HashMap<(i64, &'a JobId), i64>, PostgresError> {
    let approved: Vec<(&Asked<'a>, &str)> =
        asked.iter().filter_map(|asked| Some((asked, asked.intent.approval.as_ref()?.digest.as_str()))).collect();
    if approved.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT (SELECT count(*) FROM attempt WHERE batch = its_batch AND job = its_job AND approval = digest
             AND (state NOT IN ('void', 'rejected') OR declared = 'server_error'))
         FROM unnest($1, $2, $3) WITH ORDINALITY AS asked (its_batch, its_job, digest, place) ORDER BY place";
    let batches: Vec<i64> = approved.iter().map(|(asked, _)| asked.batch).collect();
    let jobs: Vec<&str> = approved.iter().map(|(asked, _)| asked.intent.job.as_str()).collect();
    let digests: Vec<&str> = approved.iter().map(|(_, digest)| *digest).collect();
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&batches, Type::INT8_ARRAY), (&jobs, Type::TEXT_ARRAY), (&digests, Type::TEXT_ARRAY)];
    let counts = transaction.query_typed(sql, &values).await?;
    let keys = approved.iter().map(|(asked, _)| (asked.batch, &asked.intent.job));
    keys.zip(counts).map(|(key, row)| Ok((key, row.try_get(0)?))).collect()
}

/// The places of intents whose request more attempts elsewhere have paid for than their plan knew, each with the batch of one of them.
async fn paid_elsewhere(
    transaction: &Transaction<'_>,
    asked: &[Asked<'_>],
) -> Result<HashMap<usize, BatchKey>, PostgresError> {
    let guarded: Vec<(usize, &Asked<'_>)> =
        asked.iter().enumerate().filter(|(_, asked)| asked.intent.paid_elsewhere.is_some()).collect();
    if guarded.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT place, its.name, its.batch, other.name, other.batch, count(*)
         FROM unnest($1, $2) WITH ORDINALITY AS asked (its_batch, its_request, place) JOIN batch AS its ON its.id = its_batch
         JOIN attempt ON normalized = its_request AND state NOT IN ('void', 'rejected')
         JOIN batch AS other ON other.id = attempt.batch GROUP BY 1, 2, 3, 4, 5";
    let batches: Vec<i64> = guarded.iter().map(|(_, asked)| asked.batch).collect();
    let requests: Vec<&str> = guarded.iter().map(|(_, asked)| asked.intent.normalized.as_str()).collect();
    let values: [(&(dyn ToSql + Sync), Type); 2] = [(&batches, Type::INT8_ARRAY), (&requests, Type::TEXT_ARRAY)];
    let mut paid: HashMap<usize, (u32, BatchKey)> = HashMap::new();
    for row in transaction.query_typed(sql, &values).await? {
        let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or_default();
        let key = |at| Ok::<_, PostgresError>(BatchKey { name: row.try_get(at)?, batch: row.try_get(at + 1)? });
        let (own, other) = (key(1)?, key(3)?);
        if own.may_repeat(&other) {
            let attempts = u32::try_from(row.try_get::<_, i64>(5)?).unwrap_or(u32::MAX);
            paid.entry(place).or_insert((0, other)).0 += attempts;
        }
    }
    let more = guarded.iter().enumerate().filter_map(|(at, (place, asked))| {
        let (attempts, other) = paid.remove(&at)?;
        (Some(attempts) > asked.intent.paid_elsewhere).then_some((*place, other))
    });
    Ok(more.collect())
}

fn attempt(intent: &Intent, id: AttemptId, now: Timestamp) -> Attempt {
    Attempt {
        id,
        job: intent.job.clone(),
        fingerprint: intent.fingerprint.clone(),
        normalized: intent.normalized.clone(),
        request: intent.request.clone(),
        model: intent.model.clone(),
        price: intent.price,
        charging: intent.charging,
        typical_s: intent.typical_s,
        account: intent.account.clone(),
        state: AttemptState::Intended,
        task: None,
        video_url: None,
        error: None,
        polls: 0,
        intended_at: now,
        answered_at: None,
        seen: None,
        ended_at: None,
        file: None,
        fetched_at: None,
        particulars: Particulars {
            labels: intent.labels.clone(),
            output: intent.output.clone().map(Box::new),
            approval: intent.approval.as_ref().map(|approval| Box::new(approval.digest.clone())),
            picture: intent.picture.as_deref().map(Box::from),
            ..Particulars::default()
        },
    }
}
