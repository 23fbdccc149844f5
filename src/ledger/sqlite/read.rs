//! One batch, read back and verified.

use rusqlite::Connection;

use super::checksum::{damaged, digest, expect, sum_of, verified_batch};
use crate::domain::{Attempt, BatchKey, History};
use crate::ledger::sql::{Line, Sql as _, attempt, from_json, unsent};

/// Every attempt of a batch, oldest first, verified against the checksums. Must be called in a transaction.
pub(super) async fn history(connection: &Connection, batch: &BatchKey) -> rusqlite::Result<History> {
    let Some((id, expected, retake)) = verified_batch(connection, &batch.name, &batch.batch)? else {
        return Ok(History::default());
    };
    let count = "SELECT count(*) FROM attempt WHERE batch = $1";
    let count = connection.line(count, &[id.into()], |line| line.count(0)).await?.unwrap_or_default();
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
    // By the number that was verified: an index of names may be damaged.
    let unsent = unsent(connection, "FROM unsent WHERE batch = $1", &[id.into()]).await?;
    let retake = retake.map(|text| from_json("retake", &text)).transpose()?;
    Ok(History::new(attempts).with_unsent(unsent).with_retake(retake))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use crate::domain::UnfinishedRetake;
    use crate::ledger::Ledger;
    use crate::ledger::suite::store::{batch, intent_of};

    /// An index is no record: without it, a retake that began would begin anew.
    #[tokio::test]
    async fn an_emptied_index_of_batches_hides_no_note() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        let ledger = Ledger::in_file(&path);
        let retake = UnfinishedRetake { globs: vec!["hero*".into()], after: 0 };
        let locked = ledger.lock(&batch("b")).await.expect("a batch");
        locked.note_unsent(&intent_of("a").job, "no image").await.expect("a note");
        locked.keep_retake(Some(retake.clone())).await.expect("a note");
        drop(locked);
        let file = rusqlite::Connection::open(&path).expect("the file");
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_batch_1'";
        let root: u32 = file.query_row(root, [], |row| row.get(0)).expect("a page");
        let size: u32 = file.query_row("PRAGMA page_size", [], |row| row.get(0)).expect("a size");
        drop(file);
        // The header of an index's leaf without entries.
        let start = u16::try_from(size).expect("a size").to_be_bytes();
        let empty = [0x0a, 0, 0, 0, 0, start[0], start[1], 0];
        let file = std::fs::File::options().write(true).open(&path).expect("the file");
        file.write_all_at(&empty, u64::from((root - 1) * size)).expect("written");
        let (_, unsent, found) = ledger.history(&batch("b")).await.expect("a record").into_parts();
        assert_eq!(unsent.values().collect::<Vec<_>>(), ["no image"]);
        assert_eq!(found, Some(retake));
        // A run does not find the batch, and creates it a second time. Then nothing is believed.
        drop(ledger.lock(&batch("b")).await);
        ledger.history(&batch("b")).await.expect_err("a damaged ledger");
    }
}
