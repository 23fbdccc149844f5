//! Checksums over all rows about money. A damaged ledger is refused.
//!
//! # Guarantees
//!
//! - A batch that is read without an error has exactly the attempts that were written. This includes flipped bits, exchanged or missing pages, a
//!   wrong index, and edits by another program.
//! - So do the list of batches, the ledger limits, the freeze, and the sums for limits.
//! - It isn't a signature. A program that can write the file and contains this code can write a ledger that verifies.
//!
//! # Design
//!
//! Each row has a digest: the first 64 bits of the SHA-256 of a tag and its values. A checksum is the wrapping sum of digests, so a trigger
//! updates it from the old and the new row, in the transaction of the write. `batch.checksum` covers the attempts of a batch and the unsent jobs; `ledger.checksum` covers the batches with their checksums, the ledger limits, and the freeze; `ledger.sums`
//! covers the sums by quarter of an hour. A checksum is in the row of the commit counter, so both are from the same commit.
//!
//! The verification of a batch reads only its rows and the list of batches.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ffi};
use sha2::{Digest as _, Sha256};

use crate::ledger::row::COLUMNS;

/// Adds the SQL functions that the triggers call: `digest(tag, …)` and `changed(sum, before, after)`.
pub(super) fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("digest", -1, flags, |values| {
        let mut digest = RowDigest::default();
        (0..values.len()).for_each(|place| digest.add(values.get_raw(place)));
        Ok(digest.finish())
    })?;
    connection.create_scalar_function("changed", 3, flags, |values| {
        let [sum, before, after] = [values.get::<i64>(0)?, values.get(1)?, values.get(2)?];
        Ok(sum.wrapping_sub(before).wrapping_add(after))
    })
}

/// The digest of a row in SQL, for triggers and verification.
pub(super) fn digest(table: &str, row: &str) -> String {
    let (tag, columns): (_, &[&str]) = match table {
        "batch" => ("batch", &["id", "name", "batch", "retake", "checksum"]),
        "unsent" => ("unsent", &["batch", "job", "reason"]),
        "ledger_limit" => ("limit", &["key", "record"]),
        "ledger" => ("freeze", &["frozen"]),
        "spent" => ("spent", &["label", "value", "quarter", "micros"]),
        _ => ("attempt", &COLUMNS),
    };
    let values: Vec<String> = columns.iter().map(|column| format!("{row}.{column}")).collect();
    format!("digest('{tag}', {})", values.join(", "))
}

/// The digest of one row, value by value.
#[derive(Default)]
struct RowDigest(Sha256);

impl RowDigest {
    fn add(&mut self, value: ValueRef<'_>) {
        let (kind, bytes): (u8, &[u8]) = match &value {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(number) => (1, &number.to_le_bytes()),
            ValueRef::Real(number) => (2, &number.to_le_bytes()),
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(blob) => (4, blob),
        };
        self.0.update([kind]);
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn finish(self) -> i64 {
        let digest: [u8; 32] = self.0.finalize().into();
        digest.first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
    }
}

/// Refuses a sum of digests that isn't the expected one.
pub(super) fn expect(expected: i64, sum: i64, what: &str) -> rusqlite::Result<()> {
    if sum == expected { Ok(()) } else { Err(damaged(&format!("{what} don't match their checksum"))) }
}

/// The sum of the digests of a table's rows that match a condition.
pub(super) fn sum_of(connection: &Connection, table: &str, condition: &str) -> rusqlite::Result<i64> {
    let sql = format!("SELECT {} FROM {table} WHERE {condition}", digest(table, table));
    let mut statement = connection.prepare_cached(&sql)?;
    let digests = statement.query_map([], |row| row.get::<_, i64>(0))?;
    digests.into_iter().try_fold(0_i64, |sum, digest| Ok(sum.wrapping_add(digest?)))
}

/// Verifies the list of batches, the ledger limits, and the freeze; returns number, checksum, and unfinished retake of a batch.
pub(super) fn verified_batch(
    connection: &Connection,
    name: &str,
    batch: &str,
) -> rusqlite::Result<Option<(i64, i64, Option<String>)>> {
    let sql = format!("SELECT checksum, {} FROM ledger WHERE id = 1", digest("ledger", "ledger"));
    let (expected, mut sum): (i64, i64) =
        connection.prepare_cached(&sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut found = None;
    // The whole table in its own order, so that no index can hide a batch.
    let sql = format!(
        "SELECT {}, id, name, batch, checksum, retake FROM batch NOT INDEXED ORDER BY id",
        digest("batch", "batch")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        sum = sum.wrapping_add(row.get(0)?);
        if row.get_ref(2)?.as_str()? == name && row.get_ref(3)?.as_str()? == batch {
            // A second row of a batch would hide purchases.
            if found.replace((row.get(1)?, row.get(4)?, row.get(5)?)).is_some() {
                return Err(damaged("two batches have one name"));
            }
        }
    }
    sum = sum.wrapping_add(sum_of(connection, "ledger_limit", "true")?);
    expect(expected, sum, "the batches and limits")?;
    Ok(found)
}

/// Verifies the sums that limits are checked against.
pub(super) fn verify_sums(connection: &Connection) -> rusqlite::Result<()> {
    let expected =
        connection.prepare_cached("SELECT sums FROM ledger WHERE id = 1")?.query_row([], |row| row.get(0))?;
    expect(expected, sum_of(connection, "spent", "true")?, "the sums")
}

/// Verifies the attempts of all batches together: the sum of the checksums is that of all digests.
pub(super) fn verify_attempts(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("SELECT checksum FROM batch")?;
    let checksums = statement.query_map([], |row| row.get::<_, i64>(0))?;
    let expected = checksums.into_iter().try_fold(0_i64, |sum, of_batch| of_batch.map(|it| sum.wrapping_add(it)))?;
    let sum = sum_of(connection, "attempt", "true")?.wrapping_add(sum_of(connection, "unsent", "true")?);
    expect(expected, sum, "the attempts")
}

/// The error of a damaged file.
pub(super) fn damaged(what: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(what.to_owned()))
}
