//! Files next to the ledger: the lock of a batch, and the commit counter.
//!
//! The kernel releases the lock when the process ends, so a crash leaves no stale lock. The file itself is never removed: otherwise two runs could
//! lock two files of one name.
//!
//! An intact ledger may lack commits: a restored backup, an older copy by a synchronization service, or a copy without its log. The missing
//! purchases would be paid for again, and the file does not show the loss. So each commit increments a number in the ledger, and after the commit,
//! the number is written here. The counter is never ahead of the ledger. It may be behind: it is not synced, and the slower of two runs may write
//! its number last.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sha2::{Digest as _, Sha256};

use super::schema::failed;
use crate::domain::{BatchKey, NoticeCode, hex};
use crate::files::{keep_from_readers, open_plain, open_private, sweep, with_suffix};
use crate::ledger::{HoldError, Unavailable};

/// The suffix of the commit counter, after the ledger's name.
pub(super) const COUNTER: &str = ".commits";

const PREFIX: &str = "commits ";

/// The commit counter of a ledger, which its writer holds.
#[derive(Debug)]
pub(super) struct CommitCounter {
    file: File,
    newest: i64,
    /// True once a failed write was reported.
    is_mute: bool,
}

impl CommitCounter {
    /// Opens the commit counter of a ledger, and creates it if it does not exist. Links in the path are resolved.
    pub(super) fn open(ledger: &Path) -> Result<Self, Unavailable> {
        let failed = |path: &Path, source| failed("open the commit counter", path, source);
        let real = std::fs::canonicalize(ledger).map_err(|source| failed(&with_suffix(ledger, COUNTER), source))?;
        let path = with_suffix(&real, COUNTER);
        let mut options = File::options();
        let file = open_private(&path, options.read(true).write(true).create(true).truncate(false));
        let file = file.map_err(|source| failed(&path, source))?;
        Ok(Self { file, newest: known_commits(ledger).unwrap_or(0), is_mute: false })
    }

    /// Notes a commit that is durable.
    pub(super) fn note(&mut self, commits: i64) {
        if commits <= self.newest {
            return;
        }
        self.newest = commits;
        let line = format!("{PREFIX}{commits:020}\n");
        // A single write of a fixed length: a reader never sees a part of it.
        let noted = self.file.rewind().and_then(|()| self.file.write_all(line.as_bytes()));
        if let Err(error) = noted
            && !std::mem::replace(&mut self.is_mute, true)
        {
            tracing::warn!(
                code = NoticeCode::CommitCounter.code(),
                "can't write the commit counter, so an outdated copy of the ledger would not be refused: {error}"
            );
        }
    }
}

/// The counted commits, or `None` without a readable counter.
pub(super) fn known_commits(ledger: &Path) -> Option<i64> {
    let path = with_suffix(&std::fs::canonicalize(ledger).ok()?, COUNTER);
    let mut text = String::new();
    open_plain(&path, File::options().read(true)).ok()?.take(64).read_to_string(&mut text).ok()?;
    text.strip_prefix(PREFIX)?.trim_end().parse().ok()
}

/// The number of commits in a ledger.
pub(super) fn commits(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT commits FROM ledger")?.query_row([], |row| row.get(0))
}

/// Counts one more commit, in the transaction that makes it.
pub(super) fn count_commit(connection: &Connection) -> rusqlite::Result<i64> {
    // Two statements: RETURNING creates a temporary table each time.
    connection.prepare_cached("UPDATE ledger SET commits = commits + 1")?.execute([])?;
    commits(connection)
}

/// The right to run a batch.
#[derive(Debug)]
pub(in crate::ledger) struct RunLock {
    file: File,
}

impl Drop for RunLock {
    /// Releases the lock even if a program that is starting has inherited the file, and has not closed it yet.
    fn drop(&mut self) {
        let _closed_anyway = self.file.unlock();
    }
}

impl RunLock {
    /// Locks a batch of an existing ledger, or names the holder. Never waits.
    ///
    /// Links in the path are resolved, so two names of a ledger share its locks.
    pub(super) fn acquire(ledger: &Path, batch: &BatchKey) -> Result<Self, HoldError> {
        let fault = |path: &Path, source| failed("create lock file", path, source);
        let real = std::fs::canonicalize(ledger).map_err(|source| fault(ledger, source))?;
        let path = lock_path(&real, batch);
        sweep(real.parent().unwrap_or(Path::new(".")));
        let fault = |source| fault(&path, source);
        let mut options = File::options();
        let mut file =
            open_private(&path, options.read(true).write(true).create(true).truncate(false)).map_err(fault)?;
        keep_from_readers(&file);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Only for the message.
                let _unreadable = file.read_to_string(&mut holder);
                let holder = if holder.is_empty() { holder } else { format!(" ({})", holder.trim()) };
                return Err(HoldError::Busy { batch: batch.clone(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(fault(source).into()),
        }
        let note = format!("process {}, since {}\n", std::process::id(), jiff::Timestamp::now().strftime("%F %T UTC"));
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(note.as_bytes())).map_err(fault)?;
        Ok(Self { file })
    }
}

/// The path of the lock. Its name is valid for any batch value.
fn lock_path(ledger: &Path, batch: &BatchKey) -> PathBuf {
    let digest = Sha256::digest(format!("{}\0{}", batch.name, batch.batch));
    with_suffix(ledger, &format!(".{}.lock", hex(&digest[..8])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_runner_for_a_batch() {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = directory.path().join("ledger.db");
        std::fs::write(&ledger, "").expect("a file");
        let batch = |batch: &str| BatchKey { name: "n".into(), batch: batch.into() };
        let held = RunLock::acquire(&ledger, &batch("a")).expect("a lock");
        let error = RunLock::acquire(&ledger, &batch("a")).expect_err("a second lock");
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        RunLock::acquire(&ledger, &batch("b")).expect("another batch");
        #[cfg(unix)]
        {
            let other_name = directory.path().join("link.db");
            std::os::unix::fs::symlink(&ledger, &other_name).expect("a link");
            RunLock::acquire(&other_name, &batch("a")).expect_err("the same ledger by another name");
        }
        let _inherited = held.file.try_clone().expect("the same file");
        drop(held);
        RunLock::acquire(&ledger, &batch("a")).expect("the lock again");
    }
}
