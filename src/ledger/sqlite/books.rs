//! Sums over all batches: what a limit of a day or a month has left, and what `spend` shows.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::read::{labels, unreadable};
use crate::domain::{AttemptState, BatchKey, Charge, Label, Usd};
use crate::ledger::Spending;
use crate::ledger::stored::{billed_named, charging_named};

/// The hours in which the ledger keeps what was spent, in microseconds.
const HOUR_US: i64 = 3_600_000_000;
/// The spans in which attempts are counted for `spend`, in microseconds: a day begins at a quarter of an hour in every
/// time zone.
const QUARTER_US: i64 = HOUR_US / 4;

/// What all batches spent since a moment, or may have spent, for everything or for what has a label: all but what is known to
/// have bought nothing.
///
/// Whole hours are kept by the ledger; of the first one, only what came after the moment counts.
pub(super) fn used(connection: &Connection, since: Timestamp, label: Option<&Label>) -> rusqlite::Result<Usd> {
    let since = since.as_microsecond();
    let first_whole = since.div_euclid(HOUR_US) + i64::from(since.rem_euclid(HOUR_US) > 0);
    let until = first_whole.saturating_mul(HOUR_US);
    let micros = match label {
        None => {
            let sql = "SELECT (SELECT coalesce(sum(micros), 0) FROM spent WHERE hour >= ?2)
                 + (SELECT coalesce(sum(spent_micros), 0) FROM attempt WHERE intended_us >= ?1 AND intended_us < ?3)";
            connection.prepare_cached(sql)?.query_row([since, first_whole, until], |row| row.get(0))?
        }
        Some(Label { name, value }) => {
            let sql =
                "SELECT (SELECT coalesce(sum(micros), 0) FROM spent_for WHERE label = ?4 AND value = ?5 AND hour >= ?2)
                 + (SELECT coalesce(sum(spent_micros), 0) FROM attempt WHERE intended_us >= ?1 AND intended_us < ?3 AND labels IS NOT NULL
                    AND EXISTS (SELECT 1 FROM json_each(labels) AS label WHERE label.key = ?4 AND label.value = ?5))";
            let question = params![since, first_whole, until, name, value];
            connection.prepare_cached(sql)?.query_row(question, |row| row.get(0))?
        }
    };
    Ok(Usd::from_micros(micros))
}

/// What the ledger keeps as spent for each label, by its name and value.
pub(super) fn used_for_labels(connection: &Connection) -> rusqlite::Result<BTreeMap<(String, String), i64>> {
    let sql = "SELECT label, value, sum(micros) FROM spent_for GROUP BY label, value HAVING sum(micros) <> 0";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    rows.collect()
}

/// What every batch bought since a moment, oldest first.
pub(super) fn spending(connection: &Connection, since: Timestamp) -> rusqlite::Result<Vec<Spending>> {
    let sql = "SELECT intended_us / ?2 AS quarter, batch.name, batch.batch, model, charging, state, billed, labels,
             count(*) AS attempts, sum(price_micros) AS micros
         FROM attempt JOIN batch ON batch.id = attempt.batch WHERE intended_us >= ?1
         GROUP BY quarter, attempt.batch, model, charging, state, billed, labels ORDER BY quarter";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([since.as_microsecond(), QUARTER_US], |row| {
        let quarter: i64 = row.get("quarter")?;
        let at = Timestamp::from_microsecond(quarter.saturating_mul(QUARTER_US));
        let (charging, state): (String, String) = (row.get("charging")?, row.get("state")?);
        let charging = charging_named(&charging)
            .ok_or_else(|| unreadable(row, "charging", format!("unknown charging {charging}")))?;
        let state =
            AttemptState::named(&state).ok_or_else(|| unreadable(row, "state", format!("unknown state {state}")))?;
        let billed = row.get::<_, Option<String>>("billed")?.and_then(|name| billed_named(&name));
        Ok(Spending {
            at: at.map_err(|error| unreadable(row, "quarter", error))?,
            batch: BatchKey { name: row.get("name")?, batch: row.get("batch")? },
            model: row.get("model")?,
            labels: labels(row, "labels")?,
            charge: Charge::of(state, charging, billed),
            is_doubtful: state.is_doubtful(),
            attempts: row.get("attempts")?,
            price: Usd::from_micros(row.get("micros")?),
        })
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sqlite::open::open;
    use crate::ledger::sqlite::schema::Kind;
    use crate::ledger::sqlite::{checksum, read};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// The sum that is kept is the sum of the attempts, after any writes and from any moment on.
        #[test]
        fn the_hours_add_up_to_the_attempts(
            attempts in proptest::collection::vec(
                ((0..8 * HOUR_US, 1..9_000_000_i64, 0..8_usize, 0..8_usize), (0..3_usize, any::<bool>())),
                1..40,
            ),
            since in 0..9 * HOUR_US,
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let connection = open(&folder.path().join("ledger.db"), Kind::Real).expect("a ledger");
            connection.execute("INSERT INTO batch (id, name, batch) VALUES (1, 'n', '')", []).expect("a batch");
            let clients = [None, Some("{\"client\":\"acme\"}"), Some("{\"client\":\"x\",\"o\":\"acme\"}")];
            for ((at, price, first, last), (client, is_free)) in &attempts {
                let [first, last] = [first, last].map(|state| AttemptState::ALL[*state].name());
                let insert = "INSERT INTO attempt (batch, job, fingerprint, normalized, request, model, price_micros, charging,
                        typical_min_s, typical_max_s, service, key, state, intended_us, labels)
                    VALUES (1, 'j', 'f', 'n', '{}', 'm', ?1, 'undocumented', 1, 2, 's', 'k', ?2, ?3, ?4)";
                connection.execute(insert, params![price, first, at, clients[*client]]).expect("an attempt");
                connection.execute("UPDATE attempt SET state = ?1 WHERE id = last_insert_rowid()", [last]).expect("a state");
                if *is_free {
                    connection.execute("UPDATE attempt SET billed = 'none' WHERE id = last_insert_rowid()", []).expect("a bill");
                }
            }
            let expected = |is_meant: fn(usize) -> bool| -> i64 {
                let counted = attempts.iter().filter(|((at, _, _, last), (client, is_free))| {
                    *at >= since && !AttemptState::ALL[*last].is_free() && !is_free && is_meant(*client)
                });
                counted.map(|((_, price, ..), _)| price).sum()
            };
            checksum::verify_sums(&connection).expect("verified");
            read::history(&connection, &BatchKey { name: "n".into(), batch: String::new() }).expect("verified");
            let since = Timestamp::from_microsecond(since).expect("a time");
            prop_assert_eq!(used(&connection, since, None).expect("a sum"), Usd::from_micros(expected(|_| true)));
            let acme = Label { name: "client".into(), value: "acme".into() };
            let of_acme = used(&connection, since, Some(&acme)).expect("a sum");
            prop_assert_eq!(of_acme, Usd::from_micros(expected(|client| client == 1)));
            let all: u32 = spending(&connection, Timestamp::MIN).expect("books").iter().map(|line| line.attempts).sum();
            prop_assert_eq!(all as usize, attempts.len());
        }
    }
}
