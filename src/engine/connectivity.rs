//! Whether the service answers at all.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What is known of the connection to the service, by whoever asked last.
#[derive(Debug, Default)]
pub(super) struct Connectivity(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reached: bool,
    silent_since: Option<Instant>,
}

impl Connectivity {
    /// A request got no answer that is of use.
    pub(super) fn failed(&self) {
        self.lock().silent_since.get_or_insert_with(Instant::now);
    }

    /// A request got an answer: how long there had been none.
    pub(super) fn was_reached(&self) -> Option<Duration> {
        let mut state = self.lock();
        state.reached = true;
        state.silent_since.take().map(|since| since.elapsed())
    }

    /// Whether the service ever answered in this run.
    pub(super) fn was_ever_reached(&self) -> bool {
        self.lock().reached
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
