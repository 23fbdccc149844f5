//! One batch, read back and verified.

use rusqlite::Connection;

use super::checksum::{damaged, digest, expect, sum_of, verified_batch};
use crate::domain::{Attempt, BatchKey, History};
use crate::ledger::sql::{Line, Sql as _, attempt, retake, unsent};

/// Every attempt of a batch, oldest first, verified against the checksums. Must be called in a transaction.
pub(super) async fn history(connection: &Connection, batch: &BatchKey) -> rusqlite::Result<History> {
    let Some((id, expected)) = verified_batch(connection, &batch.name, &batch.batch)? else {
        return Ok(History::default());
    };
    let count = "SELECT count(*) FROM attempt WHERE batch = $1";
    let count = connection.lines(count, &[id.into()], |line| line.count(0)).await?.into_iter().sum::<u32>();
    let (mut attempts, mut sum) = (Vec::<Attempt>::with_capacity(count as usize), 0_i64);
    // One statement: a second one could take another index, which may be sound where this one is not.
    let digest = digest("attempt", "attempt");
    let sql = format!("SELECT id, record, {digest} FROM attempt WHERE batch = $1 ORDER BY id");
    let read = |line: &dyn Line<rusqlite::Error>| {
        sum = sum.wrapping_add(line.number(2)?);
        let attempt = attempt(line, 0, attempts.last())?;
        // A checksum is of rows in any order, and the newest one decides.
        if attempts.last().is_some_and(|last| last.id >= attempt.id) {
            return Err(damaged("the attempts of the batch are out of order"));
        }
        attempts.push(attempt);
        Ok(())
    };
    connection.each_line(&sql, &[id.into()], read).await?;
    sum = sum.wrapping_add(sum_of(connection, "unsent", &format!("batch = {id}"))?);
    expect(expected, sum, "the attempts of the batch")?;
    let history = History::new(attempts).with_unsent(unsent(connection, batch).await?);
    Ok(history.with_retake(retake(connection, batch).await?))
}
