//! What this runner has written: a database may forget what it acknowledged, when a standby takes over that lagged behind.
//!
//! Who notices puts the facts back, whole: the attempts that are gone, and those that the database knows an older state of. Then
//! nobody buys any more before a person has looked, because another runner's purchases may be gone with it.

use std::collections::{BTreeMap, HashMap};

use tokio_postgres::Transaction;

use super::batches::AtWork;
use super::error::PostgresError;
use super::rows::{self, Row};
use super::runner::Runner;
use super::{batches, gate};
use crate::domain::AttemptId;

/// The newest state of every attempt that this runner wrote, with the batch by the number that orders use.
#[derive(Debug, Default)]
pub(super) struct Memory {
    rows: HashMap<AttemptId, (usize, Row)>,
}

impl Memory {
    /// Remembers what a commit that was acknowledged has written.
    pub(super) fn keep(&mut self, batch: usize, row: Row) {
        self.rows.insert(AttemptId(row.stored.id), (batch, row));
    }

    /// Puts back what the database has forgotten, stops everybody, and says how much it was.
    pub(super) async fn put_back(
        &self,
        transaction: &Transaction<'_>,
        runner: &Runner,
        at_work: &mut BTreeMap<usize, AtWork>,
    ) -> Result<String, PostgresError> {
        runner.enrol_again(transaction).await?;
        for work in at_work.values_mut() {
            work.number = batches::ensure(transaction, &work.key).await?;
            batches::begin(transaction, runner, work).await?;
        }
        let ids: Vec<AttemptId> = self.rows.keys().copied().collect();
        let there = rows::locked(transaction, &ids).await?;
        let (mut missing, mut older) = (Vec::new(), Vec::new());
        for (id, (batch, known)) in &self.rows {
            let number = at_work.get(batch).map_or(known.batch, |work| work.number);
            let known = Row { batch: number, was_forgotten: true, ..known.clone() };
            match there.get(id) {
                None => missing.push(known),
                Some(found) if found.version < known.version => older.push(known),
                Some(_) => {}
            }
        }
        let (gone, aged) = (missing.len(), older.len());
        rows::insert(transaction, &missing.iter().collect::<Vec<_>>()).await?;
        rows::replace(transaction, &older.iter().collect::<Vec<_>>()).await?;
        let name = &runner.machine;
        let told = format!(
            "the database has forgotten what it had acknowledged: {name} put {gone} attempts and {aged} newer states back"
        );
        gate::stop(transaction, &told).await?;
        Ok(told)
    }
}
