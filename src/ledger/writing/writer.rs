//! The one writer of a store.
//!
//! A durable commit takes milliseconds, whether it holds one attempt or a hundred. So the writer waits a moment for more commands before each
//! commit, and a thousand callers don't wait for a thousand commits.
//!
//! Events are committed before intents: a task ID is durable before the intent of the submission that follows it. While a task ID can't be
//! written, every intent is deferred. If a commit fails because of one of its commands, each is tried alone, so that it can't keep others from
//! being written.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::mpsc;

use super::commands::{Answer, Command};
use super::operations::{self, Happened};
use super::store::{Store, Transaction};
use crate::domain::{AttemptId, BatchKey, TaskNames};
use crate::ledger::rules::Asked;
use crate::ledger::{Event, Intent, LedgerError, crash};

/// The most commands of one commit.
const LARGEST_GROUP: usize = 512;
/// The wait for more commands: slightly longer than a nearby response takes.
const GATHERING: Duration = Duration::from_millis(2);
/// The wait after which an intent may be tried again that an unwritten task ID defers.
const RETRY_AFTER: Duration = Duration::from_millis(200);

type ToRecord = (usize, AttemptId, Box<Event>, Answer<Option<TaskNames>>);
type ToIntend = (usize, Box<Intent>, Answer<AttemptId>);

/// Writes to a store what locked batches command.
#[derive(Debug)]
pub(in crate::ledger) struct Writer<S> {
    store: S,
    /// Attempts with a task ID that is not written, each with its batch.
    unwritten: HashMap<AttemptId, usize>,
}

/// Commands that came together.
#[derive(Default)]
struct Group {
    records: Vec<ToRecord>,
    intents: Vec<ToIntend>,
    others: Vec<Command>,
}

impl Group {
    fn add(&mut self, command: Command) {
        match command {
            Command::Record(own, attempt, event, answer) => self.records.push((own, attempt, event, answer)),
            Command::Intend(own, intent, answer) => self.intents.push((own, intent, answer)),
            other => self.others.push(other),
        }
    }

    fn len(&self) -> usize {
        self.records.len() + self.intents.len() + self.others.len()
    }
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
            let mut group = Group::default();
            group.add(first);
            tokio::time::sleep(GATHERING).await;
            while group.len() < LARGEST_GROUP
                && let Ok(command) = commands.try_recv()
            {
                group.add(command);
            }
            self.execute_group(group).await;
        }
        self.store.end().await;
    }

    /// Executes one command.
    pub(in crate::ledger) async fn execute(&mut self, command: Command) {
        let mut group = Group::default();
        group.add(command);
        self.execute_group(group).await;
    }

    async fn execute_group(&mut self, Group { records, intents, others }: Group) {
        if !records.is_empty() {
            self.record(records).await;
        }
        for other in others {
            self.execute_other(other).await;
        }
        if !intents.is_empty() {
            self.intend(intents).await;
        }
    }

    async fn record(&mut self, commands: Vec<ToRecord>) {
        // A batch that was released has no name for others; its events are written all the same.
        let key = |own| self.store.batch(own).map(|(_, key)| key.clone()).unwrap_or_default();
        let keys: Vec<BatchKey> = commands.iter().map(|(own, ..)| key(*own)).collect();
        let events: Vec<Happened<'_>> = commands
            .iter()
            .zip(&keys)
            .map(|((_, attempt, event, _), batch)| Happened { attempt: *attempt, batch, event })
            .collect();
        let recorded = self.store.transact(async |transaction| operations::record(transaction, &events).await).await;
        match recorded {
            Err(_) if commands.len() > 1 && !self.store.is_down() => {
                for command in commands {
                    Box::pin(self.record(vec![command])).await;
                }
            }
            Err(error) => {
                for (own, attempt, event, answer) in commands {
                    if matches!(*event, Event::Accepted(_)) {
                        self.unwritten.insert(attempt, own);
                    }
                    drop(answer.send(Err(error.clone())));
                }
            }
            Ok(recorded) => {
                for ((own, attempt, event, answer), (names, row)) in commands.into_iter().zip(recorded) {
                    self.note_task(own, attempt, &event, names.as_ref().err());
                    if let Some(row) = row {
                        self.store.note_row(own, &row);
                    }
                    drop(answer.send(names));
                }
            }
        }
    }

    /// Notes whether the task ID of an attempt is written, or a doubt in its place.
    fn note_task(&mut self, own: usize, attempt: AttemptId, event: &Event, refusal: Option<&LedgerError>) {
        match (event, refusal) {
            // An attempt of another runner, or with another outcome, waits for nothing.
            (_, None) | (Event::Accepted(_), Some(LedgerError::Claimed(_) | LedgerError::Illegal(_))) => {
                self.unwritten.remove(&attempt);
            }
            (Event::Accepted(_), Some(_)) => drop(self.unwritten.insert(attempt, own)),
            _ => {}
        }
    }

    async fn intend(&mut self, mut commands: Vec<ToIntend>) {
        // A caller that is gone sends nothing: its intent would be a doubt about nothing.
        commands.retain(|(.., answer)| !answer.is_closed());
        let (commands, released): (Vec<_>, Vec<_>) =
            commands.into_iter().partition(|(own, ..)| self.store.batch(*own).is_some());
        refuse(released, &LedgerError::Closed);
        if !self.unwritten.is_empty() {
            return refuse(commands, &LedgerError::Deferred(RETRY_AFTER));
        }
        let Some((_, first, _)) = commands.first() else { return };
        match self.store.wait_for_slot(&first.account.clone()).await {
            Ok(Duration::ZERO) => {}
            Ok(wait) => return refuse(commands, &LedgerError::Deferred(wait)),
            Err(error) => return refuse(commands, &error),
        }
        let batches: Vec<(i64, BatchKey)> = commands
            .iter()
            .filter_map(|(own, ..)| self.store.batch(*own).map(|(number, key)| (number, key.clone())))
            .collect();
        let asked: Vec<Asked<'_>> = commands
            .iter()
            .zip(&batches)
            .map(|((_, intent, _), (batch, key))| Asked { batch: *batch, key, intent })
            .collect();
        let decided = self.store.transact(async |transaction| operations::intend(transaction, &asked).await).await;
        drop(asked);
        match decided {
            Err(_) if commands.len() > 1 && !self.store.is_down() => {
                for command in commands {
                    Box::pin(self.intend(vec![command])).await;
                }
            }
            Err(error) => refuse(commands, &error),
            Ok((answers, facts)) => {
                if answers.iter().any(Result::is_ok) {
                    crash::point("after-intent");
                }
                let is_deferred = answers.iter().any(|answer| matches!(answer, Err(LedgerError::Deferred(_))));
                let is_same = commands
                    .iter()
                    .zip(&batches)
                    .all(|((own, ..), (number, _))| self.store.batch(*own).is_some_and(|(now, _)| now == *number));
                self.store.note_decisions(facts, is_deferred);
                for ((own, _, answer), decision) in commands.into_iter().zip(answers) {
                    let id = match decision {
                        // Another server gave the batch another number meanwhile: this was written nowhere.
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
            Command::NoteUnsent(own, job, reason, answer) => {
                let note = async |it: &S::Transaction, batch| it.note_unsent(batch, &job, &reason).await.map(Ok);
                drop(answer.send(at_batch(store, own, note).await));
            }
            Command::MoveJobs(own, moves, answer) => {
                let change = async |it: &S::Transaction, batch| operations::move_jobs(it, batch, &moves).await;
                drop(answer.send(at_batch(store, own, change).await.map(drop)));
            }
            Command::KeepRetake(own, retake, answer) => {
                let keep = async |it: &S::Transaction, batch| it.keep_retake(batch, retake.as_ref()).await.map(Ok);
                drop(answer.send(at_batch(store, own, keep).await));
            }
            Command::Reassign(own, account, answer) => {
                let change = async |it: &S::Transaction, batch| operations::reassign(it, batch, &account).await;
                drop(answer.send(at_batch(store, own, change).await.map(drop)));
            }
            Command::PictureUrl(key, since, answer) => {
                drop(answer.send(store.transact(async |it| it.picture_url(&key, since).await).await));
            }
            Command::KeepPictureUrl(key, url, answer) => {
                drop(answer.send(store.transact(async |it| it.keep_picture_url(&key, &url).await).await));
            }
            Command::Share(command) => store.share(command).await,
        }
    }
}

/// Does something with a locked batch, in one transaction.
async fn at_batch<S: Store, T: Clone>(
    store: &mut S,
    own: usize,
    work: impl AsyncFn(&S::Transaction, i64) -> Result<Result<T, LedgerError>, <S::Transaction as Transaction>::Error>,
) -> Result<T, LedgerError> {
    let (batch, _) = store.batch(own).ok_or(LedgerError::Closed)?;
    store.transact(async |transaction| work(transaction, batch).await).await?
}

fn refuse(commands: Vec<ToIntend>, error: &LedgerError) {
    for (.., answer) in commands {
        drop(answer.send(Err(error.clone())));
    }
}
