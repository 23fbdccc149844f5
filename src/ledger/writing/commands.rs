//! The commands of locked batches to the writer.

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::domain::{Account, AttemptId, BatchKey, JobId, Move, TaskNames, UnfinishedRetake};
use crate::ledger::{Event, Intent, Joining, LedgerError, OtherRunners};

/// The way back to a caller. A caller that is gone needs no answer.
pub(in crate::ledger) type Answer<T> = oneshot::Sender<Result<T, LedgerError>>;

/// A command. Its first value is the number by which the writer knows a locked batch.
pub(in crate::ledger) enum Command {
    Lock(usize, BatchKey, Answer<usize>),
    Release(usize),
    Intend(usize, Box<Intent>, Answer<AttemptId>),
    Record(usize, AttemptId, Box<Event>, Answer<Option<TaskNames>>),
    NoteUnsent(usize, JobId, String, Answer<()>),
    MoveJobs(usize, Vec<Move>, Answer<()>),
    KeepRetake(usize, Option<UnfinishedRetake>, Answer<()>),
    Reassign(usize, Account, Answer<()>),
    Share(SharingCommand),
}

/// A command of runners that share a ledger.
pub(in crate::ledger) enum SharingCommand {
    Join(usize, Box<Joining>, Answer<u32>),
    TakeOver(Vec<AttemptId>, Answer<HashSet<AttemptId>>),
    Others(usize, bool, Answer<OtherRunners>),
    Pause(Account, Duration, Answer<()>),
}
