//! Attempts as rows of the file.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row as SqlRow, ToSql, params};

use super::columns::{COLUMNS, RECORD};
use crate::ledger::row::{Columns, Row};

/// Inserts a row.
pub(super) fn insert(connection: &Connection, row: &Row) -> rusqlite::Result<()> {
    let values: Vec<String> = (1..=RECORD + 1).map(|place| format!("?{place}")).collect();
    write(connection, &format!("INSERT INTO attempt ({COLUMNS}) VALUES ({})", values.join(", ")), row)
}

/// Replaces a row.
pub(super) fn replace(connection: &Connection, row: &Row) -> rusqlite::Result<()> {
    let sets: Vec<String> =
        COLUMNS.split(", ").zip(1..).map(|(column, place)| format!("{column} = ?{place}")).collect();
    write(connection, &format!("UPDATE attempt SET {} WHERE id = ?1", sets.join(", ")), row)
}

fn write(connection: &Connection, sql: &str, row: &Row) -> rusqlite::Result<()> {
    with_values(row, |values| connection.prepare_cached(sql)?.execute(values).map(drop))
}

/// Returns whether the columns of a query that selects all of them are those of a row.
pub(super) fn repeats_its_record(stored: &SqlRow<'_>, row: &Row) -> rusqlite::Result<bool> {
    with_values(row, |values| {
        for (place, value) in values.iter().enumerate().take(RECORD) {
            let is_same = match value.to_sql()? {
                ToSqlOutput::Borrowed(value) => stored.get_ref(place)? == value,
                ToSqlOutput::Owned(value) => stored.get_ref(place)? == ValueRef::from(&value),
                _ => false,
            };
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Does something with the values of a row, in the order of [`COLUMNS`].
fn with_values<T>(row: &Row, act: impl FnOnce(&[&dyn ToSql]) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let row = Columns::of(row)?;
    act(params![
        row.id,
        row.batch,
        row.job,
        row.fingerprint,
        row.normalized,
        row.model,
        row.labels,
        row.service,
        row.key,
        row.state,
        row.charge,
        row.is_declared,
        row.is_unfinished,
        row.needs_download,
        row.price_micros,
        row.task,
        row.alias,
        row.intended_us,
        row.record,
    ])
}
