//! The ledger's schema: created whole, and compared with what a file contains.
//!
//! A file with any other schema is refused: a foreign trigger, view, or index could change or hide attempts.
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
//! Each row has a digest: the first 64 bits of the SHA-256 of a tag and its values. A checksum is the wrapping sum of digests, so a write
//! updates it from the old and the new row, in its transaction: a trigger does so, and for attempts the one function that writes them, because a
//! trigger would also update `ledger.checksum` for each attempt of a commit. `batch.checksum` covers the attempts of a batch and the unsent jobs; `ledger.checksum` covers the batches with their checksums, the ledger limits, and the freeze; `ledger.sums`
//! covers the sums by quarter of an hour. A checksum is in the row of the commit counter, so both are from the same commit.
//!
//! The verification of a batch reads only its rows and the list of batches.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Transaction, ffi};
use sha2::{Digest as _, Sha256};

use crate::ledger::Unavailable;
use crate::ledger::row::{COLUMNS, Kind, Value};

impl Kind {
    /// The SQLite application ID, which distinguishes a ledger from other databases: "shot" and "shos" in ASCII.
    fn application_id(self) -> i32 {
        if self == Self::Real { 0x7368_6f74 } else { 0x7368_6f73 }
    }
}

/// The version of the schema below. A file of any other version is refused.
pub(super) const VERSION: i32 = 1;

/// The tables and indexes. `checksum` and `sums` are explained above.
const TABLES: &str = include_str!("schema.sql");

/// Returns whether this object of the schema is a table.
pub(super) fn is_table(name: &str) -> bool {
    tables().any(|sql| sql.starts_with("CREATE TABLE") && name_of(sql) == name)
}

/// The statements of the tables and indexes, as the database stores them.
fn tables() -> impl Iterator<Item = &'static str> {
    let statements = TABLES.split_once("\n\n").map_or(TABLES, |(_comment, statements)| statements);
    statements.split(';').map(str::trim).filter(|sql| !sql.is_empty())
}

/// The name of the object that a statement creates.
fn name_of(sql: &str) -> &str {
    sql.split(' ').nth(2).unwrap_or_default()
}

/// The statement of each object of the schema.
static OBJECTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let own_batch = "UPDATE batch SET checksum = {} WHERE id = NEW.batch";
    let ledger = "UPDATE ledger SET checksum = {}";
    let triggers = [
        sum("unsent", "", own_batch, "checksum"),
        sum("batch", "", ledger, "checksum"),
        sum("ledger_limit", "", ledger, "checksum"),
        sum("ledger", " OF frozen", ledger, "checksum"),
        sum("spent", "", "UPDATE ledger SET sums = {}", "sums"),
    ];
    tables().map(str::to_owned).chain(triggers.into_iter().flatten()).collect()
});

/// The triggers that keep the checksum of a table: `update` is the statement, with a hole for the new sum.
fn sum(table: &str, columns: &str, update: &str, column: &str) -> [String; 3] {
    let trigger = |when: &str, event: &str, update: &str, change: String| {
        let update = update.replace("{}", &change);
        format!("CREATE TRIGGER sum_when_{table}_{when} AFTER {event} ON {table} BEGIN\n    {update};\nEND")
    };
    let (new, old) = (digest(table, "NEW"), digest(table, "OLD"));
    [
        trigger("added", "INSERT", update, format!("changed({column}, 0, {new})")),
        trigger("changed", &format!("UPDATE{columns}"), update, format!("changed({column}, {old}, {new})")),
        trigger("removed", "DELETE", &update.replace("NEW.", "OLD."), format!("changed({column}, {old}, 0)")),
    ]
}

/// The contents of a file, as far as its header and schema tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// A database without a table.
    Empty,
    /// A ledger of this version.
    Ledger,
    /// A ledger of another version.
    OtherVersion(i32),
    /// A ledger with a schema that differs in this object.
    Altered(String),
    /// A ledger of the other kind.
    OtherKind(Kind),
    /// Another program's.
    Foreign,
}

/// Recognizes a database, all at one moment: another process may be creating it.
pub(super) fn recognize(connection: &Connection, kind: Kind) -> rusqlite::Result<Found> {
    let moment = connection.unchecked_transaction()?;
    let number = |pragma: &str| moment.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (id, version) = (number("application_id")?, number("user_version")?);
    let other = [Kind::Real, Kind::Simulated].into_iter().find(|other| other.application_id() == id);
    Ok(match (other, version) {
        (Some(found), VERSION) if found == kind => difference(&moment)?.map_or(Found::Ledger, Found::Altered),
        (Some(found), version) if found == kind => Found::OtherVersion(version),
        (Some(found), _) => Found::OtherKind(found),
        (None, 0) if id == 0 && is_empty(&moment)? => Found::Empty,
        _ => Found::Foreign,
    })
}

fn is_empty(moment: &Transaction<'_>) -> rusqlite::Result<bool> {
    moment.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// The name of an object that is missing, added, or different.
pub(super) fn difference(moment: &Connection) -> rusqlite::Result<Option<String>> {
    let mut expected: Vec<&str> = OBJECTS.iter().map(String::as_str).collect();
    // An index that SQLite makes for a key has no statement.
    let mut statement =
        moment.prepare("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_autoindex_%'")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, sql): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        match expected.iter().position(|own| Some(*own) == sql.as_deref()) {
            Some(place) => drop(expected.swap_remove(place)),
            None => return Ok(Some(name)),
        }
    }
    Ok(expected.pop().map(|sql| name_of(sql).to_owned()))
}

/// Creates the schema, unless another process did so meanwhile.
pub(super) fn create(connection: &mut Connection, kind: Kind) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if !is_empty(&transaction)? {
        return Ok(());
    }
    for sql in &*OBJECTS {
        transaction.execute_batch(sql)?;
    }
    transaction.execute("INSERT INTO ledger (id, commits) VALUES (1, 0)", [])?;
    transaction.pragma_update(None, "application_id", kind.application_id())?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// The help for most write errors.
pub(super) const WRITABLE: &str = "check the path, the permissions of the file and its directory, and the free space";
/// The help for a file that can't be read.
pub(super) const RESTORE: &str =
    "check `--ledger`; if it is your ledger, restore a copy that `shotlist ledger check` finds whole";
/// The help for a ledger of another version, or with a trigger or view that could change or hide attempts.
pub(super) const OTHER_VERSION: &str =
    "use the shotlist version that wrote it, or restore a copy that `shotlist ledger check` finds whole";
/// The help for a ledger with fewer commits than the counter beside it.
pub(super) const OUTDATED: &str = "restore the newer copy with its log (`-wal`); if it is lost for good, look up at the service what was bought since, then \
     remove the file that ends in `.commits`: shotlist would buy again what this copy does not know";
/// The help for a database of something else.
pub(super) const OTHER_FILE: &str = "name another file with `--ledger`";

/// Something about a file or a directory failed: for example "create directory".
pub(super) fn failed(what: &str, path: &Path, source: io::Error) -> Unavailable {
    Unavailable::caused_by(source, format!("can't {what} `{}`", path.display()), WRITABLE)
}

/// A file that can't be the ledger.
pub(super) fn refused(path: &Path, what: impl Display, help: &'static str) -> Unavailable {
    Unavailable::new(format!("`{}` {what}", path.display()), help)
}

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

/// The digest of an attempt's row with these values of all columns.
pub(super) fn digest_of(values: &[Value<'_>]) -> i64 {
    let mut digest = RowDigest(Vec::with_capacity(2048));
    digest.add(ValueRef::Text(b"attempt"));
    for value in values {
        digest.add(match value {
            Value::Number(number) => ValueRef::Integer(*number),
            Value::Text(text) => text.as_deref().map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes())),
        });
    }
    digest.finish()
}

/// The digest of one row, value by value. All bytes are hashed in one call: a call costs more than a short value.
#[derive(Default)]
struct RowDigest(Vec<u8>);

impl RowDigest {
    fn add(&mut self, value: ValueRef<'_>) {
        let (kind, bytes): (u8, &[u8]) = match &value {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(number) => (1, &number.to_le_bytes()),
            ValueRef::Real(number) => (2, &number.to_le_bytes()),
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(blob) => (4, blob),
        };
        self.0.push(kind);
        self.0.extend((bytes.len() as u64).to_le_bytes());
        self.0.extend(bytes);
    }

    fn finish(self) -> i64 {
        let digest: [u8; 32] = Sha256::digest(&self.0).into();
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

/// The error of a damaged file.
pub(super) fn damaged(what: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sqlite::file::check;
    use crate::ledger::sqlite::open::{open, open_to_read};

    #[test]
    fn altered_schema_is_refused() {
        let alterations = [
            "CREATE TRIGGER evil AFTER UPDATE OF state ON attempt WHEN NEW.state = 'completed' BEGIN
                 UPDATE attempt SET state = 'rejected' WHERE id = NEW.id; END",
            "CREATE VIEW evil AS SELECT 1",
            "CREATE INDEX evil ON attempt (model)",
            "CREATE TABLE evil (x)",
            "DROP TRIGGER sum_when_batch_changed",
            "DROP INDEX attempt_of_batch",
            "ALTER TABLE batch ADD COLUMN evil",
        ];
        for alteration in alterations {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("ledger.db");
            drop(open(&path, Kind::Real).expect("a ledger"));
            Connection::open(&path).and_then(|file| file.execute_batch(alteration)).expect("altered");
            let refusal = open(&path, Kind::Real).map(drop).expect_err("a refusal").to_string();
            assert!(refusal.contains("has an altered schema"), "{alteration}: {refusal}");
            assert!(check(&path, Kind::Real).is_err(), "{alteration}");
            let is_read = open_to_read(&path, Kind::Real).is_ok();
            assert_eq!(is_read, !alteration.starts_with("ALTER TABLE"), "{alteration}");
        }
    }
}
