//! The quality of the poll schedule: the engine on a simulated clock, compared with polls every 8 and every 10 seconds, for several behaviors of a service.
//! 400 jobs, 8 slots. Each row has the polls per task, the delay until a completion is noticed (mean and 95th percentile), and the wall time over the
//! optimum, which refills each slot the moment its task ends.
//!
//! `cargo bench --bench polls`
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/integration/support/fake.rs"]
mod fake;
#[path = "../tests/integration/support/schedule.rs"]
mod schedule;

use std::io::Write as _;
use std::time::Duration;

use fake::{FakeService, OwnBatch, jobs_of, plan_of, run};
use schedule::scheduled;
use shotlist::domain::History;
use shotlist::engine::{Settings, Stop};

const JOBS: usize = 400;
const SLOTS: usize = 8;

/// The reported progress of a task, from the elapsed share of its duration and a random number per task.
type Progress = fn(f64, f64) -> u8;
/// The duration of a task in seconds, from its number and two random numbers.
type Takes = fn(usize, f64, f64) -> f64;

/// A behavior of a service.
struct Case {
    what: &'static str,
    /// The document's shortest and longest typical time.
    typical_s: (u32, u32),
    takes: Takes,
    progress: Progress,
}

const CASES: [Case; 11] = [
    Case { what: "uniform 60-180 s", typical_s: ALPHA, takes: |_, a, _| 60.0 + 120.0 * a, progress: even },
    Case { what: "uniform 30-120 s", typical_s: BETA, takes: |_, a, _| 30.0 + 90.0 * a, progress: even },
    Case {
        what: "the same, counts after a queue",
        typical_s: ALPHA,
        takes: |_, a, _| 60.0 + 120.0 * a,
        progress: late,
    },
    Case { what: "uniform, progress stays 0", typical_s: ALPHA, takes: |_, a, _| 60.0 + 120.0 * a, progress: |_, _| 0 },
    Case { what: "uniform, progress lies", typical_s: ALPHA, takes: |_, a, _| 60.0 + 120.0 * a, progress: lies },
    Case { what: "uniform, stalls at 99", typical_s: ALPHA, takes: |_, a, _| 60.0 + 120.0 * a, progress: stalls },
    Case { what: "log-normal, median 90 s", typical_s: ALPHA, takes: log_normal, progress: even },
    Case { what: "log-normal, progress stays 0", typical_s: ALPHA, takes: log_normal, progress: |_, _| 0 },
    Case { what: "bimodal, progress stays 0", typical_s: ALPHA, takes: bimodal, progress: |_, _| 0 },
    Case { what: "slows down from 80 to 280 s", typical_s: ALPHA, takes: slows_down, progress: |_, _| 0 },
    Case { what: "15-25 s where 60-180 is said", typical_s: ALPHA, takes: |_, a, _| 15.0 + 10.0 * a, progress: even },
];
const ALPHA: (u32, u32) = (60, 180);
const BETA: (u32, u32) = (30, 120);

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a hundred")]
fn percent(share: f64) -> u8 {
    (share * 100.0).clamp(0.0, 99.0) as u8
}

fn even(share: f64, _: f64) -> u8 {
    percent(share)
}

/// Waits for up to a third of its life, and counts from then on.
fn late(share: f64, random: f64) -> u8 {
    let waits = random / 3.0;
    percent((share - waits) / (1.0 - waits))
}

fn lies(share: f64, random: f64) -> u8 {
    percent((share * 7919.0 * (1.0 + random)).fract())
}

/// At 99 percent when half of the time is over.
fn stalls(share: f64, _: f64) -> u8 {
    percent(share * 2.0)
}

fn log_normal(_: usize, a: f64, b: f64) -> f64 {
    let normal = (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos();
    90.0 * (0.35 * normal).exp()
}

fn bimodal(_: usize, a: f64, b: f64) -> f64 {
    if b < 0.6 { 70.0 + 8.0 * a } else { 150.0 + 16.0 * a }
}

#[expect(clippy::cast_precision_loss, reason = "some hundreds")]
fn slows_down(number: usize, a: f64, _: f64) -> f64 {
    80.0 + 180.0 * number as f64 / JOBS as f64 + 20.0 * a
}

/// The compared figures.
struct Figures {
    polls: f64,
    lag_s: f64,
    lag_95_s: f64,
    over_ideal: f64,
}

fn main() {
    print(&format!("{:<32} {:>8} {:>7} {:>8} {:>8} {:>9}", "", "", "polls", "delay s", "95th s", "of ideal"));
    for case in &CASES {
        let random: Vec<(f64, f64)> = {
            let mut random = fastrand::Rng::with_seed(7);
            (0..JOBS).map(|_| (random.f64(), random.f64())).collect()
        };
        let takes: Vec<f64> = random.iter().enumerate().map(|(n, (a, b))| (case.takes)(n, *a, *b)).collect();
        let measured = measure(case, &takes, &random);
        show(case.what, "schedule", &measured, Some(&fixed(&takes, 8.0)));
        show("", "8 s", &fixed(&takes, 8.0), None);
        show("", "10 s", &fixed(&takes, 10.0), None);
    }
    print("\nLimits, for uniform times as documented: 5 polls, a delay of 1.5 s on average, 1.02 of ideal.");
}

fn show(what: &str, how: &str, figures: &Figures, against: Option<&Figures>) {
    let ratio =
        against.map_or_else(String::new, |other| format!("   {:.2} of the polls of 8 s", figures.polls / other.polls));
    let Figures { polls, lag_s, lag_95_s, over_ideal } = figures;
    print(&format!("{what:<32} {how:>8} {polls:>7.1} {lag_s:>8.2} {lag_95_s:>8.2} {over_ideal:>9.3}{ratio}"));
}

/// The engine itself, on Tokio's paused clock.
fn measure(case: &Case, takes: &[f64], random: &[(f64, f64)]) -> Figures {
    let (durations, progress, own) = (takes.to_vec(), case.progress, random.to_vec());
    let mut service = FakeService::taking(move |number| Duration::from_secs_f64(durations[number]));
    service.progress = Box::new(move |number, share| Some(progress(share, own[number].1)));
    service.submit_latency = Duration::from_millis(20);
    service.poll_latency = Box::new(|_| Duration::from_millis(20));
    let jobs = jobs_of(takes.len(), case.typical_s);
    // The directory of the ledger takes random numbers, too.
    let (plan, ledger) = (plan_of(&jobs, &History::default()), OwnBatch::default());
    fastrand::seed(7);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let wall = runtime.block_on(async {
        let (start, settings) = (tokio::time::Instant::now(), Settings { concurrency: SLOTS, ..Settings::default() });
        run(&service, &ledger, &settings, &Stop::default(), &plan).await;
        start.elapsed().as_secs_f64()
    });
    let lags = service.lags.lock().expect("no panic").values().map(Duration::as_secs_f64).collect();
    figures(service.polls().len(), lags, wall, takes)
}

/// Polls each task at a fixed interval from its submission, without latency.
fn fixed(takes: &[f64], every: f64) -> Figures {
    let polls = |takes: &f64| (takes / every).ceil();
    let seen: Vec<f64> = takes.iter().map(|takes| polls(takes) * every).collect();
    let lags = seen.iter().zip(takes).map(|(seen, takes)| seen - takes).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousands")]
    let polls = takes.iter().map(polls).sum::<f64>() as usize;
    figures(polls, lags, scheduled(&seen, SLOTS), takes)
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn figures(polls: usize, mut lags: Vec<f64>, wall: f64, takes: &[f64]) -> Figures {
    lags.sort_by(f64::total_cmp);
    let jobs = takes.len() as f64;
    Figures {
        polls: polls as f64 / jobs,
        lag_s: lags.iter().sum::<f64>() / jobs,
        lag_95_s: lags[lags.len() * 95 / 100],
        over_ideal: wall / scheduled(takes, SLOTS),
    }
}

fn print(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout");
}
