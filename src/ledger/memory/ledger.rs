//! A ledger in memory: the model that tests run on.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::store::{MemoryStore, Shared};
use crate::domain::{Attempt, BatchKey, Fingerprint, Freeze, History, JobId, Label, TaskId, Usd};
use crate::ledger::rules::Named;
use crate::ledger::writing::{Writer, WriterHandle};
use crate::ledger::{
    BoughtElsewhere, Controls, HoldError, LedgerLimit, LockedBatch, OpenElsewhere, Spending, Unavailable,
};

/// A ledger in memory, which ends with the process.
#[derive(Clone, Default)]
pub struct MemoryLedger(Shared);

impl MemoryLedger {
    /// Lets all commits from this one on fail, counted from 0 at the first of the ledger.
    pub fn fail_from(&self, commit: usize) {
        self.0.state().fails_at = Some(commit);
    }

    /// Calls this for each attempt that a commit writes.
    pub fn observe(&self, observe: impl Fn(&Attempt) + Send + Sync + 'static) {
        self.0.state().observe = Some(Arc::new(observe));
    }

    /// Every attempt, oldest first, with its batch.
    #[must_use]
    pub fn attempts(&self) -> Vec<(BatchKey, Attempt)> {
        let state = self.0.state();
        state.rows.iter().map(|row| (state.key(row.batch), row.attempt.clone())).collect()
    }
}

/// The operations of [`Ledger`](crate::ledger::Ledger).
#[expect(clippy::unused_async, clippy::unused_self, reason = "every store has these methods")]
impl MemoryLedger {
    pub(in crate::ledger) fn is_simulated(&self) -> bool {
        false
    }

    pub(in crate::ledger) async fn lock(&self, batch: &BatchKey) -> Result<LockedBatch, HoldError> {
        let writer = Mutex::new(Writer::new(MemoryStore::new(self.0.clone())));
        let execute = move |command| writer.lock().unwrap_or_else(PoisonError::into_inner).execute_now(command);
        let locked = LockedBatch::new(Arc::new(WriterHandle::InPlace(Box::new(execute))), 0, batch, None).await;
        locked.map_err(|error| Unavailable::new(error, "nothing else is at fault").into())
    }

    pub(in crate::ledger) async fn history(&self, batch: &BatchKey) -> Result<History, Unavailable> {
        let state = self.0.state();
        let attempts = state.of_batch(batch).map(|row| row.attempt.clone()).collect();
        let Some(number) = state.number(batch) else { return Ok(History::default()) };
        let unsent = state.unsent.iter().filter(|((of, _), _)| *of == number);
        let unsent = unsent.map(|((_, job), reason)| (job.clone(), reason.clone())).collect();
        let retake = state.batches.iter().find(|(own, _)| own == batch).and_then(|(_, retake)| retake.clone());
        Ok(History::new(attempts).with_unsent(unsent).with_retake(retake))
    }

    pub(in crate::ledger) async fn used_since(
        &self,
        since: Timestamp,
        label: Option<Label>,
    ) -> Result<Usd, Unavailable> {
        Ok(self.0.state().used(since, label.as_ref()))
    }

    pub(in crate::ledger) async fn spending(&self, since: Timestamp) -> Result<Vec<Spending>, Unavailable> {
        let attempts = self.attempts().into_iter().filter(|(_, attempt)| attempt.intended_at >= since);
        let line = |(batch, attempt): (BatchKey, Attempt)| Spending {
            at: attempt.intended_at,
            batch,
            charge: attempt.charge(),
            is_doubtful: attempt.state.is_doubtful(),
            model: attempt.model,
            labels: attempt.particulars.labels,
            attempts: 1,
            price: attempt.price,
        };
        Ok(attempts.map(line).collect())
    }

    pub(in crate::ledger) async fn submitted_since(
        &self,
        since: Timestamp,
    ) -> Result<Vec<(BatchKey, Attempt)>, Unavailable> {
        Ok(self.attempts().into_iter().filter(|(_, attempt)| attempt.intended_at >= since).collect())
    }

    pub(in crate::ledger) async fn open_elsewhere(&self, batch: &BatchKey) -> Result<Vec<OpenElsewhere>, Unavailable> {
        let is_other = |key: &BatchKey| key.name == batch.name && key.batch != batch.batch;
        let unfinished = self.attempts().into_iter().filter(|(key, attempt)| is_other(key) && attempt.is_unfinished());
        Ok(OpenElsewhere::of(unfinished.collect()))
    }

    pub(in crate::ledger) async fn bought_elsewhere(
        &self,
        batch: &BatchKey,
        requests: impl Fn() -> Vec<Fingerprint>,
    ) -> Result<Vec<BoughtElsewhere>, Unavailable> {
        let requests = requests();
        let bought = self
            .attempts()
            .into_iter()
            .filter(|(_, attempt)| !attempt.state.is_free() && requests.contains(&attempt.normalized));
        let one = |(batch, attempt)| BoughtElsewhere { batch, attempt, jobs: 1, attempts: 1 };
        Ok(BoughtElsewhere::of(batch, bought.map(one)))
    }

    pub(in crate::ledger) async fn controls(&self) -> Result<Controls, Unavailable> {
        let state = self.0.state();
        Ok(Controls { now: Timestamp::now(), limits: state.limits.clone(), freeze: state.freeze.clone() })
    }

    pub(in crate::ledger) async fn set_freeze(&self, why: Option<&str>) -> Result<(), Unavailable> {
        self.0.state().freeze = why.map(Freeze::on_request);
        Ok(())
    }

    pub(in crate::ledger) async fn set_limit(&self, limit: LedgerLimit, is_kept: bool) -> Result<(), Unavailable> {
        let mut state = self.0.state();
        state.limits.retain(|other| other.label != limit.label || other.span != limit.span);
        state.limits.extend(is_kept.then_some(limit));
        Ok(())
    }

    pub(in crate::ledger) async fn find_task(&self, task: &TaskId) -> Result<Option<(JobId, BatchKey)>, Unavailable> {
        Ok(self.0.state().named(task).next().map(|Named { batch, attempt }| (attempt.job, batch)))
    }
}

impl fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryLedger")
    }
}

impl fmt::Display for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;
    use crate::ledger::suite::{Fresh, for_store};

    impl Fresh for MemoryLedger {
        fn fresh() -> Self {
            Self::default()
        }

        fn ledger(&self) -> Ledger {
            Ledger::in_memory_of(self.clone())
        }

        async fn lock_regardless(&self, batch: &BatchKey) -> LockedBatch {
            self.lock(batch).await.expect("a batch")
        }
    }

    for_store!(MemoryLedger);
}
