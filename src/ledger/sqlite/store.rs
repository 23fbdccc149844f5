//! The file as a store: one connection that writes, the counter of its commits, and its statements for rows and their checksums.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::rc::Rc;
use std::sync::LazyLock;

use jiff::Timestamp;
use rusqlite::types::{ToSqlOutput, Type};
use rusqlite::{Connection, ErrorCode, Row as SqlRow, ToSql, params_from_iter};

use super::beside::{CommitCounter, count_commit};
use super::open::store_error;
use super::schema::{self, damaged, digest, digest_of, expect, sum_of, verified_batch};
use crate::domain::{Attempt, AttemptId, AttemptState, BatchKey, Freeze, History, TaskId, with_causes};
use crate::ledger::row::{COLUMNS, Row, Shared, Unreadable, Value};
use crate::ledger::rules::{BatchIntent, Changes, Facts};
use crate::ledger::sql::{self, Line, Sql, attempt, ensure_batch, from_json, key, unsent};
use crate::ledger::store::{self, Locked, Store, Transaction, crash_point};
use crate::ledger::{Controls, Event, LedgerError, SpendLimit, Unavailable};

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
            Ok((number, store::recover_intents(transaction, Some(number)).await?))
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

impl From<Unreadable> for rusqlite::Error {
    fn from(error: Unreadable) -> Self {
        Self::FromSqlConversionFailure(usize::MAX, Type::Text, with_causes(&error).into())
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Number(number) => number.to_sql(),
            Self::Text(text) => text.to_sql(),
        }
    }
}

impl Line<rusqlite::Error> for SqlRow<'_> {
    fn number(&self, column: usize) -> rusqlite::Result<i64> {
        self.get(column)
    }

    fn text(&self, column: usize) -> rusqlite::Result<String> {
        self.get(column)
    }

    fn plain(&self, column: usize) -> rusqlite::Result<Option<&str>> {
        Ok(self.get_ref(column)?.as_str_or_null()?)
    }
}

impl Sql for Connection {
    type Error = rusqlite::Error;

    const IS_AMONG: &'static str = "IN (SELECT value FROM json_each($1))";

    async fn each_line(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Line<rusqlite::Error>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.prepare_cached(&numbered(sql))?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            read(row)?;
        }
        Ok(())
    }

    async fn change(&self, sql: &str, values: &[Value<'_>]) -> rusqlite::Result<()> {
        self.prepare_cached(&numbered(sql))?.execute(params_from_iter(values)).map(drop)
    }

    /// Every attempt of a batch, oldest first, verified against the checksums. Must be called in a transaction.
    async fn history(&self, batch: &BatchKey) -> rusqlite::Result<History> {
        let Some((id, expected, retake)) = verified_batch(self, &batch.name, &batch.batch)? else {
            return Ok(History::default());
        };
        let count = "SELECT count(*) FROM attempt WHERE batch = $1";
        let count = self.line(count, &[id.into()], |line| line.count(0)).await?.unwrap_or_default();
        let (mut attempts, mut sum) = (Vec::<Attempt>::with_capacity(count as usize), 0_i64);
        // One statement: a second one could read another index, and miss the damage of the first.
        let digest = digest("attempt", "attempt");
        let sql = format!("SELECT id, record, {digest} FROM attempt WHERE batch = $1 ORDER BY id");
        let read = |line: &dyn Line<rusqlite::Error>| {
            sum = sum.wrapping_add(line.number(2)?);
            let attempt = attempt(line, 0, attempts.last())?;
            // A checksum is of rows in any order, and the newest one decides.
            if attempts.last().is_some_and(|last| last.id >= attempt.id) {
                return Err(damaged("the attempts of the batch are out of order"));
            }
            attempts.push(attempt);
            Ok(())
        };
        self.each_line(&sql, &[id.into()], read).await?;
        sum = sum.wrapping_add(sum_of(self, "unsent", &format!("batch = {id}"))?);
        expect(expected, sum, "the attempts of the batch")?;
        // By the number that was verified: an index of names may be damaged.
        let unsent = unsent(self, "FROM unsent WHERE batch = $1", &[id.into()]).await?;
        let retake = retake.map(|text| from_json("retake", &text)).transpose()?;
        Ok(History::new(attempts).with_facts(unsent, retake))
    }

    async fn controls(&self) -> rusqlite::Result<Controls> {
        Ok(Controls { now: Timestamp::now(), limits: sql::limits(self).await?, freeze: read_freeze(self)? })
    }

    async fn named(&self, names: &[&TaskId]) -> rusqlite::Result<Vec<(BatchKey, Attempt)>> {
        let named = "SELECT name, batch.batch, attempt.id, record FROM attempt JOIN batch ON batch.id = attempt.batch
             WHERE task = $1 OR alias = $1";
        let mut found = Vec::new();
        for name in names {
            let read = |line: &dyn Line<_>| Ok((key(line, 0)?, attempt(line, 2, None)?));
            found.extend(self.lines(named, &[name.as_str().into()], read).await?);
        }
        Ok(found)
    }

    async fn verify_sums(&self) -> rusqlite::Result<()> {
        schema::verify_sums(self)
    }

    async fn save_now(&self, Changes { new, changed, sums }: &Changes<'_>) -> rusqlite::Result<()> {
        let mut checksums = BTreeMap::<i64, i64>::new();
        for row in new {
            let sum = checksums.entry(row.batch).or_default();
            *sum = sum.wrapping_add(insert(self, row)?);
            let sent = [row.batch.into(), row.attempt.job().as_str().into()];
            self.change("DELETE FROM unsent WHERE batch = $1 AND job = $2", &sent).await?;
        }
        for (before, row) in changed {
            let sum = checksums.entry(row.batch).or_default();
            *sum = sum.wrapping_add(replace(self, before, row)?);
        }
        for (batch, change) in checksums {
            let add = "UPDATE batch SET checksum = changed(checksum, 0, $2) WHERE id = $1";
            self.change(add, &[batch.into(), change.into()]).await?;
        }
        for sum in sums.spent() {
            let add = "INSERT INTO spent VALUES ($1, $2, $3, $4)
                 ON CONFLICT (label, value, quarter) DO UPDATE SET micros = micros + excluded.micros";
            self.change(add, &[sum.label.into(), sum.value.into(), sum.quarter.into(), sum.micros.into()]).await?;
        }
        Ok(())
    }
}

/// SQLite numbers `$1` by its first place in a statement, and `?1` by its name.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

/// Inserts a row. An error rolls the whole transaction back, so that SQLite keeps no copy of each page for a single statement.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    let places: Vec<String> = (1..=COLUMNS.len()).map(|place| format!("?{place}")).collect();
    format!("INSERT OR ROLLBACK INTO attempt ({}) VALUES ({})", COLUMNS.join(", "), places.join(", "))
});

/// The digest of a row as it is stored.
static DIGEST: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} FROM attempt WHERE id = ?1", digest("attempt", "attempt")));

/// Inserts a row. Returns the change of its batch's checksum.
fn insert(connection: &Connection, row: &Row) -> rusqlite::Result<i64> {
    let values = row.values()?;
    connection.prepare_cached(&INSERT)?.execute(params_from_iter(&values))?;
    Ok(digest_of(&values))
}

/// Replaces the changed values of a row: each other one would be written to its indexes again. Returns the change of its batch's checksum.
fn replace(connection: &Connection, before: &Row, row: &Row) -> rusqlite::Result<i64> {
    let (old, values) = (before.facts()?, row.values()?);
    let changed = (0..COLUMNS.len()).filter(|&at| old.get(at) != Some(&values[at]));
    let sets: Vec<String> = changed.map(|at| format!("{} = ?{}", COLUMNS[at], at + 1)).collect();
    let (sets, digest) = (sets.join(", "), digest("attempt", "attempt"));
    let update = format!("UPDATE OR ROLLBACK attempt SET {sets} WHERE id = ?1 RETURNING {digest}");
    let stored: i64 = connection.prepare_cached(&DIGEST)?.query_row([row.attempt.id.0], |row| row.get(0))?;
    let written: i64 = connection.prepare_cached(&update)?.query_row(params_from_iter(&values), |row| row.get(0))?;
    Ok(written.wrapping_sub(stored))
}

/// Returns whether a line with all columns has the values of a row, which was read from the last of them.
pub(super) fn repeats_its_record(line: &dyn Line<rusqlite::Error>, row: &Row) -> rusqlite::Result<bool> {
    let values = row.values()?;
    let is_same = |(column, value): (usize, &Value<'_>)| match value {
        Value::Number(number) => line.number(column).is_ok_and(|found| found == *number),
        Value::Text(text) => line.plain(column).is_ok_and(|found| found == text.as_deref()),
    };
    Ok(values[..values.len() - 1].iter().enumerate().all(is_same))
}

/// The freeze, if purchases are frozen.
pub(super) fn read_freeze(connection: &Connection) -> rusqlite::Result<Option<Freeze>> {
    let why: Option<String> =
        connection.prepare_cached("SELECT frozen FROM ledger")?.query_row([], |row| row.get(0))?;
    Ok(why.map(Freeze::on_request))
}

/// Freezes purchases for a reason, or unfreezes them.
pub(super) fn set_freeze(connection: &Connection, why: Option<&str>) -> rusqlite::Result<()> {
    connection.execute("UPDATE ledger SET frozen = ?1", [why])?;
    Ok(())
}

/// Changes other tables than `attempt`, and counts the commit: an older copy has no freeze, and must be refused.
pub(super) fn commit(
    connection: &Connection,
    path: &Path,
    change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), Unavailable> {
    let mut counter = CommitCounter::open(path)?;
    let commits = || {
        let transaction = connection.unchecked_transaction()?;
        change(&transaction)?;
        let commits = count_commit(&transaction)?;
        transaction.commit().map(|()| commits)
    };
    counter.note(commits().map_err(|error| store_error(path, error))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Fingerprint;
    use crate::ledger::Intent;
    use crate::ledger::row::Kind;
    use crate::ledger::rules::BatchIntent;
    use crate::ledger::sqlite::beside::commits;
    use crate::ledger::sqlite::file::lock_without_a_file;
    use crate::ledger::sqlite::open::open;
    use crate::ledger::suite::store::{batch, intent_of, task};
    use std::cell::RefCell;

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
        let why = with_causes(&bad.expect_err("undone"));
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
        // On a busy machine, more time may pass between the two than the writer waits.
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

    /// A file that notes how it reads.
    struct Explained(Connection, RefCell<Vec<String>>);

    impl Sql for Explained {
        type Error = rusqlite::Error;

        const IS_AMONG: &'static str = Connection::IS_AMONG;

        async fn each_line(
            &self,
            sql: &str,
            values: &[Value<'_>],
            read: impl FnMut(&dyn Line<rusqlite::Error>) -> rusqlite::Result<()>,
        ) -> rusqlite::Result<()> {
            let plan = self.0.lines(&format!("EXPLAIN QUERY PLAN {sql}"), values, |line| line.text(3)).await?;
            self.1.borrow_mut().extend(plan);
            self.0.each_line(sql, values, read).await
        }

        async fn change(&self, sql: &str, values: &[Value<'_>]) -> rusqlite::Result<()> {
            self.0.change(sql, values).await
        }

        async fn history(&self, batch: &BatchKey) -> rusqlite::Result<History> {
            self.0.history(batch).await
        }

        async fn controls(&self) -> rusqlite::Result<Controls> {
            self.0.controls().await
        }

        async fn named(&self, names: &[&TaskId]) -> rusqlite::Result<Vec<(BatchKey, Attempt)>> {
            self.0.named(names).await
        }

        async fn verify_sums(&self) -> rusqlite::Result<()> {
            self.0.verify_sums().await
        }

        async fn save_now(&self, changes: &Changes<'_>) -> rusqlite::Result<()> {
            self.0.save_now(changes).await
        }
    }

    #[tokio::test]
    async fn attempts_of_others_are_found_by_an_index() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = open(&directory.path().join("ledger.db"), Kind::Real).expect("a ledger");
        let sql = Explained(file, RefCell::default());
        ensure_batch(&sql, &batch("other")).await.expect("a batch");
        let intent = Intent { paid_elsewhere: Some(0), ..intent_of("a") };
        let key = batch("own");
        sql::paid(&sql, &[BatchIntent { batch: 1, key: &key, intent: &intent }]).await.expect("read");
        sql::open_elsewhere(&sql, &key).await.expect("read");
        let requests = || vec![Fingerprint::stored("normalized a".to_owned())];
        sql::bought_elsewhere(&sql, &BatchKey { name: "m".into(), ..batch("own") }, &requests).await.expect("read");
        let plans = sql.1.into_inner();
        assert!(plans.iter().filter(|plan| plan.contains("INDEX attempt_by_normalized")).count() >= 2, "{plans:#?}");
        assert!(plans.iter().any(|plan| plan.contains("INDEX attempt_unfinished")), "{plans:#?}");
        assert!(!plans.iter().any(|plan| plan.starts_with("SCAN attempt")), "{plans:#?}");
    }
}

#[cfg(all(test, unix))]
mod damage_tests {
    use std::os::unix::fs::FileExt as _;

    use crate::domain::UnfinishedRetake;
    use crate::ledger::Ledger;
    use crate::ledger::suite::store::{batch, intent_of};

    /// A damaged index must not hide a batch: an unfinished retake would start over.
    #[tokio::test]
    async fn emptied_batch_index_hides_no_unsent_reason() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        let ledger = Ledger::in_file(&path);
        let retake = UnfinishedRetake { globs: vec!["hero*".into()], after: 0 };
        let locked = ledger.lock(&batch("b")).await.expect("a batch");
        locked.note_unsent(&intent_of("a").purchase.job, "no image").await.expect("a note");
        locked.keep_retake(Some(retake.clone())).await.expect("a note");
        drop(locked);
        let file = rusqlite::Connection::open(&path).expect("the file");
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_batch_1'";
        let root: u32 = file.query_row(root, [], |row| row.get(0)).expect("a page");
        let size: u32 = file.query_row("PRAGMA page_size", [], |row| row.get(0)).expect("a size");
        drop(file);
        // The header of an index's leaf without entries.
        let start = u16::try_from(size).expect("a size").to_be_bytes();
        let empty = [0x0a, 0, 0, 0, 0, start[0], start[1], 0];
        let file = std::fs::File::options().write(true).open(&path).expect("the file");
        file.write_all_at(&empty, u64::from((root - 1) * size)).expect("written");
        let (_, unsent, found) = ledger.history(&batch("b")).await.expect("a record").into_parts();
        assert_eq!(unsent.values().collect::<Vec<_>>(), ["no image"]);
        assert_eq!(found, Some(retake));
        // A run does not find the batch, and creates it a second time. Then nothing is believed.
        drop(ledger.lock(&batch("b")).await);
        ledger.history(&batch("b")).await.expect_err("a damaged ledger");
    }
}
