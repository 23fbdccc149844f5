//! Commit counter: a small file beside a ledger that survives what a ledger may not.
//!
//! A ledger can go back in time without damage: a backup was restored, a synchronization service replaced it with an
//! older copy, or its log was left behind by a copy. The file itself shows nothing of that, and everything that it
//! forgot would be paid for again. So each commit counts itself in the ledger, and is counted here once it is durable.
//! The counter never knows more than the ledger did: it is written after the commit. It is not synced: after a power
//! loss it may know less, and must not know more. Of two runs at once, the slower may write the older number last,
//! which makes it know less for a moment, too.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::refusals::failed;
use crate::domain::NoticeCode;
use crate::files::{open_plain, open_private};
use crate::ledger::Unavailable;

/// The extension after the ledger's name.
pub(super) const EXTENSION: &str = "commits";
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
    /// Opens the commit counter of a ledger, and creates it if it does not exist. It is beside the file that the path leads to.
    pub(super) fn open(ledger: &Path) -> Result<Self, Unavailable> {
        let failed = |path: &Path, source| failed("open the commit counter", path, source);
        let real = std::fs::canonicalize(ledger).map_err(|source| failed(&beside(ledger), source))?;
        let path = beside(&real);
        let mut options = File::options();
        let file = open_private(&path, options.read(true).write(true).create(true).truncate(false));
        let file = file.map_err(|source| failed(&path, source))?;
        Ok(Self { file, newest: read(ledger).unwrap_or(0), is_mute: false })
    }

    /// Notes a commit that is durable.
    pub(super) fn note(&mut self, commits: i64) {
        if commits <= self.newest {
            return;
        }
        self.newest = commits;
        let line = format!("{PREFIX}{commits:020}\n");
        // Always of one length, and written at once: a reader never sees half of it.
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

/// The number of commits that the counter saw; nothing if there is none, or if it can't be read.
pub(super) fn read(ledger: &Path) -> Option<i64> {
    let path = beside(&std::fs::canonicalize(ledger).ok()?);
    let mut text = String::new();
    open_plain(&path, File::options().read(true)).ok()?.take(64).read_to_string(&mut text).ok()?;
    text.strip_prefix(PREFIX)?.trim_end().parse().ok()
}

/// The number of commits in a ledger.
pub(super) fn commits(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT commits FROM ledger")?.query_row([], |row| row.get(0))
}

/// Counts one more commit, in the transaction that makes it.
pub(super) fn count(connection: &Connection) -> rusqlite::Result<i64> {
    // Two statements: one with RETURNING makes a table of its own for its only row each time.
    connection.prepare_cached("UPDATE ledger SET commits = commits + 1")?.execute([])?;
    commits(connection)
}

fn beside(ledger: &Path) -> PathBuf {
    let mut name = ledger.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(EXTENSION);
    ledger.with_file_name(name)
}
