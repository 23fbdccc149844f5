//! The ledger's file: created whole when it is missing, recognized when it is there, refused when it is not ours.
//!
//! A new ledger is made under a name of its own and gets its real one once it is whole, so a process that is killed while
//! it makes one leaves nothing that anybody has to repair. The log (WAL) is demanded and not asked for: without it a
//! commit with `synchronous=FULL` would not survive the loss of power.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode as SqliteCode, OpenFlags};

use super::beside::{COUNTER, commits, known_commits};
use super::schema::{
    self, Found, OTHER_FILE, OTHER_VERSION, OUTDATED, RESTORE, VERSION, WRITABLE, create, failed, is_table, recognize,
    refused,
};
use crate::domain::NoticeCode;
use crate::files::{
    directory_of, make_directories, make_private_directory, sync_directory, temporary_with_mode, with_suffix,
};
use crate::ledger::Unavailable;
use crate::ledger::row::Kind;

/// The default directory of a ledger.
pub(crate) const OWN_FOLDER: &str = ".shotlist";
const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_URI);
/// The pause between two tries of an operation for which SQLite does not wait.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// The page cache of a reading connection in KiB, which SQLite takes as a negative number.
const READERS_CACHE: i32 = -256;
/// The number of cached statements, more than a run uses.
const STATEMENTS: usize = 64;
/// The longest wait for another run's commit.
const BUSY: Duration = Duration::from_secs(30);

/// Opens a ledger for writing, and creates it if it does not exist.
pub(super) fn open(path: &Path, kind: Kind) -> Result<Connection, Unavailable> {
    if is_on_share(path) {
        return Err(no_log(path));
    }
    if !is_there(path)? {
        create_file(path, kind)?;
    }
    let known = known_commits(path);
    let mut connection = connect(path, OpenFlags::default()).map_err(|error| store_error(path, error))?;
    if found(&connection, path, kind)? == Found::Empty {
        if let Some(known) = known.filter(|known| *known > 0) {
            return Err(outdated(path, known, 0));
        }
        create(&mut connection, kind).map_err(|error| store_error(path, error))?;
    }
    demand_log(&connection, path)?;
    check_commit_counter(&connection, path, known)?;
    if known.is_none() && commits(&connection).is_ok_and(|commits| commits > 0) {
        // About money, so also under `-q`.
        tracing::error!(
            code = NoticeCode::CommitCounter.code(),
            "ledger `{}` has no readable commit counter: if it is an older copy, what was bought since is bought again",
            path.display()
        );
    }
    Ok(connection)
}

/// Opens a ledger for reading. `None` if it does not exist. Writes nothing, unless there is a log: then a run uses it, or was killed.
pub(super) fn open_to_read(path: &Path, kind: Kind) -> Result<Option<Connection>, Unavailable> {
    if !is_there(path)? {
        return Ok(None);
    }
    let store = |error| store_error(path, error);
    // Before the ledger is read: later commits only add to it.
    let known = known_commits(path);
    // A database in WAL mode can be read without its side files only if it is declared immutable. It is, as long as there is no log: the
    // last connection removes it. SQLite follows links, and puts the log beside their target.
    let real = std::fs::canonicalize(path).map_err(|source| failed("reach ledger", path, source))?;
    if with_suffix(&real, "-journal").exists() {
        // A process died during a write without a log. Only a writer can undo it.
        let repaired = connect(&real, OpenFlags::default())
            .and_then(|connection| connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())));
        repaired.map_err(store)?;
    }
    let address = uri(&real, !with_suffix(&real, "-wal").exists());
    let connection = connect(Path::new(&address), READ_ONLY).map_err(store)?;
    // It is read once, sequentially.
    connection.pragma_update(None, "cache_size", READERS_CACHE).map_err(store)?;
    match recognize(&connection, kind).map_err(store)? {
        Found::Empty => return Ok(None),
        // A reader runs no trigger, and verifies rows. Without the tables, it fails.
        Found::Altered(object) if !is_table(&object) => {}
        other => drop(usable(other, path)?),
    }
    check_commit_counter(&connection, path, known)?;
    Ok(Some(connection))
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Otherwise, SQLite prepares some statements again for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    schema::add_functions(&connection)?;
    Ok(connection)
}

/// Creates a ledger under a temporary name, complete and synced, and renames it unless another process was faster.
fn create_file(path: &Path, kind: Kind) -> Result<(), Unavailable> {
    let directory = make_directory_of(path)?;
    let failed = |source| failed("create directory", directory, source);
    // It has prompts and signed URLs: for the user only, and for the group if the umask lets it write.
    let file = temporary_with_mode(0o660).tempfile_in(directory).map_err(failed)?;
    // First the tables with a journal, then the log, which is empty at the end.
    let store = |error| store_error(path, error);
    let mut connection = connect(file.path(), OpenFlags::default()).map_err(store)?;
    create(&mut connection, kind).map_err(store)?;
    demand_log(&connection, path)?;
    connection.close().map_err(|(_, error)| store(error))?;
    // Closing a file reports no error, so it is synced separately.
    let alone = connect(Path::new(&uri(file.path(), true)), READ_ONLY).map_err(store)?;
    if found(&alone, path, kind)? != Found::Ledger {
        return Err(not_a_ledger(path));
    }
    drop(alone);
    file.as_file().sync_all().map_err(failed)?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        named => named.map_err(|error| failed(error.error)).and_then(|_| sync_directory(path).map_err(failed)),
    }
}

/// Creates the directory of a ledger if it is missing, and returns it.
pub(super) fn make_directory_of(path: &Path) -> Result<&Path, Unavailable> {
    let directory = directory_of(path);
    let made = if directory.file_name() == Some(OWN_FOLDER.as_ref()) {
        make_private_directory(directory).and_then(|()| hide_from_git(directory))
    } else {
        make_directories(directory)
    };
    made.map_err(|source| failed("create directory", directory, source))?;
    Ok(directory)
}

/// Keeps the default directory out of version control: with an old ledger from a checkout, later purchases would be due again.
fn hide_from_git(directory: &Path) -> std::io::Result<()> {
    let path = directory.join(".gitignore");
    match std::fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        opened => std::io::Write::write_all(&mut opened?, b"*\n"),
    }
}

/// Turns the write-ahead log on, which a backup lacks. This needs a moment without other connections, for which SQLite does not wait.
fn demand_log(connection: &Connection, path: &Path) -> Result<(), Unavailable> {
    let start = Instant::now();
    let mode = loop {
        let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Err(error) if error.sqlite_error_code() == Some(SqliteCode::DatabaseBusy) && start.elapsed() < BUSY => {
                std::thread::sleep(BETWEEN_TRIES);
            }
            mode => break mode,
        }
    };
    let mode = mode.map_err(|error| store_error(path, error))?;
    if mode != "wal" {
        return Err(no_log(path));
    }
    let set = |name, value: &str| connection.pragma_update(None, name, value).map_err(|error| store_error(path, error));
    // Most pages change again soon: half as many checkpoints copy and sync them as with the default.
    set("wal_autocheckpoint", "2000")?;
    set("synchronous", "FULL")
}

/// Refuses a ledger with fewer commits than its counter: the missing purchases would be paid for again.
fn check_commit_counter(connection: &Connection, path: &Path, known: Option<i64>) -> Result<(), Unavailable> {
    let Some(known) = known else { return Ok(()) };
    let found = commits(connection).map_err(|error| store_error(path, error))?;
    if found < known { Err(outdated(path, known, found)) } else { Ok(()) }
}

/// Returns whether a ledger exists. An unreachable ledger is an error: as a missing one, its purchases would be paid for again.
pub(super) fn is_there(path: &Path) -> Result<bool, Unavailable> {
    let unreachable = |source| failed("reach ledger", path, source);
    let look = || match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some).map_err(unreachable),
    };
    let own = match look()? {
        Some(own) => own,
        None if !has_companions(path) => return Ok(false),
        // Another process may have created it meanwhile. It exists before the files beside it.
        None => look()?.ok_or_else(|| {
            let help = "restore it, or remove those files to start over: shotlist would then buy everything again";
            refused(path, "is missing, but its `.lock` or `.commits` file is still there", help)
        })?,
    };
    // A broken link fails here.
    let real = std::fs::metadata(path).map_err(unreachable)?;
    if !real.is_file() {
        return Err(unreachable(std::io::Error::other("it is not a plain file")));
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(&real) > 1 {
        let help = "remove the hard link (`find . -samefile` finds it), or copy the file";
        // With two names, it has two logs and two locks.
        return Err(refused(path, "has a hard link, so two runs could use it at once", help));
    }
    if real.len() == 0 && has_companions(path) {
        return Err(not_a_ledger(path));
    }
    if real.len() == 0 && own.is_symlink() {
        // Whatever that is, it is not ours to fill.
        let help = "name the target with `--ledger`, or remove the link";
        return Err(refused(path, "is a link to an empty file", help));
    }
    Ok(true)
}

/// The file is no database at all, or a damaged one.
fn not_a_ledger(path: &Path) -> Unavailable {
    refused(path, "is not a database, or a damaged one", RESTORE)
}

/// There is no log, on a network file system for example.
fn no_log(path: &Path) -> Unavailable {
    let help = "put the ledger on a local disk with `--ledger`";
    refused(path, "can't have a write-ahead log, so a commit may not survive power loss", help)
}

fn outdated(path: &Path, known: i64, found: i64) -> Unavailable {
    refused(path, format_args!("is outdated: found {found} commits, expected {known}"), OUTDATED)
}

/// Returns whether a path leads to a share of Windows, by its name or by a mapped drive.
fn is_on_share(path: &Path) -> bool {
    use std::path::{Component, Prefix};
    let real = std::fs::canonicalize(directory_of(path)).unwrap_or_else(|_| path.to_owned());
    // On other systems, no path has a prefix.
    matches!(real.components().next(), Some(Component::Prefix(prefix)) if matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)))
}

/// Returns whether runs have used this ledger before: there is a lock or a commit counter.
fn has_companions(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let prefix = name.to_string_lossy();
    let is_one = |rest: &str| rest == COUNTER || rest.starts_with('.') && rest.ends_with("lock");
    std::fs::read_dir(directory_of(path)).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().strip_prefix(&*prefix).is_some_and(is_one))
    })
}

/// Recognizes the file, or refuses it.
fn found(connection: &Connection, path: &Path, kind: Kind) -> Result<Found, Unavailable> {
    usable(recognize(connection, kind).map_err(|error| store_error(path, error))?, path)
}

fn usable(found: Found, path: &Path) -> Result<Found, Unavailable> {
    match found {
        Found::Foreign => Err(refused(path, "is a database of another program", OTHER_FILE)),
        Found::OtherVersion(found) => {
            Err(refused(path, format_args!("must have format {VERSION}, found {found}"), OTHER_VERSION))
        }
        Found::Altered(object) => Err(refused(path, format_args!("has an altered schema: `{object}`"), OTHER_VERSION)),
        Found::OtherKind(Kind::Real) => {
            Err(refused(path, "is a real ledger, but the run uses the simulator", OTHER_FILE))
        }
        Found::OtherKind(Kind::Simulated) => {
            Err(refused(path, "is the simulator's ledger, but the run is real", OTHER_FILE))
        }
        Found::Empty | Found::Ledger => Ok(found),
    }
}

/// The error for the user by SQLite's error.
pub(super) fn store_error(path: &Path, source: rusqlite::Error) -> Unavailable {
    match source.sqlite_error_code() {
        Some(SqliteCode::NotADatabase | SqliteCode::DatabaseCorrupt) => not_a_ledger(path),
        _ if matches!(source, rusqlite::Error::FromSqlConversionFailure(..)) => {
            Unavailable::new(format!("can't read `{}`: {source}", path.display()), RESTORE)
        }
        // Without its cause, which repeats it as a number.
        _ => Unavailable::new(format!("can't open `{}`: {}", path.display(), without_address(source)), WRITABLE),
    }
}

/// An error without the URI of the file, which the user did not write.
fn without_address(error: rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqliteFailure(code, Some(why)) if code.code == SqliteCode::CannotOpen => {
            let why = why.split_once(": ").map_or(&*why, |(what, _)| what).to_owned();
            rusqlite::Error::SqliteFailure(code, Some(why))
        }
        other => other,
    }
}

/// A path as SQLite's URI, with reserved characters escaped.
fn uri(path: &Path, immutable: bool) -> String {
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}{}", if immutable { "?immutable=1" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::with_causes;
    use crate::ledger::sqlite::schema::VERSION;

    const DAMAGED: &str = "is not a database, or a damaged one";

    fn refusal<T>(opened: Result<T, Unavailable>) -> String {
        opened.map(drop).expect_err("a refusal").to_string()
    }

    #[test]
    fn store_error_is_shown_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let opened = Connection::open(directory.path()).expect_err("a directory is not a database");
        let shown = with_causes(&store_error(Path::new("l.db"), opened));
        let why = shown.strip_prefix("can't open `l.db`: ").expect("where and what");
        assert_eq!(why, "unable to open database file");
    }

    #[test]
    #[cfg(windows)]
    fn share_is_refused() {
        for (path, is_share) in [(r"\\server\share\l.db", true), (r"C:\l.db", false), ("l.db", false)] {
            assert_eq!(is_on_share(Path::new(path)), is_share, "{path}");
        }
    }

    #[test]
    fn foreign_files_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(if cfg!(windows) { "odd %# name.db" } else { "odd %?# name.db" });
        assert!(open_to_read(&path, Kind::Real).expect("no error").is_none());
        drop(open(&path, Kind::Real).expect("a new ledger"));
        assert!(open_to_read(&path, Kind::Real).expect("no error").is_some());

        let connection = Connection::open(&path).expect("the file");
        connection.pragma_update(None, "user_version", VERSION + 1).expect("a pragma");
        drop(connection);
        assert!(refusal(open(&path, Kind::Real)).ends_with("must have format 1, found 2"));

        let foreign = directory.path().join("foreign.db");
        Connection::open(&foreign).and_then(|c| c.execute_batch("CREATE TABLE x (y)")).expect("a table");
        assert!(refusal(open(&foreign, Kind::Real)).ends_with("is a database of another program"));

        let text = directory.path().join("text.db");
        std::fs::write(&text, "not a database, but long enough to look at").expect("a file");
        assert!(refusal(open(&text, Kind::Real)).ends_with(DAMAGED));

        let simulated = directory.path().join("simulated.db");
        drop(open(&simulated, Kind::Simulated).expect("a new ledger"));
        assert!(refusal(open(&simulated, Kind::Real)).ends_with("the simulator's ledger, but the run is real"));
        assert!(refusal(open_to_read(&simulated, Kind::Real)).ends_with("but the run is real"));
    }

    #[test]
    fn empty_file_beside_a_commit_counter_is_outdated() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        std::fs::write(&path, "").expect("a file");
        std::fs::write(directory.path().join("ledger.db.commits"), format!("commits {:020}\n", 7)).expect("a counter");
        assert!(open(&path, Kind::Real).is_err() && open_to_read(&path, Kind::Real).is_err());
        assert_eq!(std::fs::read(&path).expect("the file"), b"");
    }

    #[test]
    fn commits_are_synced() {
        let directory = tempfile::tempdir().expect("a directory");
        let connection = open(&directory.path().join("ledger.db"), Kind::Real).expect("a new ledger");
        let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).expect(name);
        assert_eq!(pragma("synchronous"), 2, "FULL: the log is synced at every commit");
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a mode");
        assert_eq!(mode, "wal");
    }

    #[test]
    fn unreachable_ledger_is_not_a_missing_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        std::fs::write(&path, "").expect("a file");
        assert!(open_to_read(&path, Kind::Real).expect("no error").is_none(), "a new and empty one");
        std::fs::write(directory.path().join("ledger.db.0123.lock"), "").expect("a file");
        assert!(refusal(open_to_read(&path, Kind::Real)).ends_with(DAMAGED));
        assert!(refusal(open(&path, Kind::Real)).ends_with(DAMAGED));
        std::fs::remove_file(&path).expect("gone");
        assert!(refusal(open_to_read(&path, Kind::Real)).ends_with("file is still there"));
        #[cfg(unix)]
        {
            let real = directory.path().join("real.db");
            let writer = open(&real, Kind::Real).expect("a new ledger");
            writer.execute("INSERT INTO batch (name, batch) VALUES ('n', '')", []).expect("a row in the log");
            let link = directory.path().join("to-real.db");
            std::os::unix::fs::symlink(&real, &link).expect("a link");
            let reader = open_to_read(&link, Kind::Real).expect("no error").expect("a ledger");
            let batches: i64 = reader.query_row("SELECT count(*) FROM batch", [], |row| row.get(0)).expect("a count");
            assert_eq!(batches, 1, "the log of a linked ledger was passed over");

            let link = directory.path().join("link.db");
            std::os::unix::fs::symlink(directory.path().join("nowhere"), &link).expect("a link");
            assert!(refusal(open_to_read(&link, Kind::Real)).starts_with("can't reach ledger"));
        }
    }

    #[test]
    fn reading_writes_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        drop(open(&path, Kind::Real).expect("a new ledger"));
        let reader = open_to_read(&path, Kind::Real).expect("no error").expect("a ledger");
        let tables: i64 = reader.query_row("SELECT count(*) FROM attempt", [], |row| row.get(0)).expect("a count");
        assert_eq!(tables, 0);
        let files: Vec<_> = std::fs::read_dir(directory.path()).expect("a directory").collect();
        assert_eq!(files.len(), 1, "{files:?}");
    }
}
