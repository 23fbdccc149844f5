//! Slots and polls.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use shotlist::domain::{Attempt, AttemptState, History, TaskId};
use shotlist::engine::{RunEvent, Settings, Stop};
use shotlist::service::PollAnswer;
use tokio::time::Instant;

use crate::support::fake::{FakeService, OwnBatch, jobs, run};
use crate::support::plans::{SECOND, active, plan};

#[tokio::test(start_paused = true)]
async fn slots_limit_tasks_and_are_refilled_immediately() {
    let service = FakeService::taking(|_| 60 * SECOND);
    let settings = Settings { concurrency: 4, ..Settings::default() };
    let (ledger, start) = (OwnBatch::default(), Instant::now());
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
async fn denied_known_task_gets_a_grace_time() {
    let mut service = FakeService::taking(|_| 35 * SECOND);
    service.denies = Box::new(|number| (number < 3).then(|| PollAnswer::Missing("it is not known (HTTP 404)".into())));
    let ledger = OwnBatch::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(1), &History::default(), None)).await;
    assert_eq!(ledger.states(), [AttemptState::Completed]);

    // A speed that the service reports shortens no grace: the task is paid for.
    let mut service = FakeService::taking(|_| SECOND);
    service.speed = 1000.0;
    service.denies = Box::new(|_| Some(PollAnswer::Missing("it is not known (HTTP 404)".into())));
    let (ledger, start) = (OwnBatch::default(), Instant::now());
    let (_, events) =
        run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(1), &History::default(), None))
            .await;
    assert_eq!(ledger.states(), [AttemptState::Failed]);
    assert!(start.elapsed() > 120 * SECOND, "{:?}", start.elapsed());
    let failed = events.iter().find_map(|event| match event {
        RunEvent::Failed { message, .. } => Some(message),
        _ => None,
    });
    insta::assert_snapshot!(failed.expect("its failure"), @"poll for task t0: it is not known (HTTP 404)");
}

#[tokio::test(start_paused = true)]
async fn resumed_tasks_take_slots_and_are_all_looked_after() {
    let all = jobs(16);
    let service = FakeService::taking(|_| 40 * SECOND);
    let ledger = OwnBatch::default();
    let attempts = all.iter().take(10).enumerate().map(|(number, job)| {
        let id = ledger.accepted(job, &format!("old{number}"));
        Attempt { id, ..active(number, job, Timestamp::now()) }
    });
    let history = History::new(attempts.collect());
    // They end in turn, a minute apart.
    for number in 1..=10 {
        let task = TaskId::new(format!("old{}", number - 1)).expect("an id");
        service.tasks.lock().expect("no panic").insert(task, (Instant::now(), number * 60 * SECOND));
    }
    let plan = plan(&all, &history, None);
    assert_eq!((plan.resume.len(), plan.totals().submit), (10, 6));
    run(&service, &ledger, &Settings { concurrency: 4, ..Settings::default() }, &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 16]);
    // More tasks than slots: none waits to be polled, and nothing is submitted before the surplus has ended.
    for (at, _) in service.submissions() {
        let active = service.active_at(at);
        assert!(active <= 4, "{active} tasks active at {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn full_service_gets_more_tasks_later() {
    // It takes three tasks at first, and eight from the tenth minute on.
    let start = Instant::now();
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.is_full = Some(Box::new(move |active| {
        let most = if start.elapsed() < 600 * SECOND { 3 } else { 8 };
        (active >= most).then_some(Some(10 * SECOND))
    }));
    let ledger = OwnBatch::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(100), &History::default(), None)).await;
    let ended = |state| ledger.states().into_iter().filter(|other| *other == state).count();
    assert_eq!(ended(AttemptState::Completed), 100, "a refusal costs no attempt");
    // Thirty in ten minutes, and the seventy others eight at a time: nine more minutes, if no time is lost.
    let wall = start.elapsed();
    assert!(wall < 19 * 60 * SECOND * 12 / 10, "{wall:?}");
    // One submission is rejected after each requested wait.
    assert!(ended(AttemptState::Void) < 120, "{} refusals", ended(AttemptState::Void));
    let full = (0..100).filter(|n| service.active_at(start + (700 + n) * SECOND) == 8).count();
    assert!(full > 60, "it did not recover: eight were active in {full} of 100 seconds");
    let bodies: Vec<String> = service.submissions().into_iter().map(|(_, body)| body).collect();
    let mut seen = HashSet::new();
    let first: Vec<&String> = bodies.iter().filter(|body| seen.insert(body.as_str())).collect();
    let in_order =
        jobs(100).iter().zip(&first).filter(|(job, body)| job.purchase.request.body() == body.as_str()).count();
    assert_eq!(in_order, 100, "the order of submission is the manifest's");
}

#[tokio::test(start_paused = true)]
async fn rps_applies_to_submissions_and_polls_together() {
    let service = FakeService::taking(|_| 60 * SECOND);
    let settings = Settings { concurrency: 40, rps: Some(2.0), ..Settings::default() };
    let ledger = OwnBatch::default();
    run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(100), &History::default(), None)).await;
    let (polls, submissions) = (service.polls(), service.submissions());
    let mixed = polls.iter().filter(|(at, _)| *at < submissions[99].0).count();
    assert!(mixed > 50, "polls wait for submissions: {mixed}");
    assert_eq!(ledger.states(), [AttemptState::Completed; 100]);
    // Submissions are recorded after 100 ms, polls immediately.
    let sent = service.submissions().into_iter().map(|(at, _)| at.checked_sub(Duration::from_millis(100)).unwrap());
    let mut asked: Vec<Instant> = service.polls().into_iter().map(|(at, _)| at).chain(sent).collect();
    asked.sort_unstable();
    for four in asked.windows(4) {
        assert!(four[3] - four[0] >= Duration::from_millis(1495), "{:?}", four[3] - four[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn old_tasks_do_not_change_the_schedule() {
    // Ten tasks of yesterday are over at the first poll; then come ten new ones.
    let all = jobs(20);
    let yesterday = Timestamp::now() - jiff::SignedDuration::from_hours(20);
    let service = FakeService::taking(|_| 60 * SECOND);
    let ledger = OwnBatch::default();
    let attempts = all.iter().take(10).enumerate().map(|(number, job)| {
        let id = ledger.accepted(job, &format!("old{number}"));
        Attempt { id, ..active(number, job, yesterday) }
    });
    let history = History::new(attempts.collect());
    for number in 0..10 {
        let task = TaskId::new(format!("old{number}")).expect("an id");
        service.tasks.lock().expect("no panic").insert(task, (Instant::now(), Duration::ZERO));
    }
    let (plan, start) = (plan(&all, &history, None), Instant::now());
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 20]);
    assert!(start.elapsed() < 200 * SECOND, "{:?}", start.elapsed());
}
