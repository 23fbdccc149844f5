//! Reserves a job's price before its submission, so that concurrency can't overshoot the limit.

use std::sync::{Mutex, PoisonError};

use crate::domain::Usd;

/// What a run may newly spend, and what of it is taken.
#[derive(Debug)]
pub struct Budget {
    limit: Option<Usd>,
    taken: Mutex<Usd>,
}

impl Budget {
    /// With a limit, or without one.
    pub fn new(limit: Option<Usd>) -> Self {
        Self { limit, taken: Mutex::new(Usd::ZERO) }
    }

    /// Takes a price out of what is left; false, and nothing taken, if that is not enough.
    pub fn reserve(&self, price: Usd) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let after = *taken + price;
        let enough = self.limit.is_none_or(|limit| after <= limit);
        if enough {
            *taken = after;
        }
        enough
    }

    /// Gives a price back: the submission certainly bought nothing. What is unknown stays taken.
    pub fn release(&self, price: Usd) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(price);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_takes_more_than_the_limit() {
        let usd = |cents: i64| Usd::from_micros(cents * 10_000);
        let budget = Budget::new(Some(usd(200)));
        assert!(budget.reserve(usd(150)));
        assert!(!budget.reserve(usd(51)));
        assert!(budget.reserve(usd(50)));
        assert!(!budget.reserve(usd(1)));
        budget.release(usd(50));
        assert!(budget.reserve(usd(50)));
        assert!(Budget::new(None).reserve(usd(1_000_000)));
        assert!(!Budget::new(Some(Usd::ZERO)).reserve(usd(1)));
    }
}
