//! Sums over all batches: for limits, for `spend`, and of one request.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::Connection;

use super::rows::{key, unreadable};
use crate::domain::{AttemptState, BatchKey, Charge, Fingerprint, Label, Usd};
use crate::ledger::Spending;
use crate::ledger::rules::{Period, QUARTER_US};

/// The sum spent since a time, in total or for a label.
pub(super) fn used(connection: &Connection, since: Timestamp, label: Option<&Label>) -> rusqlite::Result<Usd> {
    let (name, value) = label.map_or(("", ""), |label| (&label.name, &label.value));
    let period = Period::since(since);
    let sql = "SELECT coalesce(sum(micros), 0) FROM spent WHERE label = ?1 AND value = ?2 AND hour >= ?3";
    let mut micros: i64 =
        connection.prepare_cached(sql)?.query_row((name, value, period.first_hour), |row| row.get(0))?;
    if period.has_attempts() {
        let sql = "SELECT coalesce(sum(price_micros), 0) FROM attempt WHERE intended_us >= ?1 AND intended_us < ?2 AND charge <> 'none'
             AND (?3 = '' OR EXISTS (SELECT 1 FROM json_each(labels) AS label WHERE label.key = ?3 AND label.value = ?4))";
        let values = (period.since_us, period.until_us, name, value);
        micros += connection.prepare_cached(sql)?.query_row(values, |row| row.get::<_, i64>(0))?;
    }
    Ok(Usd::from_micros(micros))
}

/// All sums that aren't zero, by label, value, and hour.
pub(super) fn sums(connection: &Connection) -> rusqlite::Result<BTreeMap<(String, String, i64), i64>> {
    let mut statement = connection.prepare("SELECT label, value, hour, micros FROM spent WHERE micros <> 0")?;
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get(3)?)))?;
    rows.collect()
}

/// The number of attempts that may have paid for a normalized request, by batch, the batch of the newest attempt last.
pub(super) fn paid(connection: &Connection, request: &Fingerprint) -> rusqlite::Result<Vec<(BatchKey, u32)>> {
    let sql = "SELECT name, batch.batch, count(*) FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE normalized = ?1 AND state NOT IN ('void', 'rejected') GROUP BY attempt.batch ORDER BY max(attempt.id)";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map([request.as_str()], |row| Ok((key(row, 0)?, row.get(2)?)))?.collect()
}

/// The purchases of all batches since a time, oldest first.
pub(super) fn spending(connection: &Connection, since: Timestamp) -> rusqlite::Result<Vec<Spending>> {
    let sql = "SELECT intended_us / ?2 AS quarter, name, batch.batch, model, labels, charge, state, count(*), sum(price_micros)
         FROM attempt JOIN batch ON batch.id = attempt.batch WHERE intended_us >= ?1
         GROUP BY quarter, attempt.batch, model, labels, charge, state ORDER BY quarter";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([since.as_microsecond(), QUARTER_US], |row| {
        let quarter: i64 = row.get(0)?;
        let labels = row.get::<_, Option<String>>(4)?.map(|text| serde_json::from_str(&text));
        let (charge, state): (String, String) = (row.get(5)?, row.get(6)?);
        let state = AttemptState::named(&state).ok_or_else(|| unreadable(6, format!("unknown state {state}")))?;
        Ok(Spending {
            at: Timestamp::from_microsecond(quarter.saturating_mul(QUARTER_US))
                .map_err(|error| unreadable(0, error))?,
            batch: key(row, 1)?,
            model: row.get(3)?,
            labels: labels.transpose().map_err(|error| unreadable(4, error))?.unwrap_or_default(),
            charge: Charge::named(&charge).ok_or_else(|| unreadable(5, format!("unknown charge {charge}")))?,
            is_doubtful: state.is_doubtful(),
            attempts: row.get(7)?,
            price: Usd::from_micros(row.get(8)?),
        })
    })?;
    rows.collect()
}
