//! Estimate of the time and polls of a run.
//!
//! Each task takes the middle of its family's typical generation time (interface §4), and is polled every ten seconds
//! once it may be ready. The wall time is that of list scheduling: tasks in order, each on the slot that is free first.
//! Every output calls it an estimate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::Serialize;

/// The pause between two polls that the estimate counts with, in seconds: the default of `--poll-interval`.
const POLL_EVERY_S: u32 = 10;

/// The expected time and polls of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Seconds from the first submission to the last video.
    pub wall_s: u64,
    /// Submissions and polls together.
    pub requests: u64,
}

impl Estimate {
    /// Reckons for submissions with these typical generation times (shortest and longest, in seconds), in their order, with
    /// `active` tasks at the service already and `concurrency` slots.
    pub fn of(due: &[(u32, u32)], active: usize, concurrency: usize) -> Self {
        let polls = |(min, max): (u32, u32)| u64::from((max - min) / 2 / POLL_EVERY_S + 1);
        let mut free: BinaryHeap<Reverse<u64>> = vec![Reverse(0); concurrency.max(1)].into();
        let mut wall_s = 0;
        for &(min, max) in due {
            let Some(Reverse(start)) = free.pop() else { break };
            let end = start + u64::from(u32::midpoint(min, max));
            free.push(Reverse(end));
            wall_s = wall_s.max(end);
        }
        let requests = due.iter().map(|&typical| 1 + polls(typical)).sum::<u64>() + active as u64;
        Self { wall_s, requests }
    }
}
