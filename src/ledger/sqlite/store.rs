//! The file as a store: one connection that writes, and the counter of its commits.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode};

use super::beside::{CommitCounter, count_commit};
use super::statements::read_freeze;
use crate::domain::{AttemptId, AttemptState, BatchKey, TaskId};
use crate::ledger::row::{Row, Shared, Value};
use crate::ledger::rules::{BatchIntent, Changes, Facts};
use crate::ledger::sql::{self, Line, Sql as _, attempt, ensure_batch};
use crate::ledger::store::{Locked, Store, Transaction, crash_point};
use crate::ledger::{Event, LedgerError, SpendLimit, operations};

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
        let commits = count_commit(connection)?;
        crash_point("before-commit");
        let committed = connection.prepare_cached("COMMIT")?.execute([]);
        crash_point("after-commit");
        committed?;
        // Before the caller continues: a purchase after this commit must not outlive it.
        self.commits.note(commits);
        Ok(done)
    }
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        // Without its source, which repeats it as a number.
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
        // Every transaction meets a full disk or a lock, each after its wait; a constraint is about one command.
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

/// A transaction on the writer's connection. No other process writes before it ends.
pub(in crate::ledger) struct SqliteTransaction {
    connection: Rc<Connection>,
    now: Timestamp,
}

impl SqliteTransaction {
    pub(super) fn new(connection: Rc<Connection>) -> Self {
        Self { connection, now: Timestamp::now() }
    }

    async fn rows(&self, sql: &str, values: &[Value<'_>]) -> rusqlite::Result<Vec<Row>> {
        let shared = Shared::default();
        let read = |line: &dyn Line<_>| Ok(Row { attempt: attempt(line, 0, None)?, batch: line.number(2)?, shared });
        self.connection.lines(sql, values, read).await
    }
}

impl Transaction for SqliteTransaction {
    type Error = rusqlite::Error;
    type Sql = Connection;

    fn sql(&self) -> &Connection {
        &self.connection
    }

    fn runner(&self) -> Option<i64> {
        None
    }

    async fn facts(&self, intents: &[BatchIntent<'_>]) -> Result<Facts, rusqlite::Error> {
        let connection = &*self.connection;
        let newest = "SELECT coalesce(max(id), 0) FROM attempt";
        let mut facts = Facts {
            now: self.now,
            newest: connection.prepare_cached(newest)?.query_row([], |row| row.get(0))?,
            freeze: read_freeze(connection)?,
            limits: sql::limits(connection).await?.iter().map(|limit| limit.spend_limit(self.now)).collect(),
            paid: sql::paid(connection, intents).await?,
            ..Facts::default()
        };
        let of_job = "SELECT id, record, batch FROM attempt WHERE batch = $1 AND job = $2 ORDER BY id";
        for BatchIntent { batch, intent, .. } in intents {
            if let Entry::Vacant(unread) = facts.attempts.entry((*batch, intent.purchase.job.clone())) {
                unread.insert(self.rows(of_job, &[(*batch).into(), intent.purchase.job.as_str().into()]).await?);
            }
        }
        let apply = |asked: &BatchIntent<'_>, limit: &&SpendLimit| limit.is_about(&asked.intent.purchase.labels);
        let limits = intents
            .iter()
            .flat_map(|asked| asked.intent.limits.iter().chain(&facts.limits).filter(move |limit| apply(asked, limit)));
        facts.used = sql::sums(connection, limits).await?;
        Ok(facts)
    }

    async fn locked(&self, attempts: &[AttemptId], names: &[&TaskId]) -> Result<Locked, rusqlite::Error> {
        let mut rows = BTreeMap::new();
        for id in attempts {
            let by_id = "SELECT id, record, batch FROM attempt WHERE id = $1";
            rows.extend(self.rows(by_id, &[id.0.into()]).await?.into_iter().map(|row| (*id, row)));
        }
        Ok(Locked { rows, named: self.connection.named(names).await?, now: self.now })
    }

    async fn locked_batch(&self, batch: i64) -> Result<Vec<Row>, rusqlite::Error> {
        self.rows("SELECT id, record, batch FROM attempt WHERE batch = $1 ORDER BY id", &[batch.into()]).await
    }

    async fn abandoned(&self, batch: Option<i64>) -> Result<Vec<Row>, rusqlite::Error> {
        // By the lock of the batch, no other run waits for a response.
        let unfinished = "SELECT id, record, batch FROM attempt WHERE batch = $1 AND is_unfinished ORDER BY id";
        let mut rows = self.rows(unfinished, &[batch.unwrap_or_default().into()]).await?;
        rows.retain(|row| row.attempt.state == AttemptState::Intended);
        Ok(rows)
    }

    async fn objection(&self, _: &Row, _: &Event) -> Result<Option<LedgerError>, rusqlite::Error> {
        Ok(None)
    }

    async fn save(&self, changes: &Changes<'_>) -> Result<(), rusqlite::Error> {
        self.connection.save_now(changes).await
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use crate::domain::AttemptId;
    use crate::ledger::sqlite::beside::commits;
    use crate::ledger::sqlite::file::lock_without_a_file;
    use crate::ledger::suite::store::{batch, intent_of, task};
    use crate::ledger::{Event, LedgerError};

    #[tokio::test]
    async fn intent_is_written_after_an_earlier_task() {
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
    async fn failed_intent_blocks_no_task_and_no_other_intent() {
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
    async fn intent_waits_for_the_doubt_after_a_taken_task() {
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
        // On a busy machine, the two may arrive further apart than the writer waits.
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
