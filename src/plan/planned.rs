//! One job of a plan, and one limit on it.

use std::borrow::Cow;
use std::sync::Arc;

use super::decide::Action;
use super::retake::SpentChoice;
use crate::domain::{AttemptId, Job, Label, Usd};

/// A selected job and what is done about it.
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
    /// The sum that may have been charged for it without a response.
    pub at_risk: Usd,
    /// The number of earlier submissions, without those that certainly bought nothing, and without purchases under the
    /// current approval.
    pub earlier: usize,
    /// The reason to skip a retake of it, if one is skipped.
    pub spent_choice: Option<SpentChoice>,
    /// True if the plan to approve buys it, also if that was done under the current approval.
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

/// A limit on spending, and where that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// `--max-cost`, or its name in the manifest.
    pub source: Arc<str>,
    /// It is about jobs that have this label, and otherwise about all of them.
    pub label: Option<Label>,
    /// The amount.
    pub usd: Usd,
    /// The part that is spent already, or may be.
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
}
