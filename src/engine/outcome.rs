//! Outcome of a run.

use std::collections::BTreeSet;

use super::stop::StopReason;

/// The outcome of a run. The ledger has the state of each job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The reasons for an early end; empty without one.
    pub stopped: BTreeSet<StopReason>,
    /// The number of jobs whose last attempt in this run failed or was rejected.
    pub failures: usize,
    /// The number of tasks that exceeded `--deadline`.
    pub past_deadline: usize,
    /// The number of videos that could not be downloaded.
    pub unfetched: usize,
    /// True if a model is not submitted any more, because it delivers something else than what is paid for.
    pub is_model_stopped: bool,
}
