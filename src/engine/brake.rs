//! Stops submitting a model that delivers, or claims to make, something else than what is paid for.
//!
//! The first video of a model in a run is judged: what is wrong with it will be wrong with all. Videos that are on their way are paid for, and
//! still polled to the end.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The models whose first video was judged, and those that are not submitted any more.
#[derive(Debug, Default)]
pub(super) struct Brake {
    /// True if the user accepts what differs.
    is_off: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By model and what differs.
    seen: HashSet<(String, &'static str)>,
    held: HashSet<String>,
}

impl Brake {
    /// A brake that never holds a model if `is_off`.
    pub(super) fn new(is_off: bool) -> Self {
        Self { is_off, state: Mutex::default() }
    }

    /// Returns whether this is the first time in the run that this is seen of a model.
    pub(super) fn is_first(&self, model: &str, what: &'static str) -> bool {
        self.lock().seen.insert((model.to_owned(), what))
    }

    /// Holds a model. Returns false if the user accepts what differs.
    pub(super) fn hold(&self, model: &str) -> bool {
        if !self.is_off {
            self.lock().held.insert(model.to_owned());
        }
        !self.is_off
    }

    /// Returns whether a model is held.
    pub(super) fn holds(&self, model: &str) -> bool {
        self.lock().held.contains(model)
    }

    /// Returns whether any model is held.
    pub(super) fn is_on(&self) -> bool {
        !self.lock().held.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
