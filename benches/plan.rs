//! Time and memory of commands without a service: start-up, a small plan, and `--plan` of 10,000 and 100,000 jobs as YAML entries and as CSV rows. Whole
//! processes; each figure with its limit.
//!
//! `cargo bench --bench plan`
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[path = "support/process.rs"]
mod process;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use process::{Cost, cost_of};

/// Counted runs of each command, after one that is not counted.
const RUNS: usize = 5;

/// One thing that is measured.
struct Case {
    what: &'static str,
    args: Vec<String>,
    /// The bar for the minimum in milliseconds, and for the peak in megabytes. That of a large plan is a ratio, in `numbers`.
    bar: (Option<u32>, Option<u32>),
}

fn main() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plan = |path: PathBuf| vec!["run".to_owned(), path.display().to_string(), "--plan".to_owned()];
    let cases = [
        Case { what: "--help", args: vec!["--help".to_owned()], bar: (Some(10), None) },
        Case { what: "plan of 10 jobs, YAML", args: plan(yaml(directory.path(), 10)), bar: (Some(10), None) },
        Case { what: "plan of 1,000 jobs, YAML", args: plan(yaml(directory.path(), 1000)), bar: (Some(20), None) },
        Case { what: "plan of 10,000 jobs, YAML", args: plan(yaml(directory.path(), 10_000)), bar: (None, None) },
        Case { what: "plan of 10,000 jobs, CSV", args: plan(csv(directory.path(), 10_000)), bar: (None, None) },
        Case {
            what: "plan of 100,000 jobs, YAML",
            args: plan(yaml(directory.path(), 100_000)),
            bar: (None, Some(240)),
        },
        Case { what: "plan of 100,000 jobs, CSV", args: plan(csv(directory.path(), 100_000)), bar: (None, Some(240)) },
    ];
    report(&format!(
        "{:<29} {:>9} {:>9} {:>9} {:>8} {:>9} {:>9} {:>8}",
        "", "min ms", "median", "max", "limit", "CPU ms", "peak MB", "limit"
    ));
    for case in &cases {
        measure(case);
    }
}

fn measure(case: &Case) {
    run(case);
    let mut runs: Vec<Cost> = (0..RUNS).map(|_| run(case)).collect();
    runs.sort_unstable();
    let millis = |index: usize| runs[index].wall.as_secs_f64() * 1000.0;
    let peak = runs.iter().map(|cost| cost.peak_kib).max().unwrap_or(0);
    let limit = |limit: Option<u32>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    let peak = if peak == 0 { "-".to_owned() } else { (peak / 1024).to_string() };
    report(&format!(
        "{:<29} {:>9.1} {:>9.1} {:>9.1} {:>8} {:>9} {peak:>9} {:>8}",
        case.what,
        millis(0),
        millis(RUNS / 2),
        millis(RUNS - 1),
        limit(case.bar.0),
        runs[RUNS / 2].cpu_ticks * 10,
        limit(case.bar.1),
    ));
}

fn run(case: &Case) -> Cost {
    let mut program = Command::new(env!("CARGO_BIN_EXE_shotlist"));
    let child = program.args(&case.args).stdout(Stdio::null()).spawn().expect("the program starts");
    let (status, cost) = cost_of(child);
    assert!(status.success(), "{:?} failed", case.args);
    cost
}

fn prompt(number: usize) -> String {
    format!(
        "A paper crane number {number} unfolds into a city at dawn while slow waves roll over black sand under a full moon and a lantern drifts by"
    )
}

fn yaml(directory: &Path, jobs: usize) -> PathBuf {
    let mut text = String::from("version: 1\njobs:\n");
    for number in 0..jobs {
        let _infallible = writeln!(
            text,
            "  - id: job-{number}\n    model: beta-2.0-lite\n    duration: {}\n    prompt: {}",
            5 + number % 6,
            prompt(number)
        );
    }
    write(directory.join(format!("{jobs}.yaml")), &text)
}

fn csv(directory: &Path, jobs: usize) -> PathBuf {
    let mut text = String::from("sku,seconds,prompt\n");
    for number in 0..jobs {
        let _infallible = writeln!(text, "{number},{},\"{}\"", 5 + number % 6, prompt(number));
    }
    let csv = write(directory.join(format!("{jobs}.csv")), &text);
    let manifest = format!(
        "version: 1\ndefaults: {{ model: beta-2.0-lite }}\njobs:\n  - id: \"job-{{{{ row.sku }}}}\"\n    for_each: {}\n    duration: \"{{{{ row.seconds }}}}\"\n    prompt: \"{{{{ row.prompt }}}}\"\n",
        csv.display()
    );
    write(directory.join(format!("{jobs}-csv.yaml")), &manifest)
}

fn write(path: PathBuf, text: &str) -> PathBuf {
    std::fs::write(&path, text).expect("a file");
    path
}

fn report(line: &str) {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{line}").expect("stdout");
}
