//! Intents of one commit: what may be sent now is decided here, for all runners, under one lock.
//!
//! The ledger's row is locked first, so of all runners one decides at a time, and sees everything that the others decided. What
//! may not be sent now, because the account has no place or the service asked to wait, is given back with the time after which to
//! ask again; nothing is written of it, and nothing is reserved for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::rows::{self, Row};
use super::runner::{Runner, micros};
use super::schema::TIMELINE;
use super::transaction::NOW;
use super::{books, limits};
use crate::domain::{Account, Attempt, AttemptId, AttemptState, JobId, Label, Particulars, Usd};
use crate::ledger::times::Times;
use crate::ledger::{Intent, LedgerError, OwnerLimit, SpendLimit};

/// When the numbers of attempts begin, in milliseconds since 1970: 2020-01-01.
const FIRST_MS: i64 = 1_577_836_800_000;
/// How many bits of a number are chance.
const CHANCE_BITS: u32 = 22;

/// An intent, and the number of its batch.
pub(super) struct Asked<'a> {
    pub(super) batch: i64,
    pub(super) intent: &'a Intent,
}

/// What came of an intent.
pub(super) type Answer = Result<Row, LedgerError>;

/// Decides on intents, and writes those that may be sent.
pub(super) async fn intend(
    transaction: &Transaction<'_>,
    runner: &Runner,
    asked: &[Asked<'_>],
    times: &Times,
) -> Result<Vec<Answer>, PostgresError> {
    let gate = gate(transaction, times).await?;
    let (now_us, first) = match (gate, asked.first()) {
        (_, None) => return Ok(Vec::new()),
        (Gate::Open(now_us), Some(first)) => (now_us, first),
        (Gate::Stopped(why), _) => return Ok(asked.iter().map(|_| Err(LedgerError::Stopped(why.clone()))).collect()),
        (Gate::Waits(wait), _) => return Ok(asked.iter().map(|_| Err(LedgerError::Later(wait))).collect()),
    };
    let now = Timestamp::from_microsecond(now_us).unwrap_or(Timestamp::MAX);
    let account = &first.intent.account;
    let room = room(transaction, runner, account, now_us, times).await?;
    let batches: Vec<i64> = asked.iter().map(|asked| asked.batch).collect::<HashSet<_>>().into_iter().collect();
    let mut next = next_id(transaction, &batches, now_us).await?;
    let claimed = claimed(transaction, runner, asked).await?;
    let mut bought = bought_as_approved(transaction, asked).await?;
    let mut spending = Spending::new(now, limits::read(transaction).await?);
    let mut answers = Vec::with_capacity(asked.len());
    let (mut taken, mut claims) = (0, HashSet::new());
    for (place, one @ Asked { batch, intent }) in asked.iter().enumerate() {
        let decided = async {
            if claimed.contains(&place) || claims.contains(&(*batch, &intent.job)) {
                return Ok(Err(LedgerError::Claimed(intent.job.clone())));
            }
            if intent.account != *account {
                return Ok(Err(LedgerError::Later(Duration::ZERO)));
            }
            match room {
                Room::Paused(wait) => return Ok(Err(LedgerError::Later(wait))),
                Room::Free(free) if taken >= free => return Ok(Err(LedgerError::Later(times.look_again))),
                Room::Free(_) => {}
            }
            if let Some(approval) = &intent.approval
                && *bought.entry((*batch, &intent.job)).or_default() >= i64::from(approval.most)
            {
                return Ok(Err(LedgerError::Approved(intent.job.clone())));
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
    let is_waiting = answers.iter().any(|answer| matches!(answer, Err(LedgerError::Later(_))));
    // Whoever only came too late for some jobs waits for a place as before.
    if is_waiting || !written.is_empty() {
        runner.wait(transaction, is_waiting).await?;
    }
    if !written.is_empty() {
        rows::insert(transaction, &written).await?;
        forget_why_unsent(transaction, &written).await?;
    }
    Ok(answers)
}

/// Whether anybody may buy at all.
enum Gate {
    /// Yes; it is now, by the database's clock.
    Open(i64),
    /// In a while: another server has taken over, and everybody looks first whether it knows what they know.
    Waits(Duration),
    /// Not before a person has looked.
    Stopped(Arc<str>),
}

/// Locks the ledger's row, and looks whether the database is the one that everybody wrote to.
///
/// A standby that took over may lack the last commits of any runner. Each finds that out when it next gives a sign of life. So nobody buys until
/// all have had the time for it; who was alive and gave none may be the one whose purchases are missing.
async fn gate(transaction: &Transaction<'_>, times: &Times) -> Result<Gate, PostgresError> {
    let sql = format!(
        "SELECT stopped, timeline <> {TIMELINE}, quarantined_us, moved_us, {NOW} FROM ledger WHERE id = 1 FOR UPDATE"
    );
    let row = transaction.query_typed_one(&sql, &[]).await?;
    let (stopped, has_moved): (Option<String>, bool) = (row.try_get(0)?, row.try_get(1)?);
    let (until, moved, now): (i64, i64, i64) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
    if let Some(why) = stopped {
        return Ok(Gate::Stopped(why.into()));
    }
    if has_moved {
        let sql = format!("UPDATE ledger SET timeline = {TIMELINE}, moved_us = $1, quarantined_us = $2 WHERE id = 1");
        let until = now + micros(times.dead);
        transaction.execute_typed(&sql, &[(&now, Type::INT8), (&until, Type::INT8)]).await?;
        return Ok(Gate::Waits(times.look_again));
    }
    if until > now {
        return Ok(Gate::Waits(times.look_again));
    }
    if moved == 0 {
        return Ok(Gate::Open(now));
    }
    let sql = "SELECT string_agg(name, ', ' ORDER BY name) FROM runner WHERE left_us IS NULL AND beat_us < $1
         AND (died_us IS NULL OR died_us > $1)";
    let missing: Option<String> = transaction.query_typed_one(sql, &[(&moved, Type::INT8)]).await?.try_get(0)?;
    if let Some(missing) = missing {
        let why = format!("another server has taken over, and {missing} never said what it had bought before");
        stop(transaction, &why).await?;
        return Ok(Gate::Stopped(why.into()));
    }
    transaction.execute_typed("UPDATE ledger SET moved_us = 0 WHERE id = 1", &[]).await?;
    Ok(Gate::Open(now))
}

/// Lets nobody buy any more until a person has looked. The first reason stays.
pub(super) async fn stop(transaction: &Transaction<'_>, why: &str) -> Result<(), PostgresError> {
    let sql = "UPDATE ledger SET stopped = coalesce(stopped, $1) WHERE id = 1";
    transaction.execute_typed(sql, &[(&why, Type::TEXT)]).await?;
    Ok(())
}

/// The places that the account has for this runner.
enum Room {
    Free(i64),
    Paused(Duration),
}

/// All runners of an account share its places: as many as the most that one of them was given. Who has fewer than its share
/// goes before who has more; nobody keeps a place that no other wants.
async fn room(
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
         AND state IN ('intended', 'queued', 'in_progress') GROUP BY 1";
    let mut open_of: HashMap<i64, i64> = HashMap::new();
    for row in transaction.query_typed(open, &key).await? {
        open_of.insert(row.try_get(0)?, row.try_get(1)?);
    }
    let sql =
        "SELECT id, concurrency, is_waiting FROM runner WHERE died_us IS NULL AND left_us IS NULL AND beat_us > $1";
    let alive = transaction.query_typed(sql, &[(&(now - micros(times.dead)), Type::INT8)]).await?;
    // Who never said how many it wants is not held back.
    let wanted = if runner.concurrency == 0 { i64::MAX } else { runner.concurrency.into() };
    let (mut slots, mut sharing, mut hungry) = (wanted, 1, Vec::new());
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
    Ok(Room::Free(if is_generous { free.min((share - own).max(0)) } else { free }))
}

/// A number that is higher than those before it in its batch, and that no runner has thought of: also a database that has forgotten an attempt never gives
/// its number to another.
async fn next_id(transaction: &Transaction<'_>, batches: &[i64], now: i64) -> Result<i64, PostgresError> {
    let sql = "SELECT coalesce(max(newest), 0) FROM unnest($1) AS of
         CROSS JOIN LATERAL (SELECT max(id) AS newest FROM attempt WHERE batch = of) AS attempts";
    let newest: i64 = transaction.query_typed_one(sql, &[(&batches, Type::INT8_ARRAY)]).await?.try_get(0)?;
    let by_the_clock = ((now / 1000 - FIRST_MS).max(0) << CHANCE_BITS) + fastrand::i64(0..1 << (CHANCE_BITS - 1));
    Ok(by_the_clock.max(newest))
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
                  OR (attempt.id > known OR attempt.id > began) AND runner <> $1 AND state <> 'void'))";
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
             AND state NOT IN ('void', 'rejected'))
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

/// What is spent already under each limit, and what this commit adds to it.
struct Spending<'a> {
    now: Timestamp,
    owners: Vec<OwnerLimit>,
    used: HashMap<(Option<Label>, i64), Usd>,
    in_runs: HashMap<i64, Usd>,
    /// What this commit buys.
    taken: Vec<&'a Asked<'a>>,
}

impl<'a> Spending<'a> {
    fn new(now: Timestamp, owners: Vec<OwnerLimit>) -> Self {
        Self { now, owners, used: HashMap::new(), in_runs: HashMap::new(), taken: Vec::new() }
    }

    /// The limit that an intent would pass.
    async fn passed(
        &mut self,
        transaction: &Transaction<'_>,
        Asked { batch, intent }: &Asked<'_>,
    ) -> Result<Option<LedgerError>, PostgresError> {
        let owners: Vec<SpendLimit> = self.owners.iter().map(|owner| owner.at(self.now)).collect();
        for limit in intent.limits.iter().chain(&owners).filter(|limit| limit.is_about(&intent.labels)) {
            let key = (limit.label.clone(), limit.since.as_microsecond());
            if !self.used.contains_key(&key) {
                let before = books::used(transaction, limit.since, limit.label.as_ref()).await?;
                let is_about = |taken: &&&Asked<'_>| limit.is_about(&taken.intent.labels);
                let now = self.taken.iter().filter(is_about).map(|taken| taken.intent.price).sum::<Usd>();
                self.used.insert(key.clone(), before + now);
            }
            let used = self.used[&key];
            if used + intent.price > limit.usd {
                return Ok(Some(LedgerError::OverLimit { name: Arc::clone(&limit.name), limit: limit.usd, used }));
            }
        }
        let Some(run) = &intent.run_limit else { return Ok(None) };
        if !self.in_runs.contains_key(batch) {
            let before = books::used_by_the_run(transaction, *batch).await?;
            let now =
                self.taken.iter().filter(|taken| taken.batch == *batch).map(|taken| taken.intent.price).sum::<Usd>();
            self.in_runs.insert(*batch, before + now);
        }
        let used = self.in_runs[batch];
        let is_passed = used + intent.price > run.usd;
        Ok(is_passed.then(|| LedgerError::OverLimit { name: Arc::clone(&run.name), limit: run.usd, used }))
    }

    /// Counts what is bought.
    fn take(&mut self, asked: &'a Asked<'a>) {
        let price = asked.intent.price;
        for ((label, _), used) in &mut self.used {
            if label.as_ref().is_none_or(|label| label.is_among(&asked.intent.labels)) {
                *used += price;
            }
        }
        self.in_runs.entry(asked.batch).and_modify(|used| *used += price);
        self.taken.push(asked);
    }
}

fn attempt(intent: &Intent, id: AttemptId, now: Timestamp) -> Attempt {
    Attempt {
        id,
        job: intent.job.clone(),
        fingerprint: intent.fingerprint.clone(),
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

/// Forgets why jobs were not sent, because they are sent now.
async fn forget_why_unsent(transaction: &Transaction<'_>, written: &[&Row]) -> Result<(), PostgresError> {
    let sql = "DELETE FROM unsent USING unnest($1, $2) AS sent (its_batch, its_job) WHERE batch = its_batch AND job = its_job";
    let batches: Vec<i64> = written.iter().map(|row| row.batch).collect();
    let jobs: Vec<&str> = written.iter().map(|row| row.stored.job.as_str()).collect();
    transaction.execute_typed(sql, &[(&batches, Type::INT8_ARRAY), (&jobs, Type::TEXT_ARRAY)]).await?;
    Ok(())
}
