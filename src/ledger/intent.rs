//! The record that is durable before a submission leaves.

use std::sync::Arc;

use jiff::Timestamp;

use crate::domain::{
    Account, AttemptId, Charging, Digest, Fingerprint, Job, JobId, Label, Labels, LocalImage, OutputPath, Request, Usd,
};

/// An imminent submission.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The job.
    pub job: JobId,
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// The fingerprint of the normalized request.
    pub normalized: Fingerprint,
    /// The exact body.
    pub request: String,
    /// The model.
    pub model: String,
    /// The price.
    pub price: Usd,
    /// The moment at which the family charges.
    pub charging: Charging,
    /// The family's typical generation time in seconds, shortest and longest.
    pub typical_s: (u32, u32),
    /// The account that will own the task.
    pub account: Account,
    /// The newest attempt that was known when the job was found to be due. A newer one of this job is another run's.
    pub known: Option<AttemptId>,
    /// Limits over all batches of the ledger, which the ledger itself keeps.
    pub limits: Vec<SpendLimit>,
    /// The labels of the job.
    pub labels: Labels,
    /// The path of its video in the output directory, if its manifest has one.
    pub output: Option<OutputPath>,
    /// The approved plan that it is a part of.
    pub approval: Option<Approval>,
    /// The SHA-256 of each of its local images, separated by spaces.
    pub local_images: Option<String>,
    /// The time of a submission that another program made and whose task is known, or `None` for a submission now.
    pub imported_at: Option<Timestamp>,
    /// The number of attempts elsewhere that the plan knew for this normalized request. If there are more by now, the intent is refused.
    /// `None` if the request may repeat them: for a retry, and in the sandbox.
    pub paid_elsewhere: Option<u32>,
}

impl Intent {
    /// To submit this job once, under no limit and as a part of no approved plan, where no attempt of it is known.
    pub fn new(job: &Job, account: Account) -> Self {
        Self {
            job: job.id.clone(),
            fingerprint: job.request.fingerprint().clone(),
            normalized: Request::normalized(&job.spec),
            request: job.request.body().to_owned(),
            model: job.spec.model.clone(),
            price: job.price,
            charging: job.charging,
            typical_s: job.typical_s,
            account,
            known: None,
            limits: Vec::new(),
            labels: job.labels.clone(),
            output: job.file.clone(),
            approval: None,
            local_images: LocalImage::digests(&job.spec.local_images),
            imported_at: None,
            paid_elsewhere: None,
        }
    }
}

/// A plan that someone approved, as far as it is about one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Approval {
    /// The digest of the plan.
    pub digest: Digest,
    /// The number of times that the job may be bought as a part of it. The ledger counts, so no restarted run buys
    /// more.
    pub most: u32,
}

/// A limit on what all batches of a ledger may spend together since a moment.
///
/// The ledger checks it in the transaction that writes the intent, so that neither concurrency nor another run of
/// another batch can overshoot. What is unknown counts in full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpendLimit {
    /// `budget.day`, `budget.month`, or with the label that it is about `budget.labels.client.acme.month`.
    pub name: Arc<str>,
    /// It is about what has this label, and otherwise about everything.
    pub label: Option<Label>,
    /// The beginning of the day or the month.
    pub since: Timestamp,
    /// The amount.
    pub usd: Usd,
}

impl SpendLimit {
    /// Returns whether it applies to these labels.
    pub(super) fn is_about(&self, labels: &Labels) -> bool {
        self.label.as_ref().is_none_or(|label| label.is_among(labels))
    }

    /// Identifies the sum that it is checked against.
    pub(super) fn key(&self) -> (Option<Label>, i64) {
        (self.label.clone(), self.since.as_microsecond())
    }
}
