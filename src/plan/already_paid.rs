//! Due jobs whose request was probably paid for before.
//!
//! The ledger knows a job by its batch and its ID. A manifest or a job that was renamed, a ledger that was left behind, an inserted row where IDs
//! count rows, or other line ends make a job due that was bought. No rule tells that from the wish to buy again, so the plan lists these jobs, and
//! a run needs `--buy-again`.

use std::path::PathBuf;

use crate::domain::{Attempt, BatchKey, Job, JobId, TaskId, Usd};

/// A job that a run would buy, and what was bought before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlreadyPaid {
    /// The job that is due.
    pub job: JobId,
    /// The source of the earlier purchase.
    pub before: Before,
    /// The state of the earlier purchase, as in a report.
    pub state: String,
    /// The amount that was or may have been charged, or `None` if it is unknown.
    pub price: Option<Usd>,
    /// Its task.
    pub task: Option<TaskId>,
    /// The path of its video on this machine, or else the URL.
    pub video: Option<String>,
}

impl AlreadyPaid {
    /// A job that an attempt of this batch paid for.
    pub(super) fn from_attempt(due: &Job, before: Before, paid: &Attempt) -> Self {
        Self {
            job: due.id().clone(),
            before,
            state: paid.state.name().to_owned(),
            price: Some(paid.purchase.price),
            task: paid.task.as_ref().map(|task| task.id.clone()),
            video: paid.file.as_ref().map(|file| file.path.to_string()).or_else(|| paid.video_url.clone()),
        }
    }
}

/// The source of an earlier purchase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Before {
    /// The ledger has it in the same batch under an id that is gone from the manifest.
    Gone(JobId),
    /// The ledger has it in the same batch under an id that asks for something else by now.
    Changed(JobId),
    /// The ledger has it under its own ID, in a spelling that is the same when normalized.
    Respelled,
    /// The ledger has the same request under another name.
    OtherName(BatchKey, JobId),
    /// The ledger has the same request in a batch of the same name that [may be the same round](BatchKey::may_repeat).
    OtherBatch(BatchKey, JobId),
    /// A report in the output directory has it, and the ledger does not.
    Reported(PathBuf),
}
