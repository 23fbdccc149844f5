//! A service that is away, asleep, busy or full.

use std::time::Duration;

use shotlist::domain::{AttemptState, History};
use shotlist::engine::{Outcome, RunEvent, Settings, Stop, StopReason};
use shotlist::service::{PollAnswer, TryAgain};
use tokio::time::Instant;

use crate::support::fake::{FakeService, OwnBatch, jobs, run};
use crate::support::plans::{SECOND, plan};

#[tokio::test(start_paused = true)]
async fn minutes_without_a_network_lose_nothing() {
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.denies = Box::new(|number| (number < 15).then(|| PollAnswer::Transient("no route".into())));
    let ledger = OwnBatch::default();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan(&jobs(1), &History::default(), None)).await;
    assert_eq!(ledger.states(), [AttemptState::Completed]);
}

#[tokio::test(start_paused = true)]
async fn run_survives_ten_minutes_without_a_network() {
    let start = Instant::now();
    let down = move || (100 * SECOND..700 * SECOND).contains(&start.elapsed());
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.refuses = Box::new(move |_| down().then(|| Err(TryAgain::NotSent("no route".into()))));
    service.denies = Box::new(move |_| down().then(|| PollAnswer::Transient("no route".into())));
    let (ledger, settings) = (OwnBatch::default(), Settings { concurrency: 4, ..Settings::default() });
    let plan = plan(&jobs(24), &History::default(), None);
    let (outcome, events) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    let reserved = plan.totals().cost_usd;
    assert_eq!(outcome, Outcome { reserved, ..Outcome::default() });
    let ended = |state| ledger.states().into_iter().filter(|other| *other == state).count();
    assert_eq!(ended(AttemptState::Completed), 24);
    let back = events.iter().find_map(|event| match event {
        RunEvent::ServiceRecovered { after } => Some(*after),
        _ => None,
    });
    assert!(back.is_some_and(|after| after > 500 * SECOND && after < 700 * SECOND), "{back:?}");
    // Polled less and less often, and soon after the end of the outage.
    let sent = service.submissions().into_iter().map(|(at, _)| at);
    let asked = service.polls().into_iter().map(|(at, _)| at).chain(sent);
    let in_vain = asked.filter(|at| (300 * SECOND..700 * SECOND).contains(&(*at - start))).count();
    assert!(in_vain < 5 * 400 / 10, "{in_vain} requests while nobody answered");
    assert!(start.elapsed() < (6 * 75 + 600 + 60) * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn unreachable_service_ends_the_run_soon() {
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.refuses = Box::new(|_| Some(Err(TryAgain::NotSent("no route".into()))));
    let (ledger, start) = (OwnBatch::default(), Instant::now());
    let plan = plan(&jobs(24), &History::default(), None);
    let (outcome, _) = run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert!(outcome.stopped.contains(&StopReason::Unreachable));
    assert!(start.elapsed() < 60 * SECOND, "{:?}", start.elapsed());
    // One goes at first, and tries four times more; the others wait for it.
    assert_eq!(service.submissions().len(), 1 + 4);
    assert!(ledger.states().iter().all(|state| *state == AttemptState::Void));
}

#[tokio::test(start_paused = true)]
async fn dead_connections_delay_no_other_task() {
    // Two polls in three hang for half a minute and then bring nothing.
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.poll_latency = Box::new(|number| if number % 3 == 0 { Duration::from_millis(50) } else { 30 * SECOND });
    service.denies = Box::new(|number| (number % 3 != 0).then(|| PollAnswer::Transient("timed out".into())));
    let settings = Settings { concurrency: 300, ..Settings::default() };
    let ledger = OwnBatch::default();
    run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(300), &History::default(), None)).await;
    assert_eq!(ledger.states(), [AttemptState::Completed; 300]);
    // A task with a working connection got its response soon, despite two hundred hanging ones.
    let mut lags: Vec<Duration> = service.lags.lock().expect("no panic").values().copied().collect();
    lags.sort_unstable();
    assert!(lags[50] < 15 * SECOND, "{:?}", lags[50]);
}

#[tokio::test(start_paused = true)]
async fn busy_service_ends_the_run_at_the_deadline() {
    let mut service = FakeService::taking(|_| 30 * SECOND);
    service.refuses = Box::new(|_| Some(Err(TryAgain::Wait(Some(60 * SECOND), "full".into()))));
    let (ledger, start) = (OwnBatch::default(), Instant::now());
    let plan = plan(&jobs(3), &History::default(), None);
    let (outcome, _) = run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    assert!(outcome.stopped.contains(&StopReason::Unreachable), "{outcome:?}");
    assert!(start.elapsed() < 3600 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn backoff_and_deadline_apply_without_a_poll_floor() {
    for denial in [PollAnswer::Transient("no route".into()), PollAnswer::Wait(Some(Duration::ZERO), "busy".into())] {
        let mut service = FakeService::taking(|_| 3600 * SECOND);
        service.denies = Box::new(move |_| Some(denial.clone()));
        let settings = Settings {
            poll_floor: Some(Duration::ZERO),
            poll_interval: Some(Duration::ZERO),
            deadline: 120 * SECOND,
            ..Settings::default()
        };
        let (ledger, stop) = (OwnBatch::default(), Stop::default());
        let plan = plan(&jobs(1), &History::default(), None);
        let running = run(&service, &ledger, &settings, &stop, &plan);
        let (outcome, _) = tokio::time::timeout(600 * SECOND, running).await.expect("the deadline ends it");
        assert_eq!((outcome.past_deadline, ledger.states()), (1, vec![AttemptState::Queued]));
        assert!(service.polls().len() < 5000, "{} polls", service.polls().len());
    }
}

#[tokio::test(start_paused = true)]
async fn run_polls_once_more_after_a_sleep_of_the_machine() {
    // An hour is longer than the deadline; the tasks ended unobserved.
    let service = FakeService::taking(|_| 300 * SECOND);
    let (ledger, stop) = (OwnBatch::default(), Stop::default());
    let settings = Settings { concurrency: 2, ..Settings::default() };
    let plan = plan(&jobs(4), &History::default(), None);
    let running = run(&service, &ledger, &settings, &stop, &plan);
    let sleeping = async {
        tokio::time::sleep(60 * SECOND).await;
        tokio::time::advance(3600 * SECOND).await;
    };
    let ((outcome, _), ()) = futures::join!(running, sleeping);
    assert_eq!(ledger.states(), [AttemptState::Completed; 4]);
    let reserved = plan.totals().cost_usd;
    assert_eq!(outcome, Outcome { reserved, ..Outcome::default() });
    assert_eq!(service.submissions().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn requested_poll_wait_of_a_day_is_capped() {
    let mut service = FakeService::taking(|_| 600 * SECOND);
    service.denies = Box::new(|_| Some(PollAnswer::Wait(Some(24 * 3600 * SECOND), "full".into())));
    let settings = Settings { concurrency: 1, ..Settings::default() };
    let (ledger, start) = (OwnBatch::default(), Instant::now());
    let plan = plan(&jobs(3), &History::default(), None);
    let (outcome, _) = run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    // One task is left at its deadline; the next submission waits as long again, and no longer.
    assert!(start.elapsed() < 2 * 3600 * SECOND, "{:?}", start.elapsed());
    assert_eq!((service.submissions().len(), ledger.states()), (1, vec![AttemptState::Queued]));
    assert!(outcome.stopped.contains(&StopReason::Unreachable), "{outcome:?}");
    assert_eq!(outcome.past_deadline, 1);
}

#[tokio::test(start_paused = true)]
async fn long_submission_wait_does_not_stop_polls() {
    // Two tasks run; the third submission is refused for a day, or for ten minutes.
    for (wait, is_stopped) in [(24 * 3600 * SECOND, true), (600 * SECOND, false)] {
        let mut service = FakeService::taking(|_| 60 * SECOND);
        service.refuses =
            Box::new(move |number| (number == 2).then(|| Err(TryAgain::Wait(Some(wait), "quota".into()))));
        let settings = Settings { concurrency: 3, ..Settings::default() };
        let (ledger, start) = (OwnBatch::default(), Instant::now());
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
async fn burst_over_the_rate_ends_with_the_first_refusal() {
    // It takes twenty tasks; a thousand are ready to go.
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.is_full = Some(Box::new(|active| (active >= 20).then_some(Some(30 * SECOND))));
    let settings = Settings { concurrency: 1000, ..Settings::default() };
    let (ledger, stop, start) = (OwnBatch::default(), Stop::default(), Instant::now());
    let plan = plan(&jobs(1000), &History::default(), None);
    let running = run(&service, &ledger, &settings, &stop, &plan);
    let stopping = async {
        tokio::time::sleep(50 * SECOND).await;
        stop.because(StopReason::Signal(2));
    };
    futures::join!(running, stopping);
    let early = service.submissions().iter().filter(|(at, _)| *at - start < 29 * SECOND).count();
    assert!(early <= 48, "{early} submissions though the service had asked to wait");
    // The first probe follows the wait of the service immediately.
    let probes = service.submissions().iter().filter(|(at, _)| *at - start > 29 * SECOND).count();
    assert!((1..=3).contains(&probes), "{probes} probes");
}

#[tokio::test(start_paused = true)]
async fn wait_applies_to_all_submissions() {
    let mut service = FakeService::taking(|_| 30 * SECOND);
    service.refuses = Box::new(|number| (number == 1).then(|| Err(TryAgain::Wait(Some(60 * SECOND), "full".into()))));
    let settings = Settings { concurrency: 2, ..Settings::default() };
    let start = Instant::now();
    let ledger = OwnBatch::default();
    run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(6), &History::default(), None)).await;
    // The delayed request had a separate intent, which is void, and the job has another one.
    let ended = |state| ledger.states().into_iter().filter(|other| *other == state).count();
    assert_eq!((ended(AttemptState::Completed), ended(AttemptState::Void)), (6, 1));
    let early = service.submissions().iter().filter(|(at, _)| *at - start < 60 * SECOND).count();
    assert_eq!(early, 2, "something was submitted during the pause");
}
