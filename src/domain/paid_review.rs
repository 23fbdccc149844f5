//! Face reviews that were paid (interface §3), outside the interface and so outside every task.

use jiff::Timestamp;
use jiff::civil::Date;
use sha2::{Digest as _, Sha256};

use super::{BatchKey, JobId, Usd, hex};

/// A face review that was paid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PaidReview {
    /// The name of the face.
    pub face: String,
    /// The day of the payment.
    pub paid_on: Date,
    /// Noon of that day, in the manifest's time zone: the same day in almost every other.
    pub paid_at: Timestamp,
    /// The one-time fee.
    pub fee: Usd,
}

impl PaidReview {
    /// The batch of a ledger that has all fees.
    pub fn batch() -> BatchKey {
        // No manifest has an empty name.
        BatchKey { name: String::new(), batch: "face reviews".to_owned() }
    }

    /// The ID of the fee in its batch: of each face and day, there is one.
    pub fn id(&self) -> Option<JobId> {
        let digest = hex(&Sha256::digest(format!("{} {}", self.paid_on, self.face)));
        JobId::new(format!("face-review-{}", digest.get(..16)?)).ok()
    }
}
