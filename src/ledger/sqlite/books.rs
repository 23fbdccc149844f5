//! Sums over all batches: what a limit of a day or a month has left, and what `spend` shows.

use jiff::Timestamp;
use rusqlite::Connection;

use super::read::{charging_named, unreadable};
use crate::domain::{AttemptState, BatchKey, Charge, Usd};
use crate::ledger::Spending;

/// The hours in which the ledger keeps what was spent, in microseconds.
const HOUR_US: i64 = 3_600_000_000;
/// The spans in which attempts are counted for `spend`, in microseconds: a day begins at a quarter of an hour in every
/// time zone.
const QUARTER_US: i64 = HOUR_US / 4;

/// What all batches spent since a moment, or may have spent: everything but what is known to have bought nothing.
///
/// Whole hours are kept by the ledger; of the first one, only what came after the moment counts.
pub(super) fn used(connection: &Connection, since: Timestamp) -> rusqlite::Result<Usd> {
    let since = since.as_microsecond();
    let first_whole = since.div_euclid(HOUR_US) + i64::from(since.rem_euclid(HOUR_US) > 0);
    let sql = "SELECT (SELECT coalesce(sum(micros), 0) FROM spent WHERE hour >= ?2)
         + (SELECT coalesce(sum(price_micros), 0) FROM attempt
            WHERE intended_us >= ?1 AND intended_us < ?3 AND state NOT IN ('void', 'rejected'))";
    let until = first_whole.saturating_mul(HOUR_US);
    let micros = connection.prepare_cached(sql)?.query_row([since, first_whole, until], |row| row.get(0))?;
    Ok(Usd::from_micros(micros))
}

/// What every batch bought since a moment, oldest first.
pub(super) fn spending(connection: &Connection, since: Timestamp) -> rusqlite::Result<Vec<Spending>> {
    let sql =
        "SELECT intended_us / ?2 AS quarter, batch.name, batch.batch, model, charging, state, count(*) AS attempts,
             sum(price_micros) AS micros
         FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE intended_us >= ?1 GROUP BY quarter, attempt.batch, model, charging, state ORDER BY quarter";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([since.as_microsecond(), QUARTER_US], |row| {
        let quarter: i64 = row.get("quarter")?;
        let at = Timestamp::from_microsecond(quarter.saturating_mul(QUARTER_US));
        let (charging, state): (String, String) = (row.get("charging")?, row.get("state")?);
        let charging = charging_named(&charging)
            .ok_or_else(|| unreadable(row, "charging", format!("unknown charging {charging}")))?;
        let state =
            AttemptState::named(&state).ok_or_else(|| unreadable(row, "state", format!("unknown state {state}")))?;
        Ok(Spending {
            at: at.map_err(|error| unreadable(row, "quarter", error))?,
            batch: BatchKey { name: row.get("name")?, batch: row.get("batch")? },
            model: row.get("model")?,
            charge: Charge::of(state, charging),
            is_doubtful: state.is_doubtful(),
            attempts: row.get("attempts")?,
            price: Usd::from_micros(row.get("micros")?),
        })
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::params;

    use super::*;
    use crate::ledger::sqlite::open::open;
    use crate::ledger::sqlite::schema::Kind;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// The sum that is kept is the sum of the attempts, after any writes and from any moment on.
        #[test]
        fn the_hours_add_up_to_the_attempts(
            attempts in proptest::collection::vec((0..8 * HOUR_US, 1..9_000_000_i64, 0..8_usize, 0..8_usize), 1..40),
            since in 0..9 * HOUR_US,
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let connection = open(&folder.path().join("ledger.db"), Kind::Real).expect("a ledger");
            connection.execute("INSERT INTO batch VALUES (1, 'n', '')", []).expect("a batch");
            for (at, price, first, last) in &attempts {
                let [first, last] = [first, last].map(|state| AttemptState::ALL[*state].name());
                let insert = "INSERT INTO attempt (batch, job, fingerprint, request, model, price_micros, charging,
                        typical_min_s, typical_max_s, service, key, state, intended_us)
                    VALUES (1, 'j', 'f', '{}', 'm', ?1, 'undocumented', 1, 2, 's', 'k', ?2, ?3)";
                connection.execute(insert, params![price, first, at]).expect("an attempt");
                connection.execute("UPDATE attempt SET state = ?1 WHERE id = last_insert_rowid()", [last]).expect("a state");
            }
            let expected: i64 = attempts
                .iter()
                .filter(|(at, _, _, last)| *at >= since && !["void", "rejected"].contains(&AttemptState::ALL[*last].name()))
                .map(|(_, price, ..)| price)
                .sum();
            let since = Timestamp::from_microsecond(since).expect("a time");
            prop_assert_eq!(used(&connection, since).expect("a sum"), Usd::from_micros(expected));
            let all: u32 = spending(&connection, Timestamp::MIN).expect("books").iter().map(|line| line.attempts).sum();
            prop_assert_eq!(all as usize, attempts.len());
        }
    }
}
