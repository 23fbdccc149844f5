//! The interface of a store for writing, and the operations of any store, each in one transaction. A store knows its medium, and no rule.
//!
//! In debug builds, a store can halt at named places, so a test can kill the process there. `SHOTLIST_HALT_AT=after-commit:6` names the place
//! and the number of the visit. There, the process writes the file `SHOTLIST_HALT_FILE`, and waits until the file is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::row::{Row, Unreadable};
use super::rules::{BatchIntent, Changes, Facts, Owners, apply, recover};
use super::sql::{Sql, keep_retake, note_unsent};
use super::{Event, Intent, LedgerError, this_machine};
use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, JobId, Move, TaskId, TaskNames, UnfinishedRetake, new_ids,
};

/// A store with one [`Writer`](super::writer::Writer).
pub(in crate::ledger) trait Store {
    /// Its transactions.
    type Transaction: Transaction;

    /// Runs work in one transaction, until its commit is durable or has certainly failed. Failed work changes nothing.
    async fn transact<T: Clone>(
        &mut self,
        work: impl AsyncFn(&Self::Transaction) -> Result<T, <Self::Transaction as Transaction>::Error>,
    ) -> Result<T, LedgerError>;

    /// Creates a batch if it does not exist, registers its runner, recovers its intents, and returns their number.
    async fn lock(&mut self, own: usize, key: BatchKey) -> Result<usize, LedgerError>;

    /// Ends a lock.
    async fn release(&mut self, own: usize);

    /// The number and the key of a locked batch.
    fn batch(&self, own: usize) -> Option<(i64, &BatchKey)>;

    /// Returns whether every transaction fails now. Then commands are not tried one by one.
    fn is_down(&self) -> bool;

    /// Records the facts of durable decisions.
    fn note_decisions(&mut self, _facts: Facts) {}

    /// Records a durable row.
    fn note_row(&mut self, _own: usize, _row: &Row) {}

    /// Pauses submissions for an account, by all runners of the ledger.
    async fn pause(&mut self, _account: &Account, _wait: Duration) -> Result<(), LedgerError> {
        Ok(())
    }

    /// The time until the next heartbeat, if the store has any.
    fn until_heartbeat(&self) -> Option<Duration> {
        None
    }

    /// Sends a heartbeat.
    async fn heartbeat(&mut self) {}

    /// Ends after the last command.
    async fn end(&mut self) {}
}

/// A writing transaction. It sees earlier commits, and no other transaction changes its locked rows.
pub(in crate::ledger) trait Transaction {
    /// The error of the medium. After one, the transaction changes nothing.
    type Error: From<Unreadable>;
    /// Its statements.
    type Sql: Sql<Error = Self::Error>;

    fn sql(&self) -> &Self::Sql;

    /// This runner, in a shared store.
    fn runner(&self) -> Option<i64>;

    /// Returns and locks the facts that decide about these intents, after all saved changes.
    async fn facts(&self, intents: &[BatchIntent<'_>]) -> Result<Facts, Self::Error>;

    /// Locks attempts. Returns them, the attempts with one of the names, and the time.
    async fn locked(&self, attempts: &[AttemptId], names: &[&TaskId]) -> Result<Locked, Self::Error>;

    /// Locks all attempts of a batch.
    async fn locked_batch(&self, batch: i64) -> Result<Vec<Row>, Self::Error>;

    /// Locks the intents of one or all batches whose response can't arrive any more.
    async fn abandoned(&self, batch: Option<i64>) -> Result<Vec<Row>, Self::Error>;

    /// Returns why a live runner forbids an event.
    async fn objection(&self, row: &Row, event: &Event) -> Result<Option<LedgerError>, Self::Error>;

    /// Writes rows and sums, at the latest with the commit.
    async fn save(&self, changes: &Changes<'_>) -> Result<(), Self::Error>;
}

/// The facts for an event.
pub(in crate::ledger) struct Locked {
    pub(in crate::ledger) rows: BTreeMap<AttemptId, Row>,
    pub(in crate::ledger) named: Vec<(BatchKey, Attempt)>,
    pub(in crate::ledger) now: Timestamp,
}

/// The channel for the result. A dropped caller needs none.
pub(in crate::ledger) type Answer<T> = oneshot::Sender<Result<T, LedgerError>>;

/// A change of a locked batch that is no event.
pub(in crate::ledger) enum BatchChange {
    NoteUnsent(JobId, String),
    MoveJobs(Vec<Move>),
    KeepRetake(Option<UnfinishedRetake>),
    Reassign(Account),
}

/// A command. Its first value is the writer's number of the locked batch.
pub(in crate::ledger) enum Command {
    Lock(usize, BatchKey, Answer<usize>),
    Release(usize),
    Intend(usize, Box<Intent>, Answer<AttemptId>),
    Record(usize, AttemptId, Box<Event>, Answer<Option<TaskNames>>),
    Change(usize, BatchChange, Answer<()>),
    Pause(Account, Duration, Answer<()>),
}

/// Halts here if a test requests it. Does nothing in a release build.
pub(in crate::ledger) fn crash_point(place: &str) {
    static PASSED: parking_lot::Mutex<Vec<String>> = parking_lot::Mutex::new(Vec::new());
    if !cfg!(debug_assertions) {
        return;
    }
    let (Ok(halts), Ok(file)) = (std::env::var("SHOTLIST_HALT_AT"), std::env::var("SHOTLIST_HALT_FILE")) else {
        return;
    };
    let number = {
        let mut passed = PASSED.lock();
        passed.push(place.to_owned());
        passed.iter().filter(|passed| *passed == place).count()
    };
    if halts.split(',').any(|halt| halt == format!("{place}:{number}")) {
        std::fs::write(&file, "halted").expect("a test gave a file that can be written");
        while std::path::Path::new(&file).exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

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
    transaction.save(&Changes::new(answers.iter().flatten(), [])).await?;
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
    let changed = changed.iter().filter_map(|id| Some((before.get(id)?, rows.get(id)?)));
    transaction.save(&Changes::new([], changed)).await?;
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
    apply(attempt, event, now, this_machine())?;
    if claimed.is_some() {
        // Without the alias of another task.
        attempt.task.clone_from(&claimed);
    }
    row.shared.version += 1;
    Ok(claimed)
}

/// Returns whether an event lost a race: another runner polled the same task, and recorded its terminal state first.
fn is_late(state: AttemptState, event: &Event) -> bool {
    // The statement of a person about a task that has ended is refused, and not ignored.
    let is_declared = matches!(event, Event::GivenUp | Event::Undone(_));
    let is_about_a_task = event.after(AttemptState::Queued).is_ok() && !is_declared;
    is_about_a_task && matches!(state, AttemptState::Completed | AttemptState::Failed)
}

/// Changes a batch, which has a number and a key.
pub(in crate::ledger) async fn change_batch<T: Transaction>(
    transaction: &T,
    (batch, key): (i64, &BatchKey),
    change: &BatchChange,
) -> Result<Result<(), LedgerError>, T::Error> {
    Ok(match change {
        BatchChange::NoteUnsent(job, reason) => Ok(note_unsent(transaction.sql(), key, job, reason).await?),
        BatchChange::KeepRetake(retake) => Ok(keep_retake(transaction.sql(), key, retake.as_ref()).await?),
        BatchChange::MoveJobs(moves) => move_jobs(transaction, batch, moves).await?.map(drop),
        BatchChange::Reassign(account) => reassign(transaction, batch, account).await?.map(drop),
    })
}

/// Puts abandoned intents of one or all batches in doubt. Returns their number.
pub(in crate::ledger) async fn recover_intents<T: Transaction>(
    transaction: &T,
    batch: Option<i64>,
) -> Result<Result<usize, LedgerError>, T::Error> {
    change(transaction, transaction.abandoned(batch).await?, |row| Ok(recover(&mut row.attempt).map(|()| true)?)).await
}

/// Moves the attempts of jobs to their new IDs: all of them, or none.
async fn move_jobs<T: Transaction>(
    transaction: &T,
    batch: i64,
    moves: &[Move],
) -> Result<Result<usize, LedgerError>, T::Error> {
    let rows = transaction.locked_batch(batch).await?;
    let submitted = rows.iter().map(|row| (row.attempt.job(), !row.attempt.state.made_no_task()));
    let new = match new_ids(submitted, moves) {
        Ok(new) => new,
        Err(moved_onto) => return Ok(Err(moved_onto.into())),
    };
    let rename = |row: &mut Row| {
        let Some(id) = new.get(row.attempt.job()) else { return Ok(false) };
        row.attempt = row.attempt.clone().moved_to(id);
        Ok(true)
    };
    change(transaction, rows, rename).await
}

/// Reassigns the tasks of a batch that can be polled to an account.
async fn reassign<T: Transaction>(
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
    transaction.save(&Changes::new([], rows.iter().map(|(old, new)| (*old, new)))).await?;
    Ok(Ok(rows.len()))
}
