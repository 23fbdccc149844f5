//! The SQL: writes intents and events, and reads attempts back.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::schema::{Kind, OpenError, open_to_read};
use super::{Event, Intent, LedgerError};
use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, Charging, Fingerprint, History, JobId, OutputPath,
    ServiceError, Sighting, TaskId, Usd, VideoFile,
};

/// Everything that a ledger file knows of a batch; nothing at all if there is no file.
pub fn read_history(path: &Path, kind: Kind, batch: &BatchKey) -> Result<History, OpenError> {
    let Some(connection) = open_to_read(path, kind)? else { return Ok(History::default()) };
    history(&connection, batch).map_err(|source| OpenError::Store { path: path.to_owned(), source })
}

pub(super) fn intend(connection: &Connection, intent: &Intent, now: Timestamp) -> Result<AttemptId, LedgerError> {
    for cap in &intent.caps {
        let used = used(connection, cap.since)?;
        if used + intent.price > cap.limit {
            return Err(LedgerError::OverCap { name: cap.name, limit: cap.limit, used });
        }
    }
    claim(connection, intent)?;
    connection
        .prepare_cached("INSERT INTO batch (name, batch) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute(params![intent.batch.name, intent.batch.batch])?;
    let insert = "INSERT INTO attempt (batch, job, fingerprint, request, model, price_micros, charging,
             typical_min_s, typical_max_s, service, key, state, intended_us)
         SELECT id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14 FROM batch WHERE name = ?1 AND batch = ?2";
    connection.prepare_cached(insert)?.execute(params![
        intent.batch.name,
        intent.batch.batch,
        intent.job.as_str(),
        intent.fingerprint.as_str(),
        intent.request,
        intent.model,
        intent.price.micros(),
        charging_name(intent.charging),
        intent.typical_s.0,
        intent.typical_s.1,
        intent.account.service,
        intent.account.key,
        AttemptState::Intended.name(),
        now.as_microsecond(),
    ])?;
    Ok(AttemptId(connection.last_insert_rowid()))
}

/// Refuses a job of which an attempt is open (in doubt, or at the service with the same request), or of which an attempt
/// was made since it was found to be due. The lock and the plan keep a run from coming here; this holds where a lock does
/// not, as on some network file systems.
fn claim(connection: &Connection, intent: &Intent) -> Result<(), LedgerError> {
    let sql = "SELECT count(*) FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE name = ?1 AND batch.batch = ?2 AND job = ?3
         AND (state IN ('intended', 'in_doubt') OR state IN ('queued', 'in_progress') AND fingerprint = ?4
              OR attempt.id > ?5 AND state NOT IN ('void', 'rejected'))";
    let known = intent.known.map_or(0, |known| known.0);
    let key = params![intent.batch.name, intent.batch.batch, intent.job.as_str(), intent.fingerprint.as_str(), known];
    let open: i64 = connection.prepare_cached(sql)?.query_row(key, |row| row.get(0))?;
    if open > 0 { Err(LedgerError::Claimed(intent.job.clone())) } else { Ok(()) }
}

pub(super) fn record(
    connection: &Connection,
    attempt: AttemptId,
    event: &Event,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let before: String = connection
        .prepare_cached("SELECT state FROM attempt WHERE id = ?1")?
        .query_row([attempt.0], |row| row.get(0))?;
    let before = AttemptState::named(&before).ok_or_else(|| unreadable(0, format!("unknown state {before}")))?;
    let after = event.after(before)?.name();
    let now = now.as_microsecond();
    match event {
        Event::Withdrawn | Event::Denied => {
            let sql = "UPDATE attempt SET state = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, after])?;
        }
        Event::Started { percent } => {
            // The first sighting says most about when generation began.
            let sql = "UPDATE attempt SET state = ?2, seen_us = coalesce(seen_us, ?3),
                 seen_percent = CASE WHEN seen_us IS NULL THEN ?4 ELSE seen_percent END WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, now, percent])?;
        }
        Event::Refused(error) | Event::Doubted(error) => {
            let sql = "UPDATE attempt SET state = ?2, error = ?3, answered_us = ?4 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, error_text(error), now])?;
        }
        Event::Found(task) => {
            // When it was answered stays unknown, and the story of the doubt is over.
            let sql = "UPDATE attempt SET state = ?2, task = ?3, error = NULL, answered_us = NULL WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, task.as_str()])?;
        }
        Event::Accepted(task) => {
            let sql = "UPDATE attempt SET state = ?2, task = ?3, answered_us = ?4 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, task.as_str(), now])?;
        }
        Event::Left { polls } => {
            let sql = "UPDATE attempt SET polls = polls + ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, polls])?;
        }
        Event::Completed { video_url, ended_at, polls } => {
            let sql = "UPDATE attempt SET state = ?2, video_url = ?3, ended_us = ?4, polls = polls + ?5 WHERE id = ?1";
            let ended = ended_at.as_microsecond();
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, video_url, ended, polls])?;
        }
        Event::Failed { error, ended_at, polls } => {
            let sql = "UPDATE attempt SET state = ?2, error = ?3, ended_us = ?4, polls = polls + ?5 WHERE id = ?1";
            let ended = ended_at.as_microsecond();
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, error_text(error), ended, polls])?;
        }
        Event::Relinked { video_url } => {
            let sql = "UPDATE attempt SET video_url = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, video_url])?;
        }
        Event::Fetched(VideoFile { path, sha256, bytes }) => {
            let sql = "UPDATE attempt SET file = ?2, sha256 = ?3, bytes = ?4, fetched_us = coalesce(fetched_us, ?5)
                 WHERE id = ?1";
            // No file system has files of more than 2^63 bytes.
            let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX);
            connection.prepare_cached(sql)?.execute(params![attempt.0, path.as_str(), sha256, bytes, now])?;
        }
        Event::Moved(path) => {
            let sql = "UPDATE attempt SET file = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, path.as_str()])?;
        }
    }
    Ok(())
}

pub(super) fn conclude(connection: &Connection, batch: &BatchKey) -> Result<usize, LedgerError> {
    let error =
        ServiceError { message: "the run ended between sending and the answer".to_owned(), ..ServiceError::default() };
    let doubted = Event::Doubted(error.clone()).after(AttemptState::Intended)?;
    let sql = "UPDATE attempt SET state = ?3, error = ?4 WHERE state = ?5
         AND batch = (SELECT id FROM batch WHERE name = ?1 AND batch = ?2)";
    let intended = AttemptState::Intended.name();
    Ok(connection.prepare_cached(sql)?.execute(params![
        batch.name,
        batch.batch,
        doubted.name(),
        error_text(&error),
        intended
    ])?)
}

pub(super) fn adopt(connection: &Connection, batch: &BatchKey, account: &Account) -> Result<(), LedgerError> {
    let sql =
        "UPDATE attempt SET service = ?3, key = ?4 WHERE state IN ('queued', 'in_progress', 'in_doubt', 'completed')
         AND batch = (SELECT id FROM batch WHERE name = ?1 AND batch = ?2)";
    connection.prepare_cached(sql)?.execute(params![batch.name, batch.batch, account.service, account.key])?;
    Ok(())
}

/// What all batches spent since a moment, or may have spent: everything but what is known to have bought nothing.
fn used(connection: &Connection, since: Timestamp) -> rusqlite::Result<Usd> {
    let sql = "SELECT coalesce(sum(price_micros), 0) FROM attempt
         WHERE intended_us >= ?1 AND state NOT IN ('void', 'rejected')";
    let micros = connection.prepare_cached(sql)?.query_row([since.as_microsecond()], |row| row.get(0))?;
    Ok(Usd::from_micros(micros))
}

/// What all batches of a ledger file spent since a moment, or may have spent.
pub fn used_since(path: &Path, kind: Kind, since: Timestamp) -> Result<Usd, OpenError> {
    let Some(connection) = open_to_read(path, kind)? else { return Ok(Usd::ZERO) };
    used(&connection, since).map_err(|source| OpenError::Store { path: path.to_owned(), source })
}

/// What is open in another batch of the same name.
#[derive(Clone, Debug)]
pub struct OpenElsewhere {
    /// The batch.
    pub batch: BatchKey,
    /// Tasks at the service.
    pub outstanding: u32,
    /// Attempts in doubt.
    pub doubtful: u32,
    /// The price of both.
    pub price: Usd,
}

fn open_elsewhere(connection: &Connection, batch: &BatchKey) -> rusqlite::Result<Vec<OpenElsewhere>> {
    let sql = "SELECT batch.batch, sum(state IN ('queued', 'in_progress')), sum(state IN ('intended', 'in_doubt')),
             sum(price_micros)
         FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE name = ?1 AND batch.batch <> ?2 AND state IN ('queued', 'in_progress', 'intended', 'in_doubt')
         GROUP BY batch.batch ORDER BY batch.batch";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![batch.name, batch.batch], |row| {
        Ok(OpenElsewhere {
            batch: BatchKey { name: batch.name.clone(), batch: row.get(0)? },
            outstanding: row.get(1)?,
            doubtful: row.get(2)?,
            price: Usd::from_micros(row.get(3)?),
        })
    })?;
    rows.collect()
}

/// What is open in other batches of the same name, in a ledger file.
pub fn read_open_elsewhere(path: &Path, kind: Kind, batch: &BatchKey) -> Result<Vec<OpenElsewhere>, OpenError> {
    let Some(connection) = open_to_read(path, kind)? else { return Ok(Vec::new()) };
    open_elsewhere(&connection, batch).map_err(|source| OpenError::Store { path: path.to_owned(), source })
}

/// One attempt as it counts in the books.
#[derive(Clone, Debug)]
pub struct Spending {
    /// The batch.
    pub batch: BatchKey,
    /// The attempt.
    pub attempt: Attempt,
}

/// Every attempt of every batch of a ledger file since a moment, oldest first; none if there is no file.
pub fn read_spending(path: &Path, kind: Kind, since: Timestamp) -> Result<Vec<Spending>, OpenError> {
    let Some(connection) = open_to_read(path, kind)? else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT {ATTEMPT}, batch.name, batch.batch AS batch_value FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE intended_us >= ?1 ORDER BY attempt.id"
    );
    let read = || -> rusqlite::Result<Vec<Spending>> {
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map([since.as_microsecond()], |row| {
            let batch = BatchKey { name: row.get("name")?, batch: row.get("batch_value")? };
            Ok(Spending { batch, attempt: attempt(row, None)? })
        })?;
        rows.collect()
    };
    read().map_err(|source| OpenError::Store { path: path.to_owned(), source })
}

/// The columns of an attempt, as [`attempt`] reads them.
const ATTEMPT: &str = "attempt.id, job, fingerprint, request, model, price_micros, charging, typical_min_s,
    typical_max_s, service, key, state, task, video_url, error, polls, intended_us, answered_us, seen_us, seen_percent,
    ended_us, file, sha256, bytes, fetched_us";

pub(super) fn history(connection: &Connection, batch: &BatchKey) -> rusqlite::Result<History> {
    let id: Option<i64> = connection
        .prepare_cached("SELECT id FROM batch WHERE name = ?1 AND batch = ?2")?
        .query_row(params![batch.name, batch.batch], |row| row.get(0))
        .optional()?;
    let Some(id) = id else { return Ok(History::default()) };
    let sql = format!("SELECT {ATTEMPT} FROM attempt WHERE batch = ?1 ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let count = "SELECT count(*) FROM attempt WHERE batch = ?1";
    let count: u32 = connection.prepare_cached(count)?.query_row([id], |row| row.get(0))?;
    let mut attempts = Vec::with_capacity(count as usize);
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let attempt = attempt(row, attempts.last().map(|last: &Attempt| &last.account))?;
        attempts.push(attempt);
    }
    Ok(History::new(attempts))
}

/// One attempt. Most belong to the account of the one before, and share its name.
fn attempt(row: &Row<'_>, before: Option<&Account>) -> rusqlite::Result<Attempt> {
    let state: String = row.get("state")?;
    let charging: String = row.get("charging")?;
    let time = |micros: i64| Timestamp::from_microsecond(micros).map_err(|error| unreadable(0, error));
    let optional_time = |column: &str| row.get::<_, Option<i64>>(column)?.map(time).transpose();
    let error: Option<String> = row.get("error")?;
    let (service, key) = (row.get_ref("service")?.as_str()?, row.get_ref("key")?.as_str()?);
    let account = match before {
        Some(before) if &*before.service == service && &*before.key == key => before.clone(),
        _ => Account { service: service.into(), key: key.into() },
    };
    Ok(Attempt {
        id: AttemptId(row.get("id")?),
        job: JobId::new(row.get::<_, String>("job")?).map_err(|error| unreadable(1, error))?,
        fingerprint: Fingerprint::stored(row.get("fingerprint")?),
        request: row.get("request")?,
        model: row.get("model")?,
        price: Usd::from_micros(row.get("price_micros")?),
        charging: charging_named(&charging).ok_or_else(|| unreadable(6, format!("unknown charging {charging}")))?,
        typical_s: (row.get("typical_min_s")?, row.get("typical_max_s")?),
        account,
        state: AttemptState::named(&state).ok_or_else(|| unreadable(9, format!("unknown state {state}")))?,
        task: row.get::<_, Option<String>>("task")?.and_then(TaskId::new),
        video_url: row.get("video_url")?,
        error: error.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| unreadable(12, error))?,
        polls: row.get("polls")?,
        intended_at: time(row.get("intended_us")?)?,
        answered_at: optional_time("answered_us")?,
        seen: match optional_time("seen_us")? {
            Some(at) => Some(Sighting { at, percent: row.get("seen_percent")? }),
            None => None,
        },
        ended_at: optional_time("ended_us")?,
        file: video_file(row)?.map(Box::new),
        fetched_at: optional_time("fetched_us")?,
    })
}

fn video_file(row: &Row<'_>) -> rusqlite::Result<Option<VideoFile>> {
    let Some(path) = row.get::<_, Option<String>>("file")? else { return Ok(None) };
    let path = OutputPath::stored(&path).map_err(|error| unreadable(13, error))?;
    let bytes = u64::try_from(row.get::<_, i64>("bytes")?).map_err(|error| unreadable(15, error))?;
    Ok(Some(VideoFile { path, sha256: row.get("sha256")?, bytes }))
}

fn unreadable(column: usize, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

fn error_text(error: &ServiceError) -> String {
    serde_json::json!(error).to_string()
}

fn charging_name(charging: Charging) -> &'static str {
    match charging {
        Charging::AtSubmission => "at-submission",
        Charging::Undocumented => "undocumented",
    }
}

fn charging_named(name: &str) -> Option<Charging> {
    [Charging::AtSubmission, Charging::Undocumented].into_iter().find(|charging| charging_name(*charging) == name)
}
