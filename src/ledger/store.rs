//! The SQL: writes intents and events, and reads attempts back.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::open::{OpenError, open_to_read, store_error};
use super::schema::Kind;
use super::{Event, Intent, LedgerError, books, purchases};
use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, Charging, Fingerprint, History, JobId, OutputPath,
    ServiceError, Sighting, TaskId, TaskNames, Usd, VideoFile,
};

/// Everything that a ledger file knows of a batch; nothing at all if there is no file.
pub fn read_history(path: &Path, kind: Kind, batch: &BatchKey) -> Result<History, OpenError> {
    let Some(connection) = open_to_read(path, kind)? else { return Ok(History::default()) };
    history(&connection, batch).map_err(|error| store_error(path, error))
}

pub(super) fn intend(connection: &Connection, intent: &Intent, now: Timestamp) -> Result<AttemptId, LedgerError> {
    for cap in &intent.caps {
        let used = books::used(connection, cap.since)?;
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

/// Writes the task that the service made, without a second name that is another's.
pub(super) fn accept(
    connection: &Connection,
    attempt: AttemptId,
    task: TaskNames,
    now: Timestamp,
) -> Result<TaskNames, LedgerError> {
    let names = purchases::claim_task(connection, attempt, task)?;
    let after = Event::Accepted(names.clone()).after(state_of(connection, attempt)?)?.name();
    let alias = names.alias.as_ref().map(TaskId::as_str);
    // The story of a doubt that another run put it in meanwhile is over.
    let sql = "UPDATE attempt SET state = ?2, task = ?3, alias = ?4, error = NULL, answered_us = ?5 WHERE id = ?1";
    let now = now.as_microsecond();
    connection.prepare_cached(sql)?.execute(params![attempt.0, after, names.id.as_str(), alias, now])?;
    Ok(names)
}

fn state_of(connection: &Connection, attempt: AttemptId) -> rusqlite::Result<AttemptState> {
    connection.prepare_cached("SELECT state FROM attempt WHERE id = ?1")?.query_row([attempt.0], |row| {
        let name: String = row.get("state")?;
        AttemptState::named(&name).ok_or_else(|| unreadable(row, "state", format!("unknown state {name}")))
    })
}

/// The code of a task that a person gave up.
const GIVEN_UP: &str = "given_up";

pub(super) fn record(
    connection: &Connection,
    attempt: AttemptId,
    event: &Event,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let after = event.after(state_of(connection, attempt)?)?.name();
    let (at, now) = (now, now.as_microsecond());
    match event {
        Event::Accepted(task) => drop(accept(connection, attempt, task.clone(), at)?),
        Event::Withdrawn => {
            let sql = "UPDATE attempt SET state = ?2, error = NULL WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, after])?;
        }
        Event::Denied => {
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
            let task = purchases::claim_task(connection, attempt, task.clone())?;
            let alias = task.alias.as_ref().map(TaskId::as_str);
            // When it was answered stays unknown, and the story of the doubt is over.
            let sql =
                "UPDATE attempt SET state = ?2, task = ?3, alias = ?4, error = NULL, answered_us = NULL WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, task.id.as_str(), alias])?;
        }
        Event::AlsoNamed(alias) => {
            purchases::claim_name(connection, attempt, alias)?;
            // One that is there already stays: it may be the only one that the service takes.
            let sql = "UPDATE attempt SET alias = coalesce(alias, ?2) WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, alias.as_str()])?;
        }
        Event::GivenUp => {
            let error = ServiceError {
                message: "a person gave its task up: it never ended".to_owned(),
                code: Some(GIVEN_UP.to_owned()),
                ..ServiceError::default()
            };
            let sql = "UPDATE attempt SET state = ?2, error = ?3 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, error_text(&error)])?;
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
        Event::Failed { error, ended_at, polls } | Event::Disowned { error, ended_at, polls } => {
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

/// The columns of an attempt, as [`attempt`] reads them.
pub(super) const ATTEMPT: &str = "attempt.id, job, fingerprint, request, model, price_micros, charging, typical_min_s,
    typical_max_s, service, key, state, task, video_url, error, polls, intended_us, answered_us, seen_us, seen_percent,
    ended_us, file, sha256, bytes, fetched_us, alias";

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
pub(super) fn attempt(row: &Row<'_>, before: Option<&Account>) -> rusqlite::Result<Attempt> {
    let state: String = row.get("state")?;
    let charging: String = row.get("charging")?;
    let time =
        |column: &str, micros: i64| Timestamp::from_microsecond(micros).map_err(|error| unreadable(row, column, error));
    let optional_time =
        |column: &str| row.get::<_, Option<i64>>(column)?.map(|micros| time(column, micros)).transpose();
    let error: Option<String> = row.get("error")?;
    let (service, key) = (row.get_ref("service")?.as_str()?, row.get_ref("key")?.as_str()?);
    let account = match before {
        Some(before) if &*before.service == service && &*before.key == key => before.clone(),
        _ => Account { service: service.into(), key: key.into() },
    };
    Ok(Attempt {
        id: AttemptId(row.get("id")?),
        job: JobId::new(row.get::<_, String>("job")?).map_err(|error| unreadable(row, "job", error))?,
        fingerprint: Fingerprint::stored(row.get("fingerprint")?),
        request: row.get("request")?,
        model: row.get("model")?,
        price: Usd::from_micros(row.get("price_micros")?),
        charging: charging_named(&charging)
            .ok_or_else(|| unreadable(row, "charging", format!("unknown charging {charging}")))?,
        typical_s: (row.get("typical_min_s")?, row.get("typical_max_s")?),
        account,
        state: AttemptState::named(&state).ok_or_else(|| unreadable(row, "state", format!("unknown state {state}")))?,
        task: task_names(row)?,
        video_url: row.get("video_url")?,
        error: error.map(|text| Box::new(error_of(text))),
        polls: row.get("polls")?,
        intended_at: time("intended_us", row.get("intended_us")?)?,
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

fn task_names(row: &Row<'_>) -> rusqlite::Result<Option<TaskNames>> {
    let name = |column: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(column)?.and_then(TaskId::new));
    let (id, alias) = (name("task")?, name("alias")?);
    Ok(id.map(|id| TaskNames { id, alias }))
}

/// What the service said of a failure. Whatever it said must not keep this attempt, or any other, from being read: what
/// can't be taken apart is kept as the text that it is.
fn error_of(text: String) -> ServiceError {
    serde_json::from_str(&text).unwrap_or_else(|_| ServiceError {
        message: "what was written down of the error can't be read".to_owned(),
        code: None,
        raw: text.into(),
    })
}

/// The video on this machine. Where the row says nothing that could be one, it is fetched again, which costs nothing.
fn video_file(row: &Row<'_>) -> rusqlite::Result<Option<VideoFile>> {
    let (path, sha256): (Option<String>, Option<String>) = (row.get("file")?, row.get("sha256")?);
    let bytes = row.get::<_, Option<i64>>("bytes")?.and_then(|bytes| u64::try_from(bytes).ok());
    let path = path.and_then(|path| OutputPath::stored(&path).ok());
    Ok(path.zip(sha256).zip(bytes).map(|((path, sha256), bytes)| VideoFile { path, sha256, bytes }))
}

/// A value of our own that makes no sense: the file was changed by somebody else, and guessing would cost money.
pub(super) fn unreadable(
    row: &Row<'_>,
    column: &str,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    let index = row.as_ref().column_index(column).unwrap_or_default();
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, error.into())
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

pub(super) fn charging_named(name: &str) -> Option<Charging> {
    [Charging::AtSubmission, Charging::Undocumented].into_iter().find(|charging| charging_name(*charging) == name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::ledger::open;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from)
        ];
        leaf.prop_recursive(6, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map(".{0,8}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// JSON in so many lists.
    fn deep(depth: usize) -> Value {
        (0..depth).fold(json!("in the middle"), |inner, _| json!([inner]))
    }

    fn any_error() -> impl Strategy<Value = ServiceError> {
        let raw = prop_oneof![4 => any_json(), 1 => (100..140_usize).prop_map(deep)];
        (".*", proptest::option::of(".*"), raw).prop_map(|(message, code, raw)| ServiceError { message, code, raw })
    }

    /// The ways of an attempt that write what came from outside.
    fn any_life() -> impl Strategy<Value = Vec<Event>> {
        let name = || ".*[a-z]".prop_map(|id| TaskId::new(id).expect("an id"));
        let task = move || (name(), proptest::option::of(name())).prop_map(|(id, alias)| TaskNames { id, alias });
        let ended_at = Timestamp::UNIX_EPOCH;
        prop_oneof![
            any_error().prop_map(|error| vec![Event::Refused(error)]),
            any_error().prop_map(|error| vec![Event::Doubted(error)]),
            (any_error(), task()).prop_map(|(error, task)| vec![Event::Doubted(error), Event::Found(task)]),
            (any_error(), task()).prop_map(|(error, task)| vec![Event::Doubted(error), Event::Accepted(task)]),
            (task(), proptest::option::of(any::<u8>())).prop_map(|(task, percent)| vec![
                Event::Accepted(task),
                Event::Started { percent },
                Event::Left { polls: 1 }
            ]),
            (task(), name()).prop_map(|(task, name)| vec![
                Event::Accepted(task),
                Event::AlsoNamed(name),
                Event::GivenUp
            ]),
            (task(), any_error()).prop_map(move |(task, error)| vec![
                Event::Accepted(task),
                Event::Failed { error, ended_at, polls: 1 }
            ]),
            (task(), ".*", ".*").prop_map(move |(task, url, other)| vec![
                Event::Accepted(task),
                Event::Completed { video_url: url, ended_at, polls: 1 },
                Event::Relinked { video_url: other },
            ]),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// One answer of the service must never make a ledger unreadable, whatever is in it.
        #[test]
        fn whatever_the_service_says_is_read_back_and_keeps_nothing_else_from_being_read(
            lives in proptest::collection::vec(any_life(), 1..12),
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let connection = open(&folder.path().join("ledger.db"), Kind::Real).expect("a ledger");
            let now = Timestamp::UNIX_EPOCH;
            for (number, life) in lives.iter().enumerate() {
                let attempt = intend(&connection, &Intent::of_job(&format!("j{number}")), now).expect("an intent");
                for event in life {
                    match record(&connection, attempt, event, now) {
                        // Two of these tasks have the same name by chance.
                        Err(LedgerError::TaskTaken { .. }) => break,
                        recorded => recorded.expect("recorded"),
                    }
                }
            }
            let read = history(&connection, &Intent::of_job("j0").batch).expect("every attempt can be read");
            prop_assert_eq!(read.attempts().count(), lives.len());
            for (attempt, life) in read.attempts().zip(&lives) {
                if let [Event::Refused(error) | Event::Doubted(error)] | [_, Event::Failed { error, .. }] = life.as_slice()
                    && let Some(told) = &attempt.error
                {
                    let is_kept = **told == *error || told.raw.as_str().is_some_and(|raw| raw.contains("in the middle"));
                    prop_assert!(is_kept, "{:?} became {:?}", error, told);
                }
            }
        }
    }
}
