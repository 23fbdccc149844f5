//! The freeze, and commits that are about no attempt.

use std::path::Path;

use rusqlite::Connection;

use super::commit_counter::{self, CommitCounter};
use super::open::store_error;
use crate::domain::Freeze;
use crate::ledger::Unavailable;

/// The freeze, if purchases are frozen.
pub(super) fn frozen(connection: &Connection) -> rusqlite::Result<Option<Freeze>> {
    let why: Option<String> =
        connection.prepare_cached("SELECT frozen FROM ledger")?.query_row([], |row| row.get(0))?;
    Ok(why.map(Freeze::on_request))
}

/// Freezes purchases for a reason, or unfreezes them.
pub(super) fn set(connection: &Connection, why: Option<&str>) -> rusqlite::Result<()> {
    connection.execute("UPDATE ledger SET frozen = ?1", [why])?;
    Ok(())
}

/// Changes what is no attempt, in a commit that counts: a copy from before a freeze is outdated.
pub(super) fn commit(
    connection: &Connection,
    path: &Path,
    change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), Unavailable> {
    let mut counter = CommitCounter::open(path)?;
    let commits = || {
        let transaction = connection.unchecked_transaction()?;
        change(&transaction)?;
        let commits = commit_counter::count(&transaction)?;
        transaction.commit().map(|()| commits)
    };
    counter.note(commits().map_err(|error| store_error(path, error))?);
    Ok(())
}
