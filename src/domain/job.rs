//! A checked and priced job.

use std::sync::Arc;

use super::{Cells, Charging, JobId, Labels, OutputPath, Request, Spec, Usd};

/// One video that the manifest asks for: checked against its family, priced, with the exact request that buys it.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Its name in the batch.
    pub id: JobId,
    /// The effective fields, family defaults included.
    pub spec: Spec,
    /// The request.
    pub request: Request,
    /// The price of a submission.
    pub price: Usd,
    /// The moment at which the family charges.
    pub charging: Charging,
    /// The family's typical generation time in seconds, shortest and longest (interface §4).
    pub typical_s: (u32, u32),
    /// The number of the take among those of the same request, from 1.
    pub take: u32,
    /// The most takes that are bought one by one until one is kept, or `None` if it is one of a fixed number.
    pub up_to: Option<u32>,
    /// Free words for selection; no part of identity.
    pub tags: Vec<String>,
    /// The labels, kept with every attempt; no part of the identity.
    pub labels: Labels,
    /// The path of its video in the output directory, or `None` for a name after the ID.
    pub file: Option<OutputPath>,
    /// The row of a table that it was made of.
    pub row: Option<Arc<Cells>>,
    /// The values of its matrix, by name.
    pub matrix: Option<Arc<Labels>>,
    /// The review that it waits for, if it does: nothing is submitted before.
    pub review: Option<FaceReview>,
    /// True if its family generates real faces only after a review, and the job names none.
    pub has_no_review: bool,
}

impl Job {
    /// The path of its video in the output directory.
    pub fn output(&self) -> OutputPath {
        self.file.clone().unwrap_or_else(|| OutputPath::of(&self.id))
    }
}

/// A face review that is not through yet (interface §3).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FaceReview {
    /// The name of the face.
    pub face: String,
    /// The one-time fee of its review, paid outside the interface.
    pub fee: Usd,
}
