//! Batches, reasons, retakes, and limits: written without a rule.

use super::medium::Sql;
use super::questions::names;
use crate::domain::{BatchKey, JobId, UnfinishedRetake};
use crate::ledger::LedgerLimit;
use crate::ledger::row::Unreadable;

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
