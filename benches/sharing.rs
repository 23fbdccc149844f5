//! Several runners with a batch each and one ledger on PostgreSQL: their rate together, the cost of a job for the client and the database, and the
//! growth of the tables. A cluster on loopback, and the simulator without waiting times. Processor times need Linux.
//!
//! `cargo bench --bench sharing`
#![expect(clippy::cast_precision_loss, clippy::float_cmp, reason = "figures for people, and counts of jobs")]
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[path = "../tests/postgres/cluster.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod cluster;
#[path = "support/process.rs"]
mod process;
#[path = "../tests/postgres/proxy.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod proxy;
#[path = "../tests/integration/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cluster::{Cluster, Database};
use process::cost_of;
use proxy::Proxy;
use shotlist::catalog::Catalog;
use shotlist::domain::{Account, AttemptId, BatchKey, Fingerprint, JobId, Request, TaskId};
use shotlist::ledger::{Event, Intent, LedgerAddress};
use shotlist::manifest::{Options, load};
use support::{Simulator, Workspace, numbered_jobs};

/// Jobs of a run, and attempts of the tables that grow.
const JOBS: usize = 1000;
const ATTEMPTS: usize = 100_000;
/// Concurrent callers while tables grow.
const AT_ONCE: usize = 1000;

fn main() {
    let cluster = Cluster::start(&["shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=top"]);
    report("runners   jobs/s   of one   client CPU ms a job   statements a job   commits a job   intents refused");
    let mut one = None;
    for runners in [1, 2, 4, 8] {
        share(&cluster, runners, &mut one);
    }
    grow(&cluster);
    be_far(&cluster);
    fill(&cluster);
}

/// Attempts of 1,000 earlier batches of other manifests.
const OLD: &str = "SET search_path TO shotlist;
    INSERT INTO batch (id, name, batch) SELECT 1000 + n, 'old', 'b' || n FROM generate_series(1, 1000) AS n;
    INSERT INTO attempt (id, batch, job, fingerprint, normalized, model, service, key, state, charge, is_declared, is_unfinished, needs_download, is_reviewed,
        price_micros, task, intended_us, record, version, was_forgotten)
    SELECT n, 1001 + n / 1000, 'j' || n % 1000, md5('f' || n), md5('r' || n), 'alpha-2', 's', 'k', 'completed', 'charged', false, false, false, false,
        900000, 'old' || n, 1577836800000000 + n * 1000000, repeat('x', 1500), 1, false FROM generate_series(1::bigint, 999999) AS n;
    ANALYZE";

/// The seconds of a number of runners for a number of jobs, with 40 slots and a round-trip time.
fn seconds_of(
    database: &Database,
    cluster: &Cluster,
    runners: usize,
    jobs: usize,
    speed: &str,
    round_trip: Duration,
) -> f64 {
    let here = Workspace::new();
    let simulator = Simulator::start(&here, &["--speed", speed]);
    let proxy = Proxy::to(cluster.port);
    proxy.delay(round_trip);
    let ledger = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), database.name);
    let desks = desks(runners, jobs);
    let start = Instant::now();
    let started: Vec<_> = desks
        .iter()
        .map(|desk| {
            Command::new(env!("CARGO_BIN_EXE_shotlist"))
                .args([
                    "run",
                    "m.yaml",
                    "--yes",
                    "-q",
                    "--no-download",
                    "--first-poll",
                    "0s",
                    "--poll-interval",
                    "200ms",
                ])
                .args(["--poll-floor", "100ms", "--concurrency", "40"])
                .current_dir(desk.root())
                .env("SHOTLIST_BASE_URL", simulator.url())
                .env("SHOTLIST_API_KEY", "k")
                .env("SHOTLIST_LEDGER", &ledger)
                .stdout(Stdio::null())
                .spawn()
                .expect("the program starts")
        })
        .collect();
    assert!(started.into_iter().map(cost_of).all(|(status, _)| status.success()));
    start.elapsed().as_secs_f64()
}

/// A directory for each runner, each with its own batch.
fn desks(runners: usize, jobs: usize) -> Vec<Workspace> {
    let manifest = |desk: usize| {
        let jobs = numbered_jobs(jobs / runners).replace("prompt: ", &format!("prompt: at desk {desk} the "));
        Workspace::with_manifest(&format!("batch: desk-{desk}\n{jobs}"))
    };
    (0..runners).map(manifest).collect()
}

/// Four runners far from the database: 200 jobs of 2 s.
fn be_far(cluster: &Cluster) {
    report("\nround trip   seconds   of local   limit   void intents");
    let mut local = None;
    for (millis, limit) in [(0, 1.0), (100, 1.5), (300, 3.0)] {
        let database = cluster.database();
        let seconds = seconds_of(&database, cluster, 4, 200, "60", Duration::from_millis(millis));
        let ratio = seconds / *local.get_or_insert(seconds);
        let void = number(&database, "SELECT count(*) FROM shotlist.attempt WHERE state = 'void'");
        report(&format!("{millis:>7} ms {seconds:>9.1} {ratio:>10.2} {limit:>7.1} {void:>14.0}"));
    }
}

/// One runner in a ledger of 1,000,000 attempts: 300 jobs of 0.2 s.
fn fill(cluster: &Cluster) {
    let seconds = |is_filled: bool| {
        let database = cluster.database();
        if is_filled {
            seconds_of(&database, cluster, 1, 1, "600", Duration::ZERO);
            database.sql(OLD);
        }
        seconds_of(&database, cluster, 1, 300, "600", Duration::ZERO)
    };
    let (empty, filled) = (seconds(false), seconds(true));
    report(&format!(
        "\n300 jobs: {empty:.1} s in an empty ledger, {filled:.1} s among 1,000,000 attempts: {:.2} (limit 1.3)",
        filled / empty
    ));
}

/// A number of runners with an equal part of the jobs each.
fn share(cluster: &Cluster, runners: usize, one: &mut Option<f64>) {
    let database = cluster.database();
    database.sql("CREATE EXTENSION pg_stat_statements");
    let here = Workspace::new();
    let simulator = Simulator::start(&here, &["--speed", "1000000"]);
    let desks = desks(runners, JOBS);
    database.sql("SELECT pg_stat_statements_reset()");
    let before = commits(&database);
    let start = Instant::now();
    let started: Vec<_> = desks
        .iter()
        .map(|desk| {
            Command::new(env!("CARGO_BIN_EXE_shotlist"))
                .args(["run", "m.yaml", "--yes", "-q", "--no-download", "--first-poll", "0s", "--concurrency", "200"])
                .current_dir(desk.root())
                .env("SHOTLIST_BASE_URL", simulator.url())
                .env("SHOTLIST_API_KEY", "k")
                .env("SHOTLIST_LEDGER", database.url())
                .stdout(Stdio::null())
                .spawn()
                .expect("the program starts")
        })
        .collect();
    let costs: Vec<_> = started.into_iter().map(cost_of).collect();
    let seconds = start.elapsed().as_secs_f64();
    assert!(costs.iter().all(|(status, _)| status.success()));
    let jobs = JOBS as f64;
    let cpu_ms = costs.iter().map(|(_, cost)| cost.cpu_ticks).sum::<u64>() as f64 * 10.0 / jobs;
    let statements: f64 =
        number(&database, "SELECT sum(calls) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat%'");
    let attempts = number(&database, "SELECT count(*) FROM shotlist.attempt");
    assert!(
        attempts >= jobs
            && number(&database, "SELECT count(*) FROM shotlist.attempt WHERE state = 'completed'") == jobs
    );
    let rate = jobs / seconds;
    let of_one = rate / *one.get_or_insert(rate);
    report(&format!(
        "{runners:>7} {rate:>8.0} {of_one:>8.2} {cpu_ms:>21.2} {:>18.1} {:>15.2} {:>17.0}",
        statements / jobs,
        (commits(&database) - before) / jobs,
        attempts - jobs,
    ));
}

fn commits(database: &Database) -> f64 {
    number(database, "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
}

fn number(database: &Database, sql: &str) -> f64 {
    database.sql(sql).parse().expect("a number")
}

/// Complete attempts through the ledger's interface, and the resulting sizes of the tables.
fn grow(cluster: &Cluster) {
    let database = cluster.database();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let start = Instant::now();
    runtime.block_on(async {
        let ledger = LedgerAddress::Database(database.address()).ledger(false);
        let key = BatchKey { name: "n".into(), batch: String::new() };
        let held = ledger.lock(&key).await.expect("the batch");
        let template = template();
        for first in (0..ATTEMPTS).step_by(AT_ONCE) {
            let lives = (first..first + AT_ONCE).map(async |number| {
                let job = JobId::new(format!("j{number}")).expect("an id");
                let fingerprint = Fingerprint::stored(format!("{number:064x}"));
                let mut intent = template.clone();
                intent.purchase.job = job;
                intent.purchase.request = Request::stored(intent.purchase.request.body().to_owned(), fingerprint);
                let attempt: AttemptId = held.intend(intent).await.expect("an intent");
                let task = TaskId::new(format!("task_{number:032}")).expect("an id");
                held.accept(attempt, task.into()).await.expect("written");
                held.record(attempt, Event::Started).await.expect("recorded");
                let (video_url, ended_at) = (format!("https://v.example/{number}.mp4"), jiff::Timestamp::now());
                held.record(attempt, Event::Completed { video_url, ended_at, polls: 5 }).await.expect("recorded");
            });
            futures::future::join_all(lives).await;
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let writes = ATTEMPTS as f64 * 4.0;
    report(&format!("\n{ATTEMPTS} attempts, four writes each: {:.0} writes/s", writes / seconds));
    for vacuumed in [false, true] {
        if vacuumed {
            database.sql("VACUUM shotlist.attempt");
        }
        let sizes = database.sql(
            "SELECT pg_relation_size('shotlist.attempt'), pg_indexes_size('shotlist.attempt'), n_dead_tup, n_tup_upd, n_tup_hot_upd
             FROM pg_stat_user_tables WHERE schemaname = 'shotlist' AND relname = 'attempt'",
        );
        let sizes: Vec<f64> = sizes.split('|').map(|text| text.parse().expect("a number")).collect();
        report(&format!(
            "{}: table {:.0} bytes an attempt, indexes {:.0}; {:.2} dead rows for each; {:.0} % of the updates touched no index",
            if vacuumed { "after vacuum" } else { "as they were left" },
            sizes[0] / ATTEMPTS as f64,
            sizes[1] / ATTEMPTS as f64,
            sizes[2] / ATTEMPTS as f64,
            100.0 * sizes[4] / sizes[3],
        ));
    }
}

/// A job of a manifest, with a prompt of a usual length.
fn template() -> Intent {
    let here = Workspace::with_manifest(&format!(
        "version: 1\njobs:\n  - {{ id: a, model: alpha-2, prompt: \"{:0200}, in as many words as a prompt has\" }}\n",
        0
    ));
    let manifest = load(&Options::new(&here.root().join("m.yaml")), Catalog::embedded()).sound().expect("a manifest");
    Intent::new(&manifest.jobs[0], Account { service: "https://video.example.com".into(), key: "k".into() })
}

fn report(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout");
}
