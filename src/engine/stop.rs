//! Reasons to stop submitting, and to abort polling.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::domain::{JobId, Usd};
use crate::ledger::LedgerError;

/// The reason for an early end of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StopReason {
    /// As many jobs failed as `--max-failures` allows.
    TooManyFailures,
    /// As many in-doubt outcomes in a row as `--max-doubts` allows.
    TooManyDoubts,
    /// The next submission would exceed a spend limit.
    SpendLimit,
    /// Purchases are frozen in the ledger.
    Frozen,
    /// Another batch has paid for the request since the plan was made.
    PaidElsewhere,
    /// The service is unreachable.
    Unreachable,
    /// The service refused the key.
    KeyRefused,
    /// A video can't be written to this machine.
    FilesFailed,
    /// The ledger can't be written.
    LedgerFailed,
    /// The lease of this runner expired, and another one may have the batch.
    LeaseExpired,
    /// The number of a signal.
    Signal(i32),
}

impl StopReason {
    /// Returns the reason to stop after a refused intent.
    pub(super) fn of_intent(error: &LedgerError) -> Self {
        match error {
            LedgerError::OverLimit { .. } => Self::SpendLimit,
            LedgerError::PaidElsewhere { .. } => Self::PaidElsewhere,
            LedgerError::Frozen(freeze) if !freeze.by_failover => Self::Frozen,
            LedgerError::LeaseExpired => Self::LeaseExpired,
            _ => Self::LedgerFailed,
        }
    }

    /// Returns whether polling stops, too. Active tasks are paid for, so only a signal stops it, or another runner that polls them.
    fn aborts(self) -> bool {
        matches!(self, Self::Signal(_) | Self::LeaseExpired)
    }

    /// Returns whether a submission that has reserved its price may still be sent.
    fn spares_reserved(self) -> bool {
        self == Self::SpendLimit
    }
}

/// The shared stop state of a run.
#[derive(Debug, Default)]
pub struct Stop {
    submitting: CancellationToken,
    sending: CancellationToken,
    polling: CancellationToken,
    reasons: Mutex<BTreeSet<StopReason>>,
    /// The jobs that are being submitted, each with its price.
    in_flight: Mutex<BTreeMap<JobId, Usd>>,
}

/// A submission whose response is not recorded yet.
pub(super) struct Sending<'s> {
    stop: &'s Stop,
    job: &'s JobId,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.stop.in_flight.lock().remove(self.job);
    }
}

impl Stop {
    /// Stops submitting. Returns whether the reason is new.
    pub fn because(&self, reason: StopReason) -> bool {
        let new = self.reasons.lock().insert(reason);
        self.submitting.cancel();
        if !reason.spares_reserved() {
            self.sending.cancel();
        }
        if reason.aborts() {
            self.polling.cancel();
        }
        new
    }

    /// Registers a submission until its response is recorded: a run that ends before leaves it in doubt.
    pub(super) fn sending<'s>(&'s self, job: &'s JobId, price: Usd) -> Sending<'s> {
        self.in_flight.lock().insert(job.clone(), price);
        Sending { stop: self, job }
    }

    /// Returns the jobs that would be in doubt if the run ended now, each with its price.
    pub fn in_flight(&self) -> BTreeMap<JobId, Usd> {
        self.in_flight.lock().clone()
    }

    /// Returns all reasons.
    pub fn reasons(&self) -> BTreeSet<StopReason> {
        self.reasons.lock().clone()
    }

    /// Returns whether submitting has stopped.
    pub fn is_stopping(&self) -> bool {
        self.submitting.is_cancelled()
    }

    /// Returns whether submissions with a reserved price have stopped, too.
    pub fn forbids_sending(&self) -> bool {
        self.sending.is_cancelled()
    }

    /// Waits until submitting stops.
    pub async fn stopping(&self) {
        self.submitting.cancelled().await;
    }

    /// Returns the result of waiting, or `None` if submitting stops first.
    pub(crate) async fn unless_stopping<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stopping() => None,
            value = wait => Some(value),
        }
    }

    /// Returns whether polling has stopped.
    pub fn is_aborting(&self) -> bool {
        self.polling.is_cancelled()
    }

    /// Waits until polling stops.
    pub async fn aborting(&self) {
        self.polling.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_wants_the_end_now_leaves_paid_work_behind() {
        for reason in [
            StopReason::TooManyFailures,
            StopReason::TooManyDoubts,
            StopReason::SpendLimit,
            StopReason::Frozen,
            StopReason::PaidElsewhere,
            StopReason::Unreachable,
            StopReason::KeyRefused,
            StopReason::FilesFailed,
            StopReason::LedgerFailed,
        ] {
            let stop = Stop::default();
            assert!(stop.because(reason));
            assert!(!stop.because(reason), "shown twice");
            assert!(stop.is_stopping() && !stop.polling.is_cancelled(), "{reason:?}");
            assert_eq!(stop.forbids_sending(), reason != StopReason::SpendLimit, "{reason:?}");
        }
        let stop = Stop::default();
        stop.because(StopReason::Signal(2));
        assert!(stop.is_stopping() && stop.polling.is_cancelled());
    }
}
