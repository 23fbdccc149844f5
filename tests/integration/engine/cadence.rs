//! What the cadence promises, held on a paused clock: few polls, found soon, and no time lost.

use std::sync::Arc;
use std::time::Duration;

use shotlist::domain::{History, Job};
use shotlist::engine::{Settings, Stop};
use tokio::time::Instant;

use crate::support::fake::{FakeService, OwnBatch, jobs, plan_of, run};
use crate::support::schedule::scheduled;

const JOBS: usize = 200;
const SLOTS: usize = 8;

/// Polls at one task, mean seconds until it was seen finished, and the wall time over the ideal one.
struct Figures {
    polls: f64,
    lag_s: f64,
    over_ideal: f64,
}

/// Evenly spread between 0 and 1, and different for each number.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn spread(number: usize) -> f64 {
    (number as f64 * 0.618_033_988_749_895).fract()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a hundred")]
fn percent(share: f64) -> u8 {
    (share * 100.0).clamp(0.0, 99.0) as u8
}

async fn measure(
    takes: impl Fn(usize) -> f64 + Send + Sync + Clone + 'static,
    progress: impl Fn(usize, f64) -> Option<u8> + Send + Sync + 'static,
) -> Figures {
    measure_jobs(&jobs(JOBS), takes, progress).await
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
async fn measure_jobs(
    jobs: &[Arc<Job>],
    takes: impl Fn(usize) -> f64 + Send + Sync + Clone + 'static,
    progress: impl Fn(usize, f64) -> Option<u8> + Send + Sync + 'static,
) -> Figures {
    let all: Vec<f64> = (0..JOBS).map(&takes).collect();
    let mut service = FakeService::taking(move |number| Duration::from_secs_f64(takes(number)));
    service.progress = Box::new(progress);
    let (plan, ledger) = (plan_of(jobs, &History::default()), OwnBatch::default());
    // Only now: the directory of the ledger takes random numbers, too.
    fastrand::seed(7);
    let start = Instant::now();
    run(&service, &ledger, &Settings::default(), &Stop::default(), &plan).await;
    let wall = start.elapsed().as_secs_f64();
    let lags: f64 = service.lags.lock().expect("no panic").values().map(Duration::as_secs_f64).sum();
    let ideal = scheduled(&all, SLOTS);
    Figures { polls: service.polls().len() as f64 / JOBS as f64, lag_s: lags / JOBS as f64, over_ideal: wall / ideal }
}

/// What polls every eight seconds need: how many for one task, and how many seconds until it is seen finished.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn every_eight_seconds(takes: impl Fn(usize) -> f64) -> (f64, f64) {
    let polls: f64 = (0..JOBS).map(|number| (takes(number) / 8.0).ceil()).sum();
    let lag: f64 = (0..JOBS).map(|number| (takes(number) / 8.0).ceil() * 8.0 - takes(number)).sum();
    (polls / JOBS as f64, lag / JOBS as f64)
}

fn as_documented(number: usize) -> f64 {
    30.0 + 90.0 * spread(number)
}

#[tokio::test(start_paused = true)]
async fn half_the_polls_of_a_fixed_cadence_less_lag_and_two_percent_over_the_ideal() {
    let figures = measure(as_documented, |_, share| Some(percent(share))).await;
    let (polls, lag_s) = every_eight_seconds(as_documented);
    assert!(figures.polls <= polls / 2.0, "{} polls, fixed: {polls}", figures.polls);
    assert!(figures.lag_s <= lag_s, "{} s, fixed: {lag_s} s", figures.lag_s);
    assert!(figures.over_ideal <= 1.02, "{}", figures.over_ideal);
}

/// Progress stays at zero for up to a third of a task's life, differently long for each, and grows evenly from then on.
#[tokio::test(start_paused = true)]
async fn a_queue_before_progress_counts_costs_no_more_than_five_polls_and_no_time() {
    let minutes = |job: Arc<Job>| Arc::new(Job { typical_s: (60, 180), ..Arc::unwrap_or_clone(job) });
    let jobs: Vec<Arc<Job>> = jobs(JOBS).into_iter().map(minutes).collect();
    let late = |number: usize, share: f64| {
        let waits = spread(7 * number + 3) / 3.0;
        Some(percent((share - waits) / (1.0 - waits)))
    };
    let figures = measure_jobs(&jobs, |number| 60.0 + 120.0 * spread(number), late).await;
    assert!(figures.polls <= 5.0, "{} polls", figures.polls);
    assert!(figures.lag_s <= 0.9, "{} s", figures.lag_s);
    assert!(figures.over_ideal <= 1.01, "{}", figures.over_ideal);
}

#[tokio::test(start_paused = true)]
async fn the_interval_and_the_floor_are_kept_whatever_they_are() {
    for (interval, floor) in [(1, 1), (2, 1), (5, 2), (10, 1), (30, 10)] {
        let service = FakeService::taking(|number| Duration::from_secs_f64(as_documented(number)));
        let (interval, floor) = (Duration::from_secs(interval), Duration::from_secs(floor));
        let settings = Settings { poll_interval: interval, poll_floor: floor, ..Settings::default() };
        let start = Instant::now();
        run(&service, &OwnBatch::default(), &settings, &Stop::default(), &plan_of(&jobs(1), &History::default())).await;
        let mut polls: Vec<Duration> = service.polls().into_iter().map(|(at, _)| at - start).collect();
        assert!(polls[0] >= Duration::from_secs(30), "{polls:?}");
        polls.sort_unstable();
        for pair in polls.windows(2) {
            let pause = pair[1].saturating_sub(pair[0]);
            assert!(pause >= floor && pause <= interval + Duration::from_millis(60), "{interval:?}: {polls:?}");
        }
    }
    // None at all is a millisecond, and does not hang.
    let none = Settings { poll_interval: Duration::ZERO, poll_floor: Duration::ZERO, ..Settings::default() };
    let service = FakeService::taking(|_| Duration::from_secs(31));
    run(&service, &OwnBatch::default(), &none, &Stop::default(), &plan_of(&jobs(1), &History::default())).await;
}

#[tokio::test(start_paused = true)]
async fn progress_that_is_of_no_use_does_no_harm() {
    let (polls, lag_s) = every_eight_seconds(as_documented);
    let none = measure(as_documented, |_, _| None).await;
    for progress in [
        |_, _| Some(0),
        // It is, goes backwards, stalls and jumps.
        |number: usize, share: f64| Some(percent((share * 1000.0 * spread(number)).fract())),
        |_, share: f64| Some(percent(1.0 - share)),
        |_, share: f64| Some(percent(share * 3.0)),
        |_, share: f64| if share < 0.9 { Some(10) } else { Some(95) },
        // It counts in large steps.
        |_, share: f64| Some(percent(share) / 10 * 10),
        |_, share: f64| Some(percent(share) / 25 * 25),
    ] {
        let figures = measure(as_documented, progress).await;
        assert!(figures.polls <= polls * 1.05, "{} polls, fixed: {polls}", figures.polls);
        assert!(figures.lag_s <= lag_s * 1.25, "{} s, fixed: {lag_s} s", figures.lag_s);
        assert!(figures.polls <= none.polls * 1.3, "{} polls, without progress: {}", figures.polls, none.polls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_faster_or_slower_than_documented_is_noticed() {
    // Twelve seconds where 30 to 120 are said: the first eight tasks are seen late, and then no more.
    let fast = measure(|number| 10.0 + 4.0 * spread(number), |_, _| None).await;
    assert!(fast.over_ideal < 1.3, "{}", fast.over_ideal);
    assert!(fast.polls < 6.0, "{} polls", fast.polls);
    // Six minutes: the polls that the document asks for are soon given up.
    let slow = measure(|number| 340.0 + 40.0 * spread(number), |_, _| None).await;
    assert!(slow.over_ideal < 1.03, "{}", slow.over_ideal);
    assert!(slow.polls < 12.0, "{} polls", slow.polls);
}
