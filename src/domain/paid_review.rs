//! Face reviews that were paid (interface §3), outside the interface and so outside every task.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{BatchKey, JobId, Usd, hex};

/// A face review that was paid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PaidReview {
    /// The name of the face.
    pub face: String,
    /// Noon of the day of the payment: the same day in almost every time zone.
    pub paid_at: Timestamp,
    /// The one-time fee.
    pub fee: Usd,
}

impl PaidReview {
    /// The batch of a ledger that has all fees.
    #[must_use]
    pub fn batch() -> BatchKey {
        BatchKey { name: "face reviews".to_owned(), batch: String::new() }
    }

    /// The ID of the fee in its batch: of each face and day, there is one.
    #[must_use]
    pub fn id(&self) -> Option<JobId> {
        let day = self.paid_at.to_string();
        let digest = hex(&Sha256::digest(format!("{day} {}", self.face)));
        JobId::new(format!("face-review-{}", digest.get(..16)?)).ok()
    }
}
