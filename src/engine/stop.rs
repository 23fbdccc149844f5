//! Why a run submits no more, and whether it still polls what is outstanding.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::ledger::LedgerError;

/// Why a run ended before everything was done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StopReason {
    /// As many jobs failed as `--max-failures` allows.
    TooManyFailures,
    /// As many submissions in a row ended in doubt as `--max-doubts` allows.
    TooManyDoubts,
    /// `--max-duration` is over.
    TimeBox,
    /// The limit on new spending would be passed.
    SpendLimit,
    /// Purchases are frozen in the ledger.
    Frozen,
    /// The request was paid for elsewhere since the plan was made.
    PaidElsewhere,
    /// The service could not be reached.
    Unreachable,
    /// The service refused the key.
    KeyRefused,
    /// A video could not be written to this machine.
    FilesFailed,
    /// The ledger could not be written.
    LedgerFailed,
    /// A signal, by its number.
    Signal(i32),
}

impl StopReason {
    /// The reason to stop after an intent that could not be written.
    pub(super) fn of_intent(error: &LedgerError) -> Self {
        match error {
            LedgerError::OverLimit { .. } => Self::SpendLimit,
            LedgerError::PaidElsewhere { .. } => Self::PaidElsewhere,
            LedgerError::Frozen(freeze) if !freeze.by_failover => Self::Frozen,
            _ => Self::LedgerFailed,
        }
    }

    /// Whether outstanding tasks are left where they are, too. Only whoever wants the run to end now ends that: what was
    /// paid for is otherwise worth waiting for.
    fn leaves(self) -> bool {
        matches!(self, Self::Signal(_) | Self::TimeBox)
    }

    /// Whether a submission that has its money already, and is just about to leave, may leave: only what comes after it has
    /// none.
    fn spares_reserved(self) -> bool {
        self == Self::SpendLimit
    }
}

/// Shared by everything that can end a run.
#[derive(Debug, Default)]
pub struct Stop {
    submitting: CancellationToken,
    sending: CancellationToken,
    polling: CancellationToken,
    reasons: Mutex<BTreeSet<StopReason>>,
}

impl Stop {
    /// Submit no more. True the first time that this reason is given.
    pub fn because(&self, reason: StopReason) -> bool {
        let new = self.reasons.lock().unwrap_or_else(PoisonError::into_inner).insert(reason);
        self.submitting.cancel();
        if !reason.spares_reserved() {
            self.sending.cancel();
        }
        if reason.leaves() {
            self.polling.cancel();
        }
        new
    }

    /// Every reason that was given.
    #[must_use]
    pub fn reasons(&self) -> BTreeSet<StopReason> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether nothing may be submitted any more.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.submitting.is_cancelled()
    }

    /// Whether not even what has its money reserved may leave any more.
    #[must_use]
    pub fn forbids_sending(&self) -> bool {
        self.sending.is_cancelled()
    }

    /// Returns once nothing may be submitted any more.
    pub async fn stopping(&self) {
        self.submitting.cancelled().await;
    }

    /// What comes of waiting, or nothing if the run stops first.
    pub(crate) async fn unless_stopping<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stopping() => None,
            value = wait => Some(value),
        }
    }

    /// Whether outstanding tasks are to be left at the service.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.polling.is_cancelled()
    }

    /// Returns once outstanding tasks are to be left at the service.
    pub async fn leaving(&self) {
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
            assert!(!stop.because(reason), "told twice");
            assert!(stop.is_stopping() && !stop.polling.is_cancelled(), "{reason:?}");
            assert_eq!(stop.forbids_sending(), reason != StopReason::SpendLimit, "{reason:?}");
        }
        for reason in [StopReason::Signal(2), StopReason::TimeBox] {
            let stop = Stop::default();
            stop.because(reason);
            assert!(stop.is_stopping() && stop.polling.is_cancelled());
        }
    }
}
