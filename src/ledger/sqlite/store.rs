//! The file as a store: one connection that writes, and the counter of its commits.

use std::rc::Rc;

use rusqlite::{Connection, ErrorCode};

use super::commit_counter::{self, CommitCounter};
use super::transaction::SqliteTransaction;
use crate::domain::BatchKey;
use crate::ledger::sql::ensure_batch;
use crate::ledger::writing::{Store, Transaction as _, operations};
use crate::ledger::{LedgerError, crash};

/// A file that one locked batch writes.
pub(in crate::ledger) struct SqliteStore {
    connection: Rc<Connection>,
    commits: CommitCounter,
    batch: Option<(i64, BatchKey)>,
    is_down: bool,
}

impl SqliteStore {
    pub(super) fn new(connection: Connection, commits: CommitCounter) -> Self {
        Self { connection: Rc::new(connection), commits, batch: None, is_down: false }
    }

    async fn attempt<T>(
        &mut self,
        work: impl AsyncFn(&SqliteTransaction) -> Result<T, rusqlite::Error>,
    ) -> Result<T, rusqlite::Error> {
        let connection = &self.connection;
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let done = work(&SqliteTransaction::new(Rc::clone(connection))).await?;
        let commits = commit_counter::count(connection)?;
        crash::point("before-commit");
        let committed = connection.prepare_cached("COMMIT")?.execute([]);
        crash::point("after-commit");
        committed?;
        // Before the caller goes on: what is bought because of this commit must not outlive it unseen.
        self.commits.note(commits);
        Ok(done)
    }
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        // As one sentence: the source repeats it as a number.
        Self::Store(std::sync::Arc::new(std::io::Error::other(error.to_string())))
    }
}

impl Store for SqliteStore {
    type Transaction = SqliteTransaction;

    async fn transact<T: Clone>(
        &mut self,
        work: impl AsyncFn(&SqliteTransaction) -> Result<T, rusqlite::Error>,
    ) -> Result<T, LedgerError> {
        let done = self.attempt(work).await;
        // After some errors, a full disk among them, SQLite has already rolled back.
        if done.is_err() && !self.connection.is_autocommit() {
            let _told_by_the_error = self.connection.execute_batch("ROLLBACK");
        }
        // A full disk or a lock is met by every transaction, each after its wait; a constraint only by this one.
        let code = done.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
        self.is_down = code.is_some_and(|code| code != ErrorCode::ConstraintViolation);
        done.map_err(LedgerError::from)
    }

    async fn lock(&mut self, _own: usize, key: BatchKey) -> Result<usize, LedgerError> {
        let locked = self.transact(async |transaction| {
            let number = ensure_batch(transaction.sql(), &key).await?;
            Ok((number, operations::recover_intents(transaction, Some(number)).await?))
        });
        let (number, recovered) = locked.await?;
        self.batch = Some((number, key));
        recovered
    }

    async fn release(&mut self, _own: usize) {
        self.batch = None;
    }

    fn is_down(&self) -> bool {
        self.is_down
    }

    fn batch(&self, _own: usize) -> Option<(i64, &BatchKey)> {
        self.batch.as_ref().map(|(number, key)| (*number, key))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use crate::domain::AttemptId;
    use crate::ledger::sqlite::commit_counter::commits;
    use crate::ledger::sqlite::file::lock_without_a_file;
    use crate::ledger::suite::store::{batch, intent_of, task};
    use crate::ledger::{Event, LedgerError};

    #[tokio::test]
    async fn no_intent_is_written_before_the_task_that_was_reported_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        let held = lock_without_a_file(&path, &batch("")).await;
        let sent = held.intend(intent_of("sent")).await.expect("an intent");
        let disk = Connection::open(&path).expect("the file");
        let full = "CREATE TRIGGER full BEFORE UPDATE OF task ON attempt WHEN NEW.task IS NOT NULL BEGIN SELECT RAISE(ROLLBACK, 'full'); END";
        disk.execute_batch(full).expect("a trigger");

        // In one commit, and in two.
        let (shown, next) = futures::join!(held.accept(sent, task("t")), held.intend(intent_of("next")));
        assert!(shown.is_err() && comes_again(&next), "{shown:?}, {next:?}");
        disk.execute_batch("DROP TRIGGER full").expect("room");
        let next = held.intend(intent_of("next")).await;
        assert!(comes_again(&next), "{next:?}");

        let (shown, next) = futures::join!(held.accept(sent, task("t")), held.intend(intent_of("next")));
        shown.expect("written");
        next.expect("behind it");
    }

    #[tokio::test]
    async fn intent_that_fails_keeps_neither_a_task_nor_other_intents_from_being_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        let held = lock_without_a_file(&path, &batch("")).await;
        let sent = held.intend(intent_of("sent")).await.expect("an intent");
        let full = "CREATE TRIGGER full BEFORE INSERT ON attempt WHEN NEW.job = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END";
        Connection::open(&path).and_then(|disk| disk.execute_batch(full)).expect("a trigger");
        let (shown, bad, good) =
            futures::join!(held.accept(sent, task("t")), held.intend(intent_of("bad")), held.intend(intent_of("good")));
        let why = crate::domain::with_causes(&bad.expect_err("undone"));
        assert!(why.contains("disk is full"), "{why}");
        shown.expect("written");
        good.expect("written");
    }

    #[tokio::test]
    async fn no_intent_is_written_behind_a_task_of_another_before_the_doubt_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let held = lock_without_a_file(&directory.path().join("ledger.db"), &batch("")).await;
        let (first, second) = futures::join!(held.intend(intent_of("a")), held.intend(intent_of("b")));
        let second = second.expect("an intent");
        held.accept(first.expect("an intent"), task("t")).await.expect("written");

        let (shown, next) = futures::join!(held.accept(second, task("t")), held.intend(intent_of("next")));
        assert!(matches!(shown, Err(LedgerError::TaskTaken { .. })) && comes_again(&next), "{shown:?}, {next:?}");
        let doubt = Event::Doubted(crate::domain::ServiceError::default());
        let (doubted, next) = futures::join!(held.record(second, doubt), held.intend(intent_of("next")));
        doubted.expect("written");
        next.expect("behind it");
    }

    #[tokio::test]
    async fn events_and_intents_share_a_commit() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        let held = lock_without_a_file(&path, &batch("")).await;
        let commits = || commits(&Connection::open(&path).expect("the file")).expect("a count");
        // On a busy machine, the two may come further apart than the writer waits.
        let mut counts = Vec::new();
        for number in 0..20 {
            let [sent, next, task] = ["sent", "next", "t"].map(|name| format!("{name}{number}"));
            let sent = held.intend(intent_of(&sent)).await.expect("an intent");
            let before = commits();
            let (accepted, next) = futures::join!(held.accept(sent, self::task(&task)), held.intend(intent_of(&next)));
            accepted.expect("recorded");
            next.expect("recorded");
            counts.push(commits() - before);
        }
        assert!(counts.contains(&1) && counts.iter().all(|count| *count <= 2), "{counts:?}");
    }

    fn comes_again(intended: &Result<AttemptId, LedgerError>) -> bool {
        matches!(intended, Err(LedgerError::Deferred(_)))
    }
}
