//! All of a ledger, read and written at once.

use tokio::sync::mpsc::{Receiver, Sender};

use super::medium::Sql;
use super::notes::{ensure_batch, keep_retake, note_unsent, set_limit};
use super::questions::{batches, limits};
use crate::ledger::row::Row;
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
