//! Connections that are kept for the next submission.
//!
//! A connection for each submission costs a hand-shake each: over TLS that is more than all else that a run does (`cargo bench --bench numbers`).
//! So one that a submission has gone over takes another one, within a second.
//!
//! # What that means for the money
//!
//! **Nothing is sent twice.** A submission that is lost on a connection that was kept is in doubt, as on a new one. What the client sends
//! again by itself never reached a connection: it found the connection closed before it had written a byte.
//!
//! **No answer is taken for another's.** Something in between may refuse a request before it has read it, and then take its body for
//! another request and refuse that, too: on a connection that is used again, the second refusal would seem to be the next submission's.
//! So each of these connections belongs to a client of its own, which one submission has to itself until its answer is read. One that made a task gives
//! the client to the next; after any other answer the client goes, with its connection, and this way is over for the run.
//!
//! **Doubts hardly grow.** A server may close a connection on which nothing is open, while a submission is on its way to it. One that is about
//! to close says so with its last answer (RFC 9112 §9.6), and then the connection is not used again; and nothing waits for less than a
//! second for another request before it closes. What is left is a server that is shut down or that breaks the rule. So:
//!
//! - Only a connection that was heard of less than a second ago is used again ([`IDLE`]).
//! - One submission at a time goes this way until [`PROOFS`] made a task on connections that were kept, and then [`MOST`]: what one moment can
//!   put in doubt.
//! - After the first one that is lost, none goes this way any more in this run.
//! - A machine that slept may have slept while the server closed: from then on, none goes this way either. A virtual machine that is
//!   stopped and goes on does not know of it; then up to [`MOST`] submissions can be in doubt.
//!
//! **Where a moment decides, nothing is kept.** Runners of one ledger may not send after a deadline, and that is looked at when a connection
//! stands ([`send_by`](super::send_by)): theirs are all new.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Client;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::domain::SendBy;

/// How long a connection may have been silent. Servers wait for some seconds at least: nginx for 75, Node.js and uvicorn for 5.
pub(super) const IDLE: Duration = Duration::from_secs(1);
/// How many tasks that were made over connections that were kept show that the server keeps them, too.
const PROOFS: u64 = 16;
/// The most submissions that go this way at once.
const MOST: usize = 16;
/// By how much two clocks may differ that were not read at once.
const MARGIN: Duration = Duration::from_millis(100);

/// Makes a client that keeps its connection, and that tells of each that it makes.
type NewClient = dyn Fn(Arc<Seen>) -> Option<Client> + Send + Sync;

/// The connections that are kept, in this run.
pub(super) struct KeptConnections {
    seen: Arc<Seen>,
    new_client: Box<NewClient>,
    /// Clients that nobody has; the last one that was used comes first.
    free: Mutex<Vec<Client>>,
    /// Whoever tries whether they are kept, and whoever goes this way once that is proved.
    trial: Semaphore,
    proved: Semaphore,
}

/// What is known of keeping connections.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Connections that were made to be kept, and submissions that were taken on them.
    made: AtomicU64,
    taken: AtomicU64,
    /// A submission was lost or not taken, or the machine slept.
    is_over: AtomicBool,
    /// When one of them was last heard of, by the clock that stands still while the machine sleeps, and how long that counts by the one
    /// that does not.
    heard: Mutex<Option<(Instant, SendBy)>>,
}

/// Leave to submit over a connection that was kept, which nobody else has meanwhile.
#[derive(Debug)]
pub(super) struct Passage<'k> {
    kept: &'k KeptConnections,
    client: Client,
    _permit: SemaphorePermit<'k>,
}

impl KeptConnections {
    /// None yet, and nothing is known.
    pub(super) fn new(new_client: impl Fn(Arc<Seen>) -> Option<Client> + Send + Sync + 'static) -> Self {
        Self {
            seen: Arc::default(),
            new_client: Box::new(new_client),
            free: Mutex::default(),
            trial: Semaphore::new(1),
            proved: Semaphore::new(MOST),
        }
    }

    /// Leave to submit this way, if there is any.
    pub(super) fn passage(&self) -> Option<Passage<'_>> {
        if self.seen.has_slept() {
            self.seen.end();
        }
        if self.seen.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let proofs = self.seen.taken.load(Ordering::Relaxed).saturating_sub(self.seen.made.load(Ordering::Relaxed));
        let permits = if proofs >= PROOFS { &self.proved } else { &self.trial };
        let permit = permits.try_acquire().ok()?;
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let client = free.or_else(|| (self.new_client)(Arc::clone(&self.seen)))?;
        Some(Passage { kept: self, client, _permit: permit })
    }
}

impl fmt::Debug for KeptConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seen.fmt(f)
    }
}

impl Seen {
    /// A connection was made to be kept.
    pub(super) fn note_made(&self) {
        self.note_heard();
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    /// One of them was heard of. Others may be older than this one.
    fn note_heard(&self) {
        if self.has_slept() {
            self.end();
        }
        let heard = Some((Instant::now(), SendBy::within(IDLE + MARGIN)));
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = heard;
    }

    /// Whether less time went by for this process than for the world, so that what seems to be fresh is not.
    fn has_slept(&self) -> bool {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.is_some_and(|(at, fresh)| fresh.is_over() && at.elapsed() < IDLE)
    }

    fn end(&self) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            tracing::debug!("connections are not kept for submissions any more");
        }
    }
}

impl Passage<'_> {
    /// What to submit with.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The submission made a task: its connection may take the next.
    pub(super) fn was_taken(self) {
        self.kept.seen.note_heard();
        self.kept.seen.taken.fetch_add(1, Ordering::Relaxed);
        if !self.kept.seen.is_over.load(Ordering::Relaxed) {
            self.kept.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.client);
        }
    }

    /// The submission was lost on its way, or answered in another way.
    pub(super) fn was_not_taken(self) {
        self.kept.seen.end();
        self.kept.free.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_connections() -> KeptConnections {
        let trusted = crate::service::clients::Trusted::by_this_machine();
        KeptConnections::new(move |_| trusted.client(true).build().ok())
    }

    #[test]
    fn one_at_a_time_until_it_is_proved_that_the_server_keeps_them() {
        let kept = kept_connections();
        kept.seen.note_made();
        for proved in 0..=PROOFS {
            let alone = kept.passage().expect("a passage");
            assert!(kept.passage().is_none(), "a second one after {proved} answers");
            alone.was_taken();
        }
        let proved: Vec<_> = std::iter::from_fn(|| kept.passage()).collect();
        assert_eq!(proved.len(), MOST, "it is proved");
    }

    #[test]
    fn connections_that_had_to_be_made_prove_nothing() {
        let kept = kept_connections();
        for _ in 0..10 * PROOFS {
            kept.seen.note_made();
            let alone = kept.passage().expect("a passage");
            assert!(kept.passage().is_none());
            alone.was_taken();
        }
    }

    #[test]
    fn none_is_kept_after_one_that_was_not_taken() {
        let kept = kept_connections();
        kept.passage().expect("a passage").was_not_taken();
        assert!(kept.passage().is_none());
    }

    #[test]
    fn none_is_kept_after_the_machine_slept() {
        let kept = kept_connections();
        kept.passage().expect("a passage").was_taken();
        assert!(kept.passage().is_some());
        // The clock that goes on says that the second is over, and the other one that it has just begun.
        *kept.seen.heard.lock().expect("no panic") = Some((Instant::now(), SendBy::within(Duration::ZERO)));
        assert!(kept.passage().is_none());
        *kept.seen.heard.lock().expect("no panic") = None;
        assert!(kept.passage().is_none(), "what was kept before is older still");
    }
}
