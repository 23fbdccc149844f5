//! Spend limits, reservations, and the end of submitting.

use std::path::Path;
use std::sync::Arc;

use shotlist::domain::{AttemptState, BatchKey, History, ServiceError};
use shotlist::engine::{RunEvent, Settings, Stop, StopReason};
use shotlist::ledger::Intent;
use shotlist::service::{PollAnswer, Status, Submission, TaskReport, TryAgain};
use tokio::time::Instant;

use crate::support::fake::{FakeService, OwnBatch, account, jobs, report, run};
use crate::support::plans::{SECOND, limit, plan};

#[tokio::test(start_paused = true)]
async fn concurrency_cannot_pass_the_limit_on_spending() {
    // The plan is built without a limit, as if others had spent meanwhile.
    let service = FakeService::taking(|_| 30 * SECOND);
    let mut plan = plan(&jobs(8), &History::default(), None);
    plan.run_limit = Some(limit("11.25"));
    let ledger = OwnBatch::default();
    let (outcome, _) = run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 3]);
    assert_eq!(outcome.stopped.into_iter().collect::<Vec<_>>(), [StopReason::SpendLimit]);
}

#[tokio::test(start_paused = true)]
async fn doubtful_money_stays_reserved_and_refused_money_does_not() {
    let mut service = FakeService::taking(|_| 30 * SECOND);
    service.refuses = Box::new(|number| match number {
        0 => Some(Ok(Submission::InDoubt(ServiceError::default()))),
        1 => Some(Ok(Submission::Rejected(ServiceError::default()))),
        _ => None,
    });
    let mut plan = plan(&jobs(4), &History::default(), None);
    plan.run_limit = Some(limit("7.50"));
    let settings = Settings { concurrency: 1, ..Settings::default() };
    let ledger = OwnBatch::default();
    run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::InDoubt, AttemptState::Rejected, AttemptState::Completed]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_the_intent_cannot_be_written() {
    let service = FakeService::taking(|_| SECOND);
    let ledger = OwnBatch::failing_at("INSERT");
    let (outcome, _) =
        run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(5), &History::default(), None))
            .await;
    assert_eq!(service.submissions().len(), 0);
    assert!(outcome.stopped.contains(&StopReason::LedgerFailed));
}

#[tokio::test(start_paused = true)]
async fn unrecorded_task_id_is_printed_and_stops_submissions() {
    let service = FakeService::taking(|_| SECOND);
    let ledger = OwnBatch::failing_at("UPDATE");
    let settings = Settings { concurrency: 1, ..Settings::default() };
    let (outcome, events) =
        run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(5), &History::default(), None)).await;
    assert_eq!(service.submissions().len(), 1);
    let rescued =
        events.iter().any(|event| matches!(event, RunEvent::TaskNotRecorded { task, .. } if task.id.as_str() == "t0"));
    assert!(rescued, "{events:?}");
    assert!(outcome.stopped.contains(&StopReason::LedgerFailed));
}

/// The codes of failures are not documented: even one like our code for a denied task is a failure.
#[tokio::test(start_paused = true)]
async fn failure_is_retried_and_a_denied_task_is_not() {
    let failed = || {
        let error = ServiceError { code: Some("not_found".to_owned()), ..ServiceError::default() };
        PollAnswer::Report(TaskReport { error: Some(error), ..report(Status::Failed) })
    };
    let mut service = FakeService::taking(|_| SECOND);
    service.denies = Box::new(move |number| (number == 0).then(failed));
    let plan_of = || {
        let mut plan = plan(&jobs(1), &History::default(), None);
        plan.retries = 1;
        plan
    };
    let ledger = OwnBatch::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan_of()).await;
    assert_eq!(ledger.states(), [AttemptState::Failed, AttemptState::Completed]);

    let mut service = FakeService::taking(|_| SECOND);
    service.denies = Box::new(|_| Some(PollAnswer::Missing("it is not known (HTTP 404)".into())));
    let ledger = OwnBatch::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan_of()).await;
    assert_eq!((ledger.states(), service.submissions().len()), (vec![AttemptState::Failed], 1));
}

/// A failure in these words.
fn failure(message: &str) -> PollAnswer {
    let error = ServiceError { message: message.to_owned(), ..ServiceError::default() };
    PollAnswer::Report(TaskReport { error: Some(error), ..report(Status::Failed) })
}

#[tokio::test(start_paused = true)]
async fn repeated_failure_is_not_retried_again() {
    let mut service = FakeService::taking(|_| SECOND);
    // Another number in a body, such as that of the request, makes no other failure.
    service.denies = Box::new(|number| {
        let mut failed = failure("moderated");
        if let PollAnswer::Report(TaskReport { error: Some(error), .. }) = &mut failed {
            error.raw = number.into();
        }
        (number < 3).then_some(failed)
    });
    let mut plan = plan(&jobs(1), &History::default(), None);
    plan.retries = 3;
    let ledger = OwnBatch::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Failed; 2]);
}

#[tokio::test(start_paused = true)]
async fn failed_task_is_retried_up_to_the_limit() {
    let mut service = FakeService::taking(|_| SECOND);
    // The first three polls of each task return a failure.
    service.denies = Box::new(|number| (number < 3).then(|| failure(&format!("worker {number} broke"))));
    let mut plan = plan(&jobs(1), &History::default(), None);
    plan.retries = 3;
    assert_eq!(plan.worst_case(), "15.00".parse().expect("money"));
    let ledger = OwnBatch::default();
    let (_, events) = run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    let failed = AttemptState::Failed;
    assert_eq!(ledger.states(), [failed, failed, failed, AttemptState::Completed]);
    let told = events.iter().filter(|event| matches!(event, RunEvent::Retrying { .. })).count();
    assert_eq!(told, 3);
}

#[tokio::test(start_paused = true)]
async fn retries_never_take_the_money_of_waiting_jobs() {
    let mut service = FakeService::taking(|_| SECOND);
    service.denies = Box::new(|_| Some(PollAnswer::Report(report(Status::Failed))));
    let mut plan = plan(&jobs(3), &History::default(), None);
    plan.retries = 9;
    plan.run_limit = Some(limit("11.25"));
    let settings = Settings { concurrency: 1, ..Settings::default() };
    let ledger = OwnBatch::default();
    let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    // The first retry would be possible while the third job still waits for the slot.
    assert_eq!(ledger.jobs(), ["j0", "j1", "j2"]);
    assert!(outcome.stopped.is_empty(), "{outcome:?}");

    plan.run_limit = Some(limit("15.00"));
    let ledger = OwnBatch::default();
    run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert_eq!(ledger.jobs().len(), 4, "three jobs and one retry");
}

#[tokio::test(start_paused = true)]
async fn retry_repeats_the_failed_attempt_of_the_plan_only() {
    let mut service = FakeService::taking(|_| SECOND);
    service.denies = Box::new(|number| (number == 0).then(|| PollAnswer::Report(report(Status::Failed))));
    let jobs = jobs(2);
    let mut plan = plan(&jobs, &History::default(), None);
    plan.retries = 1;
    let ledger = OwnBatch::default();
    // Another run was quicker with the second job.
    ledger.accepted(&jobs[1], "another");
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert_eq!(ledger.jobs(), ["j1", "j0", "j0"]);
    assert_eq!(ledger.states(), [AttemptState::Queued, AttemptState::Failed, AttemptState::Completed]);
}

/// A confirmation covers the purchases of other batches that the plan showed, and no later ones.
#[tokio::test(start_paused = true)]
async fn request_bought_elsewhere_since_the_plan_is_not_sent() {
    for (known, submissions) in [(0, 0), (1, 1)] {
        let (service, ledger, jobs) = (FakeService::taking(|_| SECOND), OwnBatch::default(), jobs(1));
        let mut plan = plan(&jobs, &History::default(), None);
        plan.jobs[0].paid_elsewhere = Some(known);
        let other = ledger.ledger.lock(&BatchKey { name: "other".into(), batch: String::new() }).await;
        other.expect("a batch").intend(Intent::new(&jobs[0], account())).await.expect("an intent");
        run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
        assert_eq!(service.submissions().len(), submissions);
    }
}

fn has_attempts(file: &Path) -> bool {
    let connection = rusqlite::Connection::open(file).expect("the file");
    connection.query_row("SELECT EXISTS (SELECT 1 FROM attempt)", [], |row| row.get(0)).expect("an answer")
}

#[tokio::test(start_paused = true)]
async fn intent_after_a_stop_is_withdrawn() {
    for reason in [StopReason::Signal(2), StopReason::KeyRefused, StopReason::LedgerFailed] {
        let stop = Arc::new(Stop::default());
        let own = Arc::clone(&stop);
        let ledger = OwnBatch::observed_by(move |file| {
            if has_attempts(file) {
                own.because(reason);
            }
        });
        let service = FakeService::taking(|_| SECOND);
        run(&service, &ledger, &Settings::default(), &stop, &plan(&jobs(2), &History::default(), None)).await;
        assert_eq!((service.submissions().len(), ledger.states()), (0, vec![AttemptState::Void]), "{reason:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_go_on_to_be_looked_at_after_a_spend_limit() {
    let service = FakeService::taking(|_| 90 * SECOND);
    let mut plan = plan(&jobs(4), &History::default(), None);
    plan.run_limit = Some(limit("7.50"));
    let ledger = OwnBatch::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 2]);
}

#[tokio::test(start_paused = true)]
async fn too_many_failures_stop_only_submissions() {
    let mut service = FakeService::taking(|_| 100 * SECOND);
    service.refuses = Box::new(|number| (number == 1).then(|| Ok(Submission::Rejected(ServiceError::default()))));
    service.denies = Box::new(|number| (number == 0).then(|| PollAnswer::Report(report(Status::Failed))));
    let settings = Settings { concurrency: 3, max_failures: Some(2), ..Settings::default() };
    let ledger = OwnBatch::default();
    let plan = plan(&jobs(9), &History::default(), None);
    let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert_eq!(outcome.stopped.into_iter().collect::<Vec<_>>(), [StopReason::TooManyFailures]);
    let ended = |state| ledger.states().into_iter().filter(|other| *other == state).count();
    // One failed, one was rejected, and the two that were at the service then are collected.
    let ends = (ended(AttemptState::Failed), ended(AttemptState::Rejected), ended(AttemptState::Completed));
    assert_eq!((ends, ledger.states().len()), ((1, 1, 2), 4), "{:?}", ledger.states());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_after_the_run_was_stopped_while_it_waited() {
    for reason in [StopReason::Signal(2), StopReason::KeyRefused, StopReason::LedgerFailed, StopReason::SpendLimit] {
        let mut service = FakeService::taking(|_| 30 * SECOND);
        service.refuses = Box::new(|_| Some(Err(TryAgain::Wait(Some(600 * SECOND), "full".into()))));
        let (ledger, stop, start) = (OwnBatch::default(), Stop::default(), Instant::now());
        let settings = Settings { concurrency: 3, ..Settings::default() };
        let plan = plan(&jobs(5), &History::default(), None);
        let running = run(&service, &ledger, &settings, &stop, &plan);
        let stopping = async {
            tokio::time::sleep(20 * SECOND).await;
            stop.because(reason);
        };
        futures::join!(running, stopping);
        assert!(start.elapsed() < 21 * SECOND, "{reason:?} was not heard for {:?}", start.elapsed());
        assert!(service.submissions().iter().all(|(at, _)| *at - start < SECOND), "{reason:?}: sent after the stop");
        assert!(ledger.states().iter().all(|state| *state == AttemptState::Void), "{:?}", ledger.states());
    }
}

#[tokio::test(start_paused = true)]
async fn signal_leaves_active_tasks_and_stops_submissions() {
    let service = FakeService::taking(|_| 600 * SECOND);
    let (ledger, stop) = (OwnBatch::default(), Stop::default());
    let settings = Settings { concurrency: 2, ..Settings::default() };
    let plan = plan(&jobs(5), &History::default(), None);
    let running = run(&service, &ledger, &settings, &stop, &plan);
    let signal = async {
        tokio::time::sleep(90 * SECOND).await;
        stop.because(StopReason::Signal(2));
    };
    let ((outcome, events), ()) = futures::join!(running, signal);
    assert_eq!(ledger.states(), [AttemptState::InProgress; 2]);
    assert_eq!(outcome.stopped.into_iter().collect::<Vec<_>>(), [StopReason::Signal(2)]);
    assert_eq!(events.iter().filter(|event| matches!(event, RunEvent::TaskLeft { .. })).count(), 2);
}
