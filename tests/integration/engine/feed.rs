//! Work that is added while a run goes on: all limits hold over the whole run.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shotlist::domain::{Attempt, AttemptState, History, Job, ServiceError, TaskId};
use shotlist::engine::{Feed, Outcome, Settings, Stop, StopReason};
use shotlist::plan::Plan;
use shotlist::service::{PollAnswer, Status, TaskReport};
use tokio::time::{Instant, sleep};

use crate::support::fake::{FakeService, OwnBatch, jobs, report, run_fed};
use crate::support::plans::{SECOND, active, limit, plan};

/// Forty jobs, of which some have an active task that another runner left.
struct Shared {
    service: FakeService,
    ledger: OwnBatch,
    own: Vec<Arc<Job>>,
    orphans: Plan,
}

/// A service whose tasks take this long, `own` due jobs, and `orphans` active tasks, which end this long after the start.
fn shared(own: usize, orphans: usize, takes: Duration) -> Shared {
    let (all, ledger, service) = (jobs(own + orphans), OwnBatch::default(), FakeService::taking(move |_| takes));
    let of_others = all[own..].to_vec();
    let attempts = of_others.iter().enumerate().map(|(number, job)| {
        let task = format!("old{number}");
        service.tasks.lock().expect("no panic").insert(TaskId::new(&*task).expect("an ID"), (Instant::now(), takes));
        Attempt { id: ledger.accepted(job, &task), ..active(number, job, Timestamp::now()) }
    });
    let orphans = plan(&of_others, &History::new(attempts.collect()), None);
    Shared { service, ledger, own: all[..own].to_vec(), orphans }
}

impl Shared {
    /// Runs the due jobs, and adds the orphaned tasks after a while.
    async fn run(&self, settings: &Settings, add_after: Duration) -> Outcome {
        let source = async |feed: &Feed| {
            sleep(add_after).await;
            assert!(!feed.is_idle(), "it goes on");
            feed.add(Arc::new(self.orphans.clone())).await;
        };
        let own = plan(&self.own, &History::default(), None);
        run_fed(&self.service, &self.ledger, settings, &Stop::default(), &own, None, source).await.0
    }
}

#[tokio::test(start_paused = true)]
async fn rate_limit_holds_over_added_work() {
    let mut shared = shared(40, 20, 20 * SECOND);
    shared.service.submit_latency = Duration::ZERO;
    let settings = Settings { concurrency: 64, rps: Some(5.0), first_poll: Some(SECOND), ..Settings::default() };
    shared.run(&settings, 4 * SECOND).await;
    let requests = shared.service.submissions().into_iter().map(|(at, _)| at);
    let mut requests: Vec<Instant> = requests.chain(shared.service.polls().into_iter().map(|(at, _)| at)).collect();
    requests.sort();
    assert!(requests.len() > 100, "{}", requests.len());
    let shortest = requests.windows(2).map(|pair| pair[1] - pair[0]).min().expect("requests");
    assert!(shortest >= Duration::from_millis(199), "{shortest:?}");
    assert_eq!(shared.ledger.states(), [AttemptState::Completed; 60]);
}

#[tokio::test(start_paused = true)]
async fn max_failures_counts_added_tasks() {
    let mut shared = shared(10, 1, 20 * SECOND);
    shared.service.denies = Box::new(|_| {
        let error = Some(ServiceError::default());
        Some(PollAnswer::Report(TaskReport { error, ..report(Status::Failed) }))
    });
    let settings = Settings { concurrency: 1, max_failures: Some(2), ..Settings::default() };
    let outcome = shared.run(&settings, SECOND).await;
    assert_eq!(outcome.stopped.into_iter().collect::<Vec<_>>(), [StopReason::TooManyFailures]);
    assert!(shared.service.submissions().len() <= 2, "{} of ten were bought", shared.service.submissions().len());
}

#[tokio::test(start_paused = true)]
async fn spend_limit_covers_added_jobs() {
    let (service, ledger, all) = (FakeService::taking(|_| 30 * SECOND), OwnBatch::default(), jobs(4));
    let limited = |jobs: &[Arc<Job>]| {
        let mut plan = plan(jobs, &History::default(), None);
        plan.run_limit = Some(limit("7.50"));
        plan
    };
    let source = async |feed: &Feed| {
        feed.idle().await;
        assert_eq!(ledger.states(), [AttemptState::Completed]);
        feed.add(limited(&all[1..]).into()).await;
    };
    let (own, stop) = (limited(&all[..1]), Stop::default());
    let (outcome, _) = run_fed(&service, &ledger, &Settings::default(), &stop, &own, None, source).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 2]);
    assert_eq!(outcome.stopped.into_iter().collect::<Vec<_>>(), [StopReason::SpendLimit]);
}

#[tokio::test(start_paused = true)]
async fn added_tasks_take_slots() {
    // Nine tasks in four slots, until they end after 100 s.
    let (shared, start) = (shared(12, 5, 100 * SECOND), Instant::now());
    shared.run(&Settings { concurrency: 4, ..Settings::default() }, 2 * SECOND).await;
    assert_eq!(shared.ledger.states(), [AttemptState::Completed; 17]);
    let submissions = shared.service.submissions();
    let later: Vec<Instant> = submissions.into_iter().map(|(at, _)| at).filter(|at| *at > start + 3 * SECOND).collect();
    assert_eq!(later.len(), 8);
    for at in later {
        assert!(
            shared.service.active_at(at) <= 4,
            "{} tasks {:?} after the start",
            shared.service.active_at(at),
            at - start
        );
    }
}

/// A run may wait hours for other runners. Then the service is not out of reach.
#[tokio::test(start_paused = true)]
async fn job_that_is_added_after_hours_is_submitted() {
    let (service, ledger, all) = (FakeService::taking(|_| 30 * SECOND), OwnBatch::default(), jobs(2));
    let of = |jobs: &[Arc<Job>]| plan(jobs, &History::default(), None);
    let source = async |feed: &Feed| {
        feed.idle().await;
        sleep(6 * 3600 * SECOND).await;
        feed.add(of(&all[1..]).into()).await;
    };
    let (own, stop) = (of(&all[..1]), Stop::default());
    let (outcome, _) = run_fed(&service, &ledger, &Settings::default(), &stop, &own, None, source).await;
    assert_eq!((ledger.states(), outcome), (vec![AttemptState::Completed; 2], Outcome::default()));
}
