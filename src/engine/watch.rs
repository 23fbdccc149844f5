//! The messages between the poller and the future of a job.

use std::time::Duration;

// This channel allocates nothing before its first message: there is one for each of ten thousand tasks.
use futures::channel::mpsc::UnboundedSender;

use super::cadence::Class;
use super::event::LeaveReason;
use super::slots::Slot;
use crate::domain::{AttemptId, TaskNames};
use crate::ledger::Event;
use crate::service::Echo;

/// A task for the poller.
pub(super) struct Watch<'e> {
    /// The attempt in the ledger.
    pub attempt: AttemptId,
    /// The task.
    pub task: TaskNames,
    /// The time since its submission.
    pub age: Duration,
    /// The tasks that it resembles.
    pub class: Class,
    /// The slot, released with the final update: a download needs none.
    pub slot: Slot<'e>,
    /// The channel to the future of its job.
    pub updates: UnboundedSender<TaskUpdate>,
}

impl Watch<'_> {
    /// Sends an update to the job's future, unless that was dropped.
    pub(super) fn send(&self, update: TaskUpdate) {
        drop(self.updates.unbounded_send(update));
    }
}

/// An update about a task.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum TaskUpdate {
    /// The service generates it, with this progress in percent.
    Progress(Option<u8>),
    /// The service uses another ID, which is recorded.
    Alias(TaskNames),
    /// The service reports what it generated.
    Made(Echo),
    /// The terminal state, as an event for the ledger.
    Final(Event),
    /// The task is left active.
    Left {
        /// The reason.
        why: LeaveReason,
        /// The number of polls in this run.
        polls: u32,
        /// The last response, if it said neither queued nor in progress.
        said: Option<String>,
        /// True if the task may never end.
        is_endless: bool,
    },
}
