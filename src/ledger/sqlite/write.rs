//! Intents and events, written in a transaction of the caller's.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::limits::OwnersWord;
use super::read::unreadable;
use super::refused::Refused;
use super::{books, purchases};
use crate::domain::{
    Account, AttemptId, AttemptState, BatchKey, Declaration, Freeze, JobId, Move, OutputPath, ServiceError, TaskId,
    TaskNames, UnfinishedRetake, VideoFile, new_ids,
};
use crate::ledger::stored::{billed_name, charging_name, error_text, labels_text};
use crate::ledger::{Approval, Event, GIVEN_UP, Intent, LedgerError, this_machine};

/// Writes an intent, if nothing forbids it. The order of refusals is that of every store: freeze, claim, approval, purchases elsewhere,
/// limits.
pub(super) fn intend(
    connection: &Connection,
    batch: &BatchKey,
    intent: &Intent,
    owner: &OwnersWord,
    now: Timestamp,
) -> Result<AttemptId, Refused> {
    if let Some(why) = &owner.stopped {
        return Err(LedgerError::Frozen(Freeze::on_request(why.as_str())).into());
    }
    claim(connection, batch, intent)?;
    if let Some(approval) = &intent.approval {
        within_approval(connection, batch, &intent.job, approval)?;
    }
    if let Some(known) = intent.paid_elsewhere {
        let (paid, other) = purchases::paid_elsewhere(connection, batch, &intent.normalized)?;
        if let Some(other) = other.filter(|_| paid > known) {
            return Err(LedgerError::PaidElsewhere { job: intent.job.clone(), other }.into());
        }
    }
    for limit in intent.limits.iter().chain(&owner.limits).filter(|limit| limit.is_about(&intent.labels)) {
        let used = books::used(connection, limit.since, limit.label.as_ref())?;
        if used + intent.price > limit.usd {
            return Err(LedgerError::OverLimit { name: Arc::clone(&limit.name), limit: limit.usd, used }.into());
        }
    }
    ensure_batch(connection, batch)?;
    forget_why_unsent(connection, batch, &intent.job)?;
    let insert = "INSERT INTO attempt (batch, job, fingerprint, normalized, request, model, price_micros, charging,
             typical_min_s, typical_max_s, service, key, state, intended_us, labels, output, approval, picture)
         VALUES ((SELECT id FROM batch WHERE name = ?1 AND batch = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
             ?17, ?18, ?19)";
    connection.prepare_cached(insert)?.execute(params![
        batch.name,
        batch.batch,
        intent.job.as_str(),
        intent.fingerprint.as_str(),
        intent.normalized.as_str(),
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
        labels_text(&intent.labels),
        intent.output.as_ref().map(OutputPath::as_str),
        intent.approval.as_ref().map(|approval| approval.digest.as_str()),
        intent.picture,
    ])?;
    Ok(AttemptId(connection.last_insert_rowid()))
}

/// Makes the batch, if this is the first that is written of it.
fn ensure_batch(connection: &Connection, batch: &BatchKey) -> Result<(), Refused> {
    let sql = "INSERT INTO batch (name, batch) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    connection.prepare_cached(sql)?.execute(params![batch.name, batch.batch])?;
    Ok(())
}

/// Keeps why a job was not sent, in the place of what was said before.
pub(super) fn note_unsent(
    connection: &Connection,
    batch: &BatchKey,
    job: &JobId,
    reason: &str,
    now: Timestamp,
) -> Result<(), Refused> {
    ensure_batch(connection, batch)?;
    let sql = "INSERT INTO unsent SELECT id, ?3, ?4, ?5 FROM batch WHERE name = ?1 AND batch = ?2
         ON CONFLICT (batch, job) DO UPDATE SET reason = excluded.reason, at_us = excluded.at_us";
    let values = params![batch.name, batch.batch, job.as_str(), reason, now.as_microsecond()];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Forgets it, because the job is sent now.
fn forget_why_unsent(connection: &Connection, batch: &BatchKey, job: &JobId) -> Result<(), Refused> {
    let sql = "DELETE FROM unsent WHERE job = ?3
         AND batch = (SELECT id FROM batch WHERE name = ?1 AND batch = ?2)";
    connection.prepare_cached(sql)?.execute(params![batch.name, batch.batch, job.as_str()])?;
    Ok(())
}

/// Refuses a job of which an attempt is open (in doubt, or at the service with the same request), or of which an attempt
/// was made since it was found to be due. The lock and the plan keep a run from coming here; this holds where a lock does
/// not, as on some network file systems.
fn claim(connection: &Connection, batch: &BatchKey, intent: &Intent) -> Result<(), Refused> {
    let sql = "SELECT count(*) FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE name = ?1 AND batch.batch = ?2 AND job = ?3
         AND (state IN ('intended', 'in_doubt') OR state IN ('queued', 'in_progress') AND fingerprint = ?4
              OR attempt.id > ?5 AND state NOT IN ('void', 'rejected'))";
    let known = intent.known.map_or(0, |known| known.0);
    let key = params![batch.name, batch.batch, intent.job.as_str(), intent.fingerprint.as_str(), known];
    let open: i64 = connection.prepare_cached(sql)?.query_row(key, |row| row.get(0))?;
    if open > 0 { Err(LedgerError::Claimed(intent.job.clone()).into()) } else { Ok(()) }
}

/// Refuses what an approved plan has bought as often as it may: a run that is started again goes on with it, and does not begin anew.
fn within_approval(connection: &Connection, batch: &BatchKey, job: &JobId, approval: &Approval) -> Result<(), Refused> {
    let sql = "SELECT count(*) FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE name = ?1 AND batch.batch = ?2 AND job = ?3 AND approval = ?4
         AND (state NOT IN ('void', 'rejected') OR declared = 'server_error')";
    let key = params![batch.name, batch.batch, job.as_str(), approval.digest.as_str()];
    let bought: u32 = connection.prepare_cached(sql)?.query_row(key, |row| row.get(0))?;
    if bought < approval.most { Ok(()) } else { Err(LedgerError::Approved(job.clone()).into()) }
}

/// Writes the task that the service made, without a second name that is another's.
pub(super) fn accept(
    connection: &Connection,
    attempt: AttemptId,
    task: TaskNames,
    now: Timestamp,
) -> Result<TaskNames, Refused> {
    if let Some(names) = recorded_task(connection, attempt, &task.id)? {
        return Ok(names);
    }
    let names = purchases::claim_task(connection, attempt, task)?;
    let after = Event::Accepted(names.clone()).after(state_of(connection, attempt)?).map_err(LedgerError::from)?.name();
    let alias = names.alias.as_ref().map(TaskId::as_str);
    // The story of a doubt that another run put it in meanwhile is over.
    let sql = "UPDATE attempt SET state = ?2, task = ?3, alias = ?4, error = NULL, answered_us = ?5 WHERE id = ?1";
    let now = now.as_microsecond();
    connection.prepare_cached(sql)?.execute(params![attempt.0, after, names.id.as_str(), alias, now])?;
    Ok(names)
}

/// The names of a task that an earlier call recorded, whose response was lost.
fn recorded_task(connection: &Connection, attempt: AttemptId, task: &TaskId) -> rusqlite::Result<Option<TaskNames>> {
    let sql = "SELECT alias FROM attempt WHERE id = ?1 AND task = ?2";
    let recorded = connection.prepare_cached(sql)?.query_row(params![attempt.0, task.as_str()], |row| {
        let alias = row.get::<_, Option<String>>(0)?.and_then(TaskId::new);
        Ok(TaskNames { id: task.clone(), alias })
    });
    recorded.optional()
}

fn state_of(connection: &Connection, attempt: AttemptId) -> rusqlite::Result<AttemptState> {
    connection.prepare_cached("SELECT state FROM attempt WHERE id = ?1")?.query_row([attempt.0], |row| {
        let name: String = row.get(0)?;
        AttemptState::named(&name).ok_or_else(|| unreadable(row, 0, format!("unknown state {name}")))
    })
}

/// Writes what happened to an attempt.
pub(super) fn record(
    connection: &Connection,
    attempt: AttemptId,
    event: &Event,
    now: Timestamp,
) -> Result<(), Refused> {
    let after = event.after(state_of(connection, attempt)?).map_err(LedgerError::from)?.name();
    let (at, now) = (now, now.as_microsecond());
    match event {
        Event::Accepted(task) => drop(accept(connection, attempt, task.clone(), at)?),
        Event::Withdrawn => {
            let sql = "UPDATE attempt SET state = ?2, error = NULL WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, after])?;
        }
        Event::Denied | Event::ServerError => {
            let sql =
                "UPDATE attempt SET state = ?2, declared = ?3, declared_us = ?4, error = CASE WHEN ?5 THEN error END
                 WHERE id = ?1";
            let is_denied = matches!(event, Event::Denied);
            let declared = if is_denied { Declaration::NeverCreated } else { Declaration::ServerError }.name();
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, declared, now, is_denied])?;
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
                "UPDATE attempt SET state = ?2, task = ?3, alias = ?4, error = NULL, answered_us = NULL, declared = ?5,
                     declared_us = ?6 WHERE id = ?1";
            let (id, declared) = (task.id.as_str(), Declaration::Found.name());
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, id, alias, declared, now])?;
        }
        Event::AlsoNamed(alias) => {
            purchases::claim_name(connection, attempt, alias)?;
            // One that is there already stays: it may be the only one that the service takes.
            let sql = "UPDATE attempt SET alias = coalesce(alias, ?2) WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, alias.as_str()])?;
        }
        Event::GivenUp => {
            let error = ServiceError::plain("its task was abandoned, because it never ended", GIVEN_UP);
            let sql = "UPDATE attempt SET state = ?2, error = ?3, declared = ?4, declared_us = ?5 WHERE id = ?1";
            let declared = Declaration::Lost.name();
            connection.prepare_cached(sql)?.execute(params![attempt.0, after, error_text(&error), declared, now])?;
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
        Event::Billed { is_charged, source } => {
            let sql = "UPDATE attempt SET billed = ?2, billed_source = ?3, billed_us = ?4 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, billed_name(*is_charged), source, now])?;
        }
        Event::Relinked { video_url } => {
            let sql = "UPDATE attempt SET video_url = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, video_url])?;
        }
        Event::Fetched(VideoFile { path, sha256, bytes }) => {
            let sql = "UPDATE attempt SET file = ?2, sha256 = ?3, bytes = ?4, fetched_us = coalesce(fetched_us, ?5),
                 fetched_by = ?6 WHERE id = ?1";
            // No file system has files of more than 2^63 bytes.
            let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX);
            connection.prepare_cached(sql)?.execute(params![
                attempt.0,
                path.as_str(),
                sha256,
                bytes,
                now,
                this_machine()
            ])?;
        }
        Event::Executed { error, line } => {
            let sql = "UPDATE attempt SET exec_us = ?2, exec_error = ?3, exec_line = ?4 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, now, error, line])?;
        }
        Event::Moved(path) => {
            let sql = "UPDATE attempt SET file = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.0, path.as_str()])?;
        }
    }
    Ok(())
}

/// Puts every intent of the batch that has no answer in doubt, and says how many there were.
pub(super) fn conclude(connection: &Connection, batch: &BatchKey) -> Result<usize, Refused> {
    let error =
        ServiceError { message: "the run ended between sending and the answer".to_owned(), ..ServiceError::default() };
    let doubted = Event::Doubted(error.clone()).after(AttemptState::Intended).map_err(LedgerError::from)?;
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

/// Remembers a retake that has begun, or forgets it because its run has ended.
pub(super) fn keep_retake(
    connection: &Connection,
    batch: &BatchKey,
    retake: Option<&UnfinishedRetake>,
) -> Result<(), Refused> {
    ensure_batch(connection, batch)?;
    let text = retake.map(|retake| serde_json::json!(retake).to_string());
    let sql = "UPDATE batch SET retake = ?3 WHERE name = ?1 AND batch = ?2";
    connection.prepare_cached(sql)?.execute(params![batch.name, batch.batch, text])?;
    Ok(())
}

/// Gives what was bought under old ids to the new ones.
pub(super) fn move_jobs(connection: &Connection, batch: &BatchKey, moves: &[Move]) -> Result<(), Refused> {
    let sql = "SELECT job, max(state NOT IN ('void', 'rejected')) FROM attempt
         WHERE batch = (SELECT id FROM batch WHERE name = ?1 AND batch = ?2) GROUP BY job";
    let mut statement = connection.prepare_cached(sql)?;
    let submitted = statement.query_map(params![batch.name, batch.batch], |row| {
        let id = JobId::new(row.get::<_, String>("job")?).map_err(|error| unreadable(row, "job", error))?;
        Ok((id, row.get::<_, bool>(1)?))
    })?;
    let submitted: Vec<(JobId, bool)> = submitted.collect::<rusqlite::Result<_>>()?;
    // All of them, or none.
    new_ids(submitted.iter().map(|(id, is_bought)| (id, *is_bought)), moves).map_err(LedgerError::from)?;
    let sql = "UPDATE attempt SET job = ?4, bought_as = nullif(coalesce(bought_as, job), ?4)
         WHERE job = ?3 AND batch = (SELECT id FROM batch WHERE name = ?1 AND batch = ?2)";
    let mut rename = connection.prepare_cached(sql)?;
    for Move { from, to } in moves {
        rename.execute(params![batch.name, batch.batch, from.as_str(), to.as_str()])?;
    }
    Ok(())
}

/// Gives the tasks of the batch that can still be asked about to another account.
pub(super) fn adopt(connection: &Connection, batch: &BatchKey, account: &Account) -> Result<(), Refused> {
    let sql =
        "UPDATE attempt SET service = ?3, key = ?4 WHERE state IN ('queued', 'in_progress', 'in_doubt', 'completed')
         AND batch = (SELECT id FROM batch WHERE name = ?1 AND batch = ?2)";
    connection.prepare_cached(sql)?.execute(params![batch.name, batch.batch, account.service, account.key])?;
    Ok(())
}
