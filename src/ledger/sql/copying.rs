//! A whole ledger, read and written in one go, and records that are no attempts.

use tokio::sync::mpsc::{Receiver, Sender};

use super::medium::Sql;
use super::questions::{batches, limits, names};
use crate::domain::{BatchKey, JobId, UnfinishedRetake};
use crate::ledger::LedgerLimit;
use crate::ledger::row::{Row, Unreadable};
use crate::ledger::rules::Changes;
use crate::ledger::transfer::{Contents, Part};

/// The number of attempts in one statement.
const AT_ONCE: usize = 500;

/// Sends everything, until no one receives it any more.
pub(in crate::ledger) async fn send_all<S: Sql>(sql: &S, parts: &Sender<Part>) -> Result<(), S::Error> {
    for (_, key) in batches(sql).await? {
        let history = sql.history(&key).await?;
        if parts.send(Part::Batch(key, history)).await.is_err() {
            return Ok(());
        }
    }
    let _received = parts.send(Part::Limits(limits(sql).await?)).await;
    Ok(())
}

/// Returns whether nothing was ever written into it.
pub(in crate::ledger) async fn is_empty<S: Sql>(sql: &S) -> Result<bool, S::Error> {
    let contents = "SELECT id FROM attempt UNION ALL SELECT 1 FROM ledger_limit UNION ALL SELECT 1 FROM unsent LIMIT 1";
    Ok(sql.line(contents, &[], |line| line.number(0)).await?.is_none())
}

/// Writes parts up to the last one. Returns nothing if it is missing.
pub(in crate::ledger) async fn receive_all<S: Sql>(
    sql: &S,
    first: Option<Part>,
    mut parts: Receiver<Part>,
) -> Result<Option<Contents>, S::Error> {
    let (mut next, mut contents) = (first, Contents::default());
    while let Some(part) = next {
        let (key, history) = match part {
            Part::Batch(key, history) => (key, history),
            Part::Limits(limits) => {
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
            let mut changes = Changes::default();
            for row in some {
                changes.insert(row);
            }
            sql.save_now(&changes).await?;
        }
        for (job, reason) in &unsent {
            note_unsent(sql, &key, job, reason).await?;
        }
        keep_retake(sql, &key, retake.as_ref()).await?;
        next = parts.recv().await;
    }
    Ok(None)
}

/// The number of a batch, which is created if it does not exist.
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
    // By its name: after a failover, the batch may have another number.
    let note = "INSERT INTO unsent SELECT id, $3, $4 FROM batch WHERE name = $1 AND batch = $2
         ON CONFLICT (batch, job) DO UPDATE SET reason = excluded.reason";
    let [name, value] = names(batch);
    sql.change(note, &[name, value, job.as_str().into(), reason.into()]).await
}

/// Stores the retake that a run began, or removes it.
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
