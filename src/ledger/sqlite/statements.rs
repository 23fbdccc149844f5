//! Statements of a file: they never wait for anything but the disk.

use rusqlite::types::{ToSqlOutput, Type};
use rusqlite::{Connection, Row as SqlRow, ToSql, params_from_iter};

use super::{checksum, freeze, read};
use crate::domain::{BatchKey, History, TaskId, with_causes};
use crate::ledger::Controls;
use crate::ledger::row::{COLUMNS, Row, Unreadable};
use crate::ledger::rules::{Changes, Named};
use crate::ledger::sql::{self, Line, Sql, attempt, key};
use crate::ledger::value::Value;

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
        read::history(self, batch).await
    }

    async fn controls(&self) -> rusqlite::Result<Controls> {
        Ok(Controls { now: jiff::Timestamp::now(), limits: sql::limits(self).await?, freeze: freeze::frozen(self)? })
    }

    async fn named(&self, names: &[&TaskId]) -> rusqlite::Result<Vec<Named>> {
        let named = "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
             WHERE task = $1 OR alias = $1";
        let mut found = Vec::new();
        for name in names {
            let read = |line: &dyn Line<_>| Ok(Named { batch: key(line, 0)?, attempt: attempt(line, 2, None)? });
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
            let sent = [row.batch.into(), row.attempt.job.as_str().into()];
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::domain::Fingerprint;
    use crate::ledger::Intent;
    use crate::ledger::rules::Asked;
    use crate::ledger::sqlite::open::open;
    use crate::ledger::suite::store::{batch, intent_of};
    use crate::ledger::value::Kind;

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

        async fn named(&self, names: &[&TaskId]) -> rusqlite::Result<Vec<Named>> {
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
        sql::paid(&sql, &[Asked { batch: 1, key: &key, intent: &intent }]).await.expect("read");
        sql::open_elsewhere(&sql, &key).await.expect("read");
        let requests = || vec![Fingerprint::stored("normalized a".to_owned())];
        sql::bought_elsewhere(&sql, &BatchKey { name: "m".into(), ..batch("own") }, &requests).await.expect("read");
        let plans = sql.1.into_inner();
        assert!(plans.iter().filter(|plan| plan.contains("INDEX attempt_by_normalized")).count() >= 2, "{plans:#?}");
        assert!(plans.iter().any(|plan| plan.contains("INDEX attempt_unfinished")), "{plans:#?}");
        assert!(!plans.iter().any(|plan| plan.starts_with("SCAN attempt")), "{plans:#?}");
    }
}
