//! Statements of a file: they never wait for anything but the disk.

use std::path::Path;

use rusqlite::types::{ToSqlOutput, Type};
use rusqlite::{Connection, Row as SqlRow, ToSql, params_from_iter};

use super::beside::{CommitCounter, count_commit};
use super::checksum::{self, damaged, digest, expect, sum_of, verified_batch};
use super::open::store_error;
use crate::domain::{Attempt, BatchKey, Freeze, History, TaskId, with_causes};
use crate::ledger::row::{COLUMNS, Row, Unreadable, Value};
use crate::ledger::rules::Changes;
use crate::ledger::sql::{self, Line, Sql, attempt, from_json, key, unsent};
use crate::ledger::{Controls, Unavailable};

impl From<Unreadable> for rusqlite::Error {
    fn from(error: Unreadable) -> Self {
        Self::FromSqlConversionFailure(usize::MAX, Type::Text, with_causes(&error).into())
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Number(number) => number.to_sql(),
            Self::Text(text) => text.to_sql(),
        }
    }
}

impl Line<rusqlite::Error> for SqlRow<'_> {
    fn number(&self, column: usize) -> rusqlite::Result<i64> {
        self.get(column)
    }

    fn text(&self, column: usize) -> rusqlite::Result<String> {
        self.get(column)
    }

    fn plain(&self, column: usize) -> rusqlite::Result<Option<&str>> {
        Ok(self.get_ref(column)?.as_str_or_null()?)
    }
}

impl Sql for Connection {
    type Error = rusqlite::Error;

    const IS_AMONG: &'static str = "IN (SELECT value FROM json_each($1))";

    async fn each_line(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Line<rusqlite::Error>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.prepare_cached(&numbered(sql))?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            read(row)?;
        }
        Ok(())
    }

    async fn change(&self, sql: &str, values: &[Value<'_>]) -> rusqlite::Result<()> {
        self.prepare_cached(&numbered(sql))?.execute(params_from_iter(values)).map(drop)
    }

    async fn history(&self, batch: &BatchKey) -> rusqlite::Result<History> {
        history(self, batch).await
    }

    async fn controls(&self) -> rusqlite::Result<Controls> {
        Ok(Controls { now: jiff::Timestamp::now(), limits: sql::limits(self).await?, freeze: read_freeze(self)? })
    }

    async fn named(&self, names: &[&TaskId]) -> rusqlite::Result<Vec<(BatchKey, Attempt)>> {
        let named = "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
             WHERE task = $1 OR alias = $1";
        let mut found = Vec::new();
        for name in names {
            let read = |line: &dyn Line<_>| Ok((key(line, 0)?, attempt(line, 2, None)?));
            found.extend(self.lines(named, &[name.as_str().into()], read).await?);
        }
        Ok(found)
    }

    async fn verify_sums(&self) -> rusqlite::Result<()> {
        checksum::verify_sums(self)
    }

    async fn verify_attempts(&self) -> rusqlite::Result<()> {
        checksum::verify_attempts(self)
    }

    async fn save_now(&self, Changes { new, changed, sums }: &Changes<'_>) -> rusqlite::Result<()> {
        for row in new {
            insert(self, row)?;
            let sent = [row.batch.into(), row.attempt.job().as_str().into()];
            self.change("DELETE FROM unsent WHERE batch = $1 AND job = $2", &sent).await?;
        }
        changed.iter().try_for_each(|row| replace(self, row))?;
        for sum in sums.spent() {
            let add = "INSERT INTO spent VALUES ($1, $2, $3, $4)
                 ON CONFLICT (label, value, quarter) DO UPDATE SET micros = micros + excluded.micros";
            self.change(add, &[sum.label.into(), sum.value.into(), sum.quarter.into(), sum.micros.into()]).await?;
        }
        Ok(())
    }
}

/// SQLite numbers `$1` by its first place in a statement, and `?1` by its name.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

/// Inserts a row.
pub(super) fn insert(connection: &Connection, row: &Row) -> rusqlite::Result<()> {
    let places: Vec<String> = (1..=COLUMNS.len()).map(|place| format!("?{place}")).collect();
    write(connection, &format!("INSERT INTO attempt ({}) VALUES ({})", COLUMNS.join(", "), places.join(", ")), row)
}

/// Replaces a row.
pub(super) fn replace(connection: &Connection, row: &Row) -> rusqlite::Result<()> {
    let sets: Vec<String> = COLUMNS.iter().zip(1..).map(|(column, place)| format!("{column} = ?{place}")).collect();
    write(connection, &format!("UPDATE attempt SET {} WHERE id = ?1", sets.join(", ")), row)
}

fn write(connection: &Connection, sql: &str, row: &Row) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(params_from_iter(row.values()?)).map(drop)
}

/// Returns whether a line with all columns has the values of a row, which was read from the last of them.
pub(super) fn repeats_its_record(line: &dyn Line<rusqlite::Error>, row: &Row) -> rusqlite::Result<bool> {
    let values = row.values()?;
    let is_same = |(column, value): (usize, &Value<'_>)| match value {
        Value::Number(number) => line.number(column).is_ok_and(|found| found == *number),
        Value::Text(text) => line.plain(column).is_ok_and(|found| found == text.as_deref()),
    };
    Ok(values[..values.len() - 1].iter().enumerate().all(is_same))
}

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

/// The freeze, if purchases are frozen.
pub(super) fn read_freeze(connection: &Connection) -> rusqlite::Result<Option<Freeze>> {
    let why: Option<String> =
        connection.prepare_cached("SELECT frozen FROM ledger")?.query_row([], |row| row.get(0))?;
    Ok(why.map(Freeze::on_request))
}

/// Freezes purchases for a reason, or unfreezes them.
pub(super) fn set_freeze(connection: &Connection, why: Option<&str>) -> rusqlite::Result<()> {
    connection.execute("UPDATE ledger SET frozen = ?1", [why])?;
    Ok(())
}

/// Changes what is no attempt, in a commit that counts: a copy from before a freeze is outdated.
pub(super) fn commit(
    connection: &Connection,
    path: &Path,
    change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), Unavailable> {
    let mut counter = CommitCounter::open(path)?;
    let commits = || {
        let transaction = connection.unchecked_transaction()?;
        change(&transaction)?;
        let commits = count_commit(&transaction)?;
        transaction.commit().map(|()| commits)
    };
    counter.note(commits().map_err(|error| store_error(path, error))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::domain::Fingerprint;
    use crate::ledger::Intent;
    use crate::ledger::row::Kind;
    use crate::ledger::rules::BatchIntent;
    use crate::ledger::sqlite::open::open;
    use crate::ledger::suite::store::{batch, intent_of};

    /// A file that notes how it reads.
    struct Explained(Connection, RefCell<Vec<String>>);

    impl Sql for Explained {
        type Error = rusqlite::Error;

        const IS_AMONG: &'static str = Connection::IS_AMONG;

        async fn each_line(
            &self,
            sql: &str,
            values: &[Value<'_>],
            read: impl FnMut(&dyn Line<rusqlite::Error>) -> rusqlite::Result<()>,
        ) -> rusqlite::Result<()> {
            let plan = self.0.lines(&format!("EXPLAIN QUERY PLAN {sql}"), values, |line| line.text(3)).await?;
            self.1.borrow_mut().extend(plan);
            self.0.each_line(sql, values, read).await
        }

        async fn change(&self, sql: &str, values: &[Value<'_>]) -> rusqlite::Result<()> {
            self.0.change(sql, values).await
        }

        async fn history(&self, batch: &BatchKey) -> rusqlite::Result<History> {
            self.0.history(batch).await
        }

        async fn controls(&self) -> rusqlite::Result<Controls> {
            self.0.controls().await
        }

        async fn named(&self, names: &[&TaskId]) -> rusqlite::Result<Vec<(BatchKey, Attempt)>> {
            self.0.named(names).await
        }

        async fn verify_sums(&self) -> rusqlite::Result<()> {
            self.0.verify_sums().await
        }

        async fn verify_attempts(&self) -> rusqlite::Result<()> {
            self.0.verify_attempts().await
        }

        async fn save_now(&self, changes: &Changes<'_>) -> rusqlite::Result<()> {
            self.0.save_now(changes).await
        }
    }

    #[tokio::test]
    async fn attempts_of_others_are_found_by_an_index() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = open(&directory.path().join("ledger.db"), Kind::Real).expect("a ledger");
        let sql = Explained(file, RefCell::default());
        sql::ensure_batch(&sql, &batch("other")).await.expect("a batch");
        let intent = Intent { paid_elsewhere: Some(0), ..intent_of("a") };
        let key = batch("own");
        sql::paid(&sql, &[BatchIntent { batch: 1, key: &key, intent: &intent }]).await.expect("read");
        sql::open_elsewhere(&sql, &key).await.expect("read");
        let requests = || vec![Fingerprint::stored("normalized a".to_owned())];
        sql::bought_elsewhere(&sql, &BatchKey { name: "m".into(), ..batch("own") }, &requests).await.expect("read");
        let plans = sql.1.into_inner();
        assert!(plans.iter().filter(|plan| plan.contains("INDEX attempt_by_normalized")).count() >= 2, "{plans:#?}");
        assert!(plans.iter().any(|plan| plan.contains("INDEX attempt_unfinished")), "{plans:#?}");
        assert!(!plans.iter().any(|plan| plan.starts_with("SCAN attempt")), "{plans:#?}");
    }
}

#[cfg(all(test, unix))]
mod damage_tests {
    use std::os::unix::fs::FileExt as _;

    use crate::domain::UnfinishedRetake;
    use crate::ledger::Ledger;
    use crate::ledger::suite::store::{batch, intent_of};

    /// An index is no record: without it, a retake that began would begin anew.
    #[tokio::test]
    async fn emptied_batch_index_hides_no_unsent_reason() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        let ledger = Ledger::in_file(&path);
        let retake = UnfinishedRetake { globs: vec!["hero*".into()], after: 0 };
        let locked = ledger.lock(&batch("b")).await.expect("a batch");
        locked.note_unsent(&intent_of("a").purchase.job, "no image").await.expect("a note");
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
