//! A task on its way from its job to the poller, and what the job hears of it.

use std::time::Duration;

// A channel for each of ten thousand tasks: this one takes no room before something is said.
use futures::channel::mpsc::UnboundedSender;

use super::cadence::Class;
use super::event::LeaveReason;
use super::slots::Slot;
use crate::domain::{AttemptId, TaskNames};
use crate::ledger::Event;
use crate::service::Echo;

/// A task to look after.
pub(super) struct Watch<'e> {
    /// Its attempt in the ledger.
    pub attempt: AttemptId,
    /// The task.
    pub task: TaskNames,
    /// How long ago it was submitted.
    pub age: Duration,
    /// What tasks take as long as this one.
    pub class: Class,
    /// Its slot, given back at its last word: the next job can go, for what is left to do needs nothing of the service.
    pub slot: Slot<'e>,
    /// Where its job waits.
    pub updates: UnboundedSender<TaskUpdate>,
}

impl Watch<'_> {
    /// Says something to its job; one that is gone needs no word.
    pub(super) fn send(&self, update: TaskUpdate) {
        drop(self.updates.unbounded_send(update));
    }
}

/// What the poller tells a job.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum TaskUpdate {
    /// It is being generated, for all that the service says.
    Progress(Option<u8>),
    /// The service uses another name for it, which is written down.
    Named(TaskNames),
    /// What the service says that it has made.
    Made(Echo),
    /// The final word, as the ledger takes it.
    Final(Event),
    /// No final word yet, and nobody waits for it any more.
    Left {
        /// Why.
        why: LeaveReason,
        /// Polls in this run.
        polls: u32,
        /// What the service said last, if that was not that it waits or is being generated.
        said: Option<String>,
        /// Whether that is a word that may go on for ever.
        is_endless: bool,
    },
}
