//! Attempts as rows of the file.

use rusqlite::{Connection, params_from_iter};

use crate::ledger::row::{COLUMNS, Row};
use crate::ledger::sql::Line;
use crate::ledger::value::Value;

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
