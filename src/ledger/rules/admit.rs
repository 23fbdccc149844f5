//! The decision whether an intent is written, in one order of refusals.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::{
    Account, Attempt, AttemptId, BatchKey, Declaration, Declared, Fingerprint, Freeze, JobId, Label, Usd,
};
use crate::ledger::row::{Row, Shared};
use crate::ledger::{Intent, LedgerError, SpendLimit};

/// An intent, with its batch and the batch's number in the store.
pub(in crate::ledger) struct BatchIntent<'a> {
    pub(in crate::ledger) batch: i64,
    pub(in crate::ledger) key: &'a BatchKey,
    pub(in crate::ledger) intent: &'a Intent,
}

/// A label, or everything, with the span's start in microseconds.
pub(in crate::ledger) type SpanKey = (Option<Label>, i64);

/// The facts for the decision, in one transaction. Each admitted intent changes them for the next.
#[derive(Clone, Default)]
pub(in crate::ledger) struct Facts {
    pub(in crate::ledger) now: Timestamp,
    /// The highest attempt number of the batches; the next one is higher by at most `gap`.
    pub(in crate::ledger) newest: i64,
    pub(in crate::ledger) gap: i64,
    pub(in crate::ledger) freeze: Option<Freeze>,
    /// The attempts of each job.
    pub(in crate::ledger) attempts: HashMap<(i64, JobId), Vec<Row>>,
    /// Attempts that may have paid for a normalized request, by batch, the batch of the newest attempt last.
    pub(in crate::ledger) paid: HashMap<Fingerprint, Vec<(BatchKey, u32)>>,
    /// The ledger limits.
    pub(in crate::ledger) limits: Vec<SpendLimit>,
    /// The sum spent since the start of each limit's span.
    pub(in crate::ledger) used: HashMap<SpanKey, Usd>,
    /// Facts about runners that share the ledger.
    pub(in crate::ledger) shared: Option<OtherRunnersFacts>,
}

/// Facts about runners that share the ledger.
#[derive(Clone)]
pub(in crate::ledger) struct OtherRunnersFacts {
    /// This runner.
    pub(in crate::ledger) runner: i64,
    /// True if the lease expired, or another runner has one of the batches.
    pub(in crate::ledger) is_expired: bool,
    /// The account of the slots.
    pub(in crate::ledger) account: Account,
    pub(in crate::ledger) slots: SlotStatus,
    /// The wait for a free slot.
    pub(in crate::ledger) retry_after: Duration,
}

/// The slots of the account for this runner.
#[derive(Clone, Copy)]
pub(in crate::ledger) enum SlotStatus {
    /// The number of free slots. Without one, the runner's own tasks have its share.
    Free(i64),
    /// Other runners have the slots.
    Taken,
    /// The service asked for this wait.
    Paused(Duration),
}

impl Facts {
    /// Admits an intent: returns its row, and counts it.
    pub(in crate::ledger) fn admit(&mut self, asked: &BatchIntent<'_>) -> Result<Row, LedgerError> {
        self.check(asked)?;
        let BatchIntent { batch, intent, .. } = asked;
        self.newest += 1 + fastrand::i64(0..=self.gap);
        let runner = self.shared.as_ref().map(|shared| shared.runner);
        let shared = Shared { runner, version: 1, ..Shared::default() };
        let row = Row { attempt: new_attempt(intent, AttemptId(self.newest), self.now), batch: *batch, shared };
        self.attempts.entry((*batch, intent.purchase.job.clone())).or_default().push(row.clone());
        for ((label, _), used) in &mut self.used {
            if label.as_ref().is_none_or(|label| label.is_among(&intent.purchase.labels)) {
                *used += intent.purchase.price;
            }
        }
        if let Some(OtherRunnersFacts { slots: SlotStatus::Free(free), .. }) = &mut self.shared {
            *free -= 1;
        }
        Ok(row)
    }

    /// Refuses for the first of these reasons: lease, freeze, claim, approval, purchases elsewhere, slots, limits.
    fn check(&self, BatchIntent { batch, key, intent }: &BatchIntent<'_>) -> Result<(), LedgerError> {
        let shared = self.shared.as_ref();
        if shared.is_some_and(|shared| shared.is_expired) {
            return Err(LedgerError::LeaseExpired);
        }
        if let Some(freeze) = &self.freeze {
            return Err(LedgerError::Frozen(freeze.clone()));
        }
        let attempts = self.attempts.get(&(*batch, intent.purchase.job.clone())).map_or(&[][..], Vec::as_slice);
        if attempts.iter().any(|row| is_claimed(&row.attempt, intent)) {
            return Err(LedgerError::Claimed(intent.purchase.job.clone()));
        }
        // It is paid already.
        if intent.imported_at.is_some() {
            return Ok(());
        }
        if let Some(approval) = &intent.approval {
            let is_part = |attempt: &Attempt| attempt.particulars.approval.as_deref() == Some(&approval.digest);
            let counts = |row: &&Row| is_part(&row.attempt) && row.attempt.counts_as_submission();
            if attempts.iter().filter(counts).count() >= approval.most as usize {
                return Err(LedgerError::Approved(intent.purchase.job.clone()));
            }
        }
        if let Some(known) = intent.paid_elsewhere {
            let paid = self.paid.get(&intent.normalized).map_or(&[][..], Vec::as_slice);
            let elsewhere = || paid.iter().filter(|(other, _)| key.may_repeat(other));
            if let Some((other, _)) = elsewhere().next_back()
                && elsewhere().map(|(_, attempts)| attempts).sum::<u32>() > known
            {
                return Err(LedgerError::PaidElsewhere { job: intent.purchase.job.clone(), other: other.clone() });
            }
        }
        if let Some(shared) = shared {
            if intent.account != shared.account {
                return Err(LedgerError::Deferred(Duration::ZERO));
            }
            match shared.slots {
                SlotStatus::Paused(wait) => return Err(LedgerError::Deferred(wait)),
                SlotStatus::Free(..=0) => return Err(LedgerError::Deferred(shared.retry_after)),
                SlotStatus::Taken => return Err(LedgerError::SlotsTaken(shared.retry_after)),
                SlotStatus::Free(..) => {}
            }
        }
        for limit in intent.limits.iter().chain(&self.limits).filter(|limit| limit.is_about(&intent.purchase.labels)) {
            // An unknown sum is an error of the store, and refuses it, too.
            let used = self.used.get(&limit.key()).copied().unwrap_or(limit.usd);
            if used + intent.purchase.price > limit.usd {
                return Err(LedgerError::OverLimit { name: Arc::clone(&limit.name), limit: limit.usd, used });
            }
        }
        Ok(())
    }
}

/// Returns whether an attempt forbids another one of its job: it is open, or newer than the plan. A second active task may be imported,
/// because it is paid already.
fn is_claimed(attempt: &Attempt, intent: &Intent) -> bool {
    attempt.state.is_doubtful()
        || attempt.state.is_active()
            && attempt.purchase.fingerprint() == intent.purchase.fingerprint()
            && intent.imported_at.is_none()
        || attempt.id > intent.known.unwrap_or(AttemptId(0)) && !attempt.state.made_no_task()
}

fn new_attempt(intent: &Intent, id: AttemptId, now: Timestamp) -> Attempt {
    let Intent { purchase, normalized, account, approval, imported_at, .. } = intent.clone();
    let mut attempt = Attempt::new(id, purchase, normalized, account, imported_at.unwrap_or(now));
    attempt.particulars.approval = approval.map(|approval| Box::new(approval.digest));
    attempt.particulars.declared = imported_at.map(|_| Declared { what: Declaration::Found, at: now });
    attempt
}
