//! What this runner has written: a database may forget what it acknowledged, when a standby takes over that lagged behind.
//!
//! Who notices puts the facts back, whole: the attempts that are gone, and those that the database knows an older state of. Then
//! nobody buys any more before a person has looked, because another runner's purchases may be gone with it.

use std::collections::{BTreeMap, HashMap};

use super::batches::AtWork;
use super::error::PostgresError;
use super::rows::{self, Row};
use super::runner::Runner;
use super::transaction::Transaction;
use super::{batches, gate};
use crate::domain::{AttemptId, AttemptState, BatchKey};

/// The newest state of every attempt that this runner wrote, with its batch.
#[derive(Debug, Default)]
pub(super) struct Memory {
    rows: HashMap<AttemptId, (BatchKey, Row)>,
}

impl Memory {
    /// Remembers what a commit that was acknowledged has written.
    pub(super) fn keep(&mut self, batch: &BatchKey, row: Row) {
        self.rows.insert(AttemptId(row.stored.id), (batch.clone(), row));
    }

    /// Every attempt that may have been charged, in a line each.
    pub(super) fn charged(&self) -> impl Iterator<Item = String> {
        let is_free = |state: &str| AttemptState::named(state).is_some_and(AttemptState::is_free);
        self.rows.values().filter(move |(_, row)| !is_free(&row.stored.state)).map(|(batch, Row { stored, .. })| {
            let job = &stored.job;
            stored.task.as_ref().map_or_else(
                || format!("{job} of {batch} was submitted, with an unknown outcome"),
                |task| format!("the task of {job} of {batch} is {task}; `shotlist resolve MANIFEST {job} --task {task}` records it"),
            )
        })
    }

    /// Puts back what the database has forgotten, stops everybody, and says how much it was.
    pub(super) async fn put_back(
        &self,
        transaction: &Transaction<'_>,
        runner: &Runner,
        at_work: &mut BTreeMap<usize, AtWork>,
    ) -> Result<String, PostgresError> {
        runner.enrol_again(transaction).await?;
        let mut numbers: HashMap<&BatchKey, i64> = HashMap::new();
        for (key, _) in self.rows.values() {
            if !numbers.contains_key(key) {
                numbers.insert(key, batches::ensure(transaction, key).await?);
            }
        }
        for work in at_work.values_mut() {
            work.number = batches::ensure(transaction, &work.key).await?;
            batches::begin(transaction, runner, work).await?;
        }
        let ids: Vec<AttemptId> = self.rows.keys().copied().collect();
        let there = rows::locked(transaction, &ids).await?;
        let (mut missing, mut older) = (Vec::new(), Vec::new());
        for (id, (key, known)) in &self.rows {
            let number = numbers.get(key).copied().unwrap_or(known.batch);
            let known = Row { batch: number, was_forgotten: true, ..known.clone() };
            match there.get(id) {
                None => missing.push(known),
                Some(found) if knows_more(&known, found) => {
                    let version = known.version.max(found.version) + 1;
                    older.push(Row { version, ..known });
                }
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
        gate::freeze(transaction, &told).await?;
        Ok(told)
    }
}

/// Whether this runner knows more of an attempt than the database does. Others may have written of it since: a final word of theirs stays, and a task that
/// only this runner knows is never lost for it.
fn knows_more(known: &Row, found: &Row) -> bool {
    let is_final =
        matches!(AttemptState::named(&found.stored.state), Some(AttemptState::Completed | AttemptState::Failed));
    let has_the_task = known.stored.task.is_some() && found.stored.task.is_none();
    !is_final && (has_the_task || known.version > found.version)
}
