//! A ledger in a file: questions, each through a connection of its own, and batches to lock.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::executor::block_on;
use rusqlite::Connection;
use tokio::sync::mpsc::{Receiver, Sender};

use super::beside::{CommitCounter, RunLock};
use super::copy::{self, WriteLock, at_one_moment};
use super::open::{is_there, open, open_to_read, store_error};
use super::schema::WRITABLE;
use super::store::{SqliteStore, commit, set_freeze};
use crate::domain::{BatchKey, displayed};
use crate::files::on_a_thread;
use crate::ledger::locked::WriterHandle;
use crate::ledger::row::Kind;
use crate::ledger::sql::set_limit;
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
        self.aside(copy::check).await
    }

    /// Copies it with its log to a new file, also while a run uses it. Never replaces a file. The copy gets its name once it is verified and
    /// durable.
    pub async fn backup(&self, to: &Path) -> Result<Contents, CopyError> {
        let to = to.to_owned();
        self.aside(move |path, kind| copy::backup(path, kind, &to)).await
    }

    /// Freezes purchases, and locks out all writers.
    pub(in crate::ledger) async fn freeze_for_copy(&self, why: &str) -> Result<WriteLock, CopyError> {
        let why = why.to_owned();
        self.aside(move |path, kind| copy::freeze_for_copy(path, kind, &why)).await
    }

    /// Sends its contents.
    pub(in crate::ledger) async fn send_all(&self, parts: Sender<CopyPart>) -> Result<(), CopyError> {
        let Self { path, kind, .. } = self.clone();
        on_a_thread(move || copy::send_all(&path, kind, &parts)).await.map_err(Unavailable::no_thread)?
    }

    /// Writes received contents into a new or empty ledger.
    pub(in crate::ledger) async fn fill(
        &self,
        frozen: Option<String>,
        parts: Receiver<CopyPart>,
    ) -> Result<Contents, CopyError> {
        let Self { path, kind, .. } = self.clone();
        on_a_thread(move || copy::fill(&path, kind, frozen.as_deref(), parts)).await.map_err(Unavailable::no_thread)?
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
}

impl fmt::Debug for SqliteLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLedger").field("path", &self.path).field("kind", &self.kind).finish_non_exhaustive()
    }
}

displayed!(SqliteLedger(it): it.path.display());

/// The operations of [`Ledger`](crate::ledger::Ledger).
impl SqliteLedger {
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
