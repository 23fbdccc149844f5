//! The memory as a store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use jiff::Timestamp;

use crate::domain::{
    Attempt, AttemptId, AttemptState, BatchKey, Charge, Freeze, JobId, Label, TaskId, TaskNames, UnfinishedRetake, Usd,
};
use crate::ledger::row::Row;
use crate::ledger::rules::{Asked, Facts, Named};
use crate::ledger::writing::{Changes, Command, Locked, PictureKey, Store, Transaction, Writer, operations};
use crate::ledger::{Event, LedgerError, LedgerLimit};

/// The state that all users of a ledger share, and that a transaction changes.
#[derive(Clone, Default)]
pub(in crate::ledger) struct Shared(Arc<Mutex<State>>);

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The contents. Batches are numbered by their positions.
#[derive(Default)]
pub(super) struct State {
    pub(super) batches: Vec<(BatchKey, Option<UnfinishedRetake>)>,
    pub(super) rows: Vec<Row>,
    pub(super) unsent: BTreeMap<(i64, JobId), String>,
    pub(super) pictures: BTreeMap<PictureKey, (String, Timestamp)>,
    pub(super) limits: Vec<LedgerLimit>,
    pub(super) freeze: Option<Freeze>,
    commits: usize,
    /// The first commit that fails.
    pub(super) fails_at: Option<usize>,
    pub(super) observe: Option<Arc<Observer>>,
}

/// Is called for each row that a commit writes.
type Observer = dyn Fn(&Attempt) + Send + Sync;

impl State {
    pub(super) fn key(&self, batch: i64) -> BatchKey {
        let place = usize::try_from(batch).unwrap_or_default();
        self.batches.get(place).map(|(key, _)| key.clone()).unwrap_or_default()
    }

    pub(super) fn number(&self, key: &BatchKey) -> Option<i64> {
        let place = self.batches.iter().position(|(own, _)| own == key);
        place.and_then(|place| i64::try_from(place).ok())
    }

    pub(super) fn of_batch(&self, key: &BatchKey) -> impl Iterator<Item = &Row> {
        let number = self.number(key);
        self.rows.iter().filter(move |row| Some(row.batch) == number)
    }

    /// Rows are in the order of their IDs.
    fn place(&self, id: AttemptId) -> Option<usize> {
        self.rows.binary_search_by_key(&id, |row| row.attempt.id).ok()
    }

    pub(super) fn used(&self, since: Timestamp, label: Option<&Label>) -> Usd {
        let is_meant = |attempt: &&Attempt| {
            attempt.intended_at >= since && label.is_none_or(|label| label.is_among(&attempt.particulars.labels))
        };
        let attempts = self.rows.iter().map(|row| &row.attempt).filter(is_meant);
        attempts.filter(|attempt| attempt.charge() != Charge::None).map(|attempt| attempt.price).sum()
    }

    pub(super) fn named(&self, name: &TaskId) -> impl Iterator<Item = Named> {
        let has = |row: &&Row| row.attempt.task.as_ref().is_some_and(|task: &TaskNames| task.has(name));
        self.rows.iter().filter(has).map(|row| Named { batch: self.key(row.batch), attempt: row.attempt.clone() })
    }
}

/// The memory as a store. Nothing in it waits, and nothing fails but on request, before the transaction.
pub(in crate::ledger) struct MemoryStore {
    shared: Shared,
    batch: Option<(i64, BatchKey)>,
}

impl MemoryStore {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared, batch: None }
    }
}

impl Writer<MemoryStore> {
    /// Executes a command in place.
    pub(super) fn execute_now(&mut self, command: Command) -> Result<(), LedgerError> {
        self.execute(command).now_or_never().ok_or(LedgerError::Closed)
    }
}

impl Store for MemoryStore {
    type Transaction = Shared;

    async fn transact<T: Clone>(
        &mut self,
        work: impl AsyncFn(&Shared) -> Result<T, serde_json::Error>,
    ) -> Result<T, LedgerError> {
        let fails_at = {
            let mut state = self.shared.state();
            state.commits += 1;
            state.fails_at.is_some_and(|fails_at| state.commits > fails_at)
        };
        if fails_at {
            return Err(LedgerError::Closed);
        }
        work(&self.shared).await.map_err(|error| LedgerError::Store(Arc::new(error)))
    }

    async fn lock(&mut self, _own: usize, key: BatchKey) -> Result<usize, LedgerError> {
        let number = {
            let mut state = self.shared.state();
            if state.number(&key).is_none() {
                state.batches.push((key.clone(), None));
            }
            state.number(&key).unwrap_or_default()
        };
        self.batch = Some((number, key));
        let recovered = operations::recover_intents(&self.shared, Some(number)).await;
        recovered.map_err(|error| LedgerError::Store(Arc::new(error)))?
    }

    async fn release(&mut self, _own: usize) {
        self.batch = None;
    }

    fn batch(&self, _own: usize) -> Option<(i64, &BatchKey)> {
        self.batch.as_ref().map(|(number, key)| (*number, key))
    }
}

impl Transaction for Shared {
    type Error = serde_json::Error;

    fn runner(&self) -> Option<i64> {
        None
    }

    async fn facts(&self, intents: &[Asked<'_>]) -> Result<Facts, serde_json::Error> {
        let (state, now) = (self.state(), Timestamp::now());
        let mut facts = Facts {
            now,
            newest: state.rows.last().map_or(0, |row| row.attempt.id.0),
            freeze: state.freeze.clone(),
            limits: state.limits.iter().map(|limit| limit.at(now)).collect(),
            ..Facts::default()
        };
        for Asked { batch, intent, .. } in intents {
            let of_job = state.rows.iter().filter(|row| row.batch == *batch && row.attempt.job == intent.job);
            facts.attempts.insert((*batch, intent.job.clone()), of_job.cloned().collect());
            let same = state
                .rows
                .iter()
                .filter(|row| row.attempt.normalized == intent.normalized && !row.attempt.state.is_free());
            facts.paid.insert(intent.normalized.clone(), same.map(|row| (state.key(row.batch), 1)).collect());
            for limit in intent.limits.iter().chain(&facts.limits) {
                facts.used.insert(limit.key(), state.used(limit.since, limit.label.as_ref()));
            }
        }
        Ok(facts)
    }

    async fn locked(&self, attempts: &[AttemptId], names: &[&TaskId]) -> Result<Locked, serde_json::Error> {
        let state = self.state();
        let rows =
            attempts.iter().filter_map(|id| state.place(*id).map(|place| (*id, state.rows[place].clone()))).collect();
        Ok(Locked { rows, named: names.iter().flat_map(|name| state.named(name)).collect(), now: Timestamp::now() })
    }

    async fn locked_batch(&self, batch: i64) -> Result<Vec<Row>, serde_json::Error> {
        Ok(self.state().rows.iter().filter(|row| row.batch == batch).cloned().collect())
    }

    async fn abandoned(&self, batch: Option<i64>) -> Result<Vec<Row>, serde_json::Error> {
        let state = self.state();
        let is_abandoned = |row: &&Row| Some(row.batch) == batch && row.attempt.state == AttemptState::Intended;
        Ok(state.rows.iter().filter(is_abandoned).cloned().collect())
    }

    async fn objection(&self, _: &Row, _: &Event) -> Result<Option<LedgerError>, serde_json::Error> {
        Ok(None)
    }

    async fn save(&self, Changes { new, changed, .. }: &Changes<'_>) -> Result<(), serde_json::Error> {
        let observe = self.state().observe.clone();
        let rows = new.iter().chain(changed);
        rows.for_each(|row| observe.iter().for_each(|observe| observe(&row.attempt)));
        let mut state = self.state();
        for row in new {
            state.unsent.remove(&(row.batch, row.attempt.job.clone()));
            state.rows.push((*row).clone());
        }
        for row in changed {
            if let Some(place) = state.place(row.attempt.id) {
                state.rows[place] = (*row).clone();
            }
        }
        Ok(())
    }

    async fn note_unsent(&self, batch: i64, job: &JobId, reason: &str) -> Result<(), serde_json::Error> {
        self.state().unsent.insert((batch, job.clone()), reason.to_owned());
        Ok(())
    }

    async fn keep_retake(&self, batch: i64, retake: Option<&UnfinishedRetake>) -> Result<(), serde_json::Error> {
        let place = usize::try_from(batch).unwrap_or_default();
        if let Some((_, kept)) = self.state().batches.get_mut(place) {
            *kept = retake.cloned();
        }
        Ok(())
    }

    async fn picture_url(&self, key: &PictureKey, since: Timestamp) -> Result<Option<String>, serde_json::Error> {
        let state = self.state();
        Ok(state.pictures.get(key).filter(|(_, at)| *at >= since).map(|(url, _)| url.clone()))
    }

    async fn keep_picture_url(&self, key: &PictureKey, url: &str) -> Result<(), serde_json::Error> {
        self.state().pictures.insert(key.clone(), (url.to_owned(), Timestamp::now()));
        Ok(())
    }
}
