//! The interface of a store for writing, and the commands of its writer. A store knows its medium, and no rule.
//!
//! In debug builds, a store can halt at named places, so a test can kill the process there. `SHOTLIST_HALT_AT=after-commit:6` names the place
//! and the number of the visit. There, the process writes the file `SHOTLIST_HALT_FILE`, and waits until the file is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::row::{Row, Unreadable};
use super::rules::{BatchIntent, Changes, Facts};
use super::sql::Sql;
use super::{Event, Intent, LedgerError};
use crate::domain::{Account, Attempt, AttemptId, BatchKey, JobId, Move, TaskId, TaskNames, UnfinishedRetake};

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
    fn is_down(&self) -> bool {
        false
    }

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

/// A command. Its first value is the writer's number of the locked batch.
pub(in crate::ledger) enum Command {
    Lock(usize, BatchKey, Answer<usize>),
    Release(usize),
    Intend(usize, Box<Intent>, Answer<AttemptId>),
    Record(usize, AttemptId, Box<Event>, Answer<Option<TaskNames>>),
    NoteUnsent(usize, JobId, String, Answer<()>),
    MoveJobs(usize, Vec<Move>, Answer<()>),
    KeepRetake(usize, Option<UnfinishedRetake>, Answer<()>),
    Reassign(usize, Account, Answer<()>),
    Pause(Account, Duration, Answer<()>),
}

/// Halts here if a test requests it.
#[cfg(debug_assertions)]
pub(in crate::ledger) fn crash_point(place: &str) {
    use std::collections::HashMap;
    use std::sync::LazyLock;

    use parking_lot::Mutex;

    static PASSED: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);
    let (Ok(halts), Ok(file)) = (std::env::var("SHOTLIST_HALT_AT"), std::env::var("SHOTLIST_HALT_FILE")) else {
        return;
    };
    let number = {
        let mut passed = PASSED.lock();
        let number = passed.entry(place.to_owned()).or_default();
        *number += 1;
        *number
    };
    if halts.split(',').any(|halt| halt == format!("{place}:{number}")) {
        std::fs::write(&file, "halted").expect("a test gave a file that can be written");
        while std::path::Path::new(&file).exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub(in crate::ledger) fn crash_point(_: &str) {}
