//! Attempts as whole rows, through JSON: read, inserted and replaced by the names of their columns.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::transaction::Transaction;
use crate::domain::{Attempt, AttemptId};
use crate::ledger::stored::Stored;

/// PostgreSQL keeps no NUL in a text. What stands for one is a noncharacter, which Unicode keeps out of texts that are exchanged; one that
/// comes all the same is read back as a NUL.
const NUL: char = '\u{10FFFE}';

/// Writes rows, given as JSON.
const INSERT: &str = "INSERT INTO attempt SELECT * FROM json_populate_recordset(NULL::attempt, $1::text::json)";
/// Writes all that can change of the rows that are there, given as JSON.
const REPLACE: &str =
    "UPDATE attempt SET (state, task, alias, video_url, error, polls, answered_us, seen_us, seen_percent, ended_us,
             file, sha256, bytes, fetched_us, fetched_by, declared, declared_us, billed, billed_source, billed_us,
             exec_us, exec_error, exec_line, keeper, version, was_forgotten)
         = (new.state, new.task, new.alias, new.video_url, new.error, new.polls, new.answered_us, new.seen_us,
             new.seen_percent, new.ended_us, new.file, new.sha256, new.bytes, new.fetched_us, new.fetched_by,
             new.declared, new.declared_us, new.billed, new.billed_source, new.billed_us, new.exec_us, new.exec_error,
             new.exec_line, new.keeper, new.version, new.was_forgotten)
         FROM json_populate_recordset(NULL::attempt, $1::text::json) AS new WHERE attempt.id = new.id";

/// A row with what several runners need besides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) stored: Stored,
    /// The batch, by its number.
    pub(super) batch: i64,
    /// Who sent it, and who looks after its task now.
    pub(super) runner: Option<i64>,
    pub(super) keeper: Option<i64>,
    /// How often it was written: whoever knows a higher number knows something that the database has forgotten.
    pub(super) version: i64,
    pub(super) was_forgotten: bool,
}

impl Row {
    /// A new one.
    pub(super) fn new(attempt: &Attempt, batch: i64, runner: Option<i64>) -> Self {
        Self { stored: attempt.into(), batch, runner, keeper: runner, version: 1, was_forgotten: false }
    }

    /// One of another ledger, which nobody here has sent.
    pub(super) fn carried(stored: Stored, batch: i64) -> Self {
        Self { stored, batch, runner: None, keeper: None, version: 1, was_forgotten: false }
    }

    pub(super) fn attempt(&self) -> Result<Attempt, PostgresError> {
        Ok(self.stored.clone().try_into()?)
    }
}

/// Attempts, as a question selects them: `… FROM attempt …`, each with what was asked for besides.
pub(super) fn read_row(text: &str) -> Result<Row, PostgresError> {
    serde_json::from_str(&with_nul(text))
        .map_err(|error| PostgresError::Unreadable(crate::ledger::stored::Unreadable::row(text, &error)))
}

/// These attempts, locked until the end of the transaction, in an order that all transactions keep.
pub(super) async fn locked(
    transaction: &Transaction<'_>,
    ids: &[AttemptId],
) -> Result<BTreeMap<AttemptId, Row>, PostgresError> {
    let sql = "SELECT row_to_json(attempt)::text FROM attempt WHERE id = ANY($1) ORDER BY id FOR UPDATE";
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let rows = transaction.query_typed(sql, &[(&ids, Type::INT8_ARRAY)]).await?;
    rows.iter()
        .map(|row| {
            let row = read_row(row.try_get(0)?)?;
            Ok((AttemptId(row.stored.id), row))
        })
        .collect()
}

/// Writes new ones.
pub(super) async fn insert(transaction: &Transaction<'_>, rows: &[&Row]) -> Result<(), PostgresError> {
    transaction.execute_typed(INSERT, &[(&as_json(rows), Type::TEXT)]).await?;
    Ok(())
}

/// Writes new ones together with the commit.
pub(super) fn insert_last(transaction: &Transaction<'_>, rows: &[&Row]) {
    transaction.execute_last(INSERT, as_json(rows));
}

/// Writes the ones that are there anew: all that can change of an attempt.
pub(super) async fn replace(transaction: &Transaction<'_>, rows: &[&Row]) -> Result<(), PostgresError> {
    transaction.execute_typed(REPLACE, &[(&as_json(rows), Type::TEXT)]).await?;
    Ok(())
}

/// Writes the ones that are there anew, together with the commit.
pub(super) fn replace_last(transaction: &Transaction<'_>, rows: &[&Row]) {
    transaction.execute_last(REPLACE, as_json(rows));
}

/// JSON that PostgreSQL takes.
pub(super) fn as_json(rows: &[&Row]) -> String {
    // Rows of texts and numbers: there is nothing in them that JSON can't say.
    without_nul(serde_json::to_string(rows).unwrap_or_default())
}

/// In JSON, a NUL is `\u0000` behind an even number of backslashes.
fn without_nul(json: String) -> String {
    if !json.contains("\\u0000") {
        return json;
    }
    let mut plain = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        if rest[at..].starts_with("\\u0000") {
            plain.push(NUL);
            rest = &rest[at + 6..];
        } else {
            // An escape of two characters at least; the second may be a backslash itself.
            let end = at + 1 + rest[at + 1..].chars().next().map_or(0, char::len_utf8);
            plain.push_str(&rest[at..end]);
            rest = &rest[end..];
        }
    }
    plain + rest
}

fn with_nul(json: &str) -> std::borrow::Cow<'_, str> {
    if json.contains(NUL) { json.replace(NUL, "\\u0000").into() } else { json.into() }
}

/// A text that PostgreSQL takes, and back again.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{10FFFE}")
}

pub(super) fn restored(text: String) -> String {
    if text.contains(NUL) { text.replace(NUL, "\0") } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is in a text, it comes back, and no NUL goes out.
        #[test]
        fn no_nul_is_lost_on_its_way(text in "([a\\\\\"\0]|u0000|\\\\u0000){0,12}") {
            let json = serde_json::json!([text]).to_string();
            let plain = without_nul(json.clone());
            prop_assert!(!serde_json::from_str::<Vec<String>>(&plain).expect("JSON")[0].contains('\0'));
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&with_nul(&plain)).expect("JSON")[0].clone(), text.clone());
            prop_assert_eq!(restored(storable(&text)), text);
        }
    }
}
