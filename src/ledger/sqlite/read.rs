//! Attempts, read back.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, RowIndex, params};

use super::checksum::{BatchRow, Checksum, damaged, verified_batch};
use super::columns::{ATTEMPT, ATTEMPT_COLUMNS};
use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, Billed, Declaration, Declared, Digest, Executed, Fingerprint,
    History, JobId, Labels, OutputPath, Particulars, Sighting, TaskId, TaskNames, Usd,
};
use crate::ledger::stored::{billed_named, charging_named, error_of, video_file};

/// The index of a column in [`ATTEMPT_COLUMNS`]. To look it up by name, SQLite would compare it with all before it, for each row.
const fn place(name: &str) -> usize {
    let mut place = 0;
    loop {
        let (column, name) = (ATTEMPT_COLUMNS[place].as_bytes(), name.as_bytes());
        let (mut at, mut same) = (0, column.len() == name.len());
        while same && at < name.len() {
            same = column[at] == name[at];
            at += 1;
        }
        if same {
            return place;
        }
        place += 1;
    }
}

/// The place of a column, found when this is compiled; a name that is none is not compiled.
macro_rules! at {
    ($name:literal) => {
        const { place($name) }
    };
}

/// The batches, in the order in which they were created.
pub(super) fn keys(connection: &Connection) -> rusqlite::Result<Vec<BatchKey>> {
    Ok(batches(connection)?.into_iter().map(|(_, key)| key).collect())
}

/// The batches with their numbers, in the order in which they were created.
pub(super) fn batches(connection: &Connection) -> rusqlite::Result<Vec<(i64, BatchKey)>> {
    let mut statement = connection.prepare("SELECT id, name, batch FROM batch ORDER BY id")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, BatchKey { name: row.get(1)?, batch: row.get(2)? })))?;
    rows.collect()
}

/// Every attempt of a batch, oldest first, verified against the checksums. Must be called in a transaction.
pub(super) fn history(connection: &Connection, batch: &BatchKey) -> rusqlite::Result<History> {
    let Some(BatchRow { id, checksum: expected, retake }) = verified_batch(connection, &batch.name, &batch.batch)?
    else {
        return Ok(History::default());
    };
    let sql = format!("SELECT {} FROM attempt WHERE batch = ?1 ORDER BY id", *ATTEMPT);
    let mut statement = connection.prepare_cached(&sql)?;
    let count = "SELECT count(*) FROM attempt WHERE batch = ?1";
    let count: u32 = connection.prepare_cached(count)?.query_row([id], |row| row.get(0))?;
    let (mut attempts, mut checksum) = (Vec::with_capacity(count as usize), Checksum::default());
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        checksum.add_attempt(row)?;
        let last: Option<&Attempt> = attempts.last();
        let attempt = attempt(row, last.map(|last| &last.account))?;
        // A checksum is of rows in any order, and the newest one decides.
        if last.is_some_and(|last| last.id >= attempt.id) {
            return Err(damaged("the attempts of the batch are out of order"));
        }
        attempts.push(attempt);
    }
    checksum.add_unsent(connection, id)?;
    checksum.expect(expected, "the attempts of the batch")?;
    let retake = retake.map(|text| serde_json::from_str(&text)).transpose();
    let retake = retake.map_err(|_| damaged("the unfinished retake can't be read"))?;
    Ok(History::new(attempts).with_unsent(unsent(connection, id)?).with_retake(retake))
}

/// The job and the state of each attempt of a batch, oldest first.
pub(super) fn states(connection: &Connection, batch: &BatchKey) -> rusqlite::Result<Vec<(JobId, AttemptState)>> {
    let sql = "SELECT job, state FROM attempt JOIN batch ON batch.id = attempt.batch
               WHERE batch.name = ?1 AND batch.batch = ?2 ORDER BY attempt.id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![batch.name, batch.batch], |row| {
        let job = JobId::new(row.get::<_, String>(0)?).map_err(|error| unreadable(row, "job", error))?;
        let state: String = row.get(1)?;
        let named = AttemptState::named(&state);
        Ok((job, named.ok_or_else(|| unreadable(row, "state", format!("unknown state {state}")))?))
    })?;
    rows.collect()
}

/// Why jobs of a batch were not sent, where that is no submission.
fn unsent(connection: &Connection, batch: i64) -> rusqlite::Result<BTreeMap<JobId, String>> {
    let mut statement = connection.prepare_cached("SELECT job, reason FROM unsent WHERE batch = ?1")?;
    let rows = statement.query_map([batch], |row| {
        let job = JobId::new(row.get::<_, String>("job")?).map_err(|error| unreadable(row, "job", error))?;
        Ok((job, row.get("reason")?))
    })?;
    rows.collect()
}

/// One attempt. Most belong to the account of the one before, and share its name.
pub(super) fn attempt(row: &Row<'_>, before: Option<&Account>) -> rusqlite::Result<Attempt> {
    let state: String = row.get(at!("state"))?;
    let charging: String = row.get(at!("charging"))?;
    let time = |column: usize, micros: i64| {
        Timestamp::from_microsecond(micros).map_err(|error| unreadable(row, column, error))
    };
    let optional_time =
        |column: usize| row.get::<_, Option<i64>>(column)?.map(|micros| time(column, micros)).transpose();
    let error: Option<String> = row.get(at!("error"))?;
    let (service, key) = (row.get_ref(at!("service"))?.as_str()?, row.get_ref(at!("key"))?.as_str()?);
    let account = match before {
        Some(before) if &*before.service == service && &*before.key == key => before.clone(),
        _ => Account { service: service.into(), key: key.into() },
    };
    Ok(Attempt {
        id: AttemptId(row.get(at!("id"))?),
        job: JobId::new(row.get::<_, String>(at!("job"))?).map_err(|error| unreadable(row, at!("job"), error))?,
        fingerprint: Fingerprint::stored(row.get(at!("fingerprint"))?),
        normalized: Fingerprint::stored(row.get(at!("normalized"))?),
        request: row.get(at!("request"))?,
        model: row.get(at!("model"))?,
        price: Usd::from_micros(row.get(at!("price_micros"))?),
        charging: charging_named(&charging)
            .ok_or_else(|| unreadable(row, at!("charging"), format!("unknown charging {charging}")))?,
        typical_s: (row.get(at!("typical_min_s"))?, row.get(at!("typical_max_s"))?),
        account,
        state: AttemptState::named(&state)
            .ok_or_else(|| unreadable(row, at!("state"), format!("unknown state {state}")))?,
        task: task_names(row)?,
        video_url: row.get(at!("video_url"))?,
        error: error.map(|text| Box::new(error_of(text))),
        polls: row.get(at!("polls"))?,
        intended_at: time(at!("intended_us"), row.get(at!("intended_us"))?)?,
        answered_at: optional_time(at!("answered_us"))?,
        seen: match optional_time(at!("seen_us"))? {
            Some(at) => Some(Sighting { at, percent: row.get(at!("seen_percent"))? }),
            None => None,
        },
        ended_at: optional_time(at!("ended_us"))?,
        file: video_file(row.get(at!("file"))?, row.get(at!("sha256"))?, row.get(at!("bytes"))?).map(Box::new),
        fetched_at: optional_time(at!("fetched_us"))?,
        particulars: particulars(row)?,
    })
}

/// What is known besides; of most attempts, nothing is.
fn particulars(row: &Row<'_>) -> rusqlite::Result<Particulars> {
    let time = |column: usize| {
        let micros = row.get::<_, Option<i64>>(column)?;
        micros.map(|at| Timestamp::from_microsecond(at).map_err(|error| unreadable(row, column, error))).transpose()
    };
    let text = |column: usize| row.get::<_, Option<String>>(column);
    let declared = text(at!("declared"))?.map(|name| {
        Declaration::named(&name).ok_or_else(|| unreadable(row, at!("declared"), format!("unknown declaration {name}")))
    });
    let billed = text(at!("billed"))?.map(|name| {
        billed_named(&name).ok_or_else(|| unreadable(row, at!("billed"), format!("unknown word of a bill {name}")))
    });
    let bought_as =
        text(at!("bought_as"))?.map(|id| JobId::new(id).map_err(|error| unreadable(row, at!("bought_as"), error)));
    Ok(Particulars {
        labels: labels(row, at!("labels"))?,
        // Where it makes no sense, the video goes where it goes without it.
        output: text(at!("output"))?.and_then(|path| OutputPath::stored(&path).ok()).map(Box::new),
        approval: text(at!("approval"))?.map(|hex| Box::new(Digest::stored(hex))),
        bought_as: bought_as.transpose()?.map(Box::new),
        declared: declared.transpose()?.zip(time(at!("declared_us"))?).map(|(what, at)| Declared { what, at }),
        picture: text(at!("picture"))?.map(String::into_boxed_str),
        executed: match time(at!("exec_us"))? {
            Some(at) => Some(Box::new(Executed { at, error: text(at!("exec_error"))?, line: text(at!("exec_line"))? })),
            None => None,
        },
        billed: match (billed.transpose()?, text(at!("billed_source"))?, time(at!("billed_us"))?) {
            (Some(is_charged), Some(source), Some(at)) => Some(Box::new(Billed { is_charged, source, at })),
            _ => None,
        },
        fetched_by: text(at!("fetched_by"))?.map(String::into_boxed_str),
    })
}

/// The labels of an attempt.
pub(super) fn labels(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Labels> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(Labels::new()) };
    serde_json::from_str(text).map_err(|error| unreadable(row, column, error))
}

fn task_names(row: &Row<'_>) -> rusqlite::Result<Option<TaskNames>> {
    let name = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(column)?.and_then(TaskId::new));
    let (id, alias) = (name(at!("task"))?, name(at!("alias"))?);
    Ok(id.map(|id| TaskNames { id, alias }))
}

/// A value of our own that makes no sense: the file was changed by somebody else, and guessing would cost money.
pub(super) fn unreadable(
    row: &Row<'_>,
    column: impl RowIndex,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    let index = column.idx(row.as_ref()).unwrap_or_default();
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sqlite::limits::owners_word;
    use crate::ledger::sqlite::open::open;
    use crate::ledger::sqlite::schema::Kind;
    use crate::ledger::sqlite::write::intend;
    use crate::ledger::suite::store::intent_of;

    /// A value that makes no sense is told with the column that it stands in, and with no other.
    #[test]
    fn what_cannot_be_read_is_told_by_its_own_column() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut connection = open(&folder.path().join("ledger.db"), Kind::Real).expect("a ledger");
        let batch = BatchKey { name: "n".into(), batch: String::new() };
        let now = Timestamp::UNIX_EPOCH;
        let owner = owners_word(&connection, now).expect("the owner's word");
        intend(&connection, &batch, &intent_of("a"), &owner, now).expect("an intent");
        for column in [
            "job",
            "charging",
            "state",
            "intended_us",
            "answered_us",
            "seen_us",
            "ended_us",
            "fetched_us",
            "labels",
            "bought_as",
            "declared",
            "declared_us",
            "billed",
            "billed_us",
            "exec_us",
        ] {
            let nonsense = if column.ends_with("_us") { "9223372036854775807" } else { "'/'" };
            let changed = connection.transaction().expect("a transaction");
            changed.execute(&format!("UPDATE attempt SET {column} = {nonsense}"), []).expect("changed");
            let mut statement = changed.prepare(&format!("SELECT {} FROM attempt", *ATTEMPT)).expect("a question");
            let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
            let error = statement.query_row([], |row| attempt(row, None)).expect_err(column);
            let rusqlite::Error::FromSqlConversionFailure(index, ..) = error else { panic!("{column}: {error}") };
            assert_eq!(names[index], column, "{error}");
        }
    }
}
