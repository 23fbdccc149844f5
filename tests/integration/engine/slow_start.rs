//! Slow start and circuit breaker: a bound on the jobs in doubt if a service fails, or returns one task twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use shotlist::domain::{AttemptState, History, ServiceError};
use shotlist::engine::{Settings, Stop, StopReason};
use shotlist::service::{Submission, TryAgain};
use tokio::time::Instant;

use crate::support::fake::{FakeService, OwnBatch, jobs, plan_of, run};
use crate::support::{Answer, Service, Workspace, has_code, kill, line_of, numbered_jobs, wait_until};

const SECOND: Duration = Duration::from_secs(1);

fn unknown() -> Submission {
    Submission::InDoubt(ServiceError::default())
}

#[tokio::test(start_paused = true)]
async fn failing_service_leaves_three_doubts_at_any_concurrency() {
    for concurrency in [1, 8, 50, 1000] {
        let mut service = FakeService::taking(|_| 30 * SECOND);
        service.refuses = Box::new(|_| Some(Ok(unknown())));
        let (ledger, settings) = (OwnBatch::default(), Settings { concurrency, ..Settings::default() });
        let plan = plan_of(&jobs(200), &History::default());
        let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
        assert_eq!(ledger.states(), [AttemptState::InDoubt; 3], "{concurrency}");
        assert_eq!(outcome.stopped.into_iter().collect::<Vec<_>>(), [StopReason::TooManyDoubts]);
    }
}

#[tokio::test(start_paused = true)]
async fn later_failures_leave_only_open_submissions_in_doubt() {
    for (concurrency, most) in [(8, 4), (50, 4), (1000, 62)] {
        let mut service = FakeService::taking(|_| 30 * SECOND);
        service.refuses = Box::new(|number| (number >= 120).then(|| Ok(unknown())));
        let (ledger, settings) = (OwnBatch::default(), Settings { concurrency, ..Settings::default() });
        let plan = plan_of(&jobs(400), &History::default());
        run(&service, &ledger, &settings, &Stop::default(), &plan).await;
        let doubts = ledger.states().iter().filter(|state| **state == AttemptState::InDoubt).count();
        assert!((3..=most).contains(&doubts), "{doubts} doubts with {concurrency} slots");
        let completed = ledger.states().iter().filter(|state| **state == AttemptState::Completed).count();
        assert_eq!(completed, 120, "what was taken is collected");
    }
}

#[tokio::test(start_paused = true)]
async fn single_doubts_stop_nothing_and_count_as_failures() {
    let mut service = FakeService::taking(|_| 30 * SECOND);
    service.refuses = Box::new(|number| (number % 3 == 2).then(|| Ok(unknown())));
    let plan = plan_of(&jobs(30), &History::default());
    let (ledger, settings) = (OwnBatch::default(), Settings::default());
    let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert!(outcome.stopped.is_empty() && ledger.states().len() == 30, "{outcome:?}");

    let settings = Settings { max_failures: Some(5), ..settings };
    let ledger = OwnBatch::default();
    let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert!(outcome.stopped.contains(&StopReason::TooManyFailures), "{outcome:?}");
    let doubts = ledger.states().iter().filter(|state| **state == AttemptState::InDoubt).count();
    assert!(doubts <= 5 + 3, "{doubts}");
}

#[tokio::test(start_paused = true)]
async fn acceptance_shortens_the_wait_after_a_refusal() {
    // Every fifth submission has to wait a second, with tasks of a fifth of a second.
    let mut service = FakeService::taking(|_| SECOND / 5);
    service.refuses = Box::new(|number| (number % 5 == 4).then(|| Err(TryAgain::Wait(Some(SECOND), "wait".into()))));
    let settings = Settings { concurrency: 1, first_poll: Some(SECOND / 5), ..Settings::default() };
    let (ledger, start) = (OwnBatch::default(), Instant::now());
    let plan = plan_of(&jobs(30), &History::default());
    run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    let completed = ledger.states().iter().filter(|state| **state == AttemptState::Completed).count();
    assert_eq!(completed, 30);
    assert!(start.elapsed() < 60 * SECOND, "{:?}", start.elapsed());
}

#[test]
fn three_doubts_after_500_stop_the_run_with_help() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => crate::support::raw(500, &[], "oops"),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(200));
    let ended = here.run(&service, &["--concurrency", "50"]).ends_with(7);
    assert_eq!(service.posts().len(), 3);
    assert!(has_code(&ended.stderr, "stopping"), "{}", ended.stderr);
    insta::assert_snapshot!(line_of(&ended.stderr, "help: list the jobs"), @"help: list the jobs in doubt with `shotlist resolve m.yaml`, and resolve them before the next run");
    assert_eq!(here.report()["totals"]["at_risk_usd"], "2.70");
    // A user may set another value.
    let here = Workspace::with_manifest(&numbered_jobs(20));
    here.run(&service, &["--max-doubts", "7"]).ends_with(7);
    assert_eq!(service.posts().len(), 10);
}

#[test]
fn kill_leaves_only_open_submissions_in_doubt() {
    // The service accepts some submissions, and then responds no more.
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    let service = Service::scripted(move |asked| {
        if asked.method == "POST" && count.fetch_add(1, Ordering::SeqCst) >= 20 {
            std::thread::park();
        }
        Answer::Well
    });
    let here = Workspace::with_manifest(&numbered_jobs(200));
    let child = here.run(&service, &["--concurrency", "40"]).starts();
    wait_until("submissions hang", || taken.load(Ordering::SeqCst) >= 24);
    kill(&child, "-KILL");
    drop(crate::support::Ended::wait_for(child));
    let doubts = here.ledger("SELECT job FROM attempt WHERE state = 'intended'").len();
    assert!((1..=4).contains(&doubts), "{doubts} submissions were open");
}

#[test]
fn one_task_for_several_jobs_is_believed_once() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => crate::support::json(200, &json!({ "id": "same", "status": "queued" })),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(3));
    let ended = here.run(&service, &[]).ends_with(7);
    assert_eq!(here.states(), ["completed", "in_doubt", "in_doubt"]);
    assert!(has_code(&ended.stderr, "in-doubt"), "{}", ended.stderr);
    let report = here.report();
    assert_eq!((&report["totals"]["spent_usd"], &report["totals"]["at_risk_usd"]), (&json!("0.90"), &json!("1.80")));
}

/// The next intent comes with the task that was reported before it, and not with one that is another's.
#[test]
fn one_task_for_many_jobs_puts_no_more_in_doubt_than_are_open() {
    let taken = Arc::new(AtomicUsize::new(0));
    let service = Service::scripted(move |asked| match asked.method.as_str() {
        "POST" if taken.fetch_add(1, Ordering::SeqCst) >= 30 => {
            crate::support::json(200, &json!({ "id": "same", "status": "queued" }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(300));
    let ended = here.run(&service, &["--concurrency", "160"]).ends_with(7);
    let doubts = here.states().iter().filter(|state| *state == "in_doubt").count();
    // A sixteenth of the slots is in flight. If its responses come late, two more leave before the third doubt opens the circuit breaker.
    assert!((3..=12).contains(&doubts), "{doubts} doubts\n{}", ended.stderr);
}
