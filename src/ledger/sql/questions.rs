//! Questions about many batches, and about the notes of one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::future::try_join_all;
use jiff::Timestamp;

use super::medium::{Line, Sql, attempt, key};
use crate::domain::{Attempt, AttemptState, BatchKey, Charge, Fingerprint, JobId, Label, Usd};
use crate::ledger::row::Unreadable;
use crate::ledger::rules::{Asked, QUARTER_US, SpanKey, quarter};
use crate::ledger::value::Value;
use crate::ledger::views::Submissions;
use crate::ledger::{BoughtElsewhere, LedgerLimit, OpenElsewhere, SpendLimit, Spending};

/// The condition of an attempt that may have made a task, as [`AttemptState::made_no_task`] has it. The guard of an intent counts these and not the
/// paid ones: a bill that settles one as free must not hide another that was bought meanwhile.
const MAY_HAVE_A_TASK: &str = "state NOT IN ('void', 'rejected')";

/// The batches with their numbers, in the order in which they were created.
pub(in crate::ledger) async fn batches<S: Sql>(sql: &S) -> Result<Vec<(i64, BatchKey)>, S::Error> {
    let all = "SELECT id, name, batch FROM batch ORDER BY id";
    sql.lines(all, &[], |line| Ok((line.number(0)?, key(line, 1)?))).await
}

/// The reasons why jobs of a batch were not sent, where that is no submission. Each store names the batch in its own way.
pub(in crate::ledger) async fn unsent<S: Sql>(
    sql: &S,
    of_batch: &str,
    values: &[Value<'_>],
) -> Result<BTreeMap<JobId, String>, S::Error> {
    let read = |line: &dyn Line<_>| {
        let job = line.text(0)?;
        Ok((JobId::new(&*job).map_err(|_| Unreadable::value("job", &job))?, line.text(1)?))
    };
    Ok(sql.lines(&format!("SELECT job, reason {of_batch}"), values, read).await?.into_iter().collect())
}

/// The submissions of all batches that a question is about, oldest first.
pub(in crate::ledger) async fn submissions<S: Sql>(
    sql: &S,
    is_asked: &impl Fn(&Attempt) -> bool,
) -> Result<Vec<(BatchKey, Attempt)>, S::Error> {
    let all = "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
         ORDER BY attempt.id";
    let mut submissions = Submissions::about(is_asked);
    sql.each_line(all, &[], |line| {
        submissions.add(key(line, 0)?, attempt(line, 2, None)?);
        Ok(())
    })
    .await?;
    Ok(submissions.found)
}

/// The attempts elsewhere that asked for one of these normalized requests, by batch, with the jobs that [paid](Attempt::charge) for it.
pub(in crate::ledger) async fn bought_elsewhere<S: Sql>(
    sql: &S,
    batch: &BatchKey,
    requests: &impl Fn() -> Vec<Fingerprint>,
) -> Result<Vec<BoughtElsewhere>, S::Error> {
    if !batches(sql).await?.iter().any(|(_, other)| batch.may_repeat(other)) {
        return Ok(Vec::new());
    }
    let newest = format!(
        "SELECT name, batch.batch, attempt.id, record, jobs, attempts FROM (
             SELECT coalesce(max(CASE WHEN charge <> 'none' THEN id END), max(id)) AS newest,
                    count(DISTINCT CASE WHEN charge <> 'none' THEN job END) AS jobs, count(*) AS attempts FROM attempt
             WHERE normalized {} AND {MAY_HAVE_A_TASK} GROUP BY batch, normalized) AS bought
         JOIN attempt ON attempt.id = newest JOIN batch ON batch.id = attempt.batch",
        S::IS_AMONG
    );
    let requests = array(requests().iter().map(Fingerprint::as_str));
    let read = |line: &dyn Line<_>| {
        let (batch, attempt) = (key(line, 0)?, attempt(line, 2, None)?);
        Ok(BoughtElsewhere { batch, attempt, jobs: line.count(4)?, attempts: line.count(5)? })
    };
    Ok(BoughtElsewhere::of(batch, sql.lines(&newest, &[(&requests).into()], read).await?))
}

/// The newest completed attempt of a model, in any batch, of whose delivery something is known. What was never fetched says nothing of its model, and
/// may hide what does.
pub(in crate::ledger) async fn newest_delivery<S: Sql>(sql: &S, model: &str) -> Result<Option<Attempt>, S::Error> {
    let newest = "SELECT id, record FROM attempt WHERE model = $1 AND state = 'completed' ORDER BY model DESC, id DESC LIMIT 100";
    let newest = sql.lines(newest, &[model.into()], |line| attempt(line, 0, None)).await?;
    Ok(newest.into_iter().find(|attempt| attempt.file.is_some() || attempt.particulars.reported_usd.is_some()))
}

/// The open work of other batches of the same name.
pub(in crate::ledger) async fn open_elsewhere<S: Sql>(
    sql: &S,
    batch: &BatchKey,
) -> Result<Vec<OpenElsewhere>, S::Error> {
    let unfinished = "SELECT name, batch.batch, attempt.id, record FROM batch JOIN attempt ON attempt.batch = batch.id
         WHERE name = $1 AND batch.batch <> $2 AND is_unfinished ORDER BY attempt.id";
    let read = |line: &dyn Line<_>| Ok((key(line, 0)?, attempt(line, 2, None)?));
    Ok(OpenElsewhere::of(sql.lines(unfinished, &names(batch), read).await?))
}

/// The attempts elsewhere that the guard of an intent counts, by normalized request and batch, the batch of the newest attempt last.
pub(in crate::ledger) async fn paid<S: Sql>(
    sql: &S,
    asked: &[Asked<'_>],
) -> Result<HashMap<Fingerprint, Vec<(BatchKey, u32)>>, S::Error> {
    let guarded = asked.iter().filter(|asked| asked.intent.paid_elsewhere.is_some());
    let requests: BTreeSet<&str> = guarded.map(|asked| asked.intent.normalized.as_str()).collect();
    let mut paid: HashMap<_, Vec<_>> = HashMap::new();
    if requests.is_empty() {
        return Ok(paid);
    }
    let by_batch = format!(
        "SELECT normalized, name, batch.batch, count(*) FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE normalized {} AND {MAY_HAVE_A_TASK} GROUP BY 1, 2, 3 ORDER BY max(attempt.id)",
        S::IS_AMONG
    );
    sql.each_line(&by_batch, &[(&array(requests.into_iter())).into()], |line| {
        paid.entry(Fingerprint::stored(line.text(0)?)).or_default().push((key(line, 1)?, line.count(3)?));
        Ok(())
    })
    .await?;
    Ok(paid)
}

/// The sum spent since the quarter of an hour that a time is in: in total, or for a label.
pub(in crate::ledger) async fn used<S: Sql>(sql: &S, since: Timestamp, label: Option<&Label>) -> Result<Usd, S::Error> {
    let (name, value) = label.map_or(("", ""), |label| (&label.name, &label.value));
    let sum =
        "SELECT CAST(coalesce(sum(micros), 0) AS BIGINT) FROM spent WHERE label = $1 AND value = $2 AND quarter >= $3";
    let values = [name.into(), value.into(), quarter(since).into()];
    Ok(Usd::from_micros(sql.line(sum, &values, |line| line.number(0)).await?.unwrap_or_default()))
}

/// The sums spent since the start of each limit's span.
pub(in crate::ledger) async fn sums<S: Sql>(
    sql: &S,
    limits: impl Iterator<Item = &SpendLimit>,
) -> Result<HashMap<SpanKey, Usd>, S::Error> {
    let spans: HashMap<SpanKey, &SpendLimit> = limits.map(|limit| (limit.key(), limit)).collect();
    let sum = async |(key, limit): (SpanKey, &SpendLimit)| {
        used(sql, limit.since, limit.label.as_ref()).await.map(|sum| (key, sum))
    };
    Ok(try_join_all(spans.into_iter().map(sum)).await?.into_iter().collect())
}

/// The purchases of all batches since a time, oldest first.
pub(in crate::ledger) async fn spending<S: Sql>(sql: &S, since: Timestamp) -> Result<Vec<Spending>, S::Error> {
    let lines = "SELECT intended_us / $2 AS quarter, name, batch.batch, model, labels, charge, state, count(*), CAST(sum(price_micros) AS BIGINT)
         FROM attempt JOIN batch ON batch.id = attempt.batch WHERE intended_us >= $1
         GROUP BY quarter, name, batch.batch, model, labels, charge, state ORDER BY quarter";
    sql.lines(lines, &[since.as_microsecond().into(), QUARTER_US.into()], |line| {
        let quarter = line.number(0)?;
        let unreadable = |_| Unreadable::value("intended_us", &quarter.to_string());
        Ok(Spending {
            at: Timestamp::from_microsecond(quarter.saturating_mul(QUARTER_US)).map_err(unreadable)?,
            batch: key(line, 1)?,
            model: line.text(3)?,
            labels: json(line, 4, "labels")?.unwrap_or_default(),
            charge: named(line, 5, "charge", Charge::named)?,
            is_doubtful: named(line, 6, "state", AttemptState::named)?.is_doubtful(),
            attempts: line.count(7)?,
            price: Usd::from_micros(line.number(8)?),
        })
    })
    .await
}

/// All ledger limits. One that can't be read is an error, and never none.
pub(in crate::ledger) async fn limits<S: Sql>(sql: &S) -> Result<Vec<LedgerLimit>, S::Error> {
    let read = |line: &dyn Line<_>| Ok(from_json("record", line.plain(0)?.unwrap_or_default())?);
    sql.lines("SELECT record FROM ledger_limit ORDER BY key", &[], read).await
}

/// The values that name a batch.
pub(in crate::ledger) fn names(batch: &BatchKey) -> [Value<'_>; 2] {
    [(&batch.name).into(), (&batch.batch).into()]
}

/// Texts as one value.
fn array<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    texts.collect::<serde_json::Value>().to_string()
}

/// A value that is JSON.
pub(in crate::ledger) fn from_json<T: serde::de::DeserializeOwned>(
    column: &'static str,
    text: &str,
) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|_| Unreadable::value(column, text))
}

fn json<T: serde::de::DeserializeOwned, E: From<Unreadable>>(
    line: &dyn Line<E>,
    place: usize,
    column: &'static str,
) -> Result<Option<T>, E> {
    Ok(line.plain(place)?.map(|text| from_json(column, text)).transpose()?)
}

fn named<T, E: From<Unreadable>>(
    line: &dyn Line<E>,
    place: usize,
    column: &'static str,
    named: impl Fn(&str) -> Option<T>,
) -> Result<T, E> {
    let name = line.plain(place)?.unwrap_or_default();
    Ok(named(name).ok_or_else(|| Unreadable::value(column, name))?)
}
