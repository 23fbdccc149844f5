//! The cost of slow start with a healthy service: the engine on a simulated clock, with a latency of one second for each submission and tasks of the
//! documented duration. Slow start limits open submissions to one before the first acceptance, and then to a sixteenth of the slots, at least four. The
//! wall time is compared with slots that are refilled the moment a task ends, and with the optimum for so few open submissions.
//!
//! `cargo bench --bench slow_start`
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/integration/support/fake.rs"]
mod fake;
#[path = "support/few_open.rs"]
mod few_open;
#[path = "../tests/integration/support/schedule.rs"]
mod schedule;

use std::io::Write as _;
use std::time::Duration;

use fake::{FakeService, OwnBatch, jobs_of, plan_of, run};
use few_open::scheduled_with_few_open;
use schedule::scheduled;
use shotlist::domain::History;
use shotlist::engine::{Settings, Stop};

/// The response time of a submission.
const LATENCY: Duration = Duration::from_secs(1);
/// Jobs for each slot.
const WAVES: usize = 10;
/// The documented typical times of both families, in seconds (interface §4).
const TYPICAL_S: [(u32, u32); 2] = [(60, 180), (30, 120)];

fn main() {
    print(&format!("{:<24} {:>8} {:>12} {:>12} {:>9} {:>9}", "", "jobs", "wall s", "ideal s", "of ideal", "of least"));
    for slots in [8, 50, 1000] {
        for typical_s in TYPICAL_S {
            let Measured { wall, ideal, least, jobs } = measured(slots, typical_s);
            let what = format!("{slots} slots, {} to {} s", typical_s.0, typical_s.1);
            let (of_ideal, of_least) = (wall / ideal, wall / least);
            print(&format!("{what:<24} {jobs:>8} {wall:>12.0} {ideal:>12.0} {of_ideal:>9.3} {of_least:>9.3}"));
        }
    }
    print("\nLimit: 1.02 of ideal.");
}

/// A run's wall time and its optimum, in seconds.
struct Measured {
    wall: f64,
    ideal: f64,
    least: f64,
    jobs: usize,
}

fn measured(slots: usize, typical_s: (u32, u32)) -> Measured {
    let count = (slots * WAVES).max(400);
    let mut random = fastrand::Rng::with_seed(7);
    let (min, max) = (f64::from(typical_s.0), f64::from(typical_s.1));
    let takes: Vec<f64> = (0..count).map(|_| min + (max - min) * random.f64()).collect();
    let durations = takes.clone();
    let mut service = FakeService::taking(move |number| Duration::from_secs_f64(durations[number]));
    let shares: Vec<f64> = takes.clone();
    service.progress = Box::new(move |number, share| {
        // It counts evenly, as a service may that knows how long a task takes.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a hundred")]
        let percent = (share * 100.0).clamp(0.0, 99.0) as u8;
        shares.get(number).map(|_| percent)
    });
    service.submit_latency = LATENCY;
    service.poll_latency = Box::new(|_| Duration::from_millis(20));
    let jobs = jobs_of(count, typical_s);
    // The directory of the ledger takes random numbers, too.
    let (plan, ledger) = (plan_of(&jobs, &History::default()), OwnBatch::default());
    fastrand::seed(7);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let wall = runtime.block_on(async {
        let (start, settings) = (tokio::time::Instant::now(), Settings { concurrency: slots, ..Settings::default() });
        run(&service, &ledger, &settings, &Stop::default(), &plan).await;
        start.elapsed().as_secs_f64()
    });
    let whole: Vec<f64> = takes.iter().map(|takes| takes + LATENCY.as_secs_f64()).collect();
    let least = scheduled_with_few_open(&whole, slots, (slots / 16).max(4), LATENCY.as_secs_f64());
    Measured { wall, ideal: scheduled(&whole, slots), least, jobs: count }
}

fn print(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout");
}
