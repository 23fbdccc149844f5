//! Approvals, the confirmation of one plan, and the figures that it shows: counts, sums, and an estimate of time and requests.
//!
//! The digest of a plan covers name, batch, and retries, and for each job to submit the exact request, price, labels, and earlier
//! submissions. It doesn't cover the order of the jobs, their tags, and file names. The ledger records the approval of each submission, so a
//! killed run continues under the same approval: its submissions don't count as earlier ones.
//!
//! In the estimate, each task takes the middle of its family's typical generation time (interface §4). The wall time is
//! that of list scheduling: tasks in order, each on the slot that is free first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::decide::Action;
use crate::domain::{Attempt, BatchKey, Digest, Job, Labels, Usd};

/// An approved plan: its digest, and the plan itself if it was saved.
#[derive(Clone, Debug)]
pub struct Approved {
    digest: Digest,
    pub(super) saved: Option<Box<SavedPlan>>,
}

impl Approved {
    /// Approves the plan with this digest.
    pub fn by_digest(digest: Digest) -> Self {
        Self { digest, saved: None }
    }

    /// Approves a plan that was saved as JSON.
    pub fn saved(json: &str) -> Result<Self, serde_json::Error> {
        let saved: Box<SavedPlan> = serde_json::from_str(json)?;
        Ok(Self { digest: saved.digest.clone(), saved: Some(saved) })
    }

    /// Returns whether an attempt was submitted under it.
    pub(super) fn covers(&self, attempt: &Attempt) -> bool {
        attempt.particulars.approval.as_ref().is_some_and(|digest| self.digest == **digest)
    }

    /// The digest of the approved plan.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The service that a saved plan names, if it names one.
    pub fn service(&self) -> Option<&ServiceView> {
        self.saved.as_ref().map(|saved| &saved.service).filter(|service| service.base_url.is_some())
    }
}

/// The parts of a saved plan that an approval needs.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SavedPlan {
    pub name: String,
    pub batch: String,
    pub simulated: bool,
    #[serde(deserialize_with = "digest_text")]
    digest: Digest,
    service: ServiceView,
    pub retries: u32,
    pub jobs: Vec<SavedJob>,
    pub totals: Totals,
}

fn digest_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
    // The file was truncated or edited.
    Digest::parse(&String::deserialize(deserializer)?)
        .ok_or_else(|| D::Error::custom(format!("`digest` must have {} hexadecimal digits", Digest::DIGITS)))
}

/// One job of a saved plan.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SavedJob {
    pub id: String,
    pub action: Action,
    pub cost_usd: Usd,
    pub labels: Labels,
    pub request: Value,
    pub earlier: usize,
}

/// A job to submit, and the times of its earlier submissions in microseconds.
pub(super) type Bought<'p> = (&'p Job, Vec<i64>);

/// The digest of a plan that submits these jobs.
pub(super) fn digest(key: &BatchKey, retries: u32, bought: &[Bought<'_>]) -> Digest {
    let mut jobs: Vec<_> = bought
        .iter()
        // The exact body and not its fingerprint, which has a digest in place of a local image.
        .map(|(job, before)| {
            let labels = job.purchase.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let labels: BTreeMap<&str, &str> = labels.collect();
            (job.id().as_str(), job.purchase.request.body(), job.purchase.price.micros(), &**before, labels)
        })
        .collect();
    jobs.sort_unstable();
    Digest::of_json(&("shotlist plan 1", &key.name, &key.batch, retries, jobs)).expect("texts and numbers are JSON")
}

/// Requests for one task: its submission, and the polls that the poll schedule needs if progress is reported.
const REQUESTS_PER_TASK: usize = 5;

/// The expected time and polls of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Seconds from the first submission to the last video.
    pub wall_s: u64,
    /// Submissions and polls together.
    pub requests: u64,
}

impl Estimate {
    /// Estimates submissions with these typical generation times (shortest and longest, in seconds), in their order, with
    /// `active` tasks at the service already and `concurrency` slots.
    pub fn new(due: &[(u32, u32)], active: usize, concurrency: usize) -> Self {
        let mut free: BinaryHeap<Reverse<u64>> = vec![Reverse(0); concurrency.max(1)].into();
        let mut wall_s = 0;
        for &(min, max) in due {
            let Some(Reverse(start)) = free.pop() else { break };
            let end = start + u64::from(u32::midpoint(min, max));
            free.push(Reverse(end));
            wall_s = wall_s.max(end);
        }
        Self { wall_s, requests: (due.len() * REQUESTS_PER_TASK + active) as u64 }
    }
}

/// Counts and sums of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Selected jobs.
    pub jobs: usize,
    /// Jobs to submit.
    pub submit: usize,
    /// Jobs with an active task.
    pub resume: usize,
    /// Completed jobs.
    pub done: usize,
    /// Videos of completed tasks that are not here: of selected jobs that are completed, and of earlier takes.
    pub fetch: usize,
    /// Jobs that wait for a face review or an image.
    pub held: usize,
    /// Due jobs left for another run (`--sample`).
    pub left_out: usize,
    /// Failed jobs without a retry.
    pub failed: usize,
    /// Jobs in doubt.
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

/// The service as a plan names it. An approval doesn't cover it; a run reports a difference.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServiceView {
    /// The base URL; null if none is set, and in the sandbox.
    pub base_url: Option<String>,
    /// The names of the headers for a gateway, sorted.
    pub headers: Vec<String>,
}
