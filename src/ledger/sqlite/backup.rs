//! A copy of a ledger that is whole, and a look whether one is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::columns::ATTEMPT;
use super::open::{BRING_BACK, OpenError, open_to_read, store_error};
use super::read::{self, attempt, keys};
use super::schema::{Kind, difference};
use super::{books, checksum, witness};
use crate::domain::Usd;
use crate::files::sync_folder;
use crate::ledger::Unavailable;

/// How often a ledger is read anew because a run began meanwhile; from the second time on, it has a log.
const TRIES: usize = 5;

/// Why a ledger could not be copied or verified.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// It can't be opened.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// There is none.
    #[error("found no ledger at `{}`", .0.display())]
    Missing(PathBuf),
    /// What it says makes no sense.
    #[error("ledger `{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The copy can't be written.
    #[error("can't write the copy `{}`", path.display())]
    Copy {
        /// The copy.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What a ledger that is whole holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Batches.
    pub batches: u32,
    /// Attempts.
    pub attempts: u32,
    /// What all of them cost that may have bought something.
    pub price: Usd,
}

impl CheckError {
    /// How to mend it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Unavailable(error) => error.help(),
            Self::Missing(_) => "name the ledger with `--ledger`; it is in `.shotlist` beside the manifest",
            Self::Damaged { .. } => BRING_BACK,
            Self::Copy { .. } => "name a new file in a writable directory, on a disk with space",
        }
    }
}

impl From<OpenError> for CheckError {
    fn from(error: OpenError) -> Self {
        Self::Unavailable(error.into())
    }
}

/// Verifies a ledger: the file itself, each attempt in it, the sums that are kept, and that it did not go back in time.
pub(super) fn check(path: &Path, kind: Kind) -> Result<Contents, CheckError> {
    at_one_moment(path, || {
        let connection = open_to_read(path, kind)?.ok_or_else(|| CheckError::Missing(path.to_owned()))?;
        verify(&connection, path)
    })
}

/// Copies a ledger to a new file, whole, also while a run is at it; what is in the log is in the copy. An existing file is
/// never replaced, and the copy has its name only once it is verified and on the disk.
pub(super) fn backup(path: &Path, kind: Kind, to: &Path) -> Result<Contents, CheckError> {
    let failed = |source| CheckError::Copy { path: to.to_owned(), source };
    if to.symlink_metadata().is_ok() {
        return Err(failed(ErrorKind::AlreadyExists.into()));
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let on_its_way = tempfile::Builder::new().prefix(".shotlist-").tempdir_in(folder).map_err(failed)?;
    let copy = on_its_way.path().join("ledger.db");
    let contents = at_one_moment(path, || {
        let connection = open_to_read(path, kind)?.ok_or_else(|| CheckError::Missing(path.to_owned()))?;
        // What an earlier try left.
        let _was_not_there = fs::remove_file(&copy);
        let copied = connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()]);
        copied.map_err(|error| store_error(to, error))?;
        check(&copy, kind)
    })?;
    let named = fs::metadata(path)
        .and_then(|found| fs::set_permissions(&copy, found.permissions()))
        .and_then(|()| fs::File::open(&copy)?.sync_all())
        .and_then(|()| match fs::hard_link(&copy, to) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            // Some file systems have no second names. There, a name that was free a moment ago is taken.
            Err(_) if to.symlink_metadata().is_err() => fs::rename(&copy, to),
            named => named,
        })
        .and_then(|()| sync_folder(to));
    named.map_err(failed)?;
    Ok(contents)
}

/// Does something with a ledger that is read without its log, because there is none, once more if a run began meanwhile: then
/// pages of two moments may have been read.
pub(super) fn at_one_moment<T, E>(path: &Path, read: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let moment = || (witness::read(path), Path::new(&log).exists());
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

pub(super) fn verify(connection: &Connection, path: &Path) -> Result<Contents, CheckError> {
    // All of it at one moment: a run may be writing.
    let connection = &connection.unchecked_transaction().map_err(|error| store_error(path, error))?;
    let damaged = |what: String| CheckError::Damaged { path: path.to_owned(), what };
    let store = |error| CheckError::from(store_error(path, error));
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
    let mut for_labels: BTreeMap<(String, String), i64> = BTreeMap::new();
    let mut contents = Contents { batches: 0, attempts: 0, price: Usd::ZERO };
    contents.batches = connection.query_row("SELECT count(*) FROM batch", [], |row| row.get(0)).map_err(store)?;
    let mut statement = connection.prepare(&format!("SELECT {} FROM attempt ORDER BY id", *ATTEMPT)).map_err(store)?;
    let mut rows = statement.query([]).map_err(store)?;
    while let Some(row) = rows.next().map_err(store)? {
        let attempt = attempt(row, None).map_err(|error| {
            let number = row.get::<_, i64>("id").unwrap_or_default();
            damaged(format!("the attempt {number} can't be read: {error}"))
        })?;
        contents.attempts += 1;
        if attempt.charge() != crate::domain::Charge::None {
            contents.price += attempt.price;
            for (name, value) in attempt.particulars.labels {
                *for_labels.entry((name, value)).or_default() += attempt.price.micros();
            }
        }
    }
    for batch in &keys(connection).map_err(store)? {
        read::history(connection, batch).map_err(store)?;
    }
    checksum::verify_sums(connection).map_err(store)?;
    let kept = books::used(connection, jiff::Timestamp::MIN, None).map_err(store)?;
    if kept != contents.price {
        return Err(damaged(format!("it keeps ${kept} as spent, and its attempts cost ${}", contents.price)));
    }
    for_labels.retain(|_, micros| *micros != 0);
    if books::used_for_labels(connection).map_err(store)? != for_labels {
        return Err(damaged("what it keeps as spent for labels is not what its attempts cost".to_owned()));
    }
    Ok(contents)
}
