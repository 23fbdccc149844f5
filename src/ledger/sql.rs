//! SQL that every store understands: statements with values, questions about many batches, and records that are no attempts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::future::try_join_all;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{Receiver, Sender};

use super::row::{self, Row, Unreadable, Value};
use super::rules::{BatchIntent, Changes, QUARTER_US, SpanKey, quarter};
use super::views::{Contents, CopyPart};
use super::{BoughtElsewhere, Controls, LedgerLimit, SpendLimit, Spending};
use crate::domain::{
    Attempt, AttemptState, BatchKey, Charge, Fingerprint, History, JobId, Label, OpenElsewhere, TaskId,
    UnfinishedRetake, Usd,
};

/// The condition of an attempt that may have made a task, as [`AttemptState::made_no_task`] has it. The guard of an intent counts these and not the
/// paid ones: a bill that settles one as free must not hide another that was bought meanwhile.
const MAY_HAVE_A_TASK: &str = "state NOT IN ('void', 'rejected')";

/// The batches with their numbers, in the order in which they were created.
pub(in crate::ledger) async fn batches<S: Sql>(sql: &S) -> Result<Vec<(i64, BatchKey)>, S::Error> {
    let all = "SELECT id, name, batch FROM batch ORDER BY id";
    sql.lines(all, &[], |line| Ok((line.number(0)?, key(line, 1)?))).await
}

/// The reasons why jobs of a batch were not sent. `of_batch` selects the batch.
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

/// The selected submissions of all batches, oldest first.
pub(in crate::ledger) async fn submissions<S: Sql>(
    sql: &S,
    is_asked: &impl Fn(&Attempt) -> bool,
) -> Result<Vec<(BatchKey, Attempt)>, S::Error> {
    let all = "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
         ORDER BY attempt.id";
    let (mut accounts, mut submissions) = (HashSet::new(), Vec::new());
    sql.each_line(all, &[], |line| {
        let attempt = attempt(line, 2, None)?;
        if accounts.insert(attempt.account.clone()) || is_asked(&attempt) {
            submissions.push((key(line, 0)?, attempt.without_body()));
        }
        Ok(())
    })
    .await?;
    Ok(submissions)
}

/// The attempts of other batches for these normalized requests, by batch, with the jobs that may have been [charged](Attempt::charge).
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
    Ok(BoughtElsewhere::from_batches(batch, sql.lines(&newest, &[(&requests).into()], read).await?))
}

/// The newest completed attempt of a model with a known delivery, in any batch. An attempt without a download tells nothing about its model.
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
    Ok(OpenElsewhere::from_attempts(sql.lines(unfinished, &names(batch), read).await?))
}

/// The attempts that the guard of an intent counts, by normalized request and batch, the batch of the newest attempt last.
pub(in crate::ledger) async fn paid<S: Sql>(
    sql: &S,
    asked: &[BatchIntent<'_>],
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

/// The sum spent since the quarter of an hour of a time, in total or for a label.
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

/// The purchases of all batches since a time, oldest first. They must add up to the sums for limits, so that a purchase that another program removed is
/// found.
pub(in crate::ledger) async fn spending<S: Sql>(sql: &S, since: Timestamp) -> Result<Vec<Spending>, S::Error> {
    let spending = lines_of_spending(sql, since).await?;
    // The first quarter of an hour may have begun before that time.
    let whole = Timestamp::from_microsecond((quarter(since) + 1) * QUARTER_US).unwrap_or(since);
    let is_counted = |line: &&Spending| line.charge != Charge::None && line.at >= whole;
    let (sum, counted) =
        (spending.iter().filter(is_counted).map(|line| line.price).sum(), used(sql, whole, None).await?);
    if counted == sum { Ok(spending) } else { Err(Unreadable::Sums { sum, counted }.into()) }
}

async fn lines_of_spending<S: Sql>(sql: &S, since: Timestamp) -> Result<Vec<Spending>, S::Error> {
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
            labels: line.plain(4)?.map(|text| from_json("labels", text)).transpose()?.unwrap_or_default(),
            charge: named(line, 5, "charge", Charge::named)?,
            is_doubtful: named(line, 6, "state", AttemptState::named)?.is_doubtful(),
            attempts: line.count(7)?,
            price: Usd::from_micros(line.number(8)?),
        })
    })
    .await
}

/// The attempts of jobs with a review of a purchase since a time, by batch and job, oldest first.
pub(in crate::ledger) async fn reviewed<S: Sql>(
    sql: &S,
    since: Timestamp,
) -> Result<Vec<(BatchKey, Attempt)>, S::Error> {
    let attempts = "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE (attempt.batch, job) IN (SELECT batch, job FROM attempt WHERE is_reviewed AND intended_us >= $1)
         ORDER BY attempt.batch, job, attempt.id";
    sql.lines(attempts, &[since.as_microsecond().into()], |line| Ok((key(line, 0)?, attempt(line, 2, None)?))).await
}

/// All ledger limits. An unreadable limit is an error.
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
pub(in crate::ledger) fn from_json<T: DeserializeOwned>(column: &'static str, text: &str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|_| Unreadable::value(column, text))
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

/// The number of attempts in one statement.
const AT_ONCE: usize = 500;

/// Sends all parts, until the receiver is dropped.
pub(in crate::ledger) async fn send_all<S: Sql>(sql: &S, parts: &Sender<CopyPart>) -> Result<(), S::Error> {
    for (_, key) in batches(sql).await? {
        let history = sql.history(&key).await?;
        if parts.send(CopyPart::Batch(key, history)).await.is_err() {
            return Ok(());
        }
    }
    let _received = parts.send(CopyPart::Limits(limits(sql).await?)).await;
    Ok(())
}

/// Returns whether it has no contents.
pub(in crate::ledger) async fn is_empty<S: Sql>(sql: &S) -> Result<bool, S::Error> {
    let contents = "SELECT id FROM attempt UNION ALL SELECT 1 FROM ledger_limit UNION ALL SELECT 1 FROM unsent LIMIT 1";
    Ok(sql.line(contents, &[], |line| line.number(0)).await?.is_none())
}

/// Writes parts up to the last one. Returns `None` if that is missing.
pub(in crate::ledger) async fn receive_all<S: Sql>(
    sql: &S,
    first: Option<CopyPart>,
    mut parts: Receiver<CopyPart>,
) -> Result<Option<Contents>, S::Error> {
    let (mut next, mut contents) = (first, Contents::default());
    while let Some(part) = next {
        let (key, history) = match part {
            CopyPart::Batch(key, history) => (key, history),
            CopyPart::Limits(limits) => {
                for limit in &limits {
                    set_limit(sql, limit, true).await?;
                }
                return Ok(Some(contents));
            }
        };
        contents.batches += 1;
        history.attempts().for_each(|attempt| contents.count(attempt));
        let number = ensure_batch(sql, &key).await?;
        let (attempts, unsent, retake) = history.into_parts();
        let new: Vec<Row> = attempts.into_iter().map(|attempt| Row::copied(attempt, number)).collect();
        for some in new.chunks(AT_ONCE) {
            sql.save_now(&Changes::new(some, [])).await?;
        }
        for (job, reason) in &unsent {
            note_unsent(sql, &key, job, reason).await?;
        }
        keep_retake(sql, &key, retake.as_ref()).await?;
        next = parts.recv().await;
    }
    Ok(None)
}

/// Returns the number of a batch, and creates the batch if it does not exist.
pub(in crate::ledger) async fn ensure_batch<S: Sql>(sql: &S, key: &BatchKey) -> Result<i64, S::Error> {
    let values = names(key);
    let creates = sql.change("INSERT INTO batch (name, batch) VALUES ($1, $2) ON CONFLICT DO NOTHING", &values);
    let number = "SELECT id FROM batch WHERE name = $1 AND batch = $2";
    let (created, found) = futures::join!(creates, sql.line(number, &values, |line| line.number(0)));
    created?;
    Ok(found?.ok_or_else(|| Unreadable::value("name", &key.name))?)
}

/// Stores why a job was not sent, in place of an earlier reason.
pub(in crate::ledger) async fn note_unsent<S: Sql>(
    sql: &S,
    batch: &BatchKey,
    job: &JobId,
    reason: &str,
) -> Result<(), S::Error> {
    // By name: after a failover, the batch may have another number.
    let note = "INSERT INTO unsent SELECT id, $3, $4 FROM batch WHERE name = $1 AND batch = $2
         ON CONFLICT (batch, job) DO UPDATE SET reason = excluded.reason";
    let [name, value] = names(batch);
    sql.change(note, &[name, value, job.as_str().into(), reason.into()]).await
}

/// Stores an unfinished retake, or removes it.
pub(in crate::ledger) async fn keep_retake<S: Sql>(
    sql: &S,
    batch: &BatchKey,
    retake: Option<&UnfinishedRetake>,
) -> Result<(), S::Error> {
    let text = retake.map(serde_json::to_string).transpose().map_err(Unreadable::Json)?;
    let [name, value] = names(batch);
    let keep = "UPDATE batch SET retake = $3 WHERE name = $1 AND batch = $2";
    sql.change(keep, &[name, value, text.as_deref().into()]).await
}

/// Sets a limit in place of an earlier one, or removes it.
pub(in crate::ledger) async fn set_limit<S: Sql>(sql: &S, limit: &LedgerLimit, is_kept: bool) -> Result<(), S::Error> {
    let key = limit.key().map_err(Unreadable::Json)?;
    sql.change("DELETE FROM ledger_limit WHERE key = $1", &[(&key).into()]).await?;
    if is_kept {
        let record = serde_json::to_string(limit).map_err(Unreadable::Json)?;
        sql.change("INSERT INTO ledger_limit VALUES ($1, $2)", &[(&key).into(), (&record).into()]).await?;
    }
    Ok(())
}

/// A row of a result. Columns are counted from 0.
pub(in crate::ledger) trait Line<E> {
    fn number(&self, column: usize) -> Result<i64, E>;

    /// A text.
    fn text(&self, column: usize) -> Result<String, E>;

    /// JSON or the name of a state, without a copy.
    fn plain(&self, column: usize) -> Result<Option<&str>, E>;

    /// A count.
    fn count(&self, column: usize) -> Result<u32, E> {
        Ok(u32::try_from(self.number(column)?).unwrap_or(u32::MAX))
    }
}

/// A connection or a transaction. The values of a statement are `$1`, `$2`, and so on.
pub(in crate::ledger) trait Sql {
    /// The error of the medium.
    type Error: From<Unreadable>;

    /// The condition of a column whose text is in a JSON array, which is the first value of the statement.
    const IS_AMONG: &'static str;

    /// Reads the rows of a result one by one.
    async fn each_line(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn Line<Self::Error>) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Executes a statement without a result.
    async fn change(&self, sql: &str, values: &[Value<'_>]) -> Result<(), Self::Error>;

    /// The rows of a result.
    async fn lines<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&dyn Line<Self::Error>) -> Result<T, Self::Error>,
    ) -> Result<Vec<T>, Self::Error> {
        let mut lines = Vec::new();
        self.each_line(sql, values, |line| {
            lines.push(read(line)?);
            Ok(())
        })
        .await?;
        Ok(lines)
    }

    /// The first row of a result.
    async fn line<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&dyn Line<Self::Error>) -> Result<T, Self::Error>,
    ) -> Result<Option<T>, Self::Error> {
        Ok(self.lines(sql, values, read).await?.into_iter().next())
    }

    /// The record of a batch, verified if the medium supports that.
    async fn history(&self, batch: &BatchKey) -> Result<History, Self::Error>;

    /// The limits, the freeze, and the time.
    async fn controls(&self) -> Result<Controls, Self::Error>;

    /// The attempts with one of these task names.
    async fn named(&self, names: &[&TaskId]) -> Result<Vec<(BatchKey, Attempt)>, Self::Error>;

    /// Verifies the sums for limits, if the medium may lose some.
    async fn verify_sums(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Writes rows and sums immediately. Those of a runner are written with its commit.
    async fn save_now(&self, changes: &Changes<'_>) -> Result<(), Self::Error>;
}

/// Reads an attempt from the column of its ID and the next one. Shares the account of the previous attempt.
pub(in crate::ledger) fn attempt<E: From<Unreadable>>(
    line: &dyn Line<E>,
    id: usize,
    before: Option<&Attempt>,
) -> Result<Attempt, E> {
    Ok(row::read(line.number(id)?, line.plain(id + 1)?.unwrap_or_default(), before)?)
}

/// Reads a batch from the column of its name and the next one.
pub(in crate::ledger) fn key<E>(line: &dyn Line<E>, name: usize) -> Result<BatchKey, E> {
    Ok(BatchKey { name: line.text(name)?, batch: line.text(name + 1)? })
}
