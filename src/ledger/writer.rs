//! One thread writes, and groups what comes in while the last commit was under way into the next one.
//!
//! A commit that is synced to the disk takes milliseconds, whether it holds one attempt or a hundred. So the writer waits
//! a moment for company before each one, each caller waits for about one commit, and a thousand callers do not wait for a
//! thousand.

use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::open::{OpenError, open};
use super::schema::Kind;
use super::witness::{self, Witness};
use super::{Event, Intent, Ledger, LedgerError, crash, store};
use crate::domain::{Account, AttemptId, BatchKey, TaskNames};

/// The most that one commit holds.
const LARGEST_GROUP: usize = 512;
/// How long a commit waits for more to come: a little longer than an answer from nearby takes, and nothing beside the
/// minutes of a job.
const GATHERING: Duration = Duration::from_millis(2);

type Answer<T> = oneshot::Sender<Result<T, LedgerError>>;

enum Order {
    Intend(Box<Intent>, Answer<AttemptId>),
    Accept(AttemptId, TaskNames, Answer<TaskNames>),
    Record(AttemptId, Box<Event>, Answer<()>),
    Conclude(BatchKey, Answer<usize>),
    Adopt(BatchKey, Account, Answer<()>),
}

/// A ledger in an SQLite file.
#[derive(Debug)]
pub struct SqliteLedger {
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl SqliteLedger {
    /// Opens the ledger, and makes it if it is not there.
    pub fn open(path: &Path, kind: Kind) -> Result<Self, OpenError> {
        let connection = open(path, kind)?;
        let unopened = |source| OpenError::Witness { path: path.to_owned(), source };
        let witness = Witness::open(path).map_err(unopened)?;
        let (orders, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || write(connection, witness, &inbox))
            .map_err(OpenError::Thread)?;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    async fn order<T>(&self, order: impl FnOnce(Answer<T>) -> Order) -> Result<T, LedgerError> {
        let (answer, answered) = oneshot::channel();
        let orders = self.orders.as_ref().ok_or(LedgerError::Closed)?;
        orders.send(order(answer)).map_err(|_| LedgerError::Closed)?;
        answered.await.map_err(|_| LedgerError::Closed)?
    }
}

impl Drop for SqliteLedger {
    /// Waits for the last commit, so that the file is closed and its log removed when the program ends.
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the ledger's writer panicked");
        }
    }
}

impl Ledger for SqliteLedger {
    async fn intend(&self, intent: Intent) -> Result<AttemptId, LedgerError> {
        self.order(|answer| Order::Intend(Box::new(intent), answer)).await
    }

    async fn accept(&self, attempt: AttemptId, task: TaskNames) -> Result<TaskNames, LedgerError> {
        self.order(|answer| Order::Accept(attempt, task, answer)).await
    }

    async fn record(&self, attempt: AttemptId, event: Event) -> Result<(), LedgerError> {
        self.order(|answer| Order::Record(attempt, Box::new(event), answer)).await
    }

    async fn conclude(&self, batch: &BatchKey) -> Result<usize, LedgerError> {
        self.order(|answer| Order::Conclude(batch.clone(), answer)).await
    }

    async fn adopt(&self, batch: &BatchKey, account: &Account) -> Result<(), LedgerError> {
        self.order(|answer| Order::Adopt(batch.clone(), account.clone(), answer)).await
    }
}

/// Answers that are sent when the commit has succeeded, or with its error.
type Pending = Vec<Box<dyn FnOnce(Result<(), LedgerError>) + Send>>;

fn write(mut connection: Connection, mut witness: Witness, inbox: &mpsc::Receiver<Order>) {
    while let Ok(first) = inbox.recv() {
        std::thread::sleep(GATHERING);
        let group = std::iter::once(first).chain(inbox.try_iter()).take(LARGEST_GROUP).collect();
        let mut pending = Pending::new();
        let committed = commit(&mut connection, group, &mut pending);
        // Before anybody goes on: what was bought on the strength of this commit must not outlive it unseen.
        let committed = committed.map(|commits| witness.note(commits));
        for answer in pending {
            answer(committed.clone());
        }
    }
}

fn commit(connection: &mut Connection, group: Vec<Order>, pending: &mut Pending) -> Result<i64, LedgerError> {
    let now = Timestamp::now();
    // Dropped without a commit, a transaction is rolled back.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = match transaction {
        Ok(transaction) => transaction,
        Err(error) => {
            let error = LedgerError::from(error);
            pending.extend(group.into_iter().map(|order| refuse(order, error.clone())));
            return Err(error);
        }
    };
    for order in group {
        // After some errors, a full disk among them, SQLite has rolled the whole transaction back. What came next would
        // then be committed one by one, outside of it, and the final commit would deny it all.
        if transaction.is_autocommit() {
            pending.push(refuse(order, LedgerError::RolledBack));
            continue;
        }
        pending.push(match order {
            Order::Intend(intent, answer) => answer_with(answer, store::intend(&transaction, &intent, now)),
            Order::Accept(attempt, task, answer) => {
                answer_with(answer, store::accept(&transaction, attempt, task, now))
            }
            Order::Record(attempt, event, answer) => {
                answer_with(answer, store::record(&transaction, attempt, &event, now))
            }
            Order::Conclude(batch, answer) => answer_with(answer, store::conclude(&transaction, &batch)),
            Order::Adopt(batch, account, answer) => answer_with(answer, store::adopt(&transaction, &batch, &account)),
        });
    }
    if transaction.is_autocommit() {
        return Err(LedgerError::RolledBack);
    }
    let commits = witness::count(&transaction)?;
    crash::point("before-commit");
    let committed = transaction.commit();
    crash::point("after-commit");
    committed?;
    Ok(commits)
}

/// An answer that says what was done once it is durable. A caller that is gone needs none.
fn answer_with<T: Send + 'static>(
    answer: Answer<T>,
    done: Result<T, LedgerError>,
) -> Box<dyn FnOnce(Result<(), LedgerError>) + Send> {
    Box::new(move |committed| {
        // What went wrong with this write itself says more than that the whole commit failed.
        let _caller_is_gone = answer.send(done.and_then(|value| committed.map(|()| value)));
    })
}

fn refuse(order: Order, error: LedgerError) -> Box<dyn FnOnce(Result<(), LedgerError>) + Send> {
    match order {
        Order::Intend(_, answer) => answer_with(answer, Err(error)),
        Order::Accept(_, _, answer) => answer_with(answer, Err(error)),
        Order::Record(_, _, answer) | Order::Adopt(_, _, answer) => answer_with(answer, Err(error)),
        Order::Conclude(_, answer) => answer_with(answer, Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AttemptId, TaskId};

    fn intent(known: Option<AttemptId>) -> Intent {
        Intent { known, ..Intent::of_job("a") }
    }

    /// Two runners of one batch, as where a lock is of no use: the second buys nothing that the first is at, or has bought
    /// since the second made its plan.
    #[tokio::test]
    async fn two_runners_without_a_lock_do_not_buy_one_job_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.db");
        let open = || SqliteLedger::open(&path, Kind::Real).expect("a ledger");
        let (first, second) = (open(), open());
        let claimed = |result: Result<AttemptId, LedgerError>| matches!(result, Err(LedgerError::Claimed(_)));

        let attempt = first.intend(intent(None)).await.expect("the first intent");
        assert!(claimed(second.intend(intent(None)).await), "while the first is sending");
        first.record(attempt, Event::Accepted(TaskId::new("t").expect("an id").into())).await.expect("recorded");
        assert!(claimed(second.intend(intent(None)).await), "while the task is at the service");
        let completed = Event::Completed { video_url: "u".into(), ended_at: Timestamp::UNIX_EPOCH, polls: 1 };
        first.record(attempt, completed).await.expect("recorded");
        assert!(claimed(second.intend(intent(None)).await), "after it was completed");
        // One that knows of it and wants it again, as a retake does, may have it.
        second.intend(intent(Some(attempt))).await.expect("a retake");
    }

    #[tokio::test]
    async fn a_write_that_fails_says_why_and_spares_the_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = SqliteLedger::open(&folder.path().join("ledger.db"), Kind::Real).expect("a ledger");
        let attempt = ledger.intend(intent(None)).await.expect("an intent");
        let illegal = ledger.record(attempt, Event::Started { percent: None });
        let legal = ledger.record(attempt, Event::Withdrawn);
        let (illegal, legal) = futures::join!(illegal, legal);
        assert!(matches!(illegal, Err(LedgerError::Illegal(_))), "{illegal:?}");
        legal.expect("it was fine");
    }
}
