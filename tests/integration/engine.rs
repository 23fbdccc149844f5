//! The engine on a paused clock: hours pass in milliseconds, and every moment is exact.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use shotlist::domain::{
    Attempt, AttemptId, AttemptState, History, Job, OutputPath, ServiceError, TaskId, Usd, VideoFile,
};
use shotlist::download::{Destination, Downloads, FetchError, Link, Stored};
use shotlist::engine::{Outcome, RunEvent, Settings, Stop, StopReason};
use shotlist::plan::{DownloadPlan, Limit, Plan};
use shotlist::service::{PollAnswer, Status, Submission, TaskReport};
use tokio::time::Instant;

use crate::support::fake::{FakeService, MemoryLedger, account, jobs, plan_of, report, run, run_fetching};

const SECOND: Duration = Duration::from_secs(1);

fn limit(usd: &str) -> Limit {
    Limit { usd: usd.parse().expect("money"), source: "--max-cost", used: Usd::ZERO }
}

fn plan(jobs: &[Arc<Job>], history: &History, limit: Option<&str>) -> Plan {
    Plan { run_limit: limit.map(self::limit), ..plan_of(jobs, history) }
}

/// A task of an earlier run that is at the service since then.
fn outstanding(number: usize, job: &Job, since: Timestamp) -> Attempt {
    Attempt {
        id: AttemptId(i64::try_from(number).expect("few")),
        job: job.id.clone(),
        fingerprint: job.request.fingerprint().clone(),
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
        seen: None,
        ended_at: None,
        file: None,
        fetched_at: None,
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_tasks_are_outstanding_than_there_are_slots_and_a_slot_is_refilled_at_once() {
    let service = FakeService::taking(|_| 60 * SECOND);
    let settings = Settings { concurrency: 4, ..Settings::default() };
    let (ledger, start) = (MemoryLedger::default(), Instant::now());
    run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(12), &History::default(), None)).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 12]);
    // Three rounds of four, each of a minute and at most one poll interval.
    let wall = start.elapsed();
    assert!(wall >= 3 * 60 * SECOND && wall <= 3 * (60 + 11) * SECOND, "{wall:?}");
    for (at, _) in service.submissions() {
        let begun = service.submissions().iter().filter(|(begun, _)| *begun <= at).count();
        let ended = service.tasks.lock().expect("no panic").values().filter(|(s, takes)| *s + *takes <= at).count();
        assert!(begun - ended <= 4, "{begun} begun and {ended} ended");
    }
}

#[tokio::test(start_paused = true)]
async fn looks_keep_to_the_cadence() {
    let service = FakeService::taking(|_| 100 * SECOND);
    let start = Instant::now();
    run(
        &service,
        &MemoryLedger::default(),
        &Settings::default(),
        &Stop::default(),
        &plan(&jobs(1), &History::default(), None),
    )
    .await;
    let polls: Vec<Duration> = service.polls().iter().map(|(at, _)| *at - start).collect();
    assert!(polls[0] >= 30 * SECOND, "looked before a task can be ready: {polls:?}");
    assert!(polls[0] <= 36 * SECOND, "{polls:?}");
    for pair in polls.windows(2) {
        let pause = pair[1].checked_sub(pair[0]).unwrap();
        assert!(pause >= SECOND && pause <= 10 * SECOND + Duration::from_millis(60), "{polls:?}");
    }
    assert!(polls.len() <= 12, "{} polls", polls.len());
}

#[tokio::test(start_paused = true)]
async fn a_wait_holds_for_all_submissions() {
    let mut service = FakeService::taking(|_| 30 * SECOND);
    service.refuses = Box::new(|number| (number == 1).then(|| Submission::Wait(Some(60 * SECOND), "full".into())));
    let settings = Settings { concurrency: 2, ..Settings::default() };
    let start = Instant::now();
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(6), &History::default(), None)).await;
    // The request that was told to wait had an intent of its own, which is void, and the job another.
    let ended = |state| ledger.states().into_iter().filter(|other| *other == state).count();
    assert_eq!((ended(AttemptState::Completed), ended(AttemptState::Void)), (6, 1));
    let early = service.submissions().iter().filter(|(at, _)| *at - start < 60 * SECOND).count();
    assert_eq!(early, 2, "something was submitted during the pause");
}

#[tokio::test(start_paused = true)]
async fn concurrency_cannot_pass_the_limit_on_spending() {
    // The plan is built without a limit, as if others had spent meanwhile.
    let service = FakeService::taking(|_| 30 * SECOND);
    let mut plan = plan(&jobs(8), &History::default(), None);
    plan.run_limit = Some(limit("11.25"));
    let ledger = MemoryLedger::default();
    let (outcome, _) = run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 3]);
    assert_eq!(outcome.stopped.into_iter().collect::<Vec<_>>(), [StopReason::SpendLimit]);
}

#[tokio::test(start_paused = true)]
async fn doubtful_money_stays_reserved_and_refused_money_does_not() {
    let mut service = FakeService::taking(|_| 30 * SECOND);
    service.refuses = Box::new(|number| match number {
        0 => Some(Submission::Unknown(ServiceError::default())),
        1 => Some(Submission::Rejected(ServiceError::default())),
        _ => None,
    });
    let mut plan = plan(&jobs(4), &History::default(), None);
    plan.run_limit = Some(limit("7.50"));
    let settings = Settings { concurrency: 1, ..Settings::default() };
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::InDoubt, AttemptState::Rejected, AttemptState::Completed]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_the_intent_cannot_be_written() {
    let service = FakeService::taking(|_| SECOND);
    let ledger = MemoryLedger::breaking_at(0);
    let (outcome, _) =
        run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(5), &History::default(), None))
            .await;
    assert_eq!(service.submissions().len(), 0);
    assert!(outcome.stopped.contains(&StopReason::LedgerFailed));
}

#[tokio::test(start_paused = true)]
async fn an_id_that_cannot_be_written_is_told_as_a_rescue_line_and_submitting_stops() {
    let service = FakeService::taking(|_| SECOND);
    let ledger = MemoryLedger::breaking_at(1);
    let settings = Settings { concurrency: 1, ..Settings::default() };
    let (outcome, events) =
        run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(5), &History::default(), None)).await;
    assert_eq!(service.submissions().len(), 1);
    let rescued = events.iter().any(|event| matches!(event, RunEvent::Rescue { task, .. } if task.id.as_str() == "t0"));
    assert!(rescued, "{events:?}");
    assert!(outcome.stopped.contains(&StopReason::LedgerFailed));
}

#[tokio::test(start_paused = true)]
async fn a_known_task_that_is_denied_gets_a_grace_time() {
    let mut service = FakeService::taking(|_| 35 * SECOND);
    service.denies = Box::new(|number| (number < 3).then(|| PollAnswer::Missing("it is not known (HTTP 404)".into())));
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(1), &History::default(), None)).await;
    assert_eq!(ledger.states(), [AttemptState::Completed]);

    let mut service = FakeService::taking(|_| SECOND);
    service.denies = Box::new(|_| Some(PollAnswer::Missing("it is not known (HTTP 404)".into())));
    let (ledger, start) = (MemoryLedger::default(), Instant::now());
    let (_, events) =
        run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(1), &History::default(), None))
            .await;
    assert_eq!(ledger.states(), [AttemptState::Failed]);
    assert!(start.elapsed() > 120 * SECOND, "{:?}", start.elapsed());
    assert!(events.iter().any(|event| matches!(event, RunEvent::Failed { message, .. } if message.contains("404"))));
}

/// The codes of failures are not documented: one that looks like our own for a denied task is a failure all the same.
#[tokio::test(start_paused = true)]
async fn a_failure_is_paid_for_again_whatever_its_code_and_a_denied_task_is_not() {
    let failed = || {
        let error = ServiceError { code: Some("not_found".to_owned()), ..ServiceError::default() };
        PollAnswer::Report(TaskReport { error: Some(error), ..report(Status::Failed) })
    };
    let mut service = FakeService::taking(|_| SECOND);
    service.denies = Box::new(move |number| (number == 0).then(failed));
    let plan_of = || Plan { retries: 1, ..plan(&jobs(1), &History::default(), None) };
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan_of()).await;
    assert_eq!(ledger.states(), [AttemptState::Failed, AttemptState::Completed]);

    let mut service = FakeService::taking(|_| SECOND);
    service.denies = Box::new(|_| Some(PollAnswer::Missing("it is not known (HTTP 404)".into())));
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan_of()).await;
    assert_eq!((ledger.states(), service.submissions().len()), (vec![AttemptState::Failed], 1));
}

#[tokio::test(start_paused = true)]
async fn minutes_without_a_network_lose_nothing() {
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.denies = Box::new(|number| (number < 15).then(|| PollAnswer::Transient("no route".into())));
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(1), &History::default(), None)).await;
    assert_eq!(ledger.states(), [AttemptState::Completed]);
}

#[tokio::test(start_paused = true)]
async fn resumed_tasks_take_slots_and_are_all_looked_after() {
    let all = jobs(16);
    let attempts = all.iter().take(10).enumerate().map(|(number, job)| outstanding(number, job, Timestamp::now()));
    let service = FakeService::taking(|_| 40 * SECOND);
    let ledger = MemoryLedger::default();
    // They end one after the other, a minute apart.
    for (number, job) in (1..).zip(all.iter().take(10)) {
        let task = TaskId::new(format!("old{}", number - 1)).expect("an id");
        service.tasks.lock().expect("no panic").insert(task, (Instant::now(), number * 60 * SECOND));
        ledger.attempts.lock().expect("no panic").push((job.id.clone(), AttemptState::Queued));
    }
    let plan = plan(&all, &History::new(attempts.collect()), None);
    assert_eq!((plan.resume.len(), plan.totals().submit), (10, 6));
    run(&service, &ledger, &Settings { concurrency: 4, ..Settings::default() }, &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 16]);
    // More tasks than slots: none waits to be polled, and nothing is submitted before the surplus has ended.
    for (at, _) in service.submissions() {
        let outstanding = service.outstanding_at(at);
        assert!(outstanding <= 4, "{outstanding} tasks outstanding at {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_tasks_at_once() {
    let service = FakeService::taking(|number| Duration::from_millis(30_000 + (number as u64 * 7919) % 90_000));
    let settings = Settings { concurrency: 10_000, ..Settings::default() };
    let (ledger, start) = (MemoryLedger::default(), Instant::now());
    run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(10_000), &History::default(), None)).await;
    assert!(ledger.states().iter().all(|state| *state == AttemptState::Completed));
    assert!(start.elapsed() < 180 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_signal_leaves_outstanding_tasks_and_submits_no_more() {
    let service = FakeService::taking(|_| 600 * SECOND);
    let (ledger, stop) = (MemoryLedger::default(), Stop::default());
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
    assert_eq!(events.iter().filter(|event| matches!(event, RunEvent::Left { .. })).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_after_the_run_was_stopped_while_it_waited() {
    for reason in [StopReason::Signal(2), StopReason::KeyRefused, StopReason::LedgerFailed, StopReason::SpendLimit] {
        let mut service = FakeService::taking(|_| 30 * SECOND);
        service.refuses = Box::new(|_| Some(Submission::Wait(Some(600 * SECOND), "full".into())));
        let (ledger, stop, start) = (MemoryLedger::default(), Stop::default(), Instant::now());
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
async fn a_service_that_is_busy_for_longer_than_the_deadline_ends_the_run() {
    let mut service = FakeService::taking(|_| 30 * SECOND);
    service.refuses = Box::new(|_| Some(Submission::Wait(Some(60 * SECOND), "full".into())));
    let (ledger, start) = (MemoryLedger::default(), Instant::now());
    let plan = plan(&jobs(3), &History::default(), None);
    let (outcome, _) = run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert!(outcome.stopped.contains(&StopReason::Unreachable), "{outcome:?}");
    assert!(start.elapsed() < 3600 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn tasks_go_on_to_be_looked_at_after_a_spend_limit() {
    let service = FakeService::taking(|_| 90 * SECOND);
    let mut plan = plan(&jobs(4), &History::default(), None);
    plan.run_limit = Some(limit("7.50"));
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_is_paid_for_again_as_often_as_was_agreed() {
    let mut service = FakeService::taking(|_| SECOND);
    // The first three polls of anything say that it failed.
    service.denies = Box::new(|number| (number < 3).then(|| PollAnswer::Report(report(Status::Failed))));
    let mut plan = plan(&jobs(1), &History::default(), None);
    plan.retries = 3;
    assert_eq!(plan.worst_case(), "15.00".parse().expect("money"));
    let ledger = MemoryLedger::default();
    let (_, events) = run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    let failed = AttemptState::Failed;
    assert_eq!(ledger.states(), [failed, failed, failed, AttemptState::Completed]);
    let told = events.iter().filter(|event| matches!(event, RunEvent::Retrying { .. })).count();
    assert_eq!(told, 3);
}

#[tokio::test(start_paused = true)]
async fn retries_stop_at_the_limit_and_never_take_the_money_of_a_job_that_waits() {
    let mut service = FakeService::taking(|_| SECOND);
    service.denies = Box::new(|_| Some(PollAnswer::Report(report(Status::Failed))));
    let mut plan = plan(&jobs(2), &History::default(), None);
    plan.retries = 9;
    plan.run_limit = Some(limit("11.25"));
    let settings = Settings { concurrency: 1, ..Settings::default() };
    let ledger = MemoryLedger::default();
    let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Failed; 3], "two jobs and one retry");
    assert!(outcome.stopped.is_empty(), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_for_an_hour_polls_once_more_before_it_gives_up() {
    // An hour is longer than the deadline; the tasks ended while nobody looked.
    let service = FakeService::taking(|_| 300 * SECOND);
    let (ledger, stop) = (MemoryLedger::default(), Stop::default());
    let settings = Settings { concurrency: 2, ..Settings::default() };
    let plan = plan(&jobs(4), &History::default(), None);
    let running = run(&service, &ledger, &settings, &stop, &plan);
    let sleeping = async {
        tokio::time::sleep(60 * SECOND).await;
        tokio::time::advance(3600 * SECOND).await;
    };
    let ((outcome, _), ()) = futures::join!(running, sleeping);
    assert_eq!(ledger.states(), [AttemptState::Completed; 4]);
    assert_eq!(outcome, Outcome::default());
    assert_eq!(service.submissions().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_a_day_that_a_poll_was_asked_for_does_not_hang_the_run() {
    let mut service = FakeService::taking(|_| 600 * SECOND);
    service.denies = Box::new(|_| Some(PollAnswer::Wait(Some(24 * 3600 * SECOND), "full".into())));
    let settings = Settings { concurrency: 1, ..Settings::default() };
    let (ledger, start) = (MemoryLedger::default(), Instant::now());
    let plan = plan(&jobs(3), &History::default(), None);
    let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    // One task is left at its deadline; the next submission waits as long again, and no longer.
    assert!(start.elapsed() < 2 * 3600 * SECOND, "{:?}", start.elapsed());
    assert_eq!((service.submissions().len(), ledger.states()), (1, vec![AttemptState::Queued]));
    assert!(outcome.stopped.contains(&StopReason::Unreachable), "{outcome:?}");
    assert_eq!(outcome.past_deadline, 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_full_gets_as_many_tasks_as_it_takes_and_later_more() {
    // It takes three tasks at first, and eight from the tenth minute on.
    let start = Instant::now();
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.is_full = Box::new(move |outstanding| {
        let most = if start.elapsed() < 600 * SECOND { 3 } else { 8 };
        (outstanding >= most).then_some(Some(10 * SECOND))
    });
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(100), &History::default(), None)).await;
    let ended = |state| ledger.states().into_iter().filter(|other| *other == state).count();
    assert_eq!(ended(AttemptState::Completed), 100, "a refusal costs no attempt");
    // Thirty in ten minutes, and the seventy others eight at a time: nine more minutes, if no time is lost.
    let wall = start.elapsed();
    assert!(wall < 19 * 60 * SECOND * 12 / 10, "{wall:?}");
    // Refused submissions are rare: some at the beginning, and then a probe now and then.
    assert!(ended(AttemptState::Void) < 30, "{} refusals", ended(AttemptState::Void));
    let full = (0..100).filter(|n| service.outstanding_at(start + (700 + n) * SECOND) == 8).count();
    assert!(full > 60, "it did not recover: eight were outstanding in {full} of 100 seconds");
    let bodies: Vec<String> = service.submissions().into_iter().map(|(_, body)| body).collect();
    let mut seen = HashSet::new();
    let first: Vec<&String> = bodies.iter().filter(|body| seen.insert(body.as_str())).collect();
    let in_order = jobs(100).iter().zip(&first).filter(|(job, body)| job.request.body() == body.as_str()).count();
    assert_eq!(in_order, 100, "the order of submission is the manifest's");
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_without_a_network_lose_nothing_and_the_run_goes_on() {
    let start = Instant::now();
    let down = move || (100 * SECOND..700 * SECOND).contains(&start.elapsed());
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.refuses = Box::new(move |_| down().then(|| Submission::NotSent("no route".into())));
    service.denies = Box::new(move |_| down().then(|| PollAnswer::Transient("no route".into())));
    let (ledger, settings) = (MemoryLedger::default(), Settings { concurrency: 4, ..Settings::default() });
    let plan = plan(&jobs(24), &History::default(), None);
    let (outcome, events) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert_eq!(outcome, Outcome::default());
    let ended = |state| ledger.states().into_iter().filter(|other| *other == state).count();
    assert_eq!(ended(AttemptState::Completed), 24);
    let back = events.iter().find_map(|event| match event {
        RunEvent::Back { after } => Some(*after),
        _ => None,
    });
    assert!(back.is_some_and(|after| after > 500 * SECOND && after < 700 * SECOND), "{back:?}");
    // Asked ever more rarely, and soon after the network was back.
    let sent = service.submissions().into_iter().map(|(at, _)| at);
    let asked = service.polls().into_iter().map(|(at, _)| at).chain(sent);
    let in_vain = asked.filter(|at| (300 * SECOND..700 * SECOND).contains(&(*at - start))).count();
    assert!(in_vain < 5 * 400 / 10, "{in_vain} requests while nobody answered");
    assert!(start.elapsed() < (6 * 75 + 600 + 60) * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_never_reached_ends_the_run_soon() {
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.refuses = Box::new(|_| Some(Submission::NotSent("no route".into())));
    let (ledger, start) = (MemoryLedger::default(), Instant::now());
    let plan = plan(&jobs(24), &History::default(), None);
    let (outcome, _) = run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert!(outcome.stopped.contains(&StopReason::Unreachable));
    assert!(start.elapsed() < 60 * SECOND, "{:?}", start.elapsed());
    // One goes at first, and tries four times more; the others wait for it.
    assert_eq!(service.submissions().len(), 1 + 4);
    assert!(ledger.states().iter().all(|state| *state == AttemptState::Void));
}

#[tokio::test(start_paused = true)]
async fn a_time_box_ends_the_run_and_leaves_the_rest() {
    let service = FakeService::taking(|_| 100 * SECOND);
    let settings = Settings { concurrency: 2, max_duration: Some(150 * SECOND), ..Settings::default() };
    let (ledger, start) = (MemoryLedger::default(), Instant::now());
    let plan = plan(&jobs(9), &History::default(), None);
    let (outcome, events) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert_eq!(outcome.stopped.into_iter().collect::<Vec<_>>(), [StopReason::TimeBox]);
    assert!(start.elapsed() <= 151 * SECOND, "{:?}", start.elapsed());
    let (done, left) = (AttemptState::Completed, AttemptState::InProgress);
    assert_eq!(ledger.states(), [done, done, left, left]);
    assert_eq!(events.iter().filter(|event| matches!(event, RunEvent::Left { .. })).count(), 2);
    // A run that is done sooner does not wait for the end of its time.
    let (service, ledger, start) = (FakeService::taking(|_| 100 * SECOND), MemoryLedger::default(), Instant::now());
    let settings = Settings { max_duration: Some(3600 * SECOND), ..settings };
    let plan = self::plan(&jobs(2), &History::default(), None);
    let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert!(outcome == Outcome::default() && start.elapsed() < 120 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn too_many_failures_stop_submissions_and_what_is_at_the_service_is_collected() {
    let mut service = FakeService::taking(|_| 100 * SECOND);
    service.refuses = Box::new(|number| (number == 1).then(|| Submission::Rejected(ServiceError::default())));
    service.denies = Box::new(|number| (number == 0).then(|| PollAnswer::Report(report(Status::Failed))));
    let settings = Settings { concurrency: 3, max_failures: Some(2), ..Settings::default() };
    let ledger = MemoryLedger::default();
    let plan = plan(&jobs(9), &History::default(), None);
    let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    assert_eq!(outcome.stopped.into_iter().collect::<Vec<_>>(), [StopReason::TooManyFailures]);
    let ended = |state| ledger.states().into_iter().filter(|other| *other == state).count();
    // One failed, one was rejected, and the two that were at the service then are collected.
    let ends = (ended(AttemptState::Failed), ended(AttemptState::Rejected), ended(AttemptState::Completed));
    assert_eq!((ends, ledger.states().len()), ((1, 1, 2), 4), "{:?}", ledger.states());
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_the_users_own_holds_for_submissions_and_polls_together() {
    let service = FakeService::taking(|_| 60 * SECOND);
    let settings = Settings { concurrency: 40, rps: Some(2.0), ..Settings::default() };
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(100), &History::default(), None)).await;
    let (polls, submissions) = (service.polls(), service.submissions());
    let mixed = polls.iter().filter(|(at, _)| *at < submissions[99].0).count();
    assert!(mixed > 50, "polls wait for submissions: {mixed}");
    assert_eq!(ledger.states(), [AttemptState::Completed; 100]);
    // Submissions are noted 100 ms after they were sent, polls at once.
    let sent = service.submissions().into_iter().map(|(at, _)| at.checked_sub(Duration::from_millis(100)).unwrap());
    let mut asked: Vec<Instant> = service.polls().into_iter().map(|(at, _)| at).chain(sent).collect();
    asked.sort_unstable();
    for four in asked.windows(4) {
        assert!(four[3] - four[0] >= Duration::from_millis(1495), "{:?}", four[3] - four[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn connections_that_are_dead_hold_up_nobody() {
    // Two polls in three hang for half a minute and then bring nothing.
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.poll_latency = Box::new(|number| if number % 3 == 0 { Duration::from_millis(50) } else { 30 * SECOND });
    service.denies = Box::new(|number| (number % 3 != 0).then(|| PollAnswer::Transient("timed out".into())));
    let settings = Settings { concurrency: 300, ..Settings::default() };
    let ledger = MemoryLedger::default();
    run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(300), &History::default(), None)).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 300]);
    // Whoever got a good connection was told soon, though two hundred others hung.
    let mut lags: Vec<Duration> = service.lags.lock().expect("no panic").values().copied().collect();
    lags.sort_unstable();
    assert!(lags[50] < 15 * SECOND, "{:?}", lags[50]);
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_that_a_submission_was_asked_for_does_not_hide_what_is_done() {
    // Two tasks run; the third submission is refused for a day, or for ten minutes.
    for (wait, is_stopped) in [(24 * 3600 * SECOND, true), (600 * SECOND, false)] {
        let mut service = FakeService::taking(|_| 60 * SECOND);
        service.refuses = Box::new(move |number| (number == 2).then(|| Submission::Wait(Some(wait), "quota".into())));
        let settings = Settings { concurrency: 3, ..Settings::default() };
        let (ledger, start) = (MemoryLedger::default(), Instant::now());
        let plan = plan(&jobs(3), &History::default(), None);
        let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
        assert_eq!(outcome.stopped.contains(&StopReason::Unreachable), is_stopped);
        assert_eq!(outcome.past_deadline, 0);
        let completed = ledger.states().into_iter().filter(|state| *state == AttemptState::Completed).count();
        assert_eq!(completed, if is_stopped { 2 } else { 3 });
        let lags = service.lags.lock().expect("no panic").clone();
        assert!(lags.values().all(|lag| *lag < 30 * SECOND), "{lags:?}");
        assert!(!is_stopped || start.elapsed() < 120 * SECOND, "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_beyond_what_the_service_takes_ends_with_the_first_refusal() {
    // It takes twenty tasks; a thousand are ready to go.
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.is_full = Box::new(|outstanding| (outstanding >= 20).then_some(Some(30 * SECOND)));
    let settings = Settings { concurrency: 1000, ..Settings::default() };
    let (ledger, stop, start) = (MemoryLedger::default(), Stop::default(), Instant::now());
    let plan = plan(&jobs(1000), &History::default(), None);
    let running = run(&service, &ledger, &settings, &stop, &plan);
    let stopping = async {
        tokio::time::sleep(50 * SECOND).await;
        stop.because(StopReason::Signal(2));
    };
    futures::join!(running, stopping);
    let early = service.submissions().iter().filter(|(at, _)| *at - start < 29 * SECOND).count();
    assert!(early <= 48, "{early} submissions though the service had asked to wait");
    // The first probe comes when the service said, not much later.
    let probes = service.submissions().iter().filter(|(at, _)| *at - start > 29 * SECOND).count();
    assert!((1..=3).contains(&probes), "{probes} probes");
}

#[tokio::test(start_paused = true)]
async fn tasks_that_ended_long_ago_teach_nothing() {
    // Ten tasks of yesterday are over at the first poll; then come ten new ones.
    let all = jobs(20);
    let yesterday = Timestamp::now() - jiff::SignedDuration::from_hours(20);
    let attempts = all.iter().take(10).enumerate().map(|(number, job)| outstanding(number, job, yesterday));
    let service = FakeService::taking(|_| 60 * SECOND);
    let ledger = MemoryLedger::default();
    for (number, job) in all.iter().take(10).enumerate() {
        let task = TaskId::new(format!("old{number}")).expect("an id");
        service.tasks.lock().expect("no panic").insert(task, (Instant::now(), Duration::ZERO));
        ledger.attempts.lock().expect("no panic").push((job.id.clone(), AttemptState::Queued));
    }
    let (plan, start) = (plan(&all, &History::new(attempts.collect()), None), Instant::now());
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 20]);
    assert!(start.elapsed() < 200 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn without_a_floor_trouble_is_still_backed_off_from_and_the_deadline_still_ends_it() {
    for denial in [PollAnswer::Transient("no route".into()), PollAnswer::Wait(Some(Duration::ZERO), "busy".into())] {
        let mut service = FakeService::taking(|_| 3600 * SECOND);
        service.denies = Box::new(move |_| Some(denial.clone()));
        let settings = Settings {
            poll_floor: Duration::ZERO,
            poll_interval: Duration::ZERO,
            deadline: 120 * SECOND,
            ..Settings::default()
        };
        let (ledger, stop) = (MemoryLedger::default(), Stop::default());
        let plan = plan(&jobs(1), &History::default(), None);
        let running = run(&service, &ledger, &settings, &stop, &plan);
        let (outcome, _) = tokio::time::timeout(600 * SECOND, running).await.expect("the deadline ends it");
        assert_eq!((outcome.past_deadline, ledger.states()), (1, vec![AttemptState::Queued]));
        assert!(service.polls().len() < 5000, "{} polls", service.polls().len());
    }
}

/// Videos that each take an hour, and how many were fetched at once.
#[derive(Default)]
struct Hours {
    now: AtomicUsize,
    most: Mutex<usize>,
}

impl Downloads for Hours {
    fn fetch<'a>(&'a self, _: &'a Link, _: &'a Destination) -> BoxFuture<'a, Result<(), FetchError>> {
        Box::pin(async move {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            {
                let mut most = self.most.lock().expect("no panic");
                *most = now.max(*most);
            }
            tokio::time::sleep(3600 * SECOND).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        })
    }

    fn find<'a>(&'a self, _: &'a Destination, _: &'a VideoFile) -> BoxFuture<'a, Option<OutputPath>> {
        Box::pin(std::future::ready(None))
    }

    fn place<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, Result<Stored, FetchError>> {
        let file = VideoFile { path: destination.path.clone(), sha256: "0".repeat(64), bytes: 1 };
        Box::pin(std::future::ready(Ok(Stored { file, displaced: None })))
    }
}

#[tokio::test(start_paused = true)]
async fn a_download_never_holds_a_slot_and_few_go_on_at_once() {
    let (service, videos) = (FakeService::taking(|_| 60 * SECOND), Hours::default());
    let settings = Settings { concurrency: 2, ..Settings::default() };
    let (ledger, stop, start) = (MemoryLedger::default(), Stop::default(), Instant::now());
    let plan = Plan { downloads: Some(DownloadPlan::default()), ..plan(&jobs(12), &History::default(), None) };
    let (outcome, events) = run_fetching(&service, &ledger, &settings, &stop, &plan, Some(&videos)).await;
    let last = service.submissions().last().expect("a submission").0;
    assert!(last - start < 3600 * SECOND, "the last of twelve was submitted after {:?}", last - start);
    assert_eq!(*videos.most.lock().expect("no panic"), 4);
    let fetched = events.iter().filter(|event| matches!(event, RunEvent::Fetched { .. })).count();
    assert_eq!((fetched, outcome), (12, Outcome::default()));
    assert!(start.elapsed() < (3 * 3600 + 600) * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn whoever_wants_the_end_now_does_not_wait_for_a_download() {
    let (service, videos) = (FakeService::taking(|_| 60 * SECOND), Hours::default());
    let settings = Settings { max_duration: Some(600 * SECOND), ..Settings::default() };
    let (ledger, stop, start) = (MemoryLedger::default(), Stop::default(), Instant::now());
    let plan = Plan { downloads: Some(DownloadPlan::default()), ..plan(&jobs(2), &History::default(), None) };
    let (outcome, _) = run_fetching(&service, &ledger, &settings, &stop, &plan, Some(&videos)).await;
    assert_eq!((start.elapsed(), outcome.unfetched), (600 * SECOND, 0));
    assert_eq!(ledger.states(), [AttemptState::Completed; 2]);
}
