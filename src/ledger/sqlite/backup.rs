//! A copy of a ledger that is whole, and a look whether one is.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use futures::executor::block_on;
use rusqlite::Connection;

use super::open::{open_to_read, store_error};
use super::schema::difference;
use super::statements::repeats_its_record;
use super::{checksum, commit_counter};
use crate::domain::with_causes;
use crate::files::{sync_directory, sync_file, temporary};
use crate::ledger::row::{self, COLUMNS, Row, Shared};
use crate::ledger::rules::Sums;
use crate::ledger::sql::{Sql as _, batches};
use crate::ledger::value::Kind;
use crate::ledger::{Contents, CopyError};

/// The number of tries to read a ledger while runs begin. From the second one on, the ledger has a log.
const TRIES: usize = 5;

/// Verifies a ledger: the file itself, each attempt in it, the sums that are kept, and that it did not go back in time.
pub(super) fn check(path: &Path, kind: Kind) -> Result<Contents, CopyError> {
    at_one_moment(path, || {
        let connection = open_to_read(path, kind)?.ok_or_else(|| CopyError::Missing(path.display().to_string()))?;
        verify(&connection, path)
    })
}

/// Copies a ledger to a new file, whole, also while a run is at it; what is in the log is in the copy. An existing file is
/// never replaced, and the copy has its name only once it is verified and on the disk.
pub(super) fn backup(path: &Path, kind: Kind, to: &Path) -> Result<Contents, CopyError> {
    let failed = |source| CopyError::NotWritable { path: to.to_owned(), source };
    if to.symlink_metadata().is_ok() {
        return Err(failed(ErrorKind::AlreadyExists.into()));
    }
    let directory = to.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let on_its_way = temporary().tempdir_in(directory).map_err(failed)?;
    let copy = on_its_way.path().join("ledger.db");
    let contents = at_one_moment(path, || {
        let connection = open_to_read(path, kind)?.ok_or_else(|| CopyError::Missing(path.display().to_string()))?;
        // The remains of an earlier try.
        let _was_not_there = fs::remove_file(&copy);
        let copied = connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()]);
        copied.map_err(|error| store_error(to, error))?;
        check(&copy, kind)
    })?;
    let protected = fs::metadata(path).and_then(|found| fs::set_permissions(&copy, found.permissions()));
    protected.and_then(|()| give_name(&copy, to)).map_err(failed)?;
    Ok(contents)
}

/// Gives a copy its name, once it is on the disk. Replaces nothing, and leaves no name on an error.
pub(super) fn give_name(copy: &Path, to: &Path) -> std::io::Result<()> {
    sync_file(copy)?;
    match fs::hard_link(copy, to) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(error),
        // Some file systems have no second names. There, a name that was free a moment ago is taken.
        Err(_) if to.symlink_metadata().is_err() => fs::rename(copy, to)?,
        named => named?,
    }
    // A copy whose name may not last counts as none: a source that goes on must be the only ledger.
    sync_directory(to).inspect_err(|_| drop(fs::remove_file(to)))
}

/// Does something with a ledger that is read without its log, because there is none, once more if a run began meanwhile: then
/// pages of two moments may have been read.
pub(super) fn at_one_moment<T, E>(path: &Path, read: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let moment = || (commit_counter::read(path), Path::new(&log).exists());
    for _ in 1..TRIES {
        let before = moment();
        let done = read();
        // With a log there is a snapshot, whatever is written meanwhile.
        if before.1 || before == moment() {
            return done;
        }
    }
    read()
}

pub(super) fn verify(connection: &Connection, path: &Path) -> Result<Contents, CopyError> {
    // All of it at one moment: a run may be writing.
    let moment = connection.unchecked_transaction().map_err(|error| store_error(path, error))?;
    let connection: &Connection = &moment;
    let damaged = |what: String| CopyError::Damaged { ledger: path.display().to_string(), what };
    let store = |error| CopyError::from(store_error(path, error));
    let verdict: String =
        connection.query_row("PRAGMA main.integrity_check(1)", [], |row| row.get(0)).map_err(store)?;
    if verdict != "ok" {
        return Err(damaged(verdict));
    }
    if let Some(object) = difference(connection).map_err(store)? {
        return Err(damaged(format!("its schema was altered: `{object}`")));
    }
    let strays: u32 = connection
        .query_row("SELECT count(*) FROM attempt WHERE batch NOT IN (SELECT id FROM batch)", [], |row| row.get(0))
        .map_err(store)?;
    if strays > 0 {
        return Err(damaged(format!("{strays} attempts belong to no batch")));
    }
    let batches_there = connection.query_row("SELECT count(*) FROM batch", [], |row| row.get(0)).map_err(store)?;
    let mut contents = Contents { batches: batches_there, ..Contents::default() };
    let mut sums = Sums::default();
    let sql = format!("SELECT {} FROM attempt ORDER BY id", COLUMNS.join(", "));
    let mut statement = connection.prepare(&sql).map_err(store)?;
    let mut rows = statement.query([]).map_err(store)?;
    while let Some(row) = rows.next().map_err(store)? {
        let id: i64 = row.get(0).map_err(store)?;
        let record = row.get_ref(COLUMNS.len() - 1).map_err(store)?.as_str();
        let record = record.map_err(|error| damaged(format!("can't read attempt {id}: {error}")))?;
        let attempt = row::read(id, record, None).map_err(|error| damaged(with_causes(&error)))?;
        contents.count(&attempt);
        let own = Row { attempt, batch: row.get(1).map_err(store)?, shared: Shared::default() };
        if !repeats_its_record(row, &own).map_err(store)? {
            return Err(damaged(format!("the columns of attempt {id} don't match its record")));
        }
        sums.add(None, &own.attempt);
    }
    for (_, batch) in &block_on(batches(connection)).map_err(store)? {
        block_on(connection.history(batch)).map_err(store)?;
    }
    checksum::verify_sums(connection).map_err(store)?;
    let expected = sums.spent().map(|sum| (sum.label.to_owned(), sum.value.to_owned(), sum.quarter, sum.micros));
    let kept = "SELECT label, value, quarter, micros FROM spent WHERE micros <> 0 ORDER BY label, value, quarter";
    let kept = connection.lines(kept, &[], |line| Ok((line.text(0)?, line.text(1)?, line.number(2)?, line.number(3)?)));
    if block_on(kept).map_err(store)? != expected.collect::<Vec<_>>() {
        return Err(damaged("the amounts that it keeps as spent don't match its attempts".to_owned()));
    }
    Ok(contents)
}
