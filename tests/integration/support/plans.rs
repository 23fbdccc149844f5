//! Plans for the engine, and tasks of earlier runs.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shotlist::domain::{Attempt, AttemptId, AttemptState, History, Job, Request, TaskId, Usd};
use shotlist::plan::{Limit, Plan};

use super::fake::{account, plan_of};

/// The unit of simulated time.
pub const SECOND: Duration = Duration::from_secs(1);

/// A limit on a run.
pub fn limit(usd: &str) -> Limit {
    Limit { usd: usd.parse().expect("money"), source: "--max-cost".into(), label: None, used: Usd::ZERO }
}

/// The plan of jobs in the light of a history, within a limit.
pub fn plan(jobs: &[Arc<Job>], history: &History, limit: Option<&str>) -> Plan {
    let mut plan = plan_of(jobs, history);
    plan.run_limit = limit.map(self::limit);
    plan
}

/// A task of an earlier run that is at the service since then.
pub fn active(number: usize, job: &Job, since: Timestamp) -> Attempt {
    let (id, purchase) = (AttemptId(i64::try_from(number).expect("few")), job.purchase.clone());
    Attempt {
        state: AttemptState::Queued,
        task: TaskId::new(format!("old{number}")).map(Into::into),
        answered_at: Some(since),
        ..Attempt::new(id, purchase, Request::normalized(&job.spec), account(), since)
    }
}
