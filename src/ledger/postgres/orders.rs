//! What the writer can be told.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::accounts::AddressKey;
use crate::domain::{Account, AttemptId, BatchKey, JobId, Move, TaskNames, UnfinishedRetake};
use crate::ledger::{Event, Intent, Joining, LedgerError, Others};

/// Where an answer goes. A caller that is gone needs none.
pub(super) type Answer<T> = oneshot::Sender<Result<T, LedgerError>>;

/// What the writer is told; a batch by the number that its holder gave it.
pub(super) enum Order {
    Hold(usize, BatchKey, Answer<usize>),
    Join(usize, Box<Joining>, Answer<u32>),
    Intend(usize, Box<Intent>, Answer<AttemptId>),
    Record(usize, AttemptId, Box<Event>, Answer<Option<TaskNames>>),
    NoteUnsent(usize, JobId, String, Answer<()>),
    Move(usize, Vec<Move>, Answer<()>),
    KeepRetake(usize, Option<UnfinishedRetake>, Answer<()>),
    Adopt(usize, Account, Answer<()>),
    TakeOver(Vec<AttemptId>, Answer<HashSet<AttemptId>>),
    Others(usize, bool, Answer<Others>),
    Pause(Account, Duration, Answer<()>),
    FindAddress(AddressKey, Timestamp, Answer<Option<String>>),
    KeepAddress(AddressKey, String, Answer<()>),
    Leave(usize),
}
