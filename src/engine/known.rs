//! The knowledge of a plan, which the ledger holds against its own when an intent is written.

use crate::domain::AttemptId;

/// The attempts that the plan knew of a job. The ledger refuses an intent if it has more by now.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// The newest attempt of the batch.
    pub newest: Option<AttemptId>,
    /// The attempts elsewhere that may have paid for the same request; nothing where they don't matter.
    pub paid_elsewhere: Option<u32>,
}
