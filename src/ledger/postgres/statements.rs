//! Statements of a transaction. PostgreSQL can't store a NUL, so another character stands for it in each text.

use std::pin::pin;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::transaction::{NOW, Transaction};
use super::{freeze, rows};
use crate::domain::{Attempt, BatchKey, History, TaskId};
use crate::ledger::Controls;
use crate::ledger::rules::{Changes, Named};
use crate::ledger::sql::{self, Line, Sql, attempt, key};
use crate::ledger::value::Value;

/// Stands for a NUL: a noncharacter of Unicode, which texts do not exchange. A text that has it is read back with a NUL.
const NUL: char = '\u{10FFFE}';

impl Line<PostgresError> for SqlRow {
    fn number(&self, column: usize) -> Result<i64, PostgresError> {
        Ok(self.try_get(column)?)
    }

    fn text(&self, column: usize) -> Result<String, PostgresError> {
        Ok(restored(self.try_get(column)?))
    }

    fn plain(&self, column: usize) -> Result<Option<&str>, PostgresError> {
        Ok(self.try_get(column)?)
    }
}

impl Sql for Transaction {
    type Error = PostgresError;

    const IS_AMONG: &'static str = "= ANY(ARRAY(SELECT json_array_elements_text($1::json)))";

    async fn each_line(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Line<PostgresError>) -> Result<(), PostgresError>,
    ) -> Result<(), PostgresError> {
        let mut rows = pin!(self.query_typed_raw(sql, values.iter().map(typed)).await?);
        while let Some(row) = rows.try_next().await? {
            read(&row)?;
        }
        Ok(())
    }

    async fn change(&self, sql: &str, values: &[Value<'_>]) -> Result<(), PostgresError> {
        self.each_line(sql, values, |_| Ok(())).await
    }

    async fn history(&self, batch: &BatchKey) -> Result<History, PostgresError> {
        let all = "SELECT attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
             WHERE name = $1 AND batch.batch = $2 ORDER BY attempt.id";
        let mut attempts: Vec<Attempt> = Vec::new();
        let read = |line: &dyn Line<_>| {
            attempts.push(attempt(line, 0, attempts.last())?);
            Ok(())
        };
        let names = sql::names(batch);
        let unsent = "FROM unsent JOIN batch ON batch.id = unsent.batch WHERE name = $1 AND batch.batch = $2";
        let retake = "SELECT retake FROM batch WHERE name = $1 AND batch = $2 AND retake IS NOT NULL";
        let (read, unsent, retake) = futures::join!(
            self.each_line(all, &names, read),
            sql::unsent(self, unsent, &names),
            self.line(retake, &names, |line| Ok(sql::from_json("retake", line.plain(0)?.unwrap_or_default())?))
        );
        read?;
        Ok(History::new(attempts).with_unsent(unsent?).with_retake(retake?))
    }

    async fn controls(&self) -> Result<Controls, PostgresError> {
        let (now, limits, freeze) = futures::join!(now(self), sql::limits(self), freeze::frozen(self));
        Ok(Controls { now: now?, limits: limits?, freeze: freeze? })
    }

    async fn named(&self, names: &[&TaskId]) -> Result<Vec<Named>, PostgresError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let named = format!(
            "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch WHERE {IS_NAMED}"
        );
        let names: Vec<String> = names.iter().map(|name| storable(name.as_str())).collect();
        let rows = self.query_typed(&named, &[(&names, Type::TEXT_ARRAY)]).await?;
        rows.iter().map(|row| Ok(Named { batch: key(row, 0)?, attempt: attempt(row, 2, None)? })).collect()
    }

    async fn save_now(&self, changes: &Changes<'_>) -> Result<(), PostgresError> {
        rows::write(self, changes).await
    }
}

/// The rows whose task has one of these names. The indexes are over digests, because a name may be longer than an index takes. Each line
/// repeats the condition of one index: otherwise PostgreSQL reads every row.
const IS_NAMED: &str = "(md5(task) = ANY(ARRAY(SELECT md5(name) FROM unnest($1) AS name)) AND task = ANY($1) AND task IS NOT NULL AND NOT was_forgotten
    OR md5(task) = ANY(ARRAY(SELECT md5(name) FROM unnest($1) AS name)) AND task = ANY($1) AND task IS NOT NULL AND was_forgotten
    OR md5(alias) = ANY(ARRAY(SELECT md5(name) FROM unnest($1) AS name)) AND alias = ANY($1) AND alias IS NOT NULL)";

/// The time by the database's clock.
pub(super) async fn now(transaction: &Transaction) -> Result<Timestamp, PostgresError> {
    let micros = transaction.query_typed_one(&format!("SELECT {NOW}"), &[]).await?.try_get(0)?;
    Ok(Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX))
}

fn typed(value: &Value<'_>) -> (Box<dyn ToSql + Sync + Send>, Type) {
    match value {
        Value::Number(number) => (Box::new(*number), Type::INT8),
        Value::Text(text) => (Box::new(text.as_deref().map(storable)), Type::TEXT),
    }
}

/// A text that PostgreSQL can store.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{10FFFE}")
}

/// The text that was made storable.
pub(super) fn restored(text: String) -> String {
    if text.contains(NUL) { text.replace(NUL, "\0") } else { text }
}
