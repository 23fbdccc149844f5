//! Operations of a ledger, each in one transaction of any store.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::row::Row;
use super::rules::{BatchIntent, Changes, Facts, Owners, apply, recover};
use super::store::{Locked, Transaction};
use super::{Event, LedgerError, this_machine};
use crate::domain::{Account, AttemptId, AttemptState, BatchKey, Move, TaskNames, new_ids};

/// Writes admitted intents. Returns the row or the refusal of each, and the facts afterwards.
pub(in crate::ledger) async fn intend<T: Transaction>(
    transaction: &T,
    asked: &[BatchIntent<'_>],
) -> Result<(Vec<Result<Row, LedgerError>>, Facts), T::Error> {
    if asked.is_empty() {
        return Ok((Vec::new(), Facts::default()));
    }
    let mut facts = transaction.facts(asked).await?;
    let answers: Vec<Result<Row, LedgerError>> = asked.iter().map(|one| facts.admit(one)).collect();
    let mut changes = Changes::default();
    answers.iter().flatten().for_each(|row| changes.insert(row));
    transaction.save(&changes).await?;
    // Only decisions need them.
    facts.attempts.clear();
    Ok((answers, facts))
}

/// The outcome of an event: the recorded names, if it has any, and the changed row.
pub(in crate::ledger) type Recorded = (Result<Option<TaskNames>, LedgerError>, Option<Row>);

/// Writes events of attempts, each with its batch. An illegal event changes nothing, and the others are written.
pub(in crate::ledger) async fn record<T: Transaction>(
    transaction: &T,
    events: &[(AttemptId, &BatchKey, &Event)],
) -> Result<Vec<Recorded>, T::Error> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let ids: BTreeSet<AttemptId> = events.iter().map(|(attempt, ..)| *attempt).collect();
    let names: Vec<_> = events.iter().flat_map(|(.., event)| Owners::needed_by(event)).collect();
    let Locked { mut rows, named, now } = transaction.locked(&ids.into_iter().collect::<Vec<_>>(), &names).await?;
    let (before, mut owners) = (rows.clone(), Owners::new(named));
    let mut recorded = Vec::with_capacity(events.len());
    let mut changed = BTreeSet::new();
    for (attempt, batch, event) in events {
        let Some(row) = rows.get_mut(attempt) else {
            let why = std::io::Error::other(format!("attempt {} is not in the ledger", attempt.0));
            recorded.push((Err(LedgerError::Store(Arc::new(why))), None));
            continue;
        };
        if let Some(error) = transaction.objection(row, event).await? {
            recorded.push((Err(error), None));
            continue;
        }
        recorded.push(match write(row, event, batch, transaction.runner(), now, &mut owners) {
            Ok(names) => {
                changed.insert(*attempt);
                (Ok(names), Some(row.clone()))
            }
            Err(LedgerError::Illegal(_)) if is_late(row.attempt.state, event) => {
                tracing::debug!("another runner recorded a terminal state before {event:?}");
                (Ok(None), None)
            }
            Err(error) => (Err(error), None),
        });
    }
    let mut changes = Changes::default();
    changed
        .iter()
        .filter_map(|id| Some((before.get(id)?, rows.get(id)?)))
        .for_each(|(old, new)| changes.replace(old, new));
    transaction.save(&changes).await?;
    Ok(recorded)
}

/// Applies an event to a row. Returns the claimed names. Changes nothing on an error.
fn write(
    row: &mut Row,
    event: &Event,
    batch: &BatchKey,
    runner: Option<i64>,
    now: Timestamp,
    owners: &mut Owners,
) -> Result<Option<TaskNames>, LedgerError> {
    let attempt = &mut row.attempt;
    if matches!(event, Event::Accepted(_)) && row.shared.runner != runner {
        return Err(LedgerError::Claimed(attempt.job().clone()));
    }
    if let (Event::Accepted(task), Some(known)) = (event, &attempt.task)
        && known.id == task.id
    {
        // Recorded already: the acknowledgment was lost, or another runner was faster.
        return Ok(Some(known.clone()));
    }
    // An illegal event claims no name.
    event.after(attempt.state)?;
    let claimed = match event {
        Event::Accepted(task) | Event::Found(task) => Some(owners.claim(attempt, batch, task.clone())?),
        Event::AlsoNamed(name) => owners.claim_name(attempt, batch, name).map(|()| None)?,
        _ => None,
    };
    apply(attempt, event, now, &this_machine())?;
    if claimed.is_some() {
        // Without the alias of another task.
        attempt.task.clone_from(&claimed);
    }
    row.shared.version += 1;
    Ok(claimed)
}

/// Returns whether an event lost a race: another runner polled the same task, and recorded its terminal state first.
fn is_late(state: AttemptState, event: &Event) -> bool {
    let is_about_a_task = matches!(
        event,
        Event::Started
            | Event::Left { .. }
            | Event::Reported { .. }
            | Event::AlsoNamed(_)
            | Event::Completed { .. }
            | Event::Failed { .. }
            | Event::Disowned { .. }
    );
    is_about_a_task && matches!(state, AttemptState::Completed | AttemptState::Failed)
}

/// Puts abandoned intents of one or all batches in doubt. Returns their number.
pub(in crate::ledger) async fn recover_intents<T: Transaction>(
    transaction: &T,
    batch: Option<i64>,
) -> Result<Result<usize, LedgerError>, T::Error> {
    change(transaction, transaction.abandoned(batch).await?, |row| Ok(recover(&mut row.attempt).map(|()| true)?)).await
}

/// Moves the attempts of jobs to their new IDs: all of them, or none.
pub(in crate::ledger) async fn move_jobs<T: Transaction>(
    transaction: &T,
    batch: i64,
    moves: &[Move],
) -> Result<Result<usize, LedgerError>, T::Error> {
    let rows = transaction.locked_batch(batch).await?;
    let new = {
        let submitted = rows.iter().map(|row| (row.attempt.job(), !row.attempt.state.made_no_task()));
        match new_ids(submitted, moves) {
            Ok(new) => new,
            Err(moved_onto) => return Ok(Err(moved_onto.into())),
        }
    };
    let rename = |row: &mut Row| {
        let Some(id) = new.get(row.attempt.job()) else { return Ok(false) };
        row.attempt = row.attempt.clone().moved_to(id);
        Ok(true)
    };
    change(transaction, rows, rename).await
}

/// Reassigns the tasks of a batch that can be polled to an account.
pub(in crate::ledger) async fn reassign<T: Transaction>(
    transaction: &T,
    batch: i64,
    account: &Account,
) -> Result<Result<usize, LedgerError>, T::Error> {
    let reassign = |row: &mut Row| {
        let state = row.attempt.state;
        let has_task = state.is_active() || matches!(state, AttemptState::InDoubt | AttemptState::Completed);
        let is_other = has_task && row.attempt.account != *account;
        if is_other {
            row.attempt.account = account.clone();
        }
        Ok(is_other)
    };
    change(transaction, transaction.locked_batch(batch).await?, reassign).await
}

/// Changes all rows, or none. Returns the number of changed rows.
async fn change<T: Transaction>(
    transaction: &T,
    before: Vec<Row>,
    change: impl Fn(&mut Row) -> Result<bool, LedgerError>,
) -> Result<Result<usize, LedgerError>, T::Error> {
    let mut rows = Vec::new();
    for old in &before {
        let mut new = old.clone();
        match change(&mut new) {
            Ok(false) => {}
            Ok(true) => {
                new.shared.version += 1;
                rows.push((old, new));
            }
            Err(error) => return Ok(Err(error)),
        }
    }
    let mut changes = Changes::default();
    for (old, new) in &rows {
        changes.replace(old, new);
    }
    transaction.save(&changes).await?;
    Ok(Ok(rows.len()))
}
