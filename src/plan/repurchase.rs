//! Jobs that are due although something says that the same was bought before.
//!
//! The ledger knows a job by its name, its batch and its id. Whoever renames a manifest, gives it a name, renames a job, or
//! leaves the ledger behind, has bought something that the plan would buy again; and so has whoever inserts a row in a table
//! whose ids count its rows, or saves it with other ends of lines. No rule can tell that from the wish to buy again; so it is reported, job by job, and wants a word of its own.

use std::path::PathBuf;

use crate::domain::{Attempt, BatchKey, Job, JobId, TaskId, Usd};

/// A job that a run would buy, and what was bought before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repurchase {
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

impl Repurchase {
    /// A repurchase of an attempt of this batch.
    pub(super) fn of(due: &Job, before: Before, paid: &Attempt) -> Self {
        Self {
            job: due.id.clone(),
            before,
            state: paid.state.name().to_owned(),
            price: Some(paid.price),
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
