//! The overhead of a run: processor time and memory per job with instant generation, memory with ten thousand active tasks, and the wall time over the
//! optimum. The simulator is a separate process on loopback, and the ledger is on. Each figure has its limit; Linux provides the figures.
//!
//! `cargo bench --bench run`
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[path = "support/process.rs"]
mod process;
#[path = "../tests/integration/support/schedule.rs"]
mod schedule;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use process::{Cost, cost_of};
use schedule::scheduled;
use serde_json::Value;

/// Counted runs of the overhead, for the median.
const RUNS: usize = 3;

/// The simulator, ended with this value.
struct Simulator {
    child: Child,
    url: String,
}

impl Simulator {
    fn start(speed: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_shotlist"))
            .args(["sandbox", "--port", "0", "--speed", speed, "-q"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the simulator starts");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut url).expect("a line");
        Self { child, url: url.trim().to_owned() }
    }

    /// One run of a number of jobs, in a separate directory.
    fn run(&self, jobs: usize, args: &[&str]) -> Cost {
        let directory = tempfile::tempdir().expect("a directory");
        manifest(directory.path(), jobs);
        let child = Command::new(env!("CARGO_BIN_EXE_shotlist"))
            .args(["run", "m.yaml", "--yes", "-q", "--no-download"])
            .args(args)
            .current_dir(directory.path())
            .env("SHOTLIST_BASE_URL", &self.url)
            .env("SHOTLIST_API_KEY", "k")
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        let (status, cost) = cost_of(child);
        assert!(status.success(), "the run ended with {status}");
        cost
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn main() {
    print(&format!("{:<44} {:>10} {:>8}", "", "measured", "limit"));
    for jobs in [1_000, 10_000] {
        overhead(jobs);
    }
    active(10_000);
    makespan(64, 8);
}

/// Processor time and memory for one instantly completed job.
fn overhead(jobs: usize) {
    let simulator = Simulator::start("1000000");
    let instantly = ["--first-poll", "0s", "--poll-interval", "20ms", "--poll-floor", "1ms", "--concurrency", "64"];
    let mut runs: Vec<Cost> = (0..RUNS).map(|_| simulator.run(jobs, &instantly)).collect();
    runs.sort_unstable_by_key(|cost| cost.cpu_ticks);
    let median = runs[RUNS / 2];
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let ms = median.cpu_ticks as f64 * 10.0 / jobs as f64;
    let limit = if jobs == 10_000 { "0.15" } else { "-" };
    figure(&format!("{jobs} jobs, ready at once: CPU ms for each"), &format!("{ms:.3}"), limit);
    figure("    peak MB", &(median.peak_kib / 1024).to_string(), "-");
    figure("    wall s", &format!("{:.1}", median.wall.as_secs_f64()), "-");
}

/// Memory with a number of active tasks.
fn active(jobs: usize) {
    // Tasks take 4 to 12 seconds, so that all of them are submitted before the first one ends.
    let simulator = Simulator::start("15");
    let concurrency = jobs.to_string();
    let cost = simulator.run(jobs, &["--first-poll", "4s", "--poll-interval", "5s", "--concurrency", &concurrency]);
    figure(&format!("{jobs} tasks active: peak MB"), &(cost.peak_kib / 1024).to_string(), "48");
}

/// The wall time of a run with `--sandbox` over that of a list schedule of the simulator's own times.
fn makespan(jobs: usize, slots: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    manifest(directory.path(), jobs);
    let child = Command::new(env!("CARGO_BIN_EXE_shotlist"))
        .args(["run", "m.yaml", "--sandbox", "-q", "--concurrency", &slots.to_string()])
        .current_dir(directory.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let (status, cost) = cost_of(child);
    assert!(status.success(), "the run ended with {status}");
    let report = std::fs::read(directory.path().join("shotlist-sandbox/m/report.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let rows = report["jobs"].as_array().expect("jobs");
    let takes: Vec<f64> = rows.iter().map(|row| life_s(row["task_id"].as_str().expect("a task"))).collect();
    let ideal = scheduled(&takes, slots);
    figure(
        &format!("{jobs} jobs, {slots} slots: wall over ideal"),
        &format!("{:.3}", cost.wall.as_secs_f64() / ideal),
        "1.02",
    );
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let jobs = jobs as f64;
    let polls: f64 = rows.iter().filter_map(|row| row["polls"].as_f64()).sum();
    figure("    polls of one task", &format!("{:.1}", polls / jobs), "-");
    let quarter = takes.iter().sum::<f64>() / jobs / 4.0;
    let seen: Vec<f64> = takes.iter().map(|takes| (takes / quarter).ceil() * quarter).collect();
    figure("    looking every quarter of the mean", &format!("{:.3}", scheduled(&seen, slots) / ideal), "-");
}

/// The duration of a simulator task, in seconds, from its ID.
fn life_s(task: &str) -> f64 {
    let millis = u32::from_str_radix(&task["task_".len() + 16..][..8], 16).expect("a task of the simulator");
    f64::from(millis) / 1000.0
}

fn manifest(directory: &Path, jobs: usize) {
    let mut text = String::from("version: 1\ndefaults: { model: alpha-2 }\njobs:\n");
    for number in 0..jobs {
        let _infallible = writeln!(text, "  - {{ id: j{number}, prompt: A paper crane number {number} unfolds }}");
    }
    std::fs::write(directory.join("m.yaml"), text).expect("a manifest");
}

fn figure(what: &str, measured: &str, limit: &str) {
    print(&format!("{what:<44} {measured:>10} {limit:>8}"));
}

fn print(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout");
}
