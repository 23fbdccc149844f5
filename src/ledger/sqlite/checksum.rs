//! Checksums over the rows that money depends on, so that a damaged ledger is refused and not believed.
//!
//! # Guarantees
//!
//! - A batch that reads back without an error has every attempt that was written, each as it was written, and no other. This holds whatever
//!   happened to the file since: flipped bits, exchanged or missing pages, a wrong index, or a row that another program edited.
//! - The same holds for the list of batches, the ledger limits, the freeze, and the sums that limits are checked against.
//! - It isn't a signature. A program that can write the file and contains this code can write a ledger that verifies.
//!
//! # Design
//!
//! Each row has a digest: the first 64 bits of the SHA-256 of a tag and its values. A checksum is the wrapping sum of digests, so a trigger
//! updates it from the row before and after, in the transaction of the write. `batch.checksum` covers the attempts of a batch and the jobs
//! that were not sent; `ledger.checksum` covers the batches with their checksums, the ledger limits, and the freeze; `ledger.sums`
//! covers what was spent by hour. A checksum is in the row that counts commits, so both are of the same moment.
//!
//! To verify a batch costs a read of its own rows and of the list of batches, however many attempts the ledger has.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, ffi};
use sha2::{Digest as _, Sha256};

use super::columns::RECORD;

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

/// The digest of a row in SQL.
pub(super) fn row_values(tag: &str, row: &str, columns: &str) -> String {
    let values: Vec<String> = columns.split(", ").map(|column| format!("{row}.{column}")).collect();
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

/// The digest of values in Rust, as the SQL function makes it.
fn digest_of(tag: &str, values: &[ValueRef<'_>]) -> i64 {
    let mut digest = RowDigest::default();
    digest.add(ValueRef::Text(tag.as_bytes()));
    for value in values {
        digest.add(*value);
    }
    digest.finish()
}

/// The digest of all columns of a row.
fn digest_of_row(tag: &str, row: &Row<'_>, columns: usize) -> rusqlite::Result<i64> {
    let values: Vec<ValueRef<'_>> = (0..columns).map(|column| row.get_ref(column)).collect::<rusqlite::Result<_>>()?;
    Ok(digest_of(tag, &values))
}

/// A checksum that is recomputed from rows.
#[derive(Default)]
pub(super) struct Checksum(i64);

impl Checksum {
    /// Adds the row of an attempt, read by its [columns](super::columns::COLUMNS).
    pub(super) fn add_attempt(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.0 = self.0.wrapping_add(digest_of_row("attempt", row, RECORD + 1)?);
        Ok(())
    }

    /// Adds every row of a query.
    fn add_all(&mut self, connection: &Connection, tag: &str, sql: &str) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.0 = self.0.wrapping_add(digest_of_row(tag, row, columns)?);
        }
        Ok(())
    }

    /// Adds the jobs of a batch that were not sent.
    pub(super) fn add_unsent(&mut self, connection: &Connection, batch: i64) -> rusqlite::Result<()> {
        let sql = format!("SELECT batch, job, reason FROM unsent WHERE batch = {batch}");
        self.add_all(connection, "unsent", &sql)
    }

    /// Returns an error if it isn't this one.
    pub(super) fn expect(&self, expected: i64, what: &str) -> rusqlite::Result<()> {
        if self.0 == expected { Ok(()) } else { Err(damaged(&format!("{what} don't match their checksum"))) }
    }
}

/// A batch as the list of batches has it.
pub(super) struct BatchRow {
    pub(super) id: i64,
    pub(super) checksum: i64,
    /// The retake that a run began and didn't end, as JSON.
    pub(super) retake: Option<String>,
}

/// Verifies the list of batches, the ledger limits, and the freeze; gives the batch with this name and value.
pub(super) fn verified_batch(connection: &Connection, name: &str, batch: &str) -> rusqlite::Result<Option<BatchRow>> {
    let (expected, freeze): (i64, Option<String>) = connection
        .prepare_cached("SELECT checksum, frozen FROM ledger WHERE id = 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (mut sum, mut found) = (Checksum::default(), None);
    // The whole table in its own order, so that no index can hide a batch.
    let mut statement =
        connection.prepare_cached("SELECT id, name, batch, retake, checksum FROM batch NOT INDEXED ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        sum.0 = sum.0.wrapping_add(digest_of_row("batch", row, 5)?);
        if row.get_ref(1)?.as_str()? == name && row.get_ref(2)?.as_str()? == batch {
            found = Some(BatchRow { id: row.get(0)?, retake: row.get(3)?, checksum: row.get(4)? });
        }
    }
    sum.add_all(connection, "limit", "SELECT key, record FROM ledger_limit")?;
    // A row that was only ever inserted had no freeze.
    let freeze = freeze.as_deref().map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes()));
    sum.0 = sum.0.wrapping_add(digest_of("freeze", &[freeze]));
    sum.expect(expected, "the batches and limits")?;
    Ok(found)
}

/// Verifies the sums that limits are checked against.
pub(super) fn verify_sums(connection: &Connection) -> rusqlite::Result<()> {
    let expected =
        connection.prepare_cached("SELECT sums FROM ledger WHERE id = 1")?.query_row([], |row| row.get(0))?;
    let mut sum = Checksum::default();
    sum.add_all(connection, "spent", "SELECT label, value, hour, micros FROM spent")?;
    sum.expect(expected, "the sums")
}

/// The digest of an image URL that is kept.
pub(super) fn digest_of_address(sha256: &str, command: &str, url: &str, at_us: i64) -> i64 {
    let [sha256, command, url] = [sha256, command, url].map(|text| ValueRef::Text(text.as_bytes()));
    digest_of("address", &[sha256, command, url, ValueRef::Integer(at_us)])
}

/// The error of a file that is damaged.
pub(super) fn damaged(what: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(what.to_owned()))
}
