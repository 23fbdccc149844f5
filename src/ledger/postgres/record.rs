//! Events of one commit: each attempt is locked, lives through what happened to it, and is written whole.
//!
//! What a state allows is decided on the locked row, so that a final word is written once, whoever comes first. Who comes second
//! with a word about a task that another runner looks after has lost nothing: that is no error.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::life::happen;
use super::read::{Named, owners_of_names};
use super::rows::{self, Row, storable};
use super::runner::{Runner, micros};
use super::transaction::{NOW, Opening, Sent, Transaction};
use crate::domain::{Attempt, AttemptId, AttemptState, BatchKey, TaskId, TaskNames};
use crate::ledger::stored::Stored;
use crate::ledger::times::Times;
use crate::ledger::{Event, LedgerError};

/// Something that happened to an attempt.
pub(super) struct Happening<'a> {
    pub(super) attempt: AttemptId,
    pub(super) event: &'a Event,
}

/// What came of it: the names that were written, if it was about names, and the row as it is now, if it changed.
pub(super) type Recorded = (Result<Option<TaskNames>, LedgerError>, Option<Row>);

/// Writes what happened.
pub(super) async fn record(
    transaction: &Transaction<'_>,
    runner: &Runner,
    opening: Opening<'_>,
    happenings: &[Happening<'_>],
    times: &Times,
) -> Result<Vec<Recorded>, PostgresError> {
    let ids: HashSet<AttemptId> = happenings.iter().map(|happening| happening.attempt).collect();
    let (ids, clock) = (ids.into_iter().collect::<Vec<_>>(), format!("SELECT {NOW}"));
    let opened = Sent::now(opening).await;
    let rows = Sent::now(rows::locked(transaction, &ids)).await;
    let names = Sent::now(Names::read(transaction, happenings)).await;
    let now = Sent::now(transaction.query_typed_one(&clock, &[])).await;
    opened.answer().await?;
    let (mut rows, mut names) = (rows.answer().await?, names.answer().await?);
    let now: i64 = now.answer().await?.try_get(0)?;
    let now = Timestamp::from_microsecond(now).unwrap_or(Timestamp::MAX);
    let (mut recorded, mut changed) = (Vec::with_capacity(happenings.len()), HashSet::new());
    for Happening { attempt: id, event } in happenings {
        let Some(row) = rows.get_mut(id) else {
            let why = std::io::Error::other(format!("attempt {} is not in the ledger any more", id.0));
            recorded.push((Err(LedgerError::Store(std::sync::Arc::new(why))), None));
            continue;
        };
        if matches!(event, Event::Denied)
            && let Some(error) = sender_may_live(transaction, row, times).await?
        {
            recorded.push((Err(error), None));
            continue;
        }
        if matches!(event, Event::GivenUp)
            && let Some(error) = keeper_lives(transaction, row, runner).await?
        {
            recorded.push((Err(error), None));
            continue;
        }
        let before = row.attempt()?;
        let told = write_into(row, before, event, runner, now, &mut names);
        if told.is_ok() {
            changed.insert(*id);
        }
        recorded.push(match told {
            Err(LedgerError::Illegal(_)) if is_another_word(row, event) => {
                tracing::debug!("another runner recorded a terminal state before {event:?}");
                (Ok(None), None)
            }
            told => {
                let row = told.is_ok().then(|| row.clone());
                (told, row)
            }
        });
    }
    let changed: Vec<&Row> = changed.iter().filter_map(|id| rows.get(id)).collect();
    if !changed.is_empty() {
        rows::replace_last(transaction, &changed);
    }
    Ok(recorded)
}

fn write_into(
    row: &mut Row,
    mut attempt: Attempt,
    event: &Event,
    runner: &Runner,
    now: Timestamp,
    names: &mut Names,
) -> Result<Option<TaskNames>, LedgerError> {
    let is_sender = row.runner == Some(runner.id);
    if matches!(event, Event::Accepted(_)) && !is_sender {
        return Err(LedgerError::Claimed(attempt.job));
    }
    let mut claimed = None;
    let event = match event {
        // Said before, and written: its answer was lost.
        Event::Accepted(task) if row.stored.task.as_deref() == Some(task.id.as_str()) => return Ok(attempt.task),
        Event::Accepted(task) | Event::Found(task) => {
            // Before anything is written: a state that takes no task has none.
            event.after(attempt.state)?;
            let task = names.claim(&attempt, task.clone())?;
            claimed = Some(task.clone());
            if matches!(event, Event::Found(_)) { &Event::Found(task) } else { &Event::Accepted(task) }
        }
        Event::AlsoNamed(name) => {
            names.claim_one(&attempt, name)?;
            event
        }
        other => other,
    };
    happen(&mut attempt, event, now, &runner.machine)?;
    row.stored = Stored::from(&attempt);
    row.version += 1;
    if is_sender && claimed.is_some() {
        row.keeper = Some(runner.id);
    }
    Ok(claimed)
}

/// Whether an event that does not fit is only late: another runner asked about the task, too, before it was taken over or since, and was told first.
fn is_another_word(row: &Row, event: &Event) -> bool {
    let is_over = AttemptState::named(&row.stored.state)
        .is_some_and(|state| matches!(state, AttemptState::Completed | AttemptState::Failed));
    let is_about_a_task = matches!(
        event,
        Event::Started { .. }
            | Event::Left { .. }
            | Event::AlsoNamed(_)
            | Event::Completed { .. }
            | Event::Failed { .. }
            | Event::Disowned { .. }
    );
    is_over && is_about_a_task
}

/// Why nobody can say yet that an attempt made no task: its sender may still live, and wait for the answer. What the sender itself put in
/// doubt is answered.
async fn sender_may_live(
    transaction: &Transaction<'_>,
    row: &Row,
    times: &Times,
) -> Result<Option<LedgerError>, PostgresError> {
    if row.stored.answered_us.is_some() {
        return Ok(None);
    }
    let sql = format!(
        "SELECT name FROM runner JOIN at_work ON at_work.runner = runner.id AND at_work.batch = $2
         WHERE id = $1 AND left_us IS NULL AND (died_us IS NULL OR died_us > {NOW} - $3)"
    );
    let unanswered = micros(times.unanswered);
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&row.runner, Type::INT8), (&row.batch, Type::INT8), (&unanswered, Type::INT8)];
    let alive = transaction.query_typed_opt(&sql, &values).await?;
    let name = alive.map(|row| row.try_get::<_, String>(0)).transpose()?;
    Ok(name.map(|runner| LedgerError::SenderMayLive { job: row.stored.job.clone(), runner }))
}

/// Why nobody can give up a task: another runner that lives asks about it.
async fn keeper_lives(
    transaction: &Transaction<'_>,
    row: &Row,
    runner: &Runner,
) -> Result<Option<LedgerError>, PostgresError> {
    let sql = "SELECT name FROM runner JOIN at_work ON at_work.runner = runner.id AND at_work.batch = $2
         WHERE id = $1 AND id <> $3 AND left_us IS NULL AND died_us IS NULL";
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&row.keeper, Type::INT8), (&row.batch, Type::INT8), (&runner.id, Type::INT8)];
    let alive = transaction.query_typed_opt(sql, &values).await?;
    let name = alive.map(|row| row.try_get::<_, String>(0)).transpose()?;
    Ok(name.map(|runner| LedgerError::LookedAfter { job: row.stored.job.clone(), runner }))
}

/// Who has which name of a task.
struct Names {
    owners: BTreeMap<String, Vec<(i64, String, String, BatchKey)>>,
}

impl Names {
    async fn read(transaction: &Transaction<'_>, happenings: &[Happening<'_>]) -> Result<Self, PostgresError> {
        let wanted = happenings.iter().flat_map(|happening| match happening.event {
            Event::Accepted(task) | Event::Found(task) => [Some(&task.id), task.alias.as_ref()],
            Event::AlsoNamed(name) => [Some(name), None],
            _ => [None, None],
        });
        let wanted: Vec<String> = wanted.flatten().map(|name| storable(name.as_str())).collect();
        let mut owners: BTreeMap<String, Vec<_>> = BTreeMap::new();
        if !wanted.is_empty() {
            for Named { batch, job, attempt, service, names } in owners_of_names(transaction, &wanted).await? {
                for name in names {
                    owners.entry(name).or_default().push((attempt, service.clone(), job.clone(), batch.clone()));
                }
            }
        }
        Ok(Self { owners })
    }

    /// Refuses a task that another attempt at the same service has; a second name that is another's is left out.
    fn claim(&mut self, attempt: &Attempt, mut task: TaskNames) -> Result<TaskNames, LedgerError> {
        self.claim_one(attempt, &task.id)?;
        if let Some(alias) = &task.alias
            && self.claim_one(attempt, alias).is_err()
        {
            task.alias = None;
        }
        Ok(task)
    }

    fn claim_one(&mut self, attempt: &Attempt, name: &TaskId) -> Result<(), LedgerError> {
        let owners = self.owners.entry(name.as_str().to_owned()).or_default();
        let other =
            owners.iter().find(|(id, service, ..)| *id != attempt.id.0 && **service == *attempt.account.service);
        if let Some((_, _, job, batch)) = other {
            return Err(LedgerError::TaskTaken { task: name.clone(), job: job.clone(), batch: batch.clone() });
        }
        let batch = BatchKey { name: String::new(), batch: String::new() };
        owners.push((attempt.id.0, attempt.account.service.to_string(), attempt.job.to_string(), batch));
        Ok(())
    }
}
