//! The figures of a plan: counts, sums, and an estimate of time and requests.
//!
//! In the estimate, each task takes the middle of its family's typical generation time (interface §4). The wall time is
//! that of list scheduling: tasks in order, each on the slot that is free first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Usd;

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
    /// Jobs that are submitted.
    pub submit: usize,
    /// Jobs whose task is polled on.
    pub resume: usize,
    /// Jobs that are completed.
    pub done: usize,
    /// Videos of completed tasks that are not here: of selected jobs that are completed, and of earlier takes.
    pub fetch: usize,
    /// Jobs that wait for a face review.
    pub held: usize,
    /// Due jobs that are left for another run (`--sample`).
    pub left_out: usize,
    /// Jobs that stay failed.
    pub failed: usize,
    /// Jobs that are in doubt.
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
