//! The writes of this runner that the database acknowledged. It may lose them when a standby takes over that lagged behind.
//!
//! The runner that notices restores the facts: the missing attempts, and those of which the database has an older
//! state. Then purchases freeze until the user has checked, because another runner's purchases may be missing, too.

use std::collections::HashMap;

use super::batches::LockedBatches;
use super::error::PostgresError;
use super::rows;
use super::runner::Runner;
use super::transaction::Transaction;
use super::{batches, freeze};
use crate::domain::{AttemptId, AttemptState, BatchKey, Charge};
use crate::ledger::row::{Row, Shared};
use crate::ledger::rules::Changes;
use crate::ledger::sql::{Sql as _, ensure_batch};

/// The newest row of every attempt that this runner wrote, with its batch.
#[derive(Debug, Default)]
pub(super) struct AcknowledgedWrites {
    rows: HashMap<AttemptId, (BatchKey, Row)>,
}

impl AcknowledgedWrites {
    /// Remembers what a commit that was acknowledged has written.
    pub(super) fn keep(&mut self, batch: &BatchKey, row: Row) {
        self.rows.insert(row.attempt.id, (batch.clone(), row));
    }

    /// Every attempt that may have been charged, in a line each.
    pub(super) fn charged(&self) -> impl Iterator<Item = String> {
        let charged = self.rows.values().filter(|(_, row)| row.attempt.charge() != Charge::None);
        charged.map(|(batch, Row { attempt, .. })| {
            let job = &attempt.job;
            attempt.task.as_ref().map_or_else(
                || format!("{job} of {batch} was submitted, with an unknown outcome"),
                |task| {
                    let task = &task.id;
                    format!("the task of {job} of {batch} is {task}; `shotlist resolve MANIFEST {job} --task {task}` records it")
                },
            )
        })
    }

    /// Puts back what the database has forgotten, freezes purchases, and returns how much it was.
    pub(super) async fn put_back(
        &self,
        transaction: &Transaction,
        runner: &Runner,
        runner_batch: &mut LockedBatches,
    ) -> Result<String, PostgresError> {
        runner.register_again(transaction).await?;
        let mut numbers: HashMap<&BatchKey, i64> = HashMap::new();
        for (key, _) in self.rows.values() {
            if !numbers.contains_key(key) {
                numbers.insert(key, ensure_batch(transaction, key).await?);
            }
        }
        for work in runner_batch.values_mut() {
            work.number = ensure_batch(transaction, &work.key).await?;
            // Purchases freeze, so a runner that took the batch meanwhile may keep it.
            batches::lock(transaction, runner, work.number).await?;
        }
        let ids: Vec<AttemptId> = self.rows.keys().copied().collect();
        let there = rows::locked(transaction, &ids).await?;
        let (mut missing, mut older) = (Vec::new(), Vec::new());
        for (id, (key, known)) in &self.rows {
            let batch = numbers.get(key).copied().unwrap_or(known.batch);
            let put_back = |version| {
                let shared = Shared { version, was_forgotten: true, ..known.shared };
                Row { attempt: known.attempt.clone(), batch, shared }
            };
            match there.get(id) {
                None => missing.push(put_back(known.shared.version)),
                Some(found) if knows_more(known, found) => {
                    older.push((found, put_back(known.shared.version.max(found.shared.version) + 1)));
                }
                Some(_) => {}
            }
        }
        let (gone, aged) = (missing.len(), older.len());
        let mut changes = Changes::default();
        for row in &missing {
            changes.insert(row);
        }
        for (found, row) in &older {
            changes.replace(found, row);
        }
        transaction.save_now(&changes).await?;
        let name = &runner.machine;
        let shown = format!(
            "the database has forgotten what it had acknowledged: {name} put {gone} attempts and {aged} newer states back"
        );
        freeze::freeze(transaction, &shown).await?;
        Ok(shown)
    }
}

/// Returns whether this runner knows more of an attempt than the database does. Others may have written since: their
/// final state stays, and a task that only this runner knows is never lost for it.
fn knows_more(known: &Row, found: &Row) -> bool {
    let is_final = matches!(found.attempt.state, AttemptState::Completed | AttemptState::Failed);
    let has_the_task = known.attempt.task.is_some() && found.attempt.task.is_none();
    !is_final && (has_the_task || known.shared.version > found.shared.version)
}
