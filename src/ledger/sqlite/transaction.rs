//! Transactions that write.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use jiff::Timestamp;
use rusqlite::Connection;

use super::freeze;
use crate::domain::{AttemptId, AttemptState, TaskId};
use crate::ledger::row::{Row, Shared};
use crate::ledger::rules::{Asked, Changes, Facts};
use crate::ledger::sql::{self, Line, Sql as _, attempt};
use crate::ledger::value::Value;
use crate::ledger::writing::{Locked, Transaction};
use crate::ledger::{Event, LedgerError, SpendLimit};

/// A transaction on a connection that no one else uses. No other process writes before it ends.
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

    async fn facts(&self, intents: &[Asked<'_>]) -> Result<Facts, rusqlite::Error> {
        let connection = &*self.connection;
        let newest = "SELECT coalesce(max(id), 0) FROM attempt";
        let mut facts = Facts {
            now: self.now,
            newest: connection.prepare_cached(newest)?.query_row([], |row| row.get(0))?,
            freeze: freeze::frozen(connection)?,
            limits: sql::limits(connection).await?.iter().map(|limit| limit.at(self.now)).collect(),
            paid: sql::paid(connection, intents).await?,
            ..Facts::default()
        };
        let of_job = "SELECT id, record, batch FROM attempt WHERE batch = $1 AND job = $2 ORDER BY id";
        for Asked { batch, intent, .. } in intents {
            if let Entry::Vacant(unread) = facts.attempts.entry((*batch, intent.job.clone())) {
                unread.insert(self.rows(of_job, &[(*batch).into(), intent.job.as_str().into()]).await?);
            }
        }
        let apply = |asked: &Asked<'_>, limit: &&SpendLimit| limit.is_about(&asked.intent.labels);
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
        // The lock of the batch says that no other run waits for a response.
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
