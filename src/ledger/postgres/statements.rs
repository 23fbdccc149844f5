//! Statements of a transaction, and attempts as rows. PostgreSQL can't store a NUL, so texts have another character instead.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::LazyLock;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use serde::Serialize;
use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::{ToSql, Type};

use super::schema::read_freeze;
use super::transaction::{NOW, PostgresError, Transaction};
use crate::domain::{Attempt, AttemptId, BatchKey, History, TaskId};
use crate::ledger::Controls;
use crate::ledger::row::{COLUMNS, FIXED, Row, Shared, Unreadable, Value};
use crate::ledger::rules::{Changes, SpentChange};
use crate::ledger::sql::{self, Line, Sql, attempt, key};

/// Replaces a NUL: a noncharacter of Unicode, which texts do not contain. It is read back as a NUL.
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

/// The rows with one of these task names. The indexes are over digests, because a name may be too long for an index. Each line repeats the condition
/// of one index, or PostgreSQL would read every row.
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

/// The original of a storable text.
pub(super) fn restored(text: String) -> String {
    if text.contains(NUL) { text.replace(NUL, "\0") } else { text }
}

/// The columns of a query for rows.
pub(super) const ROW: &str = "attempt.id, record, attempt.batch, attempt.runner, attempt.version, was_forgotten";

/// Writes the changes of a transaction, given as JSON, in one statement: new rows, changed rows, and the sums. The jobs of new rows were sent.
///
/// Fails with [`NOT_WRITTEN`](super::transaction::NOT_WRITTEN) if a table skipped a row, for example by a trigger. Then the transaction is rolled back, and nothing is sent.
static WRITE: LazyLock<String> = LazyLock::new(|| {
    let columns = COLUMNS.iter().filter(|column| !FIXED.contains(column));
    let columns = columns.chain(&["version", "was_forgotten"]);
    let sets: Vec<String> = columns.map(|column| format!("{column} = changed.{column}")).collect();
    format!(
        "
WITH given AS (SELECT $1::text::json AS it),
    new AS MATERIALIZED (SELECT row.* FROM given, json_populate_recordset(NULL::attempt, it -> 'new') AS row),
    changed AS (SELECT row.* FROM given, json_populate_recordset(NULL::attempt, it -> 'changed') AS row),
    spending AS (SELECT row.* FROM given, json_populate_recordset(NULL::spent, it -> 'spent') AS row),
    inserted AS (INSERT INTO attempt SELECT * FROM new RETURNING 1),
    replaced AS (UPDATE attempt SET {} FROM changed WHERE attempt.id = changed.id RETURNING 1),
    sent AS (DELETE FROM unsent USING new WHERE unsent.batch = new.batch AND unsent.job = new.job),
    sums AS (INSERT INTO spent SELECT * FROM spending ORDER BY 1, 2, 3
        ON CONFLICT (label, value, quarter) DO UPDATE SET micros = spent.micros + excluded.micros RETURNING 1)
SELECT 1 / (((SELECT count(*) FROM new), (SELECT count(*) FROM changed), (SELECT count(*) FROM spending))
    = ((SELECT count(*) FROM inserted), (SELECT count(*) FROM replaced), (SELECT count(*) FROM sums)))::integer",
        sets.join(", ")
    )
});

/// Changes as JSON.
#[derive(Serialize)]
struct Written<'r> {
    new: Vec<Columns<'r>>,
    changed: Vec<Columns<'r>>,
    spent: Vec<SpentChange<'r>>,
}

/// Writes changes together with the commit.
pub(super) fn write_rows_last(transaction: &Transaction, changes: &Changes<'_>) -> Result<(), PostgresError> {
    if let Some(json) = as_json(changes)? {
        transaction.execute_last(WRITE.as_str(), json);
    }
    Ok(())
}

/// A row as JSON.
#[derive(Serialize)]
struct Columns<'r> {
    #[serde(flatten)]
    own: BTreeMap<&'static str, Value<'r>>,
    #[serde(flatten)]
    shared: Shared,
}

impl<'r> Columns<'r> {
    fn new(row: &'r Row) -> Result<Self, Unreadable> {
        Ok(Self { own: COLUMNS.into_iter().zip(row.values()?).collect(), shared: row.shared })
    }
}

fn as_json(Changes { new, changed, sums }: &Changes<'_>) -> Result<Option<String>, PostgresError> {
    if new.is_empty() && changed.is_empty() {
        return Ok(None);
    }
    let written = serde_json::to_string(&Written {
        new: new.iter().copied().map(Columns::new).collect::<Result<_, _>>()?,
        changed: changed.iter().map(|(_, row)| Columns::new(row)).collect::<Result<_, _>>()?,
        spent: sums.spent().collect(),
    })
    .map_err(Unreadable::Json)?;
    Ok(Some(without_nul(written)))
}

/// The attempt and its runners, from a query that begins with [`ROW`].
pub(super) fn read_row(row: &SqlRow) -> Result<Row, PostgresError> {
    Ok(Row {
        attempt: attempt(row, 0, None)?,
        batch: row.try_get(2)?,
        shared: Shared { runner: row.try_get(3)?, version: row.try_get(4)?, was_forgotten: row.try_get(5)? },
    })
}

/// These attempts, locked until the end of the transaction. All transactions lock in this order.
pub(super) async fn locked_rows(
    transaction: &Transaction,
    ids: &[AttemptId],
) -> Result<BTreeMap<AttemptId, Row>, PostgresError> {
    let sql = format!("SELECT {ROW} FROM attempt WHERE id = ANY($1) ORDER BY id FOR UPDATE");
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let rows = transaction.query_typed(&sql, &[(&ids, Type::INT8_ARRAY)]).await?;
    rows.iter().map(read_row).map(|row| row.map(|row| (row.attempt.id, row))).collect()
}

/// In JSON, a NUL is `\u0000` behind an even number of backslashes.
fn without_nul(json: String) -> String {
    if !json.contains("\\u0000") {
        return json;
    }
    // JSON escapes control characters, so one can replace escaped backslashes for a moment.
    json.replace(r"\\", "\u{1}").replace(r"\u0000", "\u{10FFFE}").replace('\u{1}', r"\\")
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
        Ok(History::new(attempts).with_facts(unsent?, retake?))
    }

    async fn controls(&self) -> Result<Controls, PostgresError> {
        let (now, limits, freeze) = futures::join!(now(self), sql::limits(self), read_freeze(self));
        Ok(Controls { now: now?, limits: limits?, freeze: freeze? })
    }

    async fn named(&self, names: &[&TaskId]) -> Result<Vec<(BatchKey, Attempt)>, PostgresError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let named = format!(
            "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch WHERE {IS_NAMED}"
        );
        let names: Vec<String> = names.iter().map(|name| storable(name.as_str())).collect();
        let rows = self.query_typed(&named, &[(&names, Type::TEXT_ARRAY)]).await?;
        rows.iter().map(|row| Ok((key(row, 0)?, attempt(row, 2, None)?))).collect()
    }

    async fn save_now(&self, changes: &Changes<'_>) -> Result<(), PostgresError> {
        if let Some(json) = as_json(changes)? {
            self.execute_typed(&WRITE, &[(&json, Type::TEXT)]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::statements::{restored, storable};
    use super::*;

    proptest! {
        /// Every string comes back, and no NUL goes out.
        #[test]
        fn no_nul_is_lost_on_its_way(text in "([a\\\\\"\0]|u0000|\\\\u0000){0,12}") {
            let json = serde_json::json!([text]).to_string();
            let plain = serde_json::from_str::<Vec<String>>(&without_nul(json)).expect("JSON").remove(0);
            prop_assert!(!plain.contains('\0'));
            prop_assert_eq!(restored(plain), text.clone());
            prop_assert_eq!(restored(storable(&text)), text);
        }
    }
}
