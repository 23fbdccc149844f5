//! The poll schedule on a paused clock: few polls, a short delay, no lost slot time.

use std::time::Duration;

use shotlist::domain::History;
use shotlist::engine::{Settings, Stop};
use tokio::time::Instant;

use crate::support::fake::{FakeService, OwnBatch, jobs, jobs_of, plan_of, run};
use crate::support::schedule::scheduled;

const JOBS: usize = 120;
const SLOTS: usize = 8;

struct Figures {
    /// Polls per task.
    polls: f64,
    /// Mean time from the end of a task to the poll that sees it.
    delay_s: f64,
    /// Wall time of the run over the ideal one.
    over_ideal: f64,
}

/// Numbers between 0 and 1, evenly spread.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn spread(number: usize) -> f64 {
    (number as f64 * 0.618_033_988_749_895).fract()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a hundred")]
fn percent(share: f64) -> u8 {
    (share * 100.0).clamp(0.0, 99.0) as u8
}

/// Runs tasks with a typical time of one to three minutes.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
async fn measure(
    takes: impl Fn(usize) -> f64 + Send + Sync + Clone + 'static,
    progress: impl Fn(usize, f64) -> Option<u8> + Send + Sync + 'static,
) -> Figures {
    let jobs = jobs_of(JOBS, (60, 180));
    let all: Vec<f64> = (0..JOBS).map(&takes).collect();
    let mut service = FakeService::taking(move |number| Duration::from_secs_f64(takes(number)));
    service.progress = Box::new(progress);
    let (plan, ledger) = (plan_of(&jobs, &History::default()), OwnBatch::default());
    // Seeded here, because the directory of the ledger takes random numbers, too.
    fastrand::seed(7);
    let start = Instant::now();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    let wall = start.elapsed().as_secs_f64();
    let delays: f64 = service.lags.lock().expect("no panic").values().map(Duration::as_secs_f64).sum();
    Figures {
        polls: service.polls().len() as f64 / JOBS as f64,
        delay_s: delays / JOBS as f64,
        over_ideal: wall / scheduled(&all, SLOTS),
    }
}

fn documented_time(number: usize) -> f64 {
    60.0 + 120.0 * spread(number)
}

#[tokio::test(start_paused = true)]
async fn documented_task_takes_five_polls_and_a_second() {
    let figures = measure(documented_time, |_, share| Some(percent(share))).await;
    assert!(figures.polls <= 5.0, "{} polls", figures.polls);
    assert!(figures.delay_s <= 1.5, "{} s", figures.delay_s);
    assert!(figures.over_ideal <= 1.02, "{}", figures.over_ideal);
}

/// Progress stays at zero for up to a third of a task's life and grows evenly from then on.
#[tokio::test(start_paused = true)]
async fn queued_task_is_predicted_from_two_observations() {
    let late = |number: usize, share: f64| {
        let queued = spread(7 * number + 3) / 3.0;
        Some(percent((share - queued) / (1.0 - queued)))
    };
    let figures = measure(documented_time, late).await;
    assert!(figures.polls <= 7.0, "{} polls", figures.polls);
    assert!(figures.delay_s <= 1.5, "{} s", figures.delay_s);
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
#[tokio::test(start_paused = true)]
async fn useless_progress_costs_no_more_than_fixed_polls() {
    let eight_seconds = |number: usize| (documented_time(number) / 8.0).ceil();
    let polls = (0..JOBS).map(eight_seconds).sum::<f64>() / JOBS as f64;
    let delay_s =
        (0..JOBS).map(|number| eight_seconds(number) * 8.0 - documented_time(number)).sum::<f64>() / JOBS as f64;
    for (name, progress) in [
        ("none", (|_, _| None) as fn(usize, f64) -> Option<u8>),
        ("zero", |_, _| Some(0)),
        ("random", |number, share| Some(percent((share * 1000.0 * spread(number)).fract()))),
        ("backwards", |_, share| Some(percent(1.0 - share))),
        ("too fast", |_, share| Some(percent(share * 3.0))),
        ("a jump", |_, share| if share < 0.9 { Some(10) } else { Some(95) }),
        ("steps of 10", |_, share| Some(percent(share) / 10 * 10)),
        ("steps of 25", |_, share| Some(percent(share) / 25 * 25)),
    ] {
        let figures = measure(documented_time, progress).await;
        assert!(figures.polls <= polls * 1.15, "{name}: {} polls, fixed {polls}", figures.polls);
        assert!(figures.delay_s <= delay_s * 1.25, "{name}: {} s, fixed {delay_s} s", figures.delay_s);
    }
}

#[tokio::test(start_paused = true)]
async fn faster_service_than_documented_is_noticed() {
    let fast = measure(|number| 16.0 + 8.0 * spread(number), |_, share| Some(percent(share))).await;
    assert!(fast.over_ideal < 1.15, "{}", fast.over_ideal);
    assert!(fast.polls < 5.0, "{} polls", fast.polls);
}

/// All waits of a simulator are shorter by its speed.
#[tokio::test(start_paused = true)]
async fn simulator_is_polled_at_its_speed() {
    let mut service = FakeService::taking(|number| Duration::from_secs_f64(documented_time(number) / 20.0));
    (service.speed, service.progress) = (20.0, Box::new(|_, share| Some(percent(share))));
    let jobs = jobs_of(JOBS, (60, 180));
    let (plan, ledger) = (plan_of(&jobs, &History::default()), OwnBatch::default());
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    let delays: Duration = service.lags.lock().expect("no panic").values().sum();
    let jobs = u32::try_from(JOBS).expect("small");
    assert!(service.polls().len() < 6 * JOBS, "{} polls", service.polls().len());
    assert!(delays / jobs < Duration::from_millis(200), "{:?} until a completion is seen", delays / jobs);
}

#[tokio::test(start_paused = true)]
async fn interval_and_floor_bound_each_wait() {
    for (interval, floor) in [(1, 1), (2, 1), (5, 2), (10, 1), (30, 10)] {
        // The typical time is 30 to 120 s.
        let service = FakeService::taking(|number| Duration::from_secs_f64(100.0 + spread(number)));
        let (interval, floor) = (Duration::from_secs(interval), Duration::from_secs(floor));
        let settings = Settings { poll_interval: Some(interval), poll_floor: Some(floor), ..Settings::default() };
        let start = Instant::now();
        run(&service, &OwnBatch::default(), &settings, &Stop::default(), &plan_of(&jobs(1), &History::default())).await;
        let polls: Vec<Duration> = service.polls().into_iter().map(|(at, _)| at - start).collect();
        assert!(polls[0] >= Duration::from_millis(7500), "{polls:?}");
        for pair in polls.windows(2).filter(|pair| pair[0] >= Duration::from_secs(30)) {
            let wait = pair[1].saturating_sub(pair[0]);
            assert!(wait >= floor && wait <= interval + Duration::from_millis(60), "{interval:?}: {polls:?}");
        }
    }
    // Zero counts as a millisecond and does not hang.
    let zero =
        Settings { poll_interval: Some(Duration::ZERO), poll_floor: Some(Duration::ZERO), ..Settings::default() };
    let service = FakeService::taking(|_| Duration::from_secs(31));
    run(&service, &OwnBatch::default(), &zero, &Stop::default(), &plan_of(&jobs(1), &History::default())).await;
}
