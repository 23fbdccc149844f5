//! A ledger in a file: questions, each through a connection of its own, and batches to lock. It is copied, verified, and backed up as a whole.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::executor::block_on;
use rusqlite::Connection;
use tokio::sync::mpsc::{Receiver, Sender};

use super::beside::{CommitCounter, RunLock, count_commit, known_commits};
use super::open::{is_there, make_directory_of, open, open_to_read, store_error};
use super::schema::{WRITABLE, difference, verify_sums};
use super::store::{SqliteStore, commit, read_freeze, repeats_its_record, set_freeze};
use crate::domain::{BatchKey, displayed, with_causes};
use crate::files::{directory_of, name_anew, on_a_thread, sync_directory, sync_file, temporary, with_suffix};
use crate::ledger::locked::WriterHandle;
use crate::ledger::row::{self, COLUMNS, Kind, Row, Shared};
use crate::ledger::rules::Sums;
use crate::ledger::sql::{self, Sql as _, batches, set_limit};
use crate::ledger::views::CopyPart;
use crate::ledger::{Contents, CopyError, HoldError, LedgerLimit, LockedBatch, Unavailable};

/// A ledger in an SQLite file. Created when a batch is locked for the first time.
#[derive(Clone)]
pub struct SqliteLedger {
    path: PathBuf,
    pub(in crate::ledger) kind: Kind,
    /// Called after each command, if commands run in the call.
    in_place: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl SqliteLedger {
    pub(in crate::ledger) fn new(path: impl Into<PathBuf>, kind: Kind) -> Self {
        Self { path: path.into(), kind, in_place: None }
    }

    pub(in crate::ledger) fn in_place(path: impl Into<PathBuf>, after: impl Fn() + Send + Sync + 'static) -> Self {
        Self { in_place: Some(Arc::new(after)), ..Self::new(path, Kind::Real) }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it as a run does, and changes nothing. Returns false if it does not exist.
    pub async fn check_usable(&self) -> Result<bool, Unavailable> {
        let opened = self.aside(|path, kind| {
            let is_there = is_there(path)?;
            if is_there {
                open(path, kind)?;
            }
            Ok(is_there)
        });
        opened.await
    }

    /// Verifies the file, its attempts, sums, and commit counter.
    pub async fn check(&self) -> Result<Contents, CopyError> {
        self.aside(check).await
    }

    /// Copies it with its log to a new file, also while a run uses it. Never replaces a file. The copy gets its name once it is verified and
    /// durable.
    pub async fn backup(&self, to: &Path) -> Result<Contents, CopyError> {
        let to = to.to_owned();
        self.aside(move |path, kind| backup(path, kind, &to)).await
    }

    /// Freezes purchases, and locks out all writers until the connection is dropped.
    pub(in crate::ledger) async fn freeze_for_copy(&self, why: &str) -> Result<Connection, CopyError> {
        let why = why.to_owned();
        self.aside(move |path, kind| freeze_for_copy(path, kind, &why)).await
    }

    /// Sends its contents.
    pub(in crate::ledger) async fn send_all(&self, parts: Sender<CopyPart>) -> Result<(), CopyError> {
        self.aside(move |path, kind| send_all(path, kind, &parts)).await
    }

    /// Writes received contents into a new or empty ledger.
    pub(in crate::ledger) async fn fill(
        &self,
        frozen: Option<String>,
        parts: Receiver<CopyPart>,
    ) -> Result<Contents, CopyError> {
        self.aside(move |path, kind| fill(path, kind, frozen.as_deref(), parts)).await
    }

    /// Changes records that are no attempts. Creates the ledger if it does not exist.
    async fn change(
        &self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<(), Unavailable> {
        self.aside(|path, kind| commit(&open(path, kind)?, path, change)).await
    }

    /// Does blocking work on a separate thread.
    async fn aside<T, E>(&self, work: impl FnOnce(&Path, Kind) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Unavailable> + Send + 'static,
    {
        let Self { path, kind, in_place } = self.clone();
        if in_place.is_some() {
            return work(&path, kind);
        }
        on_a_thread(move || work(&path, kind)).await.map_err(Unavailable::no_thread)?
    }

    /// Queries one snapshot. Returns `nothing` if there is no ledger.
    pub(in crate::ledger) async fn ask<T: Send + 'static>(
        &self,
        nothing: T,
        question: impl Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        // Most first plans have no ledger, and need no thread.
        if !is_there(&self.path)? {
            return Ok(nothing);
        }
        let answer = self.aside(move |path, kind| {
            at_one_moment(path, || {
                let Some(connection) = open_to_read(path, kind)? else { return Ok(None) };
                let answer = connection.unchecked_transaction().and_then(|moment| question(&moment));
                answer.map(Some).map_err(|error| store_error(path, error))
            })
        });
        Ok(answer.await?.unwrap_or(nothing))
    }

    pub(in crate::ledger) async fn lock(&self, batch: &BatchKey) -> Result<LockedBatch, HoldError> {
        let (key, in_place) = (batch.clone(), self.in_place.clone());
        let open = move |path: &Path, kind| {
            let connection = open(path, kind)?;
            let lock = RunLock::acquire(path, &key)?;
            Ok::<_, HoldError>((start(connection, path, in_place)?, lock))
        };
        let (writer, lock) = self.aside(open).await?;
        let locked = LockedBatch::new(Arc::new(writer), 0, batch, Some(Box::new(lock))).await;
        locked.map_err(|error| Unavailable::new(error, WRITABLE).into())
    }

    pub(in crate::ledger) async fn set_limit(&self, limit: LedgerLimit, is_kept: bool) -> Result<(), Unavailable> {
        self.change(move |connection| block_on(set_limit(connection, &limit, is_kept))).await
    }

    pub(in crate::ledger) async fn set_freeze(&self, why: Option<&str>) -> Result<(), Unavailable> {
        let why = why.map(str::to_owned);
        self.change(move |connection| set_freeze(connection, why.as_deref())).await
    }
}

impl fmt::Debug for SqliteLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLedger").field("path", &self.path).field("kind", &self.kind).finish_non_exhaustive()
    }
}

displayed!(SqliteLedger(it): it.path.display());

/// Starts the writer of a file.
fn start(
    connection: Connection,
    path: &Path,
    in_place: Option<Arc<dyn Fn() + Send + Sync>>,
) -> Result<WriterHandle, Unavailable> {
    let commits = CommitCounter::open(path)?;
    let store = move || SqliteStore::new(connection, commits);
    let started = match in_place {
        Some(after) => WriterHandle::in_place(store, after),
        None => WriterHandle::start(store, None),
    };
    started.map_err(Unavailable::no_thread)
}

/// Freezes purchases, and locks out all writers for a copy, until the connection is dropped. Changes nothing if a run has a batch.
///
/// After the freeze, no intent is recorded. So only a run that holds a batch now may have a submission in flight.
pub(super) fn freeze_for_copy(path: &Path, kind: Kind, why: &str) -> Result<Connection, CopyError> {
    if !is_there(path)? {
        return Err(CopyError::Missing(path.display().to_string()));
    }
    let connection = open(path, kind)?;
    let store = |error| CopyError::from(store_error(path, error));
    let before = read_freeze(&connection).map_err(store)?;
    let freeze = |why: Option<&str>| commit(&connection, path, |connection| set_freeze(connection, why));
    freeze(Some(why))?;
    let lock = || {
        // One by one: a ledger may have more batches than a process may open files.
        for (_, key) in block_on(batches(&connection)).map_err(store)? {
            RunLock::acquire(path, &key)?;
        }
        connection.execute_batch("BEGIN IMMEDIATE").map_err(store)
    };
    if let Err(error) = lock() {
        freeze(before.as_ref().map(|freeze| &*freeze.why))?;
        return Err(error);
    }
    Ok(connection)
}

/// Sends all parts, until the receiver is dropped.
pub(super) fn send_all(path: &Path, kind: Kind, parts: &Sender<CopyPart>) -> Result<(), CopyError> {
    let connection = open_to_read(path, kind)?.ok_or_else(|| CopyError::Missing(path.display().to_string()))?;
    // A copy must not hide damage.
    verify(&connection, path)?;
    let sent = connection.unchecked_transaction().and_then(|moment| block_on(sql::send_all(&*moment, parts)));
    sent.map_err(|error| store_error(path, error).into())
}

/// Writes all received parts into an empty or new ledger. A new one gets its name once it is complete.
pub(super) fn fill(
    path: &Path,
    kind: Kind,
    frozen: Option<&str>,
    parts: Receiver<CopyPart>,
) -> Result<Contents, CopyError> {
    if is_there(path)? {
        let contents = fill_empty(path, kind, frozen, parts)?;
        // The copy is committed. If it is unreadable now, both ledgers may allow purchases.
        return verified(path, kind, contents).map_err(|error| match error {
            CopyError::Unavailable(error) => CopyError::Unknown(error),
            error => error,
        });
    }
    let failed = |source| CopyError::NotWritable { path: path.to_owned(), source };
    let on_its_way = temporary().tempdir_in(make_directory_of(path)?).map_err(failed)?;
    let copy = on_its_way.path().join("ledger.db");
    let contents = fill_empty(&copy, kind, frozen, parts)?;
    let contents = verified(&copy, kind, contents)?;
    give_name(&copy, path).map_err(failed)?;
    Ok(contents)
}

/// Writes all received parts into an empty ledger, in one transaction.
fn fill_empty(
    path: &Path,
    kind: Kind,
    frozen: Option<&str>,
    mut parts: Receiver<CopyPart>,
) -> Result<Contents, CopyError> {
    let mut connection = open(path, kind)?;
    let store = |error| CopyError::from(store_error(path, error));
    let transaction = connection.transaction().map_err(store)?;
    if !block_on(sql::is_empty(&*transaction)).map_err(store)? {
        return Err(CopyError::NotEmpty(path.display().to_string()));
    }
    let mut counter = CommitCounter::open(path)?;
    let received = block_on(sql::receive_all(&*transaction, parts.blocking_recv(), parts));
    let contents = received.map_err(store)?.ok_or(CopyError::CutOff)?;
    if read_freeze(&transaction).map_err(store)?.is_none() {
        set_freeze(&transaction, frozen).map_err(store)?;
    }
    let commits = count_commit(&transaction).map_err(store)?;
    transaction.commit().map_err(store)?;
    counter.note(commits);
    // On closing, SQLite moves the log into the file, and hides a full disk.
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).map_err(store)?;
    connection.close().map_err(|(_, error)| store(error))?;
    if is_busy { Err(CopyError::CutOff) } else { Ok(contents) }
}

/// Verifies a copy and its contents.
fn verified(path: &Path, kind: Kind, written: Contents) -> Result<Contents, CopyError> {
    let found = check(path, kind)?;
    if found == written { Ok(found) } else { Err(CopyError::CutOff) }
}

/// The number of tries to read a ledger while a run starts. After the first try, the ledger has a log.
const TRIES: usize = 5;

/// Verifies a ledger: the file, its attempts, its sums, and its commit counter.
pub(super) fn check(path: &Path, kind: Kind) -> Result<Contents, CopyError> {
    at_one_moment(path, || {
        let connection = open_to_read(path, kind)?.ok_or_else(|| CopyError::Missing(path.display().to_string()))?;
        verify(&connection, path)
    })
}

/// Copies a ledger with its log to a new file, also during a run. Never replaces a file. The copy gets its name once it is verified and durable.
pub(super) fn backup(path: &Path, kind: Kind, to: &Path) -> Result<Contents, CopyError> {
    let failed = |source| CopyError::NotWritable { path: to.to_owned(), source };
    if to.symlink_metadata().is_ok() {
        return Err(failed(ErrorKind::AlreadyExists.into()));
    }
    let on_its_way = temporary().tempdir_in(directory_of(to)).map_err(failed)?;
    let copy = on_its_way.path().join("ledger.db");
    let contents = at_one_moment(path, || {
        let connection = open_to_read(path, kind)?.ok_or_else(|| CopyError::Missing(path.display().to_string()))?;
        // Left by an earlier try.
        let _was_not_there = fs::remove_file(&copy);
        connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()]).map_err(|error| store_error(to, error))?;
        check(&copy, kind)
    })?;
    let protected = fs::metadata(path).and_then(|found| fs::set_permissions(&copy, found.permissions()));
    protected.and_then(|()| give_name(&copy, to)).map_err(failed)?;
    Ok(contents)
}

/// Renames a durable copy. Replaces nothing, and leaves no name on an error.
pub(super) fn give_name(copy: &Path, to: &Path) -> std::io::Result<()> {
    sync_file(copy)?;
    name_anew(copy, to)?;
    // Without a durable name, the copy has failed, and the source stays the only ledger.
    sync_directory(to).inspect_err(|_| drop(fs::remove_file(to)))
}

/// Repeats a read of a ledger without a log if a run has started meanwhile: the read may have mixed two states.
pub(super) fn at_one_moment<T, E>(path: &Path, read: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let moment = || (known_commits(path), with_suffix(path, "-wal").exists());
    for _ in 1..TRIES {
        let before = moment();
        let done = read();
        // With a log, a read has a snapshot.
        if before.1 || before == moment() {
            return done;
        }
    }
    read()
}

pub(super) fn verify(connection: &Connection, path: &Path) -> Result<Contents, CopyError> {
    // In one snapshot: a run may be writing.
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
    verify_sums(connection).map_err(store)?;
    let expected = sums.spent().map(|sum| (sum.label.to_owned(), sum.value.to_owned(), sum.quarter, sum.micros));
    let kept = "SELECT label, value, quarter, micros FROM spent WHERE micros <> 0 ORDER BY label, value, quarter";
    let kept = connection.lines(kept, &[], |line| Ok((line.text(0)?, line.text(1)?, line.number(2)?, line.number(3)?)));
    if block_on(kept).map_err(store)? != expected.collect::<Vec<_>>() {
        return Err(damaged("the amounts that it keeps as spent don't match its attempts".to_owned()));
    }
    Ok(contents)
}

/// Locks a batch without a lock file, as on a file system without locks.
#[cfg(test)]
pub(in crate::ledger) async fn lock_without_a_file(path: &Path, batch: &BatchKey) -> LockedBatch {
    let connection = open(path, Kind::Real).expect("a ledger");
    let writer = start(connection, path, None).expect("a writer");
    LockedBatch::new(Arc::new(writer), 0, batch, None).await.expect("a batch")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::AttemptId;
    use crate::ledger::suite::store::{batch, completed, intent_of, task};
    use crate::ledger::suite::{Fresh, for_store};
    use crate::ledger::{Event, Intent, Ledger, LedgerError};

    struct OnDisk(tempfile::TempDir);

    impl OnDisk {
        fn path(&self) -> PathBuf {
            self.0.path().join("ledger.db")
        }
    }

    impl Fresh for OnDisk {
        fn fresh() -> Self {
            Self(tempfile::tempdir().expect("a directory"))
        }

        fn ledger(&self) -> Ledger {
            Ledger::in_file(self.path())
        }
    }

    for_store!(OnDisk);
    for_store!(OnDisk: copies_carry_every_state);

    /// As on a network file system without locks: the second runner buys nothing that the first submits, or has bought since the plan.
    #[tokio::test]
    async fn two_runners_without_a_lock_buy_no_job_twice() {
        let store = OnDisk::fresh();
        let first = lock_without_a_file(&store.path(), &batch("")).await;
        let second = lock_without_a_file(&store.path(), &batch("")).await;
        let intent = |known| Intent { known, ..intent_of("a") };
        let is_claimed = |result: Result<AttemptId, LedgerError>| matches!(result, Err(LedgerError::Claimed(_)));
        let attempt = first.intend(intent(None)).await.expect("the first intent");
        assert!(is_claimed(second.intend(intent(None)).await), "while the first is sending");
        first.record(attempt, Event::Accepted(task("t"))).await.expect("recorded");
        assert!(is_claimed(second.intend(intent(None)).await), "while the task is active");
        first.record(attempt, completed()).await.expect("recorded");
        assert!(is_claimed(second.intend(intent(None)).await), "after it was completed");
        second.intend(intent(Some(attempt))).await.expect("a retake, which knows of it");
    }
}
