//! Attempts as rows: read as columns, written together as JSON.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Serialize;
use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::transaction::Transaction;
use crate::domain::AttemptId;
use crate::ledger::row::{COLUMNS, Row, Shared, Unreadable};
use crate::ledger::rules::{Changes, SpentChange};
use crate::ledger::sql::attempt;
use crate::ledger::value::Value;

/// The columns of a row that are read.
pub(super) const ROW: &str = "attempt.id, record, attempt.batch, attempt.runner, attempt.version, was_forgotten";

/// The columns that keep their first value. PostgreSQL cleans up an index sooner if no update names its columns.
const FIXED: [&str; 7] = ["id", "batch", "fingerprint", "normalized", "model", "labels", "intended_us"];

/// Writes the changes of a transaction, given as JSON, in one statement: new rows, changed rows, and the sums. The jobs of new rows were sent.
///
/// Fails with [`NOT_WRITTEN`](super::error::NOT_WRITTEN) if the tables did not take each of them, as behind a trigger: the transaction is rolled back, and nothing is sent.
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

/// Writes changes now.
pub(super) async fn write(transaction: &Transaction, changes: &Changes<'_>) -> Result<(), PostgresError> {
    if let Some(json) = as_json(changes)? {
        transaction.execute_typed(&WRITE, &[(&json, Type::TEXT)]).await?;
    }
    Ok(())
}

/// Writes changes together with the commit.
pub(super) fn write_last(transaction: &Transaction, changes: &Changes<'_>) -> Result<(), PostgresError> {
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
    fn of(row: &'r Row) -> Result<Self, Unreadable> {
        Ok(Self { own: COLUMNS.into_iter().zip(row.values()?).collect(), shared: row.shared })
    }
}

fn as_json(Changes { new, changed, sums }: &Changes<'_>) -> Result<Option<String>, PostgresError> {
    if new.is_empty() && changed.is_empty() {
        return Ok(None);
    }
    let written = serde_json::to_string(&Written {
        new: new.iter().copied().map(Columns::of).collect::<Result<_, _>>()?,
        changed: changed.iter().copied().map(Columns::of).collect::<Result<_, _>>()?,
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

/// These attempts, locked until the end of the transaction, in an order that all transactions keep.
pub(super) async fn locked(
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
    // JSON escapes every control character, so one can stand for an escaped backslash meanwhile.
    json.replace(r"\\", "\u{1}").replace(r"\u0000", "\u{10FFFE}").replace('\u{1}', r"\\")
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
