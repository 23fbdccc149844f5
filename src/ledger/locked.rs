//! A locked batch: the right to buy. It sends commands to the writer of its store.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::store::{Answer, BatchChange, Command, Store};
use super::writer::Writer;
use super::{Event, Intent, LedgerError};
use crate::domain::{Account, AttemptId, JobId, Move, NoticeCode, SendBy, TaskNames, UnfinishedRetake};

/// The longest wait for the writer of a shared store, once no batch is locked.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The way to a writer.
pub(in crate::ledger) enum WriterHandle {
    /// On a separate thread.
    Thread {
        commands: Option<mpsc::UnboundedSender<Command>>,
        thread: Option<JoinHandle<()>>,
        /// For a store that may be unreachable.
        shared: Option<Arc<SharedState>>,
    },
    /// On a thread for which each call waits: a paused clock does not wait for threads.
    InPlace(Box<dyn Fn(Command) -> Result<(), LedgerError> + Send + Sync>),
}

impl WriterHandle {
    /// Starts a writer on a thread: a slow disk never stalls the caller, and a dropped future never ends a transaction half-way.
    pub(in crate::ledger) fn start<S: Store>(
        open: impl FnOnce() -> S + Send + 'static,
        shared: Option<Arc<SharedState>>,
    ) -> std::io::Result<Self> {
        let (commands, inbox) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || runtime.block_on(async { Writer::new(open()).run(inbox).await }))?;
        Ok(Self::Thread { commands: Some(commands), thread: Some(thread), shared })
    }

    /// Starts a writer for which each call waits, to a store that never waits. Calls `after` after each command.
    pub(in crate::ledger) fn in_place<S: Store>(
        open: impl FnOnce() -> S + Send + 'static,
        after: Arc<dyn Fn() + Send + Sync>,
    ) -> std::io::Result<Self> {
        let (commands, inbox) = std::sync::mpsc::channel::<(Command, std::sync::mpsc::SyncSender<()>)>();
        let execute_all = move || {
            let mut writer = Writer::new(open());
            for (command, executed) in inbox {
                if writer.execute(vec![command]).now_or_never().is_some() {
                    after();
                    let _ = executed.send(());
                }
            }
        };
        std::thread::Builder::new().name("ledger".to_owned()).spawn(execute_all)?;
        Ok(Self::InPlace(Box::new(move |command| {
            let (executed, until_executed) = std::sync::mpsc::sync_channel(1);
            commands.send((command, executed)).map_err(|_| LedgerError::Closed)?;
            until_executed.recv().map_err(|_| LedgerError::Closed)
        })))
    }

    fn send(&self, command: Command) -> Result<(), LedgerError> {
        match self {
            Self::InPlace(execute) => execute(command),
            Self::Thread { commands, .. } => {
                commands.as_ref().ok_or(LedgerError::Closed)?.send(command).map_err(|_| LedgerError::Closed)
            }
        }
    }

    async fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T, LedgerError> {
        let (answer, answered) = oneshot::channel();
        self.send(command(answer))?;
        answered.await.map_err(|_| LedgerError::Closed)?
    }
}

impl Drop for WriterHandle {
    /// Waits for the last commit, but for at most [`SHUTDOWN_TIMEOUT`] for a database.
    fn drop(&mut self) {
        let Self::Thread { commands, thread, shared } = self else { return };
        if let Some(shared) = shared {
            shared.shutdown.cancel();
        }
        drop(commands.take());
        let Some(thread) = thread.take() else { return };
        let until = Instant::now() + SHUTDOWN_TIMEOUT;
        while shared.is_some() && !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        if shared.is_some() && !thread.is_finished() {
            // It ends with the process. The other runners notice when its lease expires.
            tracing::warn!(
                code = NoticeCode::RunnerNotDeregistered.code(),
                "can't deregister this runner: the ledger does not respond"
            );
        } else if thread.join().is_err() {
            tracing::error!(code = NoticeCode::WriterPanicked.code(), "the ledger's writer panicked");
        }
    }
}

/// The right to buy: a locked batch. Each call returns once its write is durable.
///
/// Drop releases the batch, and leaves the ledger as a kill at that moment would.
pub struct LockedBatch {
    own: usize,
    recovered: usize,
    writer: Arc<WriterHandle>,
    /// Released last, when everything is written.
    _lock: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl LockedBatch {
    /// Locks a batch. `own` is a new number for the writer.
    pub(in crate::ledger) async fn new(
        writer: Arc<WriterHandle>,
        own: usize,
        key: &crate::domain::BatchKey,
        lock: Option<Box<dyn std::any::Any + Send + Sync>>,
    ) -> Result<Self, LedgerError> {
        // Made first: dropped half-way, it releases the batch.
        let mut locked = Self { own, recovered: 0, writer, _lock: lock };
        locked.recovered = locked.writer.ask(|answer| Command::Lock(own, key.clone(), answer)).await?;
        Ok(locked)
    }

    /// The number of intents of an earlier run that are in doubt now.
    pub fn recovered(&self) -> usize {
        self.recovered
    }

    fn shared(&self) -> Option<&SharedState> {
        if let WriterHandle::Thread { shared, .. } = &*self.writer { shared.as_deref() } else { None }
    }

    /// The deadline for the first byte of a new attempt, or `None` for a ledger in a file. Returned once per attempt.
    pub fn send_by(&self, attempt: AttemptId) -> Option<SendBy> {
        let known = self.shared()?.send_by.lock().remove(&attempt);
        // An older attempt must not be sent.
        Some(known.unwrap_or_else(|| SendBy::within(Duration::ZERO)))
    }

    /// Pauses the submissions for an account by all runners of the ledger.
    pub async fn pause(&self, account: &Account, wait: Duration) -> Result<(), LedgerError> {
        self.writer.ask(|answer| Command::Pause(account.clone(), wait, answer)).await
    }

    /// Shortens the wait of each write for an unreachable ledger to seconds.
    pub fn shutdown(&self) {
        self.shared().inspect(|shared| shared.shutdown.cancel());
    }

    /// Returns once the lease of this runner has expired, and another one may lock the batch. Never returns for a file.
    pub async fn lease_expired(&self) {
        match self.shared() {
            Some(shared) => shared.expired.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Records the intent to submit.
    pub async fn intend(&self, intent: Intent) -> Result<AttemptId, LedgerError> {
        self.writer.ask(|answer| Command::Intend(self.own, Box::new(intent), answer)).await
    }

    /// Records the task of an attempt. Returns the recorded names, without an alias that belongs to another task.
    ///
    /// The first poll sends the command: later intents are recorded after it, or deferred.
    pub async fn accept(&self, attempt: AttemptId, task: TaskNames) -> Result<TaskNames, LedgerError> {
        let event = Box::new(Event::Accepted(task.clone()));
        let names = self.writer.ask(|answer| Command::Record(self.own, attempt, event, answer)).await?;
        Ok(names.unwrap_or(task))
    }

    /// Records an event of an attempt.
    pub async fn record(&self, attempt: AttemptId, event: Event) -> Result<(), LedgerError> {
        self.writer.ask(|answer| Command::Record(self.own, attempt, Box::new(event), answer)).await.map(drop)
    }

    /// Records why a due job was not sent. An intent for the job removes the reason.
    pub async fn note_unsent(&self, job: &JobId, reason: &str) -> Result<(), LedgerError> {
        self.change(BatchChange::NoteUnsent(job.clone(), reason.to_owned())).await
    }

    /// Moves the attempts of old IDs to new ones, in the order of the list. Changes nothing if a new ID has purchases. Skips old IDs without
    /// attempts, so the list may be applied again.
    pub async fn move_jobs(&self, moves: &[Move]) -> Result<(), LedgerError> {
        self.change(BatchChange::MoveJobs(moves.to_vec())).await
    }

    /// Records an unfinished retake, or removes it.
    pub async fn keep_retake(&self, retake: Option<UnfinishedRetake>) -> Result<(), LedgerError> {
        self.change(BatchChange::KeepRetake(retake)).await
    }

    /// Reassigns the tasks of the batch that can be polled to an account, after a key rotation.
    pub async fn reassign(&self, account: &Account) -> Result<(), LedgerError> {
        self.change(BatchChange::Reassign(account.clone())).await
    }

    async fn change(&self, change: BatchChange) -> Result<(), LedgerError> {
        self.writer.ask(|answer| Command::Change(self.own, change, answer)).await
    }
}

impl fmt::Debug for LockedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedBatch").field("recovered", &self.recovered).finish_non_exhaustive()
    }
}

impl Drop for LockedBatch {
    fn drop(&mut self) {
        // A writer that has ended has released it.
        drop(self.writer.send(Command::Release(self.own)));
    }
}

/// State shared by a store and its locked batches.
#[derive(Debug, Default)]
pub(super) struct SharedState {
    /// Cancelled when the run ends, which shortens the wait for an unreachable database to seconds.
    pub(super) shutdown: CancellationToken,
    /// Cancelled once the lease of this runner has expired, and another runner may lock its batches.
    pub(super) expired: CancellationToken,
    /// The deadline for the first byte of each new attempt.
    pub(super) send_by: Mutex<HashMap<AttemptId, SendBy>>,
}

/// The name of this machine: `SHOTLIST_MACHINE`, or the host name.
pub fn this_machine() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let name = std::env::var("SHOTLIST_MACHINE").ok().filter(|name| !name.trim().is_empty());
        #[cfg(unix)]
        let name = name.or_else(|| Some(rustix::system::uname().nodename().to_string_lossy().into_owned()));
        #[cfg(not(unix))]
        let name = name.or_else(|| std::env::var("COMPUTERNAME").ok());
        name.unwrap_or_else(|| "unnamed".to_owned())
    });
    &NAME
}
