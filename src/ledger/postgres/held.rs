//! A batch that is held: what it is told goes to the one writer of this process.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::accounts::AddressKey;
use super::address::PostgresAddress;
use super::error::PostgresError;
use super::kind::Kind;
use super::orders::{Answer, Order};
use super::writer::{Shared, Writer};
use crate::domain::{Account, AttemptId, BatchKey, JobId, Move, NoticeCode, SendBy, TaskNames, UnfinishedRetake};
use crate::ledger::times::Times;
use crate::ledger::{Event, HeldBatch, Intent, Joining, LedgerError, Others};

/// Its multiples, without what is before the point, are spread as evenly as any numbers.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;

/// How long the end of a run waits for a ledger that does not answer.
const FAREWELL: Duration = Duration::from_secs(10);

/// The way to the writer of this process, which ends with the last batch that is held.
#[derive(Debug)]
pub(super) struct WriterHandle {
    orders: Mutex<Option<mpsc::UnboundedSender<Order>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
    next: AtomicUsize,
    times: Times,
}

impl WriterHandle {
    pub(super) fn start(address: PostgresAddress, kind: Kind) -> Result<Self, PostgresError> {
        let (orders, inbox) = mpsc::unbounded_channel();
        let (shared, times) = (Arc::new(Shared::default()), Times::usual());
        let writer = Writer::new(address, kind, times, Arc::clone(&shared));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(PostgresError::Thread)?;
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || runtime.block_on(writer.run(inbox)))
            .map_err(PostgresError::Thread)?;
        let (orders, thread) = (Mutex::new(Some(orders)), Mutex::new(Some(thread)));
        Ok(Self { orders, thread, shared, next: AtomicUsize::new(1), times })
    }

    fn send(&self, order: Order) -> Result<(), LedgerError> {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.as_ref().ok_or(LedgerError::Closed)?.send(order).map_err(|_| LedgerError::Closed)
    }

    async fn order<T>(&self, order: impl FnOnce(Answer<T>) -> Order) -> Result<T, LedgerError> {
        let (answer, answered) = oneshot::channel();
        self.send(order(answer))?;
        answered.await.map_err(|_| LedgerError::Closed)?
    }
}

impl Drop for WriterHandle {
    /// Waits for the last commit, and a while for a database that can't be reached.
    fn drop(&mut self) {
        self.shared.hurry.cancel();
        drop(self.orders.lock().unwrap_or_else(PoisonError::into_inner).take());
        let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let until = Instant::now() + FAREWELL;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        if !thread.is_finished() {
            // It ends with the process; the others find out that this runner is gone.
            tracing::warn!(
                code = NoticeCode::RunnerNotDeregistered.code(),
                "can't deregister this runner: the ledger does not respond"
            );
        } else if thread.join().is_err() {
            tracing::error!(code = NoticeCode::WriterPanicked.code(), "the ledger's writer panicked");
        }
    }
}

/// A batch of a PostgreSQL ledger that this runner is at, perhaps together with others.
#[derive(Debug)]
pub struct PostgresBatch {
    writer: Arc<WriterHandle>,
    own: usize,
    concluded: usize,
    /// How many others bought of it when this one began to.
    others_at_start: AtomicU32,
}

impl PostgresBatch {
    pub(super) async fn take(writer: Arc<WriterHandle>, batch: &BatchKey) -> Result<Self, LedgerError> {
        let own = writer.next.fetch_add(1, Ordering::Relaxed);
        // Made first: dropped half-way, it gives the batch back.
        let mut held = Self { writer, own, concluded: 0, others_at_start: AtomicU32::new(0) };
        held.concluded = held.writer.order(|answer| Order::Hold(own, batch.clone(), answer)).await?;
        Ok(held)
    }
}

impl Drop for PostgresBatch {
    fn drop(&mut self) {
        // A writer that is gone holds nothing.
        drop(self.writer.send(Order::Leave(self.own)));
    }
}

impl HeldBatch for PostgresBatch {
    fn concluded(&self) -> usize {
        self.concluded
    }

    async fn intend(&self, intent: Intent) -> Result<AttemptId, LedgerError> {
        self.writer.order(|answer| Order::Intend(self.own, Box::new(intent), answer)).await
    }

    async fn accept(&self, attempt: AttemptId, task: TaskNames) -> Result<TaskNames, LedgerError> {
        let event = Box::new(Event::Accepted(task.clone()));
        let named = self.writer.order(|answer| Order::Record(self.own, attempt, event, answer)).await?;
        Ok(named.unwrap_or(task))
    }

    async fn record(&self, attempt: AttemptId, event: Event) -> Result<(), LedgerError> {
        self.writer.order(|answer| Order::Record(self.own, attempt, Box::new(event), answer)).await.map(drop)
    }

    async fn note_unsent(&self, job: &JobId, reason: &str) -> Result<(), LedgerError> {
        self.writer.order(|answer| Order::NoteUnsent(self.own, job.clone(), reason.to_owned(), answer)).await
    }

    async fn move_jobs(&self, moves: &[Move]) -> Result<(), LedgerError> {
        self.writer.order(|answer| Order::Move(self.own, moves.to_vec(), answer)).await
    }

    async fn keep_retake(&self, retake: Option<UnfinishedRetake>) -> Result<(), LedgerError> {
        self.writer.order(|answer| Order::KeepRetake(self.own, retake, answer)).await
    }

    async fn adopt(&self, account: &Account) -> Result<(), LedgerError> {
        self.writer.order(|answer| Order::Adopt(self.own, account.clone(), answer)).await
    }

    async fn picture_address(
        &self,
        sha256: &str,
        command: &str,
        since: Timestamp,
    ) -> Result<Option<String>, LedgerError> {
        let key = AddressKey { sha256: sha256.to_owned(), command: command.to_owned() };
        self.writer.order(|answer| Order::FindAddress(key, since, answer)).await
    }

    async fn keep_picture_address(&self, sha256: &str, command: &str, url: &str) -> Result<(), LedgerError> {
        let key = AddressKey { sha256: sha256.to_owned(), command: command.to_owned() };
        self.writer.order(|answer| Order::KeepAddress(key, url.to_owned(), answer)).await
    }

    async fn join(&self, joining: Joining) -> Result<(), LedgerError> {
        let others = self.writer.order(|answer| Order::Join(self.own, Box::new(joining), answer)).await?;
        self.others_at_start.store(others, Ordering::Relaxed);
        Ok(())
    }

    async fn take_over(&self, attempts: Vec<AttemptId>) -> Result<HashSet<AttemptId>, LedgerError> {
        if attempts.is_empty() {
            return Ok(HashSet::new());
        }
        self.writer.order(|answer| Order::TakeOver(attempts, answer)).await
    }

    async fn others(&self, videos: bool) -> Result<Others, LedgerError> {
        self.writer.order(|answer| Order::Others(self.own, videos, answer)).await
    }

    async fn pause(&self, account: &Account, wait: Duration) -> Result<(), LedgerError> {
        self.writer.order(|answer| Order::Pause(account.clone(), wait, answer)).await
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn starting_place(&self, due: usize) -> usize {
        // Whoever is first begins with the first job. The places of the others are as far from one another as they can be,
        // however many they become.
        let others = self.others_at_start.load(Ordering::Relaxed);
        let share = (f64::from(others) * GOLDEN_RATIO).fract();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place in a list"
        )]
        let place = (share * due as f64) as usize;
        place.min(due.saturating_sub(1))
    }

    fn is_taken(&self, job: &JobId, known: Option<AttemptId>) -> bool {
        let taken = self.writer.shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = taken.get(&self.own).and_then(|jobs| jobs.get(job.as_str()));
        attempt.is_some_and(|attempt| known.is_none_or(|known| *attempt > known))
    }

    fn sharing(&self) -> u32 {
        self.writer.shared.alive.load(Ordering::Relaxed).max(1)
    }

    fn send_by(&self, attempt: AttemptId) -> Option<SendBy> {
        let known = self.writer.shared.send_by.lock().unwrap_or_else(PoisonError::into_inner).remove(&attempt);
        // Of an attempt that it did not just write, nothing may leave.
        Some(known.unwrap_or_else(|| SendBy::within(Duration::ZERO)))
    }

    fn hurry(&self) {
        self.writer.shared.hurry.cancel();
    }

    fn look_again(&self) -> Duration {
        self.writer.times.look_again
    }
}
