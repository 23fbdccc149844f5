//! The owner's limits: what nobody's manifest can raise.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::domain::{Label, Usd};
use crate::ledger::{LedgerLimit, Span, SpendLimit};

/// The owner's word as it stands in one transaction, in which it can't change.
pub(super) struct OwnersWord {
    /// Why nobody may buy, if that is so.
    pub stopped: Option<String>,
    /// The limits, as they hold now.
    pub limits: Vec<SpendLimit>,
}

/// What the owner says at a moment.
pub(super) fn owners_word(connection: &Connection, now: Timestamp) -> rusqlite::Result<OwnersWord> {
    let limits = read(connection)?.iter().map(|owner| owner.at(now)).collect();
    Ok(OwnersWord { stopped: stopped(connection)?, limits })
}

/// All of them.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Vec<LedgerLimit>> {
    let sql = "SELECT label, value, span, micros, zone FROM owner_limit ORDER BY label, value, span";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let (name, value): (String, String) = (row.get(0)?, row.get(1)?);
        let label = (!name.is_empty()).then_some(Label { name, value });
        let (span, usd, zone) = (row.get::<_, String>(2)?, Usd::from_micros(row.get(3)?), row.get(4)?);
        Ok(Span::named(&span).map(|span| LedgerLimit { label, span, usd, zone }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Why nobody may buy, if that is so.
pub(super) fn stopped(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.prepare_cached("SELECT stopped FROM ledger")?.query_row([], |row| row.get(0))
}

/// Lets nobody buy, or everybody again.
pub(super) fn stop(connection: &Connection, why: Option<&str>) -> rusqlite::Result<()> {
    connection.execute("UPDATE ledger SET stopped = ?1", [why])?;
    Ok(())
}

/// Sets one in the place of an earlier one, or takes it away.
pub(super) fn set(connection: &Connection, limit: &LedgerLimit, is_kept: bool) -> rusqlite::Result<()> {
    let (name, value) = limit.label.as_ref().map_or(("", ""), |label| (&label.name, &label.value));
    let key = params![name, value, limit.span.name()];
    connection.execute("DELETE FROM owner_limit WHERE label = ?1 AND value = ?2 AND span = ?3", key)?;
    if is_kept {
        let values = params![name, value, limit.span.name(), limit.usd.micros(), limit.zone];
        connection.execute("INSERT INTO owner_limit VALUES (?1, ?2, ?3, ?4, ?5)", values)?;
    }
    Ok(())
}
