//! All features together: a client that is killed repeatedly while jobs get new IDs, batches follow each other, half of the runs are approved
//! plans, and every purchase has a label; with a service that loses responses, resets connections, and fails.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::kills::faulty;
use crate::support::{Ended, Service, Workspace, kill};

/// How many batches follow each other, and how often the jobs of each get new ids.
const BATCHES: usize = 6;
const GENERATIONS: usize = 3;

/// The manifest of a round: each job under its newest id, and the way there from all older ones.
fn manifest(batch: usize, generation: usize, jobs: usize) -> String {
    let id = |generation: usize, job: usize| format!("g{generation}-j{job}");
    let mut text = format!(
        "version: 1\nname: chaos\nbatch: day-{batch}\nbudget: {{ labels: {{ client: {{ acme: {{ month: 100000 }} }} }} }}\njobs:\n"
    );
    for job in 0..jobs {
        let client = if job % 2 == 0 { "acme" } else { "other" };
        let (id, labels) = (id(generation, job), format!("{{ client: {client} }}"));
        text.push_str(&format!(
            "  - {{ id: {id}, model: alpha-2, prompt: day {batch} job {job}, labels: {labels} }}\n"
        ));
    }
    if generation > 0 {
        text.push_str("moved:\n");
    }
    for (before, job) in (0..generation).flat_map(|before| (0..jobs).map(move |job| (before, job))) {
        text.push_str(&format!("  - {{ from: {}, to: {} }}\n", id(before, job), id(before + 1, job)));
    }
    text
}

#[test]
#[expect(clippy::print_stdout, reason = "whoever runs it long wants its figures")]
fn random_kills_during_moves_and_approvals_buy_nothing_twice() {
    // A whole thousand takes minutes: `SHOTLIST_TEST_KILLS=1000`.
    let kills = std::env::var("SHOTLIST_TEST_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(60);
    // More jobs than fit between the kills.
    let jobs = 25.max(kills / 2);
    let made: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let (book, next) = (Arc::clone(&made), AtomicUsize::new(0));
    let service = Service::scripted(move |asked| faulty(asked, &book, &next));
    let here = Workspace::new();
    let (mut killed, mut random, mut batch) = (0, 0x9e37_79b9_u64, 0);
    for round in 0..kills {
        batch = round * BATCHES / kills;
        let generation = round * BATCHES * GENERATIONS / kills % GENERATIONS;
        here.write("m.yaml", manifest(batch, generation, jobs));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = start(&here, &service, round % 2 == 0);
        std::thread::sleep(Duration::from_millis(20 + (random >> 33) % 200));
        if child.try_wait().expect("a status").is_none() {
            kill(&child, "-KILL");
        }
        let ended = Ended::wait_for(child);
        killed += usize::from(ended.code.is_none());
        assert!(!matches!(ended.code, Some(2 | 3 | 74 | 101)), "{:?}: {}", ended.code, ended.stderr);
    }
    assert!(killed >= kills / 2, "only {killed} of {kills} kills happened");
    // In peace, until a run finds nothing to do any more: the first batch, too, because a slow machine has bought little until each kill.
    // A page as the first response ends a run with 6.
    for batch in [0, 0, batch, batch] {
        here.write("m.yaml", manifest(batch, GENERATIONS - 1, jobs));
        let ended = here.run(&service, &["-q", "--max-doubts", "1000"]).ends();
        assert!(matches!(ended.code, Some(0 | 1 | 6 | 7)), "{:?}: {}", ended.code, ended.stderr);
    }
    check(&here, &made.lock().expect("no panic"), batch);
    println!("{killed} kills over {} batches, {} tasks made", BATCHES, made.lock().expect("no panic").len());
}

/// A run with a confirmation by a high limit, or by a saved plan.
fn start(here: &Workspace, service: &Service, is_approved: bool) -> std::process::Child {
    let pace = ["-q", "--concurrency", "4", "--max-doubts", "1000"];
    if !is_approved {
        return here.run(service, &pace).starts();
    }
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    here.write("plan.json", plan);
    let quick = [
        "run",
        "m.yaml",
        "--approved",
        "plan.json",
        "--first-poll",
        "0s",
        "--poll-interval",
        "50ms",
        "--poll-floor",
        "5ms",
    ];
    let run = here.shotlist(&[&quick[..], &pace].concat());
    run.with_service(&service.url()).starts()
}

/// The invariants at the end. `made` has the tasks of the service, with their prompts.
fn check(here: &Workspace, made: &[(String, String)], batch: usize) {
    let prompts: HashSet<&String> = made.iter().map(|(prompt, _)| prompt).collect();
    assert_eq!(prompts.len(), made.len(), "the service made two tasks for one job");
    let attempts = here.ledger("SELECT request, state, coalesce(task, ''), labels FROM attempt");
    let mut known: HashMap<String, Vec<(String, String)>> = HashMap::new();
    for attempt in &attempts {
        let request: Value = serde_json::from_str(&attempt[0]).expect("JSON");
        let prompt = request["prompt"].as_str().expect("a prompt").to_owned();
        known.entry(prompt).or_default().push((attempt[1].clone(), attempt[2].clone()));
        assert!(attempt[3].contains("client"), "{attempt:?}");
    }
    for (prompt, task) in made {
        let is_kept = |(state, known): &(String, String)| known == task || state == "in_doubt";
        assert!(known[prompt].iter().any(is_kept), "the task {task} of {prompt} is lost: {:?}", known[prompt]);
    }
    let left = attempts.iter().filter(|attempt| ["intended", "queued", "in_progress"].contains(&attempt[1].as_str()));
    assert_eq!(left.count(), 0, "something was left behind at the service");
    let unfetched = here.ledger("SELECT count(*) FROM attempt WHERE state = 'completed' AND file IS NULL");
    assert_eq!(unfetched, [["0"]]);
    assert!(attempts.iter().filter(|attempt| attempt[1] == "completed").count() > 25, "hardly anything was bought");
    // The sums match the attempts, also by label, and the reports match the ledger.
    here.shotlist(&["ledger", "check"]).ends_with(0);
    let totals = |by: &[&str]| {
        let books = here.shotlist(&[&["spend", "--format", "json"], by].concat()).ends_with(0).stdout;
        serde_json::from_str::<Value>(&books).expect("JSON")["totals"].clone()
    };
    assert_eq!(totals(&[]), totals(&["--by", "client"]));
    let report = here.json(&format!("shotlist-out/chaos/day-{batch}/report.json"));
    assert_eq!(report["totals"]["states"]["queued"], 0);
}
