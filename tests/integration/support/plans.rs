//! Plans for the engine, and tasks of earlier runs.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shotlist::domain::{Attempt, AttemptId, AttemptState, History, Job, Particulars, Request, TaskId, Usd};
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
    Attempt {
        id: AttemptId(i64::try_from(number).expect("few")),
        job: job.id.clone(),
        fingerprint: job.request.fingerprint().clone(),
        normalized: Request::normalized(&job.spec),
        request: job.request.body().to_owned(),
        model: job.spec.model.clone(),
        price: Usd::ZERO,
        charging: job.charging,
        typical_s: job.typical_s,
        account: account(),
        state: AttemptState::Queued,
        task: TaskId::new(format!("old{number}")).map(Into::into),
        video_url: None,
        error: None,
        polls: 0,
        intended_at: since,
        answered_at: Some(since),
        ended_at: None,
        file: None,
        fetched_at: None,
        particulars: Particulars::default(),
    }
}
