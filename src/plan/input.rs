//! The input of a plan: jobs, history, options, and the open work of other batches.

use std::path::Path;
use std::sync::Arc;

use jiff::civil::Date;

use super::approval::Approved;
use super::planned::Limit;
use super::retake::{Retake, Retakes};
use crate::domain::{Attempt, BatchKey, History, Job, JobId, Usd, VideoFile};

/// Returns whether a video is in place.
pub type IsHere<'g> = &'g dyn Fn(&Attempt, &VideoFile) -> bool;

/// The input of a plan besides the selected jobs.
pub struct PlanInput<'g> {
    /// The name and batch of the jobs.
    pub key: BatchKey,
    /// True if the simulator plays the service.
    pub is_simulated: bool,
    /// All jobs of the manifest, selected or not: guards against buying again compare the requests of all.
    pub manifest: &'g [Arc<Job>],
    /// Returns whether the manifest has a job of this ID, selected or not, valid or not. Tasks of unselected jobs are
    /// left alone.
    pub is_in_manifest: &'g dyn Fn(&JobId) -> bool,
    /// The ledger's history of the batch.
    pub history: &'g History,
    /// The limit on what this run may newly spend.
    pub run_limit: Option<Limit>,
    /// Limits over all batches.
    pub limits: Vec<Limit>,
    /// The most tasks active at once.
    pub concurrency: usize,
    /// The number of paid retries of a job whose task fails.
    pub retries: u32,
    /// True if failed jobs are due again.
    pub retry_failed: bool,
    /// Completed jobs that are due again.
    pub retake: &'g Retakes,
    /// The approved plan.
    pub approved: Option<&'g Approved>,
    /// The number of due jobs to keep (`--sample`); `None` for all.
    pub sample: Option<usize>,
    /// The files that the manifest reads.
    pub inputs: Vec<String>,
    /// The day of the catalog's prices, and their age in days.
    pub prices: (Date, i32),
    /// Returns whether a downloaded video is still in place, whole, or on another machine. `None` if videos stay at
    /// their URLs.
    pub is_here: Option<IsHere<'g>>,
}

impl<'g> PlanInput<'g> {
    /// The retake of a job, as a part of the unfinished one if it continues that.
    pub(super) fn retake_of(&self, job: &JobId) -> Retake<'g> {
        self.retake.of(job).within(self.history.retake().filter(|begun| self.retake.continues(begun)))
    }
}

/// The open work of another batch of the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// The batch value.
    pub batch: String,
    /// Tasks at the service.
    pub active: u32,
    /// Submissions in doubt.
    pub doubtful: u32,
    /// Videos that were never fetched.
    pub unfetched: u32,
    /// The price of what is in doubt.
    pub at_risk: Usd,
}

/// The directory for the videos of another batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherDirectory {
    /// The directory.
    pub path: Arc<Path>,
    /// True if it is the run's own directory. Then the videos are stored beside the run's, under names of versions.
    pub is_shared: bool,
}
