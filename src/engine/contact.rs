//! Whether the service answers at all.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A silence shorter than this is nothing to tell of when it ends.
const WORTH_TELLING: Duration = Duration::from_secs(10);

/// What is known of the connection to the service, by whoever asked last.
#[derive(Debug, Default)]
pub struct Contact(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reached: bool,
    failures: u32,
    silent_since: Option<Instant>,
}

impl Contact {
    /// A request got no answer: how many did so on end.
    pub fn lost(&self) -> u32 {
        let mut state = self.lock();
        state.silent_since.get_or_insert_with(Instant::now);
        state.failures = state.failures.saturating_add(1);
        state.failures
    }

    /// A request got an answer: how long there had been none, if that is worth telling.
    pub fn heard(&self) -> Option<Duration> {
        let mut state = self.lock();
        (state.reached, state.failures) = (true, 0);
        state.silent_since.take().map(|since| since.elapsed()).filter(|silence| *silence >= WORTH_TELLING)
    }

    /// Whether the service ever answered in this run.
    pub fn was_reached(&self) -> bool {
        self.lock().reached
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
