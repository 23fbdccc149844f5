//! What a ledger says of batches other than the one that is run.

use jiff::Timestamp;

use crate::domain::{Attempt, BatchKey, Charge, Labels, Usd};

/// Attempts of a quarter of an hour that count alike in the books.
#[derive(Clone, Debug)]
pub struct Spending {
    /// When the quarter began.
    pub at: Timestamp,
    /// The batch.
    pub batch: BatchKey,
    /// The model.
    pub model: String,
    /// Their labels.
    pub labels: Labels,
    /// What is known of the money.
    pub charge: Charge,
    /// Whether they are in doubt.
    pub is_doubtful: bool,
    /// How many there are.
    pub attempts: u32,
    /// Their price together.
    pub price: Usd,
}

/// An attempt of another batch.
#[derive(Clone, Debug)]
pub struct BoughtElsewhere {
    /// The batch.
    pub batch: BatchKey,
    /// The newest attempt.
    pub attempt: Attempt,
    /// How many jobs asked for the same.
    pub jobs: u32,
}

/// What is open in another batch of the same name.
#[derive(Clone, Debug)]
pub struct OpenElsewhere {
    /// The batch.
    pub batch: BatchKey,
    /// Tasks at the service.
    pub outstanding: u32,
    /// Attempts in doubt.
    pub doubtful: u32,
    /// Intents without an answer: of a run that is at it, or that died.
    pub unanswered: u32,
    /// Completed tasks whose video was never fetched.
    pub unfetched: u32,
    /// The price of what is in doubt.
    pub at_risk: Usd,
    /// Videos for which the program of `--exec` failed, or was to be started and was not.
    pub unexecuted: u32,
}
