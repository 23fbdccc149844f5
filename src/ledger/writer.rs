//! The one writer of a store.
//!
//! A durable commit takes milliseconds, whether it holds one attempt or a hundred. So the writer waits a moment for more commands before each
//! commit, and a thousand callers don't wait for a thousand commits.
//!
//! Events go before intents, in the same commit or in an earlier one: a task ID is durable before the request of a later intent is sent, and the
//! slot of a task that ended is free for the next intent. While a task ID can't be written, every intent is deferred. If a commit fails because
//! of one of its commands, each is tried alone, so that it can't keep others from being written.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::mpsc;

use super::row::Row;
use super::rules::{BatchIntent, Facts};
use super::store::{self, Answer, BatchChange, Command, Recorded, Store, crash_point};
use super::{Event, Intent, LedgerError};
use crate::domain::{AttemptId, BatchKey, TaskNames};

/// The maximum number of commands in a commit.
const MAX_GROUP: usize = 512;
/// The wait for more commands: slightly longer than a nearby response takes.
const GATHERING: Duration = Duration::from_millis(2);
/// The wait after which an intent is tried again that an unwritten task ID deferred.
const RETRY_AFTER: Duration = Duration::from_millis(200);

type ToRecord = (usize, AttemptId, Box<Event>, Answer<Option<TaskNames>>);
type ToIntend = (usize, Box<Intent>, Answer<AttemptId>);

/// Executes the commands of locked batches on a store.
#[derive(Debug)]
pub(in crate::ledger) struct Writer<S> {
    store: S,
    /// Attempts with a task ID that is not written, each with its batch.
    unwritten: HashMap<AttemptId, usize>,
}

impl<S: Store> Writer<S> {
    pub(in crate::ledger) fn new(store: S) -> Self {
        Self { store, unwritten: HashMap::new() }
    }

    /// Executes commands until the last sender is gone.
    pub(in crate::ledger) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        loop {
            let next = self.store.until_heartbeat();
            let first = tokio::select! {
                first = commands.recv() => first,
                () = tokio::time::sleep(next.unwrap_or_default()), if next.is_some() => {
                    self.store.heartbeat().await;
                    continue;
                }
            };
            let Some(first) = first else { break };
            let mut group = vec![first];
            tokio::time::sleep(GATHERING).await;
            while group.len() < MAX_GROUP
                && let Ok(command) = commands.try_recv()
            {
                group.push(command);
            }
            if commands.is_closed() && group.iter().all(|command| matches!(command, Command::Release(_))) {
                // The end releases all batches.
                continue;
            }
            self.execute(group).await;
        }
        self.store.end().await;
    }

    /// Executes commands. Events and intents share a commit, unless other commands need the events, or a task ID is unwritten.
    pub(in crate::ledger) async fn execute(&mut self, commands: Vec<Command>) {
        let (mut records, mut intents, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for command in commands {
            match command {
                Command::Record(own, attempt, event, answer) => records.push((own, attempt, event, answer)),
                Command::Intend(own, intent, answer) => intents.push((own, intent, answer)),
                other => others.push(other),
            }
        }
        if !others.is_empty() || !self.unwritten.is_empty() {
            self.write(std::mem::take(&mut records), Vec::new()).await;
        }
        for other in others {
            self.execute_other(other).await;
        }
        // A dropped caller sends nothing: its intent would be a false doubt.
        intents.retain(|(.., answer)| !answer.is_closed());
        let (intents, released): (Vec<_>, Vec<_>) =
            intents.into_iter().partition(|(own, ..)| self.store.batch(*own).is_some());
        refuse(released, &LedgerError::Closed);
        if self.unwritten.is_empty() {
            self.write(records, intents).await;
        } else {
            refuse(intents, &LedgerError::Deferred(RETRY_AFTER));
        }
    }

    /// Writes events and intents in one commit. If it fails because of one of them, tries each alone.
    async fn write(&mut self, records: Vec<ToRecord>, intents: Vec<ToIntend>) {
        if records.is_empty() && intents.is_empty() {
            return;
        }
        // Events of a released batch are written, without the name of the batch.
        let batch = |own: &usize| self.store.batch(*own).map(|(number, key)| (number, key.clone())).unwrap_or_default();
        let known: Vec<(i64, BatchKey)> = records.iter().map(|(own, ..)| batch(own)).collect();
        let batches: Vec<(i64, BatchKey)> = intents.iter().map(|(own, ..)| batch(own)).collect();
        let events = records.iter().zip(&known).map(|((_, attempt, event, _), (_, batch))| (*attempt, batch, &**event));
        let events: Vec<_> = events.collect();
        let asked = intents.iter().zip(&batches);
        let asked: Vec<BatchIntent<'_>> =
            asked.map(|((_, intent, _), (batch, key))| BatchIntent { batch: *batch, key, intent }).collect();
        let written = self.store.transact(async |transaction| {
            let recorded = store::record(transaction, &events).await?;
            let mut outcomes = events.iter().zip(&recorded);
            let is_unwritten = outcomes.any(|((.., event), (names, _))| leaves_unwritten(event, names.as_ref().err()));
            let decided = if is_unwritten { None } else { Some(store::intend(transaction, &asked).await?) };
            Ok((recorded, decided))
        });
        let written = written.await;
        drop((events, asked));
        match written {
            Err(_) if records.len() + intents.len() > 1 && !self.store.is_down() => {
                Box::pin(self.write_each(records, intents)).await;
            }
            Err(error) => {
                for (own, attempt, event, answer) in records {
                    if matches!(*event, Event::Accepted(_)) {
                        self.unwritten.insert(attempt, own);
                    }
                    drop(answer.send(Err(error.clone())));
                }
                refuse(intents, &error);
            }
            Ok((recorded, decided)) => {
                self.answer_records(records, recorded);
                match decided {
                    Some((decisions, facts)) => self.answer_intents(intents, &batches, decisions, facts),
                    None => refuse(intents, &LedgerError::Deferred(RETRY_AFTER)),
                }
            }
        }
    }

    async fn write_each(&mut self, records: Vec<ToRecord>, intents: Vec<ToIntend>) {
        for record in records {
            self.write(vec![record], Vec::new()).await;
        }
        for intent in intents {
            if self.unwritten.is_empty() {
                self.write(Vec::new(), vec![intent]).await;
            } else {
                refuse(vec![intent], &LedgerError::Deferred(RETRY_AFTER));
            }
        }
    }

    fn answer_records(&mut self, records: Vec<ToRecord>, recorded: Vec<Recorded>) {
        for ((own, attempt, event, answer), (names, row)) in records.into_iter().zip(recorded) {
            if leaves_unwritten(&event, names.as_ref().err()) {
                self.unwritten.insert(attempt, own);
            } else if names.is_ok() || matches!(*event, Event::Accepted(_)) {
                self.unwritten.remove(&attempt);
            }
            if let Some(row) = row {
                self.store.note_row(own, &row);
            }
            drop(answer.send(names));
        }
    }

    fn answer_intents(
        &mut self,
        intents: Vec<ToIntend>,
        batches: &[(i64, BatchKey)],
        decisions: Vec<Result<Row, LedgerError>>,
        facts: Facts,
    ) {
        if intents.is_empty() {
            return;
        }
        if decisions.iter().any(Result::is_ok) {
            crash_point("after-intent");
        }
        let is_same = intents
            .iter()
            .zip(batches)
            .all(|((own, ..), (number, _))| self.store.batch(*own).is_some_and(|(now, _)| now == *number));
        self.store.note_decisions(facts);
        for ((own, _, answer), decision) in intents.into_iter().zip(decisions) {
            let id = match decision {
                // Another server has another number for the batch: the write is lost.
                Ok(_) if !is_same => Err(LedgerError::RolledBack),
                Ok(row) => {
                    self.store.note_row(own, &row);
                    Ok(row.attempt.id)
                }
                Err(error) => Err(error),
            };
            drop(answer.send(id));
        }
    }

    async fn execute_other(&mut self, command: Command) {
        let store = &mut self.store;
        match command {
            Command::Record(..) | Command::Intend(..) => {}
            Command::Lock(own, key, answer) => drop(answer.send(store.lock(own, key).await)),
            Command::Release(own) => {
                self.unwritten.retain(|_, batch| *batch != own);
                store.release(own).await;
            }
            Command::Change(own, change, answer) => drop(answer.send(change_batch(store, own, &change).await)),
            Command::Pause(account, wait, answer) => drop(answer.send(store.pause(&account, wait).await)),
        }
    }
}

/// Changes a locked batch in one transaction. A repeated transaction has the same number.
async fn change_batch<S: Store>(store: &mut S, own: usize, change: &BatchChange) -> Result<(), LedgerError> {
    let (number, key) = store.batch(own).map(|(number, key)| (number, key.clone())).ok_or(LedgerError::Closed)?;
    store.transact(async |transaction| store::change_batch(transaction, (number, &key), change).await).await?
}

/// Returns whether a task ID is unwritten, without a doubt in its place. An attempt of another runner, or with another outcome, blocks
/// nothing.
fn leaves_unwritten(event: &Event, refusal: Option<&LedgerError>) -> bool {
    let is_settled = |error: &LedgerError| matches!(error, LedgerError::Claimed(_) | LedgerError::Illegal(_));
    matches!(event, Event::Accepted(_)) && refusal.is_some_and(|error| !is_settled(error))
}

fn refuse(commands: Vec<ToIntend>, error: &LedgerError) {
    for (.., answer) in commands {
        drop(answer.send(Err(error.clone())));
    }
}
