//! The performance targets in one table, each with its bar and the figure of a peer (`benches/peers`). Whole processes in turn with the peers, medians of
//! five: ratios within one run, so that the machine matters little.
//!
//! A makespan is one run on the real clock, without downloads: nine minutes, almost idle, in parallel with the other measurements. The makespan for polls
//! every 8 s is computed from the same tasks.
//!
//! `cargo bench --bench numbers`; needs Python, Node.js and their registries, and Debian's `nginx-light` and `openssl`.
#![expect(clippy::cast_precision_loss, reason = "figures for people")]
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[path = "support/books.rs"]
mod books;
#[path = "support/few_open.rs"]
mod few_open;
#[path = "support/late.rs"]
mod late;
#[path = "support/peers.rs"]
mod peers;
#[path = "support/process.rs"]
mod process;
#[path = "../tests/integration/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;
#[path = "support/tls.rs"]
mod tls;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use books::with_books;
use few_open::scheduled_with_few_open;
use late::late;
use peers::Peers;
use process::{Cost, cost_of};
use support::schedule::scheduled;
use support::{Simulator, Workspace, numbered_jobs};
use tls::Tls;

/// Counted runs of each.
const RUNS: usize = 5;
const ALL_MODELS: &str = "alpha-2,beta-2.0-lite,beta-2.0-lite-fast";
/// Active tasks for the processor time of a client: the best number for the peer, and five times as many.
const OUTSTANDING: [usize; 2] = [200, 1000];
/// The bars for these numbers.
const BARS: [&str; 2] = ["0.8", "0.7"];
/// The tasks and slots of a makespan, and the response time of a slow service.
const TASKS: usize = 200;
const SLOTS: usize = 50;
const SLOW: Duration = Duration::from_secs(1);
/// The maximum number of open submissions with [`SLOTS`] (`shotlist help money`).
const OPEN: usize = 4;

fn main() {
    row("", "shotlist", "peer", "ratio", "bar");
    let (near, far) = (Makespan::start(Duration::ZERO), Makespan::start(SLOW));
    let peers = Peers::ready();
    plans(&peers);
    for (active, bar) in OUTSTANDING.into_iter().zip(BARS) {
        let what = format!("CPU ms a job, 10,000 jobs, {active} at once");
        client(&what, 10_000, active, &peers, false, bar);
    }
    client("the same over TLS (HTTP/2), 3,000 jobs, 200 at once", 3_000, OUTSTANDING[0], &peers, true, "0.4");
    active(false);
    active(true);
    start_up();
    questions();
    near.end("wall over ideal, 200 tasks, 50 slots (every 8 s)");
    far.end("the same over TLS, answers take 1 s");
}

/// `--plan` of 100,000 jobs, as YAML and as rows, compared with Node.js and the YAML.
fn plans(peers: &Peers) {
    let here = Workspace::new();
    let yaml = here.path("m.yaml");
    peers.write_jobs(100_000, "yaml", ALL_MODELS, &yaml);
    rows(&yaml, &here);
    let plan = |manifest: &str| {
        let mut command = shotlist(&here);
        command.args(["run", manifest, "--plan"]);
        command
    };
    let mut costs = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..=RUNS {
        costs[0].push(cost(plan("m.yaml")));
        costs[1].push(cost(plan("rows.yaml")));
        costs[2].push(cost(peers.node(&yaml)));
    }
    let [yaml, csv, node] = costs.each_ref().map(|costs| median(costs, |cost| cost.cpu_ticks as f64 * 10.0));
    compared("plan of 100,000 jobs, YAML: CPU ms (Node.js)", &yaml, &node, "0.9");
    compared("the same jobs as CSV: CPU ms (Node.js, YAML)", &csv, &node, "0.5");
    let (ours, theirs) = (yaml.peak_kib / 1024, node.peak_kib / 1024);
    row("    YAML: peak MB", &ours.to_string(), &theirs.to_string(), "-", "240 MB");
    // Node.js collects its garbage on other cores.
    let [yaml, csv, node] = costs.map(|costs| median(&costs, |cost| cost.wall.as_secs_f64() * 1000.0));
    compared("    YAML: ms", &yaml, &node, "-");
    compared("    CSV: ms", &csv, &node, "-");
}

/// The jobs of a manifest as the rows of a table, and a manifest of it.
fn rows(yaml: &Path, here: &Workspace) {
    let text = fs::read_to_string(yaml).expect("a manifest");
    let fields = ["id", "model", "prompt", "aspect_ratio", "size", "duration"];
    let mut csv = fields.join(",");
    for job in text.split("\n  - ").skip(1) {
        let cells = fields.map(|field| {
            let said = job.lines().find_map(|line| line.trim_start().strip_prefix(field)?.strip_prefix(": "));
            format!("\"{}\"", said.unwrap_or_default().trim_matches('"'))
        });
        csv.push_str(&format!("\n{}", cells.join(",")));
    }
    here.write("rows.csv", csv);
    let filled: String = fields.map(|field| format!("    {field}: \"{{{{ row.{field} }}}}\"\n")).concat();
    here.write("rows.yaml", format!("version: 1\njobs:\n  - for_each: rows.csv\n{filled}"));
}

/// The processor time of a client for one instantly completed job, compared with aiohttp and uvloop without a ledger.
fn client(what: &str, jobs: usize, active: usize, peers: &Peers, with_tls: bool, bar: &str) {
    let here = Workspace::new();
    let (yaml, lines) = (here.path("m.yaml"), here.path("jobs.jsonl"));
    peers.write_jobs(jobs, "yaml", "alpha-2", &yaml);
    peers.write_jobs(jobs, "jsonl", "alpha-2", &lines);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..=RUNS {
        // One for each: the simulator remembers every task.
        let simulators = [(); 2].map(|()| Simulator::start(&here, &["--speed", "1000000", "-q"]));
        let tls = simulators.each_ref().map(|simulator| with_tls.then(|| Tls::before(simulator.url())));
        let url = |which: usize| tls[which].as_ref().map_or_else(|| simulators[which].url().to_owned(), Tls::url);
        let trusting = |mut command: Command, which: usize| {
            if let Some(tls) = &tls[which] {
                command.env("SSL_CERT_FILE", tls.authority());
            }
            command
        };
        let mut run = shotlist(&here);
        // A new ledger: in another one, each job would be compared with the same job of the turns before.
        run.args(["run", "m.yaml", "--yes", "-q", "--no-download", "--batch", &turn.to_string()]);
        run.args(["--ledger", &format!("{turn}.db")]);
        run.args(["--first-poll", "0s", "--poll-interval", "20ms", "--poll-floor", "1ms"]);
        run.args(["--concurrency", &active.to_string()]);
        run.env("SHOTLIST_BASE_URL", url(0)).env("SHOTLIST_API_KEY", "k");
        ours.push(cost(trusting(run, 0)));
        theirs.push(cost(trusting(peers.aiohttp(&url(1), &lines, active), 1)));
    }
    let a_job = |cost: &Cost| cost.cpu_ticks as f64 * 10.0 / jobs as f64;
    compared(what, &median(&ours, a_job), &median(&theirs, a_job), bar);
}

/// The most memory of a run while 10,000 tasks are at the service, which takes 4 to 12 seconds for each: all are there before one ends.
fn active(with_tls: bool) {
    let here = Workspace::with_manifest(&numbered_jobs(10_000));
    let simulator = Simulator::start(&here, &["--speed", "15", "-q"]);
    let mut run = shotlist(&here);
    run.args(["run", "m.yaml", "--yes", "-q", "--no-download", "--concurrency", "10000"]);
    run.args(["--first-poll", "4s", "--poll-interval", "5s"]);
    let tls = with_tls.then(|| Tls::before(simulator.url()));
    if let Some(tls) = &tls {
        run.env("SSL_CERT_FILE", tls.authority());
    }
    run.env("SHOTLIST_BASE_URL", tls.as_ref().map_or_else(|| simulator.url().to_owned(), Tls::url));
    run.env("SHOTLIST_API_KEY", "k");
    let peak_mb = (cost(run).peak_kib / 1024).to_string();
    let were_all_there = here.ledger("SELECT max(answered_at) < min(ended_at) FROM attempt");
    assert_eq!(were_all_there, [["1"]], "a task had ended before the last one was submitted");
    let what = if with_tls { "the same over TLS (HTTP/2)" } else { "10,000 tasks active: peak MB" };
    row(what, &peak_mb, "-", "-", "60 MB");
}

/// A run on the real clock: its wall time over the optimum, compared with polls every 8 s.
struct Makespan {
    run: Child,
    start: Instant,
    here: Workspace,
    delay: Duration,
    _service: (Simulator, Option<Tls>),
}

impl Makespan {
    /// Starts a run. With a delay on each request, it uses TLS, too.
    fn start(delay: Duration) -> Self {
        let here = Workspace::with_manifest(&numbered_jobs(TASKS));
        let simulator = Simulator::start(&here, &["-q"]);
        let tls = (!delay.is_zero()).then(|| Tls::before(&late(simulator.url(), delay)));
        let mut run = shotlist(&here);
        run.args(["run", "m.yaml", "--yes", "-q", "--no-download", "--concurrency", &SLOTS.to_string()]);
        run.env("SHOTLIST_BASE_URL", tls.as_ref().map_or_else(|| simulator.url().to_owned(), Tls::url));
        run.env("SHOTLIST_API_KEY", "k");
        if let Some(tls) = &tls {
            run.env("SSL_CERT_FILE", tls.authority());
        }
        let start = Instant::now();
        Self { run: run.spawn().expect("the program starts"), start, here, delay, _service: (simulator, tls) }
    }

    /// Waits for its end, and shows its duration and number of polls. The optimum refills each slot the moment its task ends, with the delay of a
    /// submission.
    fn end(mut self, what: &str) {
        // Ended while the others were measured, it is found by its last report.
        let status = self.run.wait().expect("a status");
        assert!(status.success(), "the run ended with {status}");
        let report = self.here.json("shotlist-out/m/report.json");
        let written = report["written_at"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let since = jiff::Timestamp::now().duration_since(written.expect("a time"));
        let wall = self.start.elapsed().as_secs_f64() - since.as_secs_f64();
        let jobs = report["jobs"].as_array().expect("jobs");
        let life =
            |job: &serde_json::Value| life_s(job["task_id"].as_str().expect("a task")) + self.delay.as_secs_f64();
        let takes: Vec<f64> = jobs.iter().map(life).collect();
        let seen: Vec<f64> = takes.iter().map(|takes| (takes / 8.0).ceil() * 8.0).collect();
        let ideal = scheduled(&takes, SLOTS);
        let over = |wall: f64| format!("{:.4}", wall / ideal);
        row(what, &over(wall), &over(scheduled(&seen, SLOTS)), "-", "1.006");
        if !self.delay.is_zero() {
            let least = scheduled_with_few_open(&takes, SLOTS, OPEN, self.delay.as_secs_f64());
            row("    over the least with 4 submissions open", &format!("{:.4}", wall / least), "-", "-", "1.01");
        }
        let polls = jobs.iter().filter_map(|job| job["polls"].as_f64()).sum::<f64>() / takes.len() as f64;
        let theirs = takes.iter().map(|takes| (takes / 8.0).ceil()).sum::<f64>() / takes.len() as f64;
        row("    polls a task", &format!("{polls:.1}"), &format!("{theirs:.1}"), "-", "5");
    }
}

impl Drop for Makespan {
    fn drop(&mut self) {
        let _already_gone = self.run.kill();
        let _reaped = self.run.wait();
    }
}

/// The duration of a simulator task, in seconds, from its ID.
fn life_s(task: &str) -> f64 {
    let millis = u32::from_str_radix(&task["task_".len() + 16..][..8], 16).expect("a task of the simulator");
    f64::from(millis) / 1000.0
}

/// The duration of an empty command, compared with an empty Node.js script.
fn start_up() {
    let here = Workspace::new();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..=4 * RUNS {
        let mut help = shotlist(&here);
        help.arg("--help");
        ours.push(cost(help));
        let mut node = Command::new("node");
        node.args(["--eval", "0"]).stdout(Stdio::null());
        theirs.push(cost(node));
    }
    let ms = |cost: &Cost| cost.wall.as_secs_f64() * 1000.0;
    let (ours, theirs) = (median(&ours, ms), median(&theirs, ms));
    row("start-up: ms (Node.js)", &format!("{:.1}", ours.value), &format!("{:.1}", theirs.value), "-", "5 ms");
}

/// Questions about a ledger of a year: a thousand batches of a thousand jobs.
fn questions() {
    let here = with_books(&numbered_jobs(1000), 1_000_000, 1000);
    let since = (jiff::Zoned::now().date() - jiff::Span::new().days(30)).to_string();
    for (what, args) in [
        ("status of a batch, 1,000,000 attempts: ms", ["status", "m.yaml", "--batch", "b7"]),
        ("spend of a month, 1,000,000 attempts: ms", ["spend", "--since", &since, "--format=json"]),
    ] {
        let asked: Vec<Cost> = (0..=RUNS)
            .map(|_| {
                let mut command = shotlist(&here);
                command.args(args);
                cost(command)
            })
            .collect();
        let asked = median(&asked, |cost| cost.wall.as_secs_f64() * 1000.0);
        row(what, &format!("{:.0}", asked.value), "-", "-", "100 ms");
    }
}

fn shotlist(here: &Workspace) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shotlist"));
    command.current_dir(here.root()).stdout(Stdio::null());
    command
}

fn cost(mut command: Command) -> Cost {
    let (status, cost) = cost_of(command.spawn().expect("the program starts"));
    assert!(status.success(), "{command:?} ended with {status}");
    cost
}

/// The middle one of several figures.
struct Median {
    value: f64,
    /// The most memory that any run took.
    peak_kib: u64,
}

/// The median of a figure, without the first run.
fn median(costs: &[Cost], figure: impl Fn(&Cost) -> f64) -> Median {
    let mut values: Vec<f64> = costs.iter().skip(1).map(figure).collect();
    values.sort_by(f64::total_cmp);
    Median { value: values[values.len() / 2], peak_kib: costs.iter().map(|cost| cost.peak_kib).max().unwrap_or(0) }
}

fn compared(what: &str, ours: &Median, theirs: &Median, bar: &str) {
    let digits = if ours.value < 10.0 { 3 } else { 0 };
    let ratio = format!("{:.2}", ours.value / theirs.value);
    row(what, &format!("{:.digits$}", ours.value), &format!("{:.digits$}", theirs.value), &ratio, bar);
}

fn row(what: &str, ours: &str, theirs: &str, ratio: &str, bar: &str) {
    writeln!(std::io::stdout(), "{what:<50} {ours:>9} {theirs:>9} {ratio:>7} {bar:>8}").expect("stdout");
}
