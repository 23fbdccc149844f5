//! A batch that is held: one thread writes, and groups what comes in while the last commit was under way into the next one.
//!
//! A commit that is synced to the disk takes milliseconds, whether it holds one attempt or a hundred. So the writer waits
//! a moment for company before each one, each caller waits for about one commit, and a thousand callers do not wait for a
//! thousand.
//!
//! What is told first is written first. So a task and the intent of the submission that follows it are one commit, and the intent is
//! never there without the task. A task that could not be written is told again, or is put in doubt because it is another's; until one of
//! both is written, no intent is, and whoever wants one is told to come again.

use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::addresses::{self, AddressKey};
use super::limits::{self, OwnersWord};
use super::lock::RunLock;
use super::open::{OpenError, WRITABLE, open};
use super::refused::Refused;
use super::schema::Kind;
use super::witness::{self, Witness};
use super::write;
use crate::domain::{Account, AttemptId, BatchKey, JobId, Move, NoticeCode, TaskNames, UnfinishedRetake};
use crate::ledger::crash;
use crate::ledger::{Event, HeldBatch, HoldError, Intent, LedgerError, Unavailable};

/// The most that one commit holds.
const LARGEST_GROUP: usize = 512;
/// How long a commit waits for more to come: a little longer than an answer from nearby takes, and nothing beside the
/// minutes of a job.
const GATHERING: Duration = Duration::from_millis(2);

/// When an intent may be wanted again that stood behind a task which could not be written.
const COME_AGAIN: Duration = Duration::from_millis(200);

type Answer<T> = oneshot::Sender<Result<T, LedgerError>>;

enum Order {
    Intend(Box<Intent>, Answer<AttemptId>),
    Accept(AttemptId, TaskNames, Answer<TaskNames>),
    Record(AttemptId, Box<Event>, Answer<()>),
    NoteUnsent(JobId, String, Answer<()>),
    Conclude(Answer<usize>),
    Move(Vec<Move>, Answer<()>),
    KeepRetake(Option<UnfinishedRetake>, Answer<()>),
    Adopt(Account, Answer<()>),
    FindAddress(AddressKey, Timestamp, Answer<Option<String>>),
    KeepAddress(AddressKey, String, Answer<()>),
}

impl Order {
    /// The attempt whose task it tells.
    fn told(&self) -> Option<AttemptId> {
        if let Self::Accept(attempt, ..) = self { Some(*attempt) } else { None }
    }
}

/// A batch of an SQLite file that is held.
#[derive(Debug)]
pub struct SqliteBatch {
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    concluded: usize,
    /// Given back last, when everything is written.
    _lock: Option<RunLock>,
}

impl SqliteBatch {
    /// Opens the ledger, makes it if it is not there, and locks the batch. It is held once a crash was concluded from, too.
    pub(super) fn take(path: &Path, kind: Kind, batch: BatchKey) -> Result<Self, HoldError> {
        let connection = open(path, kind).map_err(Unavailable::from)?;
        let lock = RunLock::acquire(path, &batch)?;
        Self::start(connection, path, batch, Some(lock)).map_err(|error| Unavailable::from(error).into())
    }

    /// The same without a lock, as on a file system where it is of no use.
    #[cfg(test)]
    pub(super) fn take_without_a_lock(path: &Path, kind: Kind, batch: BatchKey) -> Self {
        let connection = open(path, kind).expect("a ledger");
        Self::start(connection, path, batch, None).expect("a writer")
    }

    fn start(connection: Connection, path: &Path, batch: BatchKey, lock: Option<RunLock>) -> Result<Self, OpenError> {
        let witness = Witness::open(path).map_err(|source| OpenError::Witness { path: path.to_owned(), source })?;
        let (orders, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || write(connection, witness, &batch, &inbox))
            .map_err(OpenError::Thread)?;
        Ok(Self { orders: Some(orders), thread: Some(thread), concluded: 0, _lock: lock })
    }

    /// Puts what a crash left without an answer in doubt.
    pub(super) async fn conclude(&mut self) -> Result<(), Unavailable> {
        let concluded = self.order(Order::Conclude).await;
        self.concluded = concluded.map_err(|error| Unavailable::new(error, WRITABLE))?;
        Ok(())
    }

    async fn order<T>(&self, order: impl FnOnce(Answer<T>) -> Order) -> Result<T, LedgerError> {
        let (answer, answered) = oneshot::channel();
        let orders = self.orders.as_ref().ok_or(LedgerError::Closed)?;
        orders.send(order(answer)).map_err(|_| LedgerError::Closed)?;
        answered.await.map_err(|_| LedgerError::Closed)?
    }
}

impl Drop for SqliteBatch {
    /// Waits for the last commit, so that the file is closed and its log removed when the program ends.
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(code = NoticeCode::WriterPanicked.code(), "the ledger's writer panicked");
        }
    }
}

impl HeldBatch for SqliteBatch {
    fn concluded(&self) -> usize {
        self.concluded
    }

    async fn intend(&self, intent: Intent) -> Result<AttemptId, LedgerError> {
        self.order(|answer| Order::Intend(Box::new(intent), answer)).await
    }

    fn keeps_order(&self) -> bool {
        true
    }

    async fn accept(&self, attempt: AttemptId, task: TaskNames) -> Result<TaskNames, LedgerError> {
        self.order(|answer| Order::Accept(attempt, task, answer)).await
    }

    async fn record(&self, attempt: AttemptId, event: Event) -> Result<(), LedgerError> {
        self.order(|answer| Order::Record(attempt, Box::new(event), answer)).await
    }

    async fn note_unsent(&self, job: &JobId, reason: &str) -> Result<(), LedgerError> {
        self.order(|answer| Order::NoteUnsent(job.clone(), reason.to_owned(), answer)).await
    }

    async fn move_jobs(&self, moves: &[Move]) -> Result<(), LedgerError> {
        self.order(|answer| Order::Move(moves.to_vec(), answer)).await
    }

    async fn keep_retake(&self, retake: Option<UnfinishedRetake>) -> Result<(), LedgerError> {
        self.order(|answer| Order::KeepRetake(retake, answer)).await
    }

    async fn adopt(&self, account: &Account) -> Result<(), LedgerError> {
        self.order(|answer| Order::Adopt(account.clone(), answer)).await
    }

    async fn picture_address(
        &self,
        sha256: &str,
        command: &str,
        since: Timestamp,
    ) -> Result<Option<String>, LedgerError> {
        self.order(|answer| Order::FindAddress(AddressKey::new(sha256, command), since, answer)).await
    }

    async fn keep_picture_address(&self, sha256: &str, command: &str, url: &str) -> Result<(), LedgerError> {
        self.order(|answer| Order::KeepAddress(AddressKey::new(sha256, command), url.to_owned(), answer)).await
    }
}

/// Answers that are sent when the commit has succeeded, or with its error.
type Pending = Vec<Box<dyn FnOnce(Result<(), LedgerError>) + Send>>;

fn write(mut connection: Connection, mut witness: Witness, batch: &BatchKey, inbox: &mpsc::Receiver<Order>) {
    let mut unsettled = HashSet::new();
    while let Ok(first) = inbox.recv() {
        std::thread::sleep(GATHERING);
        let group: Vec<Order> = std::iter::once(first).chain(inbox.try_iter()).take(LARGEST_GROUP).collect();
        let mut if_it_fails = unsettled.clone();
        if_it_fails.extend(group.iter().filter_map(Order::told));
        let mut pending = Pending::new();
        let committed = commit(&mut connection, batch, group, &mut unsettled, &mut pending);
        if committed.is_err() {
            // Nothing of the group is written, neither tasks nor doubts.
            unsettled = if_it_fails;
        }
        // Before anybody goes on: what was bought on the strength of this commit must not outlive it unseen.
        let committed = committed.map(|commits| witness.note(commits));
        for answer in pending {
            answer(committed.clone());
        }
    }
}

/// Writes a group. `unsettled` are attempts of which a task was told and nothing is written: while there are any, nothing is intended.
fn commit(
    connection: &mut Connection,
    batch: &BatchKey,
    group: Vec<Order>,
    unsettled: &mut HashSet<AttemptId>,
    pending: &mut Pending,
) -> Result<i64, LedgerError> {
    let now = Timestamp::now();
    let is_behind_a_task = !unsettled.is_empty() || group.iter().any(|order| order.told().is_some());
    // Dropped without a commit, a transaction is rolled back.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = match transaction {
        Ok(transaction) => transaction,
        Err(error) => {
            let error = LedgerError::from(Refused::from(error));
            pending.extend(group.into_iter().map(|order| refuse(order, error.clone(), is_behind_a_task)));
            return Err(error);
        }
    };
    let mut cause = LedgerError::RolledBack;
    // Read for the first intent; nobody can change it before the commit.
    let mut owner = None;
    for order in group {
        // After some errors, a full disk among them, SQLite has rolled the whole transaction back. What came next would
        // then be committed one by one, outside of it, and the final commit would deny it all.
        if transaction.is_autocommit() {
            pending.push(refuse(order, cause.clone(), is_behind_a_task));
            continue;
        }
        pending.push(match order {
            // Whoever wanted it is gone, and sends nothing: it would be a doubt about nothing.
            Order::Intend(_, answer) if answer.is_closed() => continue,
            Order::Intend(_, answer) if !unsettled.is_empty() => come_again(answer),
            Order::Intend(intent, answer) => {
                let intended = owners_word(&mut owner, &transaction, now)
                    .and_then(|owner| write::intend(&transaction, batch, &intent, owner, now))
                    .map_err(LedgerError::from);
                if let Err(error) = &intended
                    && transaction.is_autocommit()
                {
                    // It is asked to come again, and the task tells why.
                    cause = error.clone();
                }
                let intended = intended.map_err(Refused::By);
                if is_behind_a_task { answer_behind_a_task(answer, intended) } else { answer_with(answer, intended) }
            }
            Order::Accept(attempt, task, answer) => {
                let written = write::accept(&transaction, attempt, task, now);
                settle(unsettled, attempt, written.is_ok());
                answer_with(answer, written)
            }
            Order::Record(attempt, event, answer) => {
                let written = write::record(&transaction, attempt, &event, now);
                if written.is_ok() {
                    settle(unsettled, attempt, true);
                }
                answer_with(answer, written)
            }
            Order::NoteUnsent(job, reason, answer) => {
                answer_with(answer, write::note_unsent(&transaction, batch, &job, &reason, now))
            }
            Order::Conclude(answer) => answer_with(answer, write::conclude(&transaction, batch)),
            Order::Move(moves, answer) => answer_with(answer, write::move_jobs(&transaction, batch, &moves)),
            Order::KeepRetake(retake, answer) => {
                answer_with(answer, write::keep_retake(&transaction, batch, retake.as_ref()))
            }
            Order::Adopt(account, answer) => answer_with(answer, write::adopt(&transaction, batch, &account)),
            Order::FindAddress(key, since, answer) => answer_with(answer, addresses::find(&transaction, &key, since)),
            Order::KeepAddress(key, url, answer) => answer_with(answer, addresses::keep(&transaction, &key, &url, now)),
        });
    }
    if transaction.is_autocommit() {
        return Err(cause);
    }
    let commits = witness::count(&transaction).map_err(Refused::from)?;
    crash::point("before-commit");
    let committed = transaction.commit();
    crash::point("after-commit");
    committed.map_err(Refused::from)?;
    Ok(commits)
}

fn owners_word<'o>(
    read: &'o mut Option<OwnersWord>,
    transaction: &Connection,
    now: Timestamp,
) -> Result<&'o OwnersWord, Refused> {
    match read {
        Some(owner) => Ok(owner),
        unread => Ok(unread.insert(limits::owners_word(transaction, now)?)),
    }
}

/// An answer that says what was done once it is durable. A caller that is gone needs none.
fn answer_with<T: Send + 'static>(
    answer: Answer<T>,
    done: Result<T, Refused>,
) -> Box<dyn FnOnce(Result<(), LedgerError>) + Send> {
    Box::new(move |committed| {
        // What went wrong with this write itself says more than that the whole commit failed.
        let _caller_is_gone = answer.send(done.map_err(LedgerError::from).and_then(|value| committed.map(|()| value)));
    })
}

/// The same for an intent that shares a commit with a task: if that fails, the task is told again first.
fn answer_behind_a_task(
    answer: Answer<AttemptId>,
    done: Result<AttemptId, Refused>,
) -> Box<dyn FnOnce(Result<(), LedgerError>) + Send> {
    Box::new(move |committed| match committed {
        Ok(()) => answer_with(answer, done)(Ok(())),
        Err(error) => come_again(answer)(Err(error)),
    })
}

fn come_again(answer: Answer<AttemptId>) -> Box<dyn FnOnce(Result<(), LedgerError>) + Send> {
    answer_with(answer, Err(LedgerError::Later(COME_AGAIN).into()))
}

/// Notes whether anything of an attempt's task is written.
fn settle(unsettled: &mut HashSet<AttemptId>, attempt: AttemptId, is_written: bool) {
    if is_written {
        unsettled.remove(&attempt);
    } else {
        unsettled.insert(attempt);
    }
}

fn refuse(order: Order, error: LedgerError, is_behind_a_task: bool) -> Box<dyn FnOnce(Result<(), LedgerError>) + Send> {
    match order {
        Order::Intend(_, answer) if is_behind_a_task => come_again(answer),
        Order::Intend(_, answer) => answer_with(answer, Err(error.into())),
        Order::Accept(_, _, answer) => answer_with(answer, Err(error.into())),
        Order::Record(_, _, answer)
        | Order::NoteUnsent(_, _, answer)
        | Order::Move(_, answer)
        | Order::KeepRetake(_, answer)
        | Order::Adopt(_, answer)
        | Order::KeepAddress(_, _, answer) => answer_with(answer, Err(error.into())),
        Order::FindAddress(_, _, answer) => answer_with(answer, Err(error.into())),
        Order::Conclude(answer) => answer_with(answer, Err(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::suite::store::{batch, intent_of, task};

    #[tokio::test]
    async fn no_intent_is_written_before_the_task_that_was_told_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.db");
        let held = SqliteBatch::take_without_a_lock(&path, Kind::Real, batch(""));
        let sent = held.intend(intent_of("sent")).await.expect("an intent");
        let disk = Connection::open(&path).expect("the file");
        let full = "CREATE TRIGGER full BEFORE UPDATE OF task ON attempt BEGIN SELECT RAISE(ROLLBACK, 'full'); END";
        disk.execute_batch(full).expect("a trigger");

        // In one commit, and in two.
        let (told, next) = futures::join!(held.accept(sent, task("t")), held.intend(intent_of("next")));
        assert!(told.is_err() && comes_again(&next), "{told:?}, {next:?}");
        disk.execute_batch("DROP TRIGGER full").expect("room");
        let next = held.intend(intent_of("next")).await;
        assert!(comes_again(&next), "{next:?}");

        let (told, next) = futures::join!(held.accept(sent, task("t")), held.intend(intent_of("next")));
        told.expect("written");
        next.expect("behind it");
    }

    #[tokio::test]
    async fn a_task_whose_commit_an_intent_undid_says_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.db");
        let held = SqliteBatch::take_without_a_lock(&path, Kind::Real, batch(""));
        let sent = held.intend(intent_of("sent")).await.expect("an intent");
        let full = "CREATE TRIGGER full BEFORE INSERT ON attempt BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END";
        Connection::open(&path).and_then(|disk| disk.execute_batch(full)).expect("a trigger");
        let (told, next) = futures::join!(held.accept(sent, task("t")), held.intend(intent_of("next")));
        let why = crate::domain::with_causes(&told.expect_err("undone"));
        assert!(why.contains("disk is full") && comes_again(&next), "{why}, {next:?}");
        // The task is still to be written: no other intent comes before it.
        Connection::open(&path).and_then(|disk| disk.execute_batch("DROP TRIGGER full")).expect("room");
        let next = held.intend(intent_of("next")).await;
        assert!(comes_again(&next), "{next:?}");
        held.accept(sent, task("t")).await.expect("written");
        held.intend(intent_of("next")).await.expect("behind it");
    }

    #[tokio::test]
    async fn no_intent_is_written_behind_a_task_of_another_before_the_doubt_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = SqliteBatch::take_without_a_lock(&folder.path().join("ledger.db"), Kind::Real, batch(""));
        let (first, second) = futures::join!(held.intend(intent_of("a")), held.intend(intent_of("b")));
        let second = second.expect("an intent");
        held.accept(first.expect("an intent"), task("t")).await.expect("written");

        let (told, next) = futures::join!(held.accept(second, task("t")), held.intend(intent_of("next")));
        assert!(matches!(told, Err(LedgerError::TaskTaken { .. })) && comes_again(&next), "{told:?}, {next:?}");
        let doubt = Event::Doubted(crate::domain::ServiceError::default());
        let (doubted, next) = futures::join!(held.record(second, doubt), held.intend(intent_of("next")));
        doubted.expect("written");
        next.expect("behind it");
    }

    fn comes_again(intended: &Result<AttemptId, LedgerError>) -> bool {
        matches!(intended, Err(LedgerError::Later(_)))
    }
}
