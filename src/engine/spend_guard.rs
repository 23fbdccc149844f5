//! Reserves a job's price before its submission, so that concurrency can't overshoot the limit.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::Usd;

/// What a run may newly spend, and what of it is taken.
///
/// Retries get only what the first submissions leave: a job that fails again and again must not take the money of one
/// that was never tried.
#[derive(Debug)]
pub(super) struct SpendGuard {
    limit: Option<Usd>,
    state: Mutex<Taken>,
}

#[derive(Debug)]
struct Taken {
    /// Spent, or perhaps, or about to be.
    taken: Usd,
    /// The price of first submissions that are still to come.
    waiting: Usd,
}

impl SpendGuard {
    /// Guards a limit, if there is one, for first submissions that cost `planned` altogether.
    pub(super) fn new(limit: Option<Usd>, planned: Usd) -> Self {
        Self { limit, state: Mutex::new(Taken { taken: Usd::ZERO, waiting: planned }) }
    }

    /// Takes the price of a first submission; false, and nothing taken, if there is not enough left.
    pub(super) fn reserve(&self, price: Usd) -> bool {
        let mut state = self.lock();
        state.waiting = state.waiting.saturating_sub(price);
        self.take(&mut state, price, Usd::ZERO)
    }

    /// Takes the price of a retry out of what the first submissions leave.
    pub(super) fn reserve_retry(&self, price: Usd) -> bool {
        let mut state = self.lock();
        let waiting = state.waiting;
        self.take(&mut state, price, waiting)
    }

    /// Gives a price back: the submission certainly bought nothing. What is unknown stays taken.
    pub(super) fn release(&self, price: Usd) {
        let mut state = self.lock();
        state.taken = state.taken.saturating_sub(price);
    }

    fn take(&self, state: &mut Taken, price: Usd, kept: Usd) -> bool {
        let enough = self.limit.is_none_or(|limit| state.taken + price + kept <= limit);
        if enough {
            state.taken += price;
        }
        enough
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_takes_more_than_the_limit() {
        let usd = |cents: i64| Usd::from_micros(cents * 10_000);
        let guard = SpendGuard::new(Some(usd(200)), usd(200));
        assert!(guard.reserve(usd(150)));
        assert!(!guard.reserve(usd(51)));
        assert!(guard.reserve(usd(50)));
        assert!(!guard.reserve(usd(1)));
        guard.release(usd(50));
        assert!(guard.reserve(usd(50)));
        assert!(SpendGuard::new(None, Usd::ZERO).reserve(usd(1_000_000)));
        assert!(!SpendGuard::new(Some(Usd::ZERO), usd(1)).reserve(usd(1)));
    }

    #[test]
    fn a_retry_never_takes_the_money_of_a_job_that_waits() {
        let usd = |dollars: i64| Usd::from_micros(dollars * 1_000_000);
        let guard = SpendGuard::new(Some(usd(5)), usd(4));
        assert!(guard.reserve(usd(2)));
        assert!(guard.reserve_retry(usd(1)));
        assert!(!guard.reserve_retry(usd(1)), "the second job waits");
        assert!(guard.reserve(usd(2)));
        guard.release(usd(2));
        assert!(guard.reserve_retry(usd(2)));
    }
}
