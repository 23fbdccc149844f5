//! Limits of the simulator: requests per second, and active tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use axum::response::Response;
use parking_lot::Mutex;

use super::refusal::asked_to_wait;

/// Over how long requests are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// The limits, and what counts against them.
#[derive(Debug)]
pub(super) struct Limits {
    max_rps: Option<u32>,
    max_tasks: Option<usize>,
    window: Mutex<(Instant, u32)>,
    /// The end of each active task.
    ends: Mutex<BinaryHeap<Reverse<Instant>>>,
}

impl Limits {
    /// Allows so many requests in a second and so many tasks at once; `None` is no limit.
    pub(super) fn new(max_rps: Option<u32>, max_tasks: Option<usize>) -> Self {
        Self { max_rps, max_tasks, window: Mutex::new((Instant::now(), 0)), ends: Mutex::default() }
    }

    /// Counts a request, or refuses it.
    pub(super) fn refuse_request(&self) -> Option<Response> {
        let most = self.max_rps?;
        let mut window = self.window.lock();
        if window.0.elapsed() >= WINDOW {
            *window = (Instant::now(), 0);
        }
        window.1 += 1;
        (window.1 > most).then(|| asked_to_wait("1"))
    }

    /// Counts a task that takes this long, or refuses it.
    pub(super) fn refuse_task(&self, takes: Duration) -> Option<Response> {
        let most = self.max_tasks?;
        let mut ends = self.ends.lock();
        let now = Instant::now();
        while ends.peek().is_some_and(|end| end.0 <= now) {
            ends.pop();
        }
        if ends.len() >= most {
            return Some(asked_to_wait("1"));
        }
        ends.push(Reverse(now + takes));
        None
    }
}
