//! The ledger's file: made when it is missing, recognised when it is there, refused when it is not ours.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode as SqliteCode, OpenFlags};

/// What a ledger is about. The two never mix: a rehearsal must not look like a purchase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Real tasks and real money.
    Real,
    /// The simulator's.
    Simulated,
}

impl Kind {
    /// How a ledger is told from another program's database, and from one of the other kind: "shot" and "shos" in ASCII.
    fn application_id(self) -> i32 {
        match self {
            Self::Real => 0x7368_6f74,
            Self::Simulated => 0x7368_6f73,
        }
    }
}

/// The version of the tables below. A file with a newer one is refused, never guessed at.
const VERSION: i32 = 2;
/// The page cache of a connection that only reads; negative, as SQLite has it, for KiB.
const READERS_CACHE: i32 = -256;
/// How long to wait for another run's commit before giving up.
const BUSY: Duration = Duration::from_secs(30);

const TABLES: &str = "
CREATE TABLE batch (
    id    INTEGER PRIMARY KEY,
    name  TEXT NOT NULL,
    batch TEXT NOT NULL,
    UNIQUE (name, batch)
);
CREATE TABLE attempt (
    id            INTEGER PRIMARY KEY,
    batch         INTEGER NOT NULL REFERENCES batch (id),
    job           TEXT NOT NULL,
    fingerprint   TEXT NOT NULL,
    request       TEXT NOT NULL,
    model         TEXT NOT NULL,
    price_micros  BIGINT NOT NULL,
    charging      TEXT NOT NULL,
    typical_min_s INTEGER NOT NULL,
    typical_max_s INTEGER NOT NULL,
    service       TEXT NOT NULL,
    key           TEXT NOT NULL,
    state         TEXT NOT NULL,
    task          TEXT,
    video_url     TEXT,
    error         TEXT,
    polls         INTEGER NOT NULL DEFAULT 0,
    intended_us   BIGINT NOT NULL,
    answered_us   BIGINT,
    seen_us       BIGINT,
    seen_percent  INTEGER,
    ended_us      BIGINT,
    file          TEXT,
    sha256        TEXT,
    bytes         BIGINT,
    fetched_us    BIGINT
);
CREATE INDEX attempt_of_batch ON attempt (batch, id);
CREATE INDEX attempt_of_job ON attempt (batch, job);
CREATE INDEX attempt_by_time ON attempt (intended_us);
";

/// What a ledger of version 1 lacks: it knew nothing of files, and not when a task was first seen being generated.
const FROM_1_TO_2: &str = "
ALTER TABLE attempt ADD COLUMN seen_us BIGINT;
ALTER TABLE attempt ADD COLUMN seen_percent INTEGER;
ALTER TABLE attempt ADD COLUMN file TEXT;
ALTER TABLE attempt ADD COLUMN sha256 TEXT;
ALTER TABLE attempt ADD COLUMN bytes BIGINT;
ALTER TABLE attempt ADD COLUMN fetched_us BIGINT;
";

/// Version 1 as a reader sees it that may not change the file: a view of this connection alone, before the table.
const READ_1_AS_2: &str = "
PRAGMA temp_store = MEMORY;
CREATE TEMP VIEW attempt AS SELECT *, NULL AS seen_us, NULL AS seen_percent, NULL AS file, NULL AS sha256, NULL AS bytes,
    NULL AS fetched_us FROM main.attempt;
";

/// Why a ledger can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its folder can't be made.
    #[error("the folder {} can't be made", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not there, and runs have used it before.
    #[error("the ledger {} is gone: runs have locked it before, and their lock files are still there", .0.display())]
    Gone(PathBuf),
    /// Whether it is there can't be told, or it is a link that leads nowhere.
    #[error("the ledger {} can't be reached", path.display())]
    Unreachable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is a database of another program.
    #[error("{} is a database of another program", .0.display())]
    Foreign(PathBuf),
    /// The file is a ledger of the other kind.
    #[error("{} is {}", path.display(), match found {
        Kind::Real => "a real ledger, and the simulator may not write into it",
        Kind::Simulated => "the simulator's ledger: what is in it was never bought",
    })]
    OtherKind {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: Kind,
    },
    /// The file is no database at all, or a damaged one.
    #[error("{} is no database, or a damaged one", .0.display())]
    Damaged(PathBuf),
    /// The file was written by a newer shotlist.
    #[error("{} was written by a newer shotlist (format {found}; this one knows {VERSION})", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i32,
    },
    /// The store refused.
    #[error("{} can't be opened", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

/// Opens a ledger for writing, and makes it if it is not there.
pub fn open(path: &Path, kind: Kind) -> Result<Connection, OpenError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|source| OpenError::Folder { path: folder.to_owned(), source })?;
    }
    is_there(path)?;
    let connection = Connection::open(path).and_then(|connection| {
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    });
    let mut connection = connection.map_err(|error| store_error(path, error))?;
    if recognise(&connection, path, kind)? != Found::Ledger(VERSION) {
        create_or_upgrade(&mut connection, kind).map_err(|error| store_error(path, error))?;
    }
    let durable = connection
        .pragma_update(None, "journal_mode", "WAL")
        .and_then(|()| connection.pragma_update(None, "synchronous", "FULL"))
        .and_then(|()| connection.pragma_update(None, "foreign_keys", true));
    durable.map_err(|error| store_error(path, error))?;
    Ok(connection)
}

/// Opens a ledger for reading; nothing if there is none. Writes nothing, not even beside it, unless a log lies there:
/// then a run is at it, or one was killed.
pub fn open_to_read(path: &Path, kind: Kind) -> Result<Option<Connection>, OpenError> {
    if !is_there(path)? {
        return Ok(None);
    }
    // A database in WAL mode can be read without its side files only if it is declared unchanging. That is true while
    // no log lies beside it, because the last connection to close removes the log. SQLite follows links, and puts the
    // log beside the file that they lead to.
    let real =
        std::fs::canonicalize(path).map_err(|source| OpenError::Unreachable { path: path.to_owned(), source })?;
    let mut log = real.clone().into_os_string();
    log.push("-wal");
    let log = PathBuf::from(log);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(&real, !log.exists()), flags).and_then(|connection| {
        connection.busy_timeout(BUSY)?;
        // It is read once, from one end to the other.
        connection.pragma_update(None, "cache_size", READERS_CACHE)?;
        Ok(connection)
    });
    let connection = connection.map_err(|error| store_error(path, error))?;
    match recognise(&connection, path, kind)? {
        Found::Empty => return Ok(None),
        Found::Ledger(1) => connection.execute_batch(READ_1_AS_2).map_err(|error| store_error(path, error))?,
        Found::Ledger(_) => {}
    }
    Ok(Some(connection))
}

/// Whether there is a ledger. One that can't be reached is no ledger that is not there: taken for one, everything in it
/// would be paid for again.
fn is_there(path: &Path) -> Result<bool, OpenError> {
    let unreachable = |source| OpenError::Unreachable { path: path.to_owned(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && has_locks(path) => {
            return Err(OpenError::Gone(path.to_owned()));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        found => found.map_err(unreachable)?,
    };
    // Of a link that leads nowhere, this is the error.
    let length = std::fs::metadata(path).map_err(unreachable)?.len();
    if length == 0 && has_locks(path) {
        return Err(OpenError::Damaged(path.to_owned()));
    }
    Ok(true)
}

/// Whether runs have locked batches of this ledger before: then it was not always empty.
fn has_locks(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let prefix = format!("{}.", name.to_string_lossy());
    std::fs::read_dir(folder).is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with(&prefix) && name.ends_with(".lock")
            })
        })
    })
}

#[derive(PartialEq, Eq)]
enum Found {
    Empty,
    /// A ledger of this version, which is known.
    Ledger(i32),
}

fn recognise(connection: &Connection, path: &Path, kind: Kind) -> Result<Found, OpenError> {
    let number = |pragma: &str| {
        connection
            .pragma_query_value(None, pragma, |row| row.get::<_, i32>(0))
            .map_err(|error| store_error(path, error))
    };
    match (number("application_id")?, number("user_version")?) {
        (id, version @ 1..=VERSION) if id == kind.application_id() => Ok(Found::Ledger(version)),
        (id, found) if id == kind.application_id() && found > VERSION => {
            Err(OpenError::Newer { path: path.to_owned(), found })
        }
        (0, 0) => {
            let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
            match tables.map_err(|error| store_error(path, error))? {
                0 => Ok(Found::Empty),
                _ => Err(OpenError::Foreign(path.to_owned())),
            }
        }
        (id, _) => match [Kind::Real, Kind::Simulated].into_iter().find(|kind| kind.application_id() == id) {
            Some(found) if found != kind => Err(OpenError::OtherKind { path: path.to_owned(), found }),
            _ => Err(OpenError::Foreign(path.to_owned())),
        },
    }
}

fn create_or_upgrade(connection: &mut Connection, kind: Kind) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another run may have done it while this one waited for its turn.
    match transaction.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))? {
        0 => transaction.execute_batch(TABLES)?,
        1 => transaction.execute_batch(FROM_1_TO_2)?,
        _ => return Ok(()),
    }
    transaction.pragma_update(None, "application_id", kind.application_id())?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

fn store_error(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(SqliteCode::NotADatabase | SqliteCode::DatabaseCorrupt) => OpenError::Damaged(path),
        _ => OpenError::Store { path, source },
    }
}

/// A path as SQLite's URI, with the characters escaped that mean something in one.
fn uri(path: &Path, immutable: bool) -> String {
    let mut uri = String::from("file:");
    for c in path.to_string_lossy().chars() {
        match c {
            '%' => uri.push_str("%25"),
            '?' => uri.push_str("%3f"),
            '#' => uri.push_str("%23"),
            c => uri.push(c),
        }
    }
    if immutable {
        uri.push_str("?immutable=1");
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_not_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("odd %?# name.db");
        assert!(open_to_read(&path, Kind::Real).expect("no error").is_none());
        drop(open(&path, Kind::Real).expect("a new ledger"));
        assert!(open_to_read(&path, Kind::Real).expect("no error").is_some());

        let connection = Connection::open(&path).expect("the file");
        connection.pragma_update(None, "user_version", VERSION + 1).expect("a pragma");
        drop(connection);
        assert!(matches!(open(&path, Kind::Real), Err(OpenError::Newer { found: 3, .. })));

        let foreign = folder.path().join("foreign.db");
        Connection::open(&foreign).and_then(|c| c.execute_batch("CREATE TABLE x (y)")).expect("a table");
        assert!(matches!(open(&foreign, Kind::Real), Err(OpenError::Foreign(_))));

        let text = folder.path().join("text.db");
        std::fs::write(&text, "not a database, but long enough to look at").expect("a file");
        assert!(matches!(open(&text, Kind::Real), Err(OpenError::Damaged(_))));

        let simulated = folder.path().join("simulated.db");
        drop(open(&simulated, Kind::Simulated).expect("a new ledger"));
        assert!(matches!(open(&simulated, Kind::Real), Err(OpenError::OtherKind { found: Kind::Simulated, .. })));
        assert!(matches!(open_to_read(&simulated, Kind::Real), Err(OpenError::OtherKind { .. })));
    }

    #[test]
    fn a_ledger_of_the_first_version_is_read_as_it_is_and_upgraded_by_the_next_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.db");
        Connection::open(&path).and_then(|c| c.execute_batch(include_str!("version_1.sql"))).expect("an old ledger");
        let key = crate::domain::BatchKey { name: "n".into(), batch: String::new() };
        let history = || crate::ledger::read_history(&path, Kind::Real, &key).expect("a history");
        let before = history();
        let old = before.attempts().next().expect("an attempt");
        assert_eq!((old.polls, old.file.is_none(), old.seen), (3, true, None));
        let version = || -> i32 {
            let connection = Connection::open(&path).expect("the file");
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version")
        };
        assert_eq!(version(), 1, "reading changed the file");
        drop(open(&path, Kind::Real).expect("upgraded"));
        drop(open(&path, Kind::Real).expect("once"));
        assert_eq!(version(), VERSION);
        assert_eq!(history().attempts().next(), Some(old), "the upgrade changed what was known");
    }

    #[test]
    fn a_commit_survives_the_loss_of_power() {
        let folder = tempfile::tempdir().expect("a folder");
        let connection = open(&folder.path().join("ledger.db"), Kind::Real).expect("a new ledger");
        let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).expect(name);
        assert_eq!(pragma("synchronous"), 2, "FULL: the log is synced at every commit");
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a mode");
        assert_eq!(mode, "wal");
    }

    #[test]
    fn a_ledger_that_cannot_be_reached_is_not_taken_for_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.db");
        std::fs::write(&path, "").expect("a file");
        assert!(open_to_read(&path, Kind::Real).expect("no error").is_none(), "a new and empty one");
        std::fs::write(folder.path().join("ledger.db.0123.lock"), "").expect("a file");
        assert!(matches!(open_to_read(&path, Kind::Real), Err(OpenError::Damaged(_))));
        assert!(matches!(open(&path, Kind::Real), Err(OpenError::Damaged(_))));
        std::fs::remove_file(&path).expect("gone");
        assert!(matches!(open_to_read(&path, Kind::Real), Err(OpenError::Gone(_))));
        #[cfg(unix)]
        {
            let real = folder.path().join("real.db");
            let writer = open(&real, Kind::Real).expect("a new ledger");
            writer.execute("INSERT INTO batch (name, batch) VALUES ('n', '')", []).expect("a row in the log");
            let link = folder.path().join("to-real.db");
            std::os::unix::fs::symlink(&real, &link).expect("a link");
            let reader = open_to_read(&link, Kind::Real).expect("no error").expect("a ledger");
            let batches: i64 = reader.query_row("SELECT count(*) FROM batch", [], |row| row.get(0)).expect("a count");
            assert_eq!(batches, 1, "the log of a linked ledger was passed over");

            let link = folder.path().join("link.db");
            std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).expect("a link");
            assert!(matches!(open_to_read(&link, Kind::Real), Err(OpenError::Unreachable { .. })));
        }
    }

    #[test]
    fn reading_writes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.db");
        drop(open(&path, Kind::Real).expect("a new ledger"));
        let reader = open_to_read(&path, Kind::Real).expect("no error").expect("a ledger");
        let tables: i64 = reader.query_row("SELECT count(*) FROM attempt", [], |row| row.get(0)).expect("a count");
        assert_eq!(tables, 0);
        let files: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
        assert_eq!(files.len(), 1, "{files:?}");
    }
}
