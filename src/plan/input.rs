//! The input of a plan.

use std::sync::Arc;

use super::approval::Approved;
use super::few::Few;
use super::planned::Limit;
use super::retake::{Retake, Retakes};
use crate::domain::{Attempt, BatchKey, History, Inputs, Job, JobId, VideoFile};

/// Whether a video is where it is meant to be.
pub type IsHere<'g> = &'g dyn Fn(&Attempt, &VideoFile) -> bool;

/// The input of a plan besides the selected jobs.
pub struct PlanInput<'g> {
    /// What the jobs belong to.
    pub key: BatchKey,
    /// Whether the simulator plays the service.
    pub is_simulated: bool,
    /// All jobs of the manifest, selected or not: guards against repurchases compare with what each asks for.
    pub manifest: &'g [Arc<Job>],
    /// Whether a job of this id is in the manifest, selected or not, sound or not: tasks of unselected jobs are left alone.
    pub is_in_manifest: &'g dyn Fn(&JobId) -> bool,
    /// What the ledger knows of the batch.
    pub history: &'g History,
    /// The limit on what this run may newly spend.
    pub run_limit: Option<Limit>,
    /// Limits over all batches.
    pub limits: Vec<Limit>,
    /// The most tasks outstanding at once.
    pub concurrency: usize,
    /// How often a job whose task fails is paid for again in this run.
    pub retries: u32,
    /// Whether failed jobs are due again.
    pub retry_failed: bool,
    /// Completed jobs that are due again.
    pub retake: &'g Retakes,
    /// The approved plan.
    pub approved: Option<&'g Approved>,
    /// How many of the due jobs are bought, if not all of them.
    pub few: Option<Few>,
    /// What the manifest was made of besides itself.
    pub inputs: Inputs,
    /// Whether a video of an attempt that was fetched once is still there, whole, or on another machine; nothing if videos stay at their
    /// addresses.
    pub is_here: Option<IsHere<'g>>,
}

impl<'g> PlanInput<'g> {
    /// The retake of a job, as a part of the unfinished one if it continues that.
    pub(super) fn retake_of(&self, job: &JobId) -> Retake<'g> {
        self.retake.of(job).within(self.history.retake().filter(|begun| self.retake.continues(begun)))
    }
}
