//! The counts and sums of a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Usd;

/// Counts and sums of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Selected jobs.
    pub jobs: usize,
    /// Jobs that are submitted.
    pub submit: usize,
    /// Jobs whose task is polled on.
    pub resume: usize,
    /// Jobs that are completed.
    pub done: usize,
    /// Videos of completed tasks that are not here: of selected jobs that are completed, and of earlier takes.
    pub fetch: usize,
    /// Jobs that wait for a face review.
    pub held: usize,
    /// Due jobs that are left for another run (`--sample`).
    pub left_out: usize,
    /// Jobs that stay failed.
    pub failed: usize,
    /// Jobs that are in doubt.
    pub in_doubt: usize,
    /// The price of the submissions.
    pub cost_usd: Usd,
    /// The sum that may have been charged for jobs in doubt.
    pub at_risk_usd: Usd,
    /// The most that the run can spend, whatever happens: each submission with all of its paid retries.
    pub worst_case_usd: Usd,
    /// The one-time fees of the face reviews that jobs wait for, paid outside the interface.
    pub face_reviews_usd: Usd,
}
