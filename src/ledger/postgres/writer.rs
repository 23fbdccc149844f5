//! The one task that writes, on a thread of its own: no stream that waits, and no future that is dropped, can leave a
//! transaction half-way.
//!
//! What comes in while a commit is under way goes into the next one, as in a file. A connection that breaks is made anew, and
//! what was under way is done again: the runner's own count of its writes says whether it was done already
//! ([`runner`](super::runner)), so that every write may be repeated, and none is made twice.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_util::sync::CancellationToken;

use super::address::PostgresAddress;
use super::batches::AtWork;
use super::connect::{check_that_it_lasts, connect};
use super::error::{PostgresError, is_canceled, is_lost, is_without_tables};
use super::heartbeats::Heartbeats;
use super::kind::Kind;
use super::memory::Memory;
use super::runner::Runner;
use super::schema::{Found, create, recognise};
use super::standing::Standing;
use super::transaction::{Opening, Sent, Transaction};
use crate::domain::{AttemptId, NoticeCode, SendBy};
use crate::ledger::times::Times;
use crate::ledger::{SpendLimit, crash};

/// The pauses between two tries to connect: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);
/// How often a transaction that others stood in the way of is tried again.
const MOST_TRIES: u32 = 20;
/// How long a run that ends waits for a database that can't be reached.
const FAREWELL: Duration = Duration::from_secs(5);

/// What the writer and those who give it orders both know.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Cancelled once the run is to end: a database that can't be reached is waited for no longer than [`FAREWELL`].
    pub(super) hurry: CancellationToken,
    /// How many runners live, this one included.
    pub(super) alive: AtomicU32,
    /// Jobs that other runners took of each batch, as far as this one has seen, each with their newest attempt.
    pub(super) taken: Mutex<HashMap<usize, HashMap<String, AttemptId>>>,
    /// Until when the submissions of new intents may leave.
    pub(super) send_by: Mutex<HashMap<AttemptId, SendBy>>,
}

/// The writer.
pub(super) struct Writer {
    address: PostgresAddress,
    kind: Kind,
    pub(super) times: Times,
    client: Option<Client>,
    pub(super) is_enrolled: bool,
    pub(super) runner: Runner,
    pub(super) at_work: BTreeMap<usize, AtWork>,
    pub(super) memory: Memory,
    pub(super) shared: Arc<Shared>,
    pub(super) last_sign: Instant,
    pub(super) heartbeats: Heartbeats,
    /// True from the time that tables were missing until a transaction is committed: what was acknowledged may be lost.
    has_lost_tables: bool,
    /// Since when the database can't be reached. One outage is one for all writes: what comes after its deadline is tried once.
    broken_since: Option<Instant>,
    /// True if the account had no slot for an intent the last time.
    pub(super) waits_for_slots: bool,
    /// The ledger limits, as they were at the last intent.
    pub(super) limits: Vec<SpendLimit>,
    /// Until when submissions whose intent was committed last may leave.
    pub(super) send_by: SendBy,
}

/// Begins a transaction in one round trip. Fails where this runner must first settle its own writes.
async fn open(transaction: &Transaction<'_>, runner: &Runner, is_enrolled: bool) -> Result<Standing, PostgresError> {
    let begun = Sent::now(transaction.begin()).await;
    if !is_enrolled {
        runner.enrol(transaction).await?;
    }
    let signed = Sent::now(runner.sign(transaction)).await;
    begun.answer().await?;
    match signed.answer().await? {
        unsettled @ (Standing::Written | Standing::Forgotten) => Err(PostgresError::Unsettled(unsettled)),
        standing @ (Standing::Sound | Standing::Dead) => Ok(standing),
    }
}

impl Writer {
    pub(super) fn new(address: PostgresAddress, kind: Kind, times: Times, shared: Arc<Shared>) -> Self {
        Self {
            address,
            kind,
            times,
            client: None,
            is_enrolled: false,
            runner: Runner::new(),
            at_work: BTreeMap::new(),
            memory: Memory::default(),
            shared,
            last_sign: Instant::now(),
            heartbeats: Heartbeats::new(),
            has_lost_tables: false,
            broken_since: None,
            waits_for_slots: false,
            limits: Vec::new(),
            send_by: SendBy::within(Duration::ZERO),
        }
    }

    /// Does something in one transaction, and once: until its commit is acknowledged, or known to have been made.
    pub(super) async fn transact<T: Clone>(
        &mut self,
        work: impl AsyncFn(&Transaction<'_>, &Runner, Standing) -> Result<T, PostgresError>,
    ) -> Result<T, PostgresError> {
        self.transact_at_once(async |transaction, runner, opening: Opening<'_>| {
            let standing = opening.await?;
            work(transaction, runner, standing).await
        })
        .await
    }

    /// The same for work whose first questions travel with the beginning of the transaction: it sends the opening first.
    pub(super) async fn transact_at_once<T: Clone>(
        &mut self,
        work: impl AsyncFn(&Transaction<'_>, &Runner, Opening<'_>) -> Result<T, PostgresError>,
    ) -> Result<T, PostgresError> {
        let (mut made, mut tries, mut pause) = (None, 0, FIRST_PAUSE);
        loop {
            let (longest, hurry) = (self.times.answer, self.shared.hurry.clone());
            let answered = tokio::select! {
                answered = self.attempt(&work, &mut made) => answered,
                () = tokio::time::sleep(longest) => Err(PostgresError::Silent),
                () = async { hurry.cancelled().await; tokio::time::sleep(FAREWELL).await; } => Err(PostgresError::Silent),
            };
            let error = match answered {
                Ok(Some(done)) => {
                    if self.broken_since.take().is_some() {
                        tracing::info!(code = NoticeCode::LedgerBack.code(), "the ledger is reachable again");
                    }
                    return Ok(done);
                }
                Ok(None) => continue,
                Err(error) => error.in_general(),
            };
            if is_in_the_way(&error) && tries < MOST_TRIES {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(fastrand::u64(1..20))).await;
                continue;
            }
            let is_without_tables = self.is_enrolled && is_without_tables(&error);
            if !is_without_tables && !self.is_broken(&error) {
                return Err(error);
            }
            self.has_lost_tables |= is_without_tables;
            let hurries = self.shared.hurry.is_cancelled();
            // The process ends as soon as this has waited.
            if hurries {
                self.rescue();
            }
            self.client = None;
            let since = *self.broken_since.get_or_insert_with(|| {
                let why = crate::domain::with_causes(&error);
                tracing::warn!(
                    code = NoticeCode::LedgerLost.code(),
                    "lost the connection to the ledger; nothing is submitted until it is back: {why}"
                );
                Instant::now()
            });
            let most = if hurries { FAREWELL } else { self.times.outage };
            // Whoever begins is told at once that there is no server; one that breaks off is asked again.
            if !self.is_enrolled && !matches!(error, PostgresError::Sql(_)) {
                return Err(error);
            }
            if since.elapsed() > most {
                self.rescue();
                return Err(PostgresError::Outage(since.elapsed().as_secs()));
            }
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One try. Nothing where the database was put right first, and it has to be tried again.
    async fn attempt<T: Clone>(
        &mut self,
        work: &impl AsyncFn(&Transaction<'_>, &Runner, Opening<'_>) -> Result<T, PostgresError>,
        made: &mut Option<T>,
    ) -> Result<Option<T>, PostgresError> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            let mut client = connect(&self.address).await?;
            check_that_it_lasts(&client).await?;
            if recognise(&client, self.kind).await? == Found::Nothing {
                // Tables that are made here would be in the way of those that are restored.
                if self.is_enrolled {
                    return Err(PostgresError::Gone);
                }
                create(&mut client, self.kind).await?;
            }
            self.client = Some(client);
        }
        let Some(client) = &self.client else { return Ok(None) };
        let transaction = Transaction::that_writes(client, self.kind);
        let opening = Box::pin(open(&transaction, &self.runner, self.is_enrolled));
        let done = match work(&transaction, &self.runner, opening).await {
            Err(PostgresError::Unsettled(Standing::Written)) => {
                transaction.rollback().await?;
                (self.runner.writes, self.runner.is_unsure) = (self.runner.writes + 1, false);
                return Ok(made.take());
            }
            Err(PostgresError::Unsettled(_)) => {
                transaction.rollback().await?;
                // Whatever was under way is to be done anew, behind the facts that are put back.
                *made = None;
                let transaction = Transaction::writing(client, self.kind);
                let put_back = self.memory.put_back(&transaction, &self.runner, &mut self.at_work).await?;
                self.runner.is_unsure = true;
                transaction.commit().await?;
                (self.runner.writes, self.runner.is_unsure) = (self.runner.writes + 1, false);
                tracing::error!(code = NoticeCode::PutBack.code(), "{put_back}");
                return Ok(None);
            }
            done => done?,
        };
        *made = Some(done.clone());
        self.runner.is_unsure = true;
        crash::point("before-commit");
        // No other runner expires this one before the commit, and the commit comes after this moment.
        self.send_by = SendBy::within(self.times.send);
        let committed = transaction.commit().await;
        crash::point("after-commit");
        // Whoever answers may be a pooler that does not know, either: the count of writes says it in any case.
        committed?;
        (self.runner.writes, self.runner.is_unsure, self.is_enrolled) = (self.runner.writes + 1, false, true);
        self.has_lost_tables = false;
        Ok(Some(done))
    }

    /// Names everything that may have been charged, once, if the tables are gone: no other place has it.
    pub(super) fn rescue(&mut self) {
        if std::mem::take(&mut self.has_lost_tables) {
            self.memory
                .charged()
                .for_each(|line| tracing::error!(code = NoticeCode::TaskNotRecorded.code(), "RESCUE: {line}"));
        }
    }

    /// Whether an error is one of the connection, and not of what was asked.
    fn is_broken(&self, error: &PostgresError) -> bool {
        match error {
            PostgresError::Silent
            | PostgresError::Connect { .. }
            | PostgresError::Full { .. }
            | PostgresError::Tls { .. } => true,
            // A primary that steps down is one for a while; whoever starts on a standby is told at once.
            PostgresError::ReadOnly => self.is_enrolled,
            PostgresError::Sql(error) => {
                let is_gone = error.code().is_none() && self.client.as_ref().is_none_or(Client::is_closed);
                is_lost(error) || is_canceled(error) || is_gone || self.client.is_none() && self.is_enrolled
            }
            // Whoever was let in once waits until the others have mended what they are just changing.
            _ => self.client.is_none() && self.is_enrolled,
        }
    }
}

/// Whether another transaction stood in the way of this one.
fn is_in_the_way(error: &PostgresError) -> bool {
    let PostgresError::Sql(error) = error else { return false };
    matches!(
        error.code(),
        Some(
            &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::LOCK_NOT_AVAILABLE
            // Seen by an index and not yet by a question: the next look sees it.
            | &SqlState::UNIQUE_VIOLATION
        )
    )
}
