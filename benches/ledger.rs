//! The cost of old records for a run: daily and monthly limits with a ledger of 100,000 attempts. Whole processes, compared with the same commands
//! without the ledger.
//!
//! `cargo bench --bench ledger`
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[path = "support/books.rs"]
mod books;
#[path = "../tests/integration/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;

use std::time::Instant;

use books::with_books;
use support::{Service, Workspace, numbered_jobs};

/// Counted runs of each, taken in turn; the median is reported.
const RUNS: usize = 5;

fn main() {
    report(&format!("{:<58} {:>10} {:>10}", "", "median ms", "limit"));
    limits();
    verification();
}

/// A run of 1,000 jobs with both limits, in an old ledger and in a new one.
fn limits() {
    let manifest = format!("{}budget: {{ day: 1000000, month: 1000000 }}\n", numbered_jobs(1000));
    let run = |here: &Workspace| {
        let service = Service::well();
        let start = Instant::now();
        here.run(&service, &["-q", "--no-download", "--concurrency", "200"]).ends_with(0);
        start.elapsed().as_secs_f64() * 1000.0
    };
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let here = Workspace::with_manifest(&manifest);
        new.push(run(&here));
        let here = with_books(&manifest, 100_000, 1);
        old.push(run(&here));
    }
    let (old, new) = (median(&mut old), median(&mut new));
    report(&format!("{:<58} {new:>10.0} {:>10}", "1,000 jobs, limits of day and month, new ledger", "-"));
    report(&format!("{:<58} {old:>10.0} {:>10}", "the same, 100,000 attempts this month", "-"));
    report(&format!("{:<58} {:>10.2} {:>10}", "ratio", old / new, "1.2"));
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn report(line: &str) {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{line}").expect("stdout");
}

/// The cost of verifying a batch: a plan of 1,000 completed jobs with a ledger of 1,000,000 attempts in 1,000 batches, minus the same plan without a
/// ledger.
fn verification() {
    let manifest = numbered_jobs(1000);
    let here = with_books(&manifest, 1_000_000, 1000);
    let time = |ledger: &str, batch: &str| {
        let start = Instant::now();
        here.shotlist(&["run", "m.yaml", "--plan", "-q", "--batch", batch, "--ledger", ledger]).ends_with(0);
        start.elapsed().as_secs_f64() * 1000.0
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        without.push(time("none.db", "b7"));
        with.push(time(".shotlist/ledger.db", "b7"));
    }
    let cost = median(&mut with) - median(&mut without);
    report(&format!("{:<58} {cost:>10.1} {:>10}", "a batch of 1,000 among 1,000,000 attempts, read and verified", 20));
}
