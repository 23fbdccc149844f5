//! The input of a plan: jobs, history, options, and the open work of other batches.
//!
//! The ledger identifies a job by batch and ID. A renamed manifest or job, a missing ledger, an inserted row with numbered IDs, or other line
//! ends make a bought job due. No rule can know whether the user wants to buy it again, so the plan lists such jobs, and a run needs `--buy-again`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::approval::Approved;
use super::decide::Action;
use super::retake::{Retake, Retakes, SpentChoice};
use crate::domain::{Attempt, AttemptId, BatchKey, History, Job, JobId, Label, TaskId, Usd, VideoFile};

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
    /// The spend limit of this run.
    pub run_limit: Option<Limit>,
    /// Limits over all batches.
    pub limits: Vec<Limit>,
    /// The maximum number of active tasks.
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
    /// Returns whether a downloaded video is still in place, whole, or on another machine. `None` if videos stay at
    /// their URLs.
    pub is_here: Option<IsHere<'g>>,
}

impl<'g> PlanInput<'g> {
    /// The retake of a job, as a part of the unfinished one if it continues that.
    pub(super) fn retake_of(&self, job: &JobId) -> Retake<'g> {
        self.retake.retake_of(job).within(self.history.retake().filter(|begun| self.retake.continues(begun)))
    }
}

/// The directory for the videos of another batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherDirectory {
    /// The directory.
    pub path: Arc<Path>,
    /// True if it is the run's own directory. Then its videos get versioned names.
    pub is_shared: bool,
}

/// A due job, and an earlier purchase of its request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlreadyPaid {
    /// The due job.
    pub job: JobId,
    /// The source of the earlier purchase.
    pub before: Before,
    /// The state of the earlier purchase, as in a report.
    pub state: String,
    /// The possible charge, or `None` if it is unknown.
    pub price: Option<Usd>,
    /// Its task.
    pub task: Option<TaskId>,
    /// The path of its video on this machine, or else the URL.
    pub video: Option<String>,
}

impl AlreadyPaid {
    /// A job that an attempt paid for.
    pub(crate) fn from_attempt(due: &Job, before: Before, paid: &Attempt) -> Self {
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
    /// The same batch, under an ID that the manifest no longer has.
    Gone(JobId),
    /// The same batch, under an ID with another request now.
    Changed(JobId),
    /// The same batch and ID, with an equal normalized request.
    Respelled,
    /// Another name in the ledger.
    OtherName(BatchKey, JobId),
    /// A batch of the same name that [may be the same round](BatchKey::may_repeat).
    OtherBatch(BatchKey, JobId),
    /// A report in the output directory; the ledger lacks it.
    Reported(PathBuf),
}

/// A selected job with its action.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The job.
    pub job: Arc<Job>,
    /// The action.
    pub action: Action,
    /// The reason.
    pub reason: Cow<'static, str>,
    /// The attempt that the action is about.
    pub attempt: Option<AttemptId>,
    /// The cost of the action: the job's price if it buys, otherwise zero.
    pub cost: Usd,
    /// The possible charge of submissions without a response.
    pub at_risk: Usd,
    /// The number of earlier submissions that may have been charged, without purchases under the current approval.
    pub earlier: usize,
    /// The reason to skip a retake of it, if one is skipped.
    pub spent_choice: Option<SpentChoice>,
    /// True if the approved plan buys it, or has bought it already.
    pub is_to_be_approved: bool,
    /// The attempts elsewhere that may have paid for its normalized request, if the guard against buying again needs them.
    pub paid_elsewhere: Option<u32>,
    /// The choice that its next take waits for, if its takes are bought until one is kept.
    pub until_kept: Option<UntilKept>,
    /// The attempt that it follows, if it is changed or a retake.
    pub previous: Option<Box<Previous>>,
    /// True if a retake names it that the approval doesn't cover.
    pub is_uncovered: bool,
}

/// The attempt that a changed job or a retake follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Previous {
    /// The body of its request, as JSON.
    pub request: String,
    /// The notes of reviewers who chose a retake, each with the reviewer: `Ben: blurry`.
    pub notes: Vec<String>,
}

/// A job whose takes are bought one by one until one is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UntilKept {
    /// True if its newest video waits for a choice, or its reviewers disagree.
    pub waits: bool,
    /// The price of all takes that later runs may buy.
    pub later: Usd,
}

/// A spend limit, with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// `--max-cost`, or its name in the manifest.
    pub source: Arc<str>,
    /// The label of the limited jobs, or `None` for all jobs.
    pub label: Option<Label>,
    /// The amount.
    pub usd: Usd,
    /// The part that is spent or at risk.
    pub used: Usd,
}

impl Limit {
    /// Returns whether the limit applies to a job.
    pub fn is_about(&self, job: &Job) -> bool {
        self.label.as_ref().is_none_or(|label| label.is_among(&job.purchase.labels))
    }

    /// The unspent part.
    pub fn left(&self) -> Usd {
        self.usd.saturating_sub(self.used)
    }

    /// Returns whether at least 80 % of it are used after a purchase.
    pub fn is_near(&self, cost: Usd) -> bool {
        (self.used + cost) * 5 >= self.usd * 4
    }
}
