//! The plans of a run, on their way to the engine.
//!
//! The engine takes the work of all plans from one bounded stream, which can be fed while it runs. The stream ends when its feed is dropped.

use std::collections::HashSet;
use std::sync::Arc;

use futures::channel::mpsc;
use futures::{SinkExt as _, Stream};
use tokio::sync::watch;

use crate::domain::AttemptId;
use crate::plan::Plan;

/// The way to give a running engine more work.
#[derive(Debug)]
pub struct Feed {
    assignments: mpsc::Sender<Arc<Assignment>>,
    /// The number of plans with work left.
    left: watch::Sender<usize>,
}

/// A plan, held by each piece of its work.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) plan: Arc<Plan>,
    /// Attempts whose job is planned for by itself: its own outcome is the one that counts.
    pub(super) superseded: HashSet<AttemptId>,
    left: watch::Sender<usize>,
}

impl Feed {
    /// A feed, and the stream that it feeds.
    pub(super) fn new() -> (Self, impl Stream<Item = Arc<Assignment>>) {
        let (assignments, stream) = mpsc::channel(0);
        (Self { assignments, left: watch::Sender::new(0) }, stream)
    }

    /// Adds the work of a plan: its tasks and downloads begin at once, its due jobs as slots become free.
    pub async fn add(&self, plan: Arc<Plan>) {
        self.left.send_modify(|left| *left += 1);
        let assignment = Assignment { superseded: plan.superseded(), plan, left: self.left.clone() };
        // An engine that was dropped has no use for it.
        drop(self.assignments.clone().send(Arc::new(assignment)).await);
    }

    /// Returns whether all added work is done.
    pub fn is_idle(&self) -> bool {
        *self.left.borrow() == 0
    }

    /// Returns once all work that was added is done.
    pub async fn idle(&self) {
        // The sender lives as long as the feed.
        drop(self.left.subscribe().wait_for(|left| *left == 0).await);
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.left.send_modify(|left| *left -= 1);
    }
}
