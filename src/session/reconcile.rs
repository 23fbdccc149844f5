//! A bill of the service, compared with the submissions of a ledger. What it settles is recorded batch by batch.

use super::refusal::Refusal;
use crate::bill::{Bill, Comparison, Matched, Period, compare, depends_on};
use crate::domain::{Attempt, BatchKey};
use crate::ledger::{Event, Ledger};

/// A bill, and the submissions of the ledger that it is compared with.
#[derive(Debug)]
pub struct Reconciliation<'b> {
    bill: &'b Bill,
    period: Period,
    ledger: &'b Ledger,
    submitted: Vec<(BatchKey, Attempt)>,
}

impl<'b> Reconciliation<'b> {
    /// Reads the submissions of a ledger.
    pub async fn new(bill: &'b Bill, period: Period, ledger: &'b Ledger) -> Result<Self, Refusal> {
        let submitted = ledger.submissions(depends_on(bill, period)).await?;
        Ok(Self { bill, period, ledger, submitted })
    }

    /// Compares the bill with the submissions.
    pub fn comparison(&self) -> Comparison<'_> {
        compare(self.bill, &self.submitted, self.period)
    }

    /// Records what the bill settles, batch by batch: nothing if a line can't be read. `recorded` counts the attempts, also if a later
    /// one fails. `source` names the bill in the ledger.
    pub async fn apply(&self, source: &str, recorded: &mut usize) -> Result<(), Refusal> {
        let comparison = self.comparison();
        let mut settled: Vec<(&Matched<'_>, bool)> =
            comparison.settled().filter(|_| self.bill.unread.is_empty()).collect();
        settled.sort_by_key(|(matched, _)| (matched.batch, matched.attempt.id));
        for of_batch in settled.chunk_by(|(one, _), (other, _)| one.batch == other.batch) {
            let Some((first, _)) = of_batch.first() else { continue };
            let batch = self.ledger.lock(first.batch).await?;
            for (matched, is_charged) in of_batch {
                let event = Event::Billed { is_charged: *is_charged, source: source.to_owned() };
                batch.record(matched.attempt.id, event).await?;
                *recorded += 1;
            }
        }
        Ok(())
    }
}
