//! Faults of a service, each with a probability.

use parking_lot::Mutex;

use crate::domain::named;

named! {
    /// A way in which the simulator can misbehave.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Fault {
        /// The request is obeyed, and charged, and the connection is cut instead of an answer.
        LostResponse = "lost-response",
        /// 429, with `Retry-After` in seconds; nothing is done.
        RetryAfter = "retry-after",
        /// 429, with `Retry-After` as a date; nothing is done.
        RetryAfterDate = "retry-after-date",
        /// 500, 502, 503 or 504; every second one of them obeyed, and charged, the request anyway.
        ServerError = "server-error",
        /// The answer comes in drops.
        Slow = "slow",
        /// The request is obeyed, and the answer is a page that says so in HTML.
        Malformed = "malformed",
        /// The request is obeyed, and the connection is cut in the middle of the answer.
        Truncated = "truncated",
        /// A task says a status that the interface does not have.
        UnknownStatus = "unknown-status",
        /// A completed task has no URL.
        NoUrl = "no-url",
        /// A task's progress is less than it was.
        Backwards = "backwards",
        /// A video's URL is no longer good.
        ExpiredUrl = "expired-url",
    }
}

/// The probability of each fault.
#[derive(Debug)]
pub(super) struct Faults {
    shares: [f64; Fault::ALL.len()],
    random: Mutex<fastrand::Rng>,
}

impl Faults {
    /// These, with their probabilities; all others never. The last word on a fault counts.
    pub(super) fn new(chosen: &[(Fault, f64)], seed: u64) -> Self {
        let mut shares = [0.0; Fault::ALL.len()];
        for (fault, share) in chosen {
            shares[*fault as usize] = *share;
        }
        Self { shares, random: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }

    /// Returns whether a fault occurs this time.
    pub(super) fn strikes(&self, fault: Fault) -> bool {
        let share = self.shares[fault as usize];
        share > 0.0 && self.random().f64() < share
    }

    /// A whole number below this.
    pub(super) fn pick(&self, below: usize) -> usize {
        self.random().usize(..below)
    }

    fn random(&self) -> parking_lot::MutexGuard<'_, fastrand::Rng> {
        self.random.lock()
    }
}
