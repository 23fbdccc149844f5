//! The ledger limits and the freeze.

use std::path::Path;

use rusqlite::Connection;

use super::commit_counter::{self, CommitCounter};
use super::open::{OpenError, store_error};
use super::rows::{unreadable, unwritable};
use crate::domain::Freeze;
use crate::ledger::LedgerLimit;

/// All ledger limits. One that can't be read is an error, and never none.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Vec<LedgerLimit>> {
    let mut statement = connection.prepare_cached("SELECT record FROM ledger_limit ORDER BY key")?;
    let limit =
        |row: &rusqlite::Row<'_>| serde_json::from_str(row.get_ref(0)?.as_str()?).map_err(|error| unreadable(0, error));
    statement.query_map([], limit)?.collect()
}

/// The freeze, if purchases are frozen.
pub(super) fn frozen(connection: &Connection) -> rusqlite::Result<Option<Freeze>> {
    let why: Option<String> =
        connection.prepare_cached("SELECT frozen FROM ledger")?.query_row([], |row| row.get(0))?;
    Ok(why.map(Freeze::on_request))
}

/// Changes what is no attempt, in a commit that counts: a copy from before a freeze is outdated.
pub(super) fn commit(
    connection: &Connection,
    path: &Path,
    change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), OpenError> {
    let mut counter =
        CommitCounter::open(path).map_err(|source| OpenError::CommitCounter { path: path.to_owned(), source })?;
    let commits = || {
        let transaction = connection.unchecked_transaction()?;
        change(&transaction)?;
        let commits = commit_counter::count(&transaction)?;
        transaction.commit().map(|()| commits)
    };
    counter.note(commits().map_err(|error| store_error(path, error))?);
    Ok(())
}

/// Freezes purchases for a reason, or unfreezes them.
pub(super) fn freeze(connection: &Connection, why: Option<&str>) -> rusqlite::Result<()> {
    connection.execute("UPDATE ledger SET frozen = ?1", [why])?;
    Ok(())
}

/// Sets a limit in place of an earlier one, or removes it.
pub(super) fn set(connection: &Connection, limit: &LedgerLimit, is_kept: bool) -> rusqlite::Result<()> {
    let key = limit.key().map_err(unwritable)?;
    connection.execute("DELETE FROM ledger_limit WHERE key = ?1", [&key])?;
    if is_kept {
        connection.execute(
            "INSERT INTO ledger_limit VALUES (?1, ?2)",
            [key, serde_json::to_string(limit).map_err(unwritable)?],
        )?;
    }
    Ok(())
}
