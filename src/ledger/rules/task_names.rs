//! Task IDs: each belongs to one attempt of a service.

use std::collections::HashMap;

use crate::domain::{Attempt, AttemptId, BatchKey, TaskId, TaskNames};
use crate::ledger::{Event, LedgerError};

/// An attempt that has a task, with its batch.
pub(in crate::ledger) struct Named {
    pub(in crate::ledger) batch: BatchKey,
    pub(in crate::ledger) attempt: Attempt,
}

/// The owners of task IDs, as one transaction sees and changes them.
pub(in crate::ledger) struct Owners(HashMap<TaskId, Vec<Owner>>);

struct Owner {
    attempt: AttemptId,
    service: std::sync::Arc<str>,
    job: String,
    batch: BatchKey,
}

impl Owners {
    /// The names whose owners an event needs.
    pub(in crate::ledger) fn needed_by(event: &Event) -> impl Iterator<Item = &TaskId> {
        let names = match event {
            Event::Accepted(task) | Event::Found(task) => [Some(&task.id), task.alias.as_ref()],
            Event::AlsoNamed(name) => [Some(name), None],
            _ => [None, None],
        };
        names.into_iter().flatten()
    }

    pub(in crate::ledger) fn new(named: Vec<Named>) -> Self {
        let mut owners = Self(HashMap::new());
        for Named { batch, attempt } in named {
            for name in attempt.task.iter().flat_map(TaskNames::each) {
                owners.add(name, &attempt, &batch);
            }
        }
        owners
    }

    fn add(&mut self, name: &TaskId, attempt: &Attempt, batch: &BatchKey) {
        self.0.entry(name.clone()).or_default().push(Owner {
            attempt: attempt.id,
            service: attempt.account.service.clone(),
            job: attempt.job.to_string(),
            batch: batch.clone(),
        });
    }

    /// Claims a task for an attempt, without an alias that belongs to another. Refuses a task that belongs to another: one of the two
    /// responses was wrong, and no one knows which.
    pub(in crate::ledger) fn claim(
        &mut self,
        attempt: &Attempt,
        batch: &BatchKey,
        mut task: TaskNames,
    ) -> Result<TaskNames, LedgerError> {
        self.claim_name(attempt, batch, &task.id)?;
        task.alias = task.alias.filter(|alias| self.claim_name(attempt, batch, alias).is_ok());
        Ok(task)
    }

    /// Claims a name for an attempt, or refuses it if it belongs to another attempt at the same service.
    pub(in crate::ledger) fn claim_name(
        &mut self,
        attempt: &Attempt,
        batch: &BatchKey,
        name: &TaskId,
    ) -> Result<(), LedgerError> {
        let owners = self.0.get(name).map_or(&[][..], Vec::as_slice);
        let is_other = |owner: &&Owner| owner.attempt != attempt.id && owner.service == attempt.account.service;
        if let Some(Owner { job, batch, .. }) = owners.iter().find(is_other) {
            return Err(LedgerError::TaskTaken { task: name.clone(), job: job.clone(), batch: batch.clone() });
        }
        self.add(name, attempt, batch);
        Ok(())
    }
}
