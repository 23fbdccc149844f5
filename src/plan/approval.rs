//! Approvals: the confirmation of one plan.
//!
//! The digest of a plan covers name, batch, and retries, and for each job to submit the exact request, price, labels, and earlier
//! submissions. It doesn't cover the order of the jobs, their tags, and file names. The ledger records the approval of each submission, so a
//! killed run continues under the same approval: its submissions don't count as earlier ones.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::estimate::{ServiceView, Totals};
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
    action: String,
    pub cost_usd: Usd,
    pub labels: Labels,
    pub request: Value,
    pub earlier: usize,
}

impl SavedJob {
    pub(super) fn buys(&self) -> bool {
        matches!(self.action.as_str(), "submit" | "changed" | "retry")
    }
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
