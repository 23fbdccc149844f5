//! The crash argument of the ledger, with a real process and a real SIGKILL.
//!
//! Each test kills the run at one place, repeats it until it succeeds, and compares the charges of the service with ledger and report: at most
//! one charge for each attempt, each acknowledged task ID, and every job in a state of the contract.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::support::{
    Answer, Asked, Ended, Service, Workspace, json as answer, kill, numbered_jobs, raw, video, wait_until,
};

const THREE_JOBS: &str = "
version: 1
defaults: { model: alpha-2 }
jobs: [{ id: a, prompt: a }, { id: b, prompt: b }, { id: c, prompt: c }]
";

/// Repeats the run until it ends without a kill. Returns its end.
fn run_to_the_end(here: &Workspace, service: &Service) -> Ended {
    for _ in 0..5 {
        let ended = here.run(service, &[]).ends();
        if ended.code.is_some() {
            return ended;
        }
    }
    panic!("the run never ended by itself");
}

/// The invariants after any crash. `charged` has the prompt of each charge.
fn check(here: &Workspace, service: &Service, what: &str) {
    let report = here.report();
    let states: Vec<&str> =
        report["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["state"].as_str()).collect();
    let posts = service.posts();
    let distinct: HashSet<&String> = posts.iter().collect();
    assert_eq!(posts.len(), distinct.len(), "{what}: a job was submitted twice");
    for (job, state) in report["jobs"].as_array().expect("jobs").iter().zip(&states) {
        assert!(["completed", "in_doubt"].contains(state), "{what}: {job}");
        // Completed: its task is one that the service gave out. In doubt: it may or may not have been taken.
        if *state == "completed" {
            let task = job["task_id"].as_str().expect("a task");
            assert!(task.starts_with('t'), "{what}: {job}");
            // Its video is here, is its own, and was kept once.
            let file = here.path("shotlist-out/m").join(job["file"].as_str().expect("a file"));
            assert_eq!(fs::read(&file).expect("the video"), video(&format!("/videos/{task}.mp4")), "{what}: {job}");
        }
    }
    let left: Vec<String> = here
        .files()
        .into_iter()
        .filter(|file| ["~", ".part", ".whole"].iter().any(|mark| file.contains(mark)))
        .collect();
    assert!(left.is_empty(), "{what}: {left:?}");
    let completed = states.iter().filter(|state| **state == "completed").count();
    let spent = format!("{:.2}", 0.90 * f64::from(u32::try_from(completed).expect("few")));
    assert_eq!(report["totals"]["spent_usd"], spent, "{what}");
    // The client had acknowledged each polled task, so the report has it.
    for task in acknowledged(service) {
        let kept = report["jobs"].as_array().expect("jobs").iter().any(|job| job["task_id"] == task);
        assert!(kept, "{what}: the task {task} is lost");
    }
    // Money that left is either spent or at risk: nothing that the service charged is missing.
    let at_risk = states.iter().filter(|state| **state == "in_doubt").count();
    assert!(posts.len() <= completed + at_risk, "{what}: {} charges, {states:?}", posts.len());
}

/// The polled tasks.
fn acknowledged(service: &Service) -> HashSet<String> {
    let polls = service.asked().into_iter().filter(|asked| asked.method == "GET");
    polls.filter_map(|asked| Some(asked.path.rsplit('/').next()?.to_owned())).collect()
}

/// A run that halts at places in its ledger's writer.
struct Halted {
    child: Child,
    file: PathBuf,
}

impl Halted {
    /// Starts a run, up to the first of its places; nothing if it ended before it came there.
    fn start(here: &Workspace, service: &Service, places: &str) -> Option<Self> {
        let file = here.path("halted");
        let program = here.run(service, &["--concurrency", "2"]).env("SHOTLIST_HALT_AT", places);
        let child = program.env("SHOTLIST_HALT_FILE", file.to_str().expect("UTF-8")).starts();
        let mut halted = Self { child, file };
        halted.stands_still().then_some(halted)
    }

    /// Continues to the next halt. Returns false if it ends first.
    fn goes_on(&mut self) -> bool {
        fs::remove_file(&self.file).expect("it stood still");
        self.stands_still()
    }

    fn stands_still(&mut self) -> bool {
        let mut ended = false;
        wait_until("it stands still or ends", || {
            ended = self.child.try_wait().expect("a status").is_some();
            ended || self.file.exists()
        });
        self.file.exists()
    }

    /// Kills it where it is.
    fn dies(self) {
        kill(&self.child, "-KILL");
        assert_eq!(Ended::wait_for(self.child).code, None, "it was not killed");
        fs::remove_file(self.file).expect("it stood still");
    }
}

#[test]
fn killed_at_every_single_write_of_the_ledger() {
    let mut kills = 0;
    for place in ["before-commit", "after-commit"] {
        for number in 1..200 {
            let (service, here) = (Service::well(), Workspace::with_manifest(THREE_JOBS));
            let what = format!("{place}:{number}");
            let Some(halted) = Halted::start(&here, &service, &what) else { break };
            halted.dies();
            kills += 1;
            // Exactly the intents without a response are in doubt afterwards, and every recorded task is kept.
            let open = here.ledger_if_any("SELECT job FROM attempt WHERE state = 'intended' ORDER BY job");
            let tasks = here.ledger_if_any("SELECT task FROM attempt WHERE task IS NOT NULL ORDER BY id");
            let ended = run_to_the_end(&here, &service);
            assert!([Some(0), Some(7)].contains(&ended.code), "{what}: {}", ended.stderr);
            check(&here, &service, &what);
            assert_eq!(
                here.ledger_if_any("SELECT job FROM attempt WHERE state = 'in_doubt' ORDER BY job"),
                open,
                "{what}"
            );
            let kept = here.ledger_if_any("SELECT task FROM attempt WHERE state = 'completed' ORDER BY id");
            assert!(tasks.iter().all(|task| kept.contains(task)), "{what}: {tasks:?} and then {kept:?}");
        }
    }
    // Intents, IDs and results share commits as they happen to come together: at least five, each before and after.
    assert!(kills >= 10, "only {kills} kills happened");
}

#[test]
fn killed_at_every_boundary_of_a_request() {
    // The service reads its nth request, and does not respond until the client is dead.
    for number in 0..8 {
        let (seen, release) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, go) = (Arc::clone(&seen), Arc::clone(&release));
        let service = Service::scripted(move |_| {
            if count.fetch_add(1, Ordering::SeqCst) == number {
                wait_until("the client is dead", || go.load(Ordering::SeqCst) == 1);
            }
            Answer::Well
        });
        let here = Workspace::with_manifest(THREE_JOBS);
        let child = here.run(&service, &["--concurrency", "1"]).starts();
        wait_until("the request is there", || seen.load(Ordering::SeqCst) > number || has_ended(&here));
        if seen.load(Ordering::SeqCst) <= number {
            assert!(number >= 6, "the run ended after {number} requests");
            drop(Ended::wait_for(child));
            break;
        }
        kill(&child, "-KILL");
        assert_eq!(Ended::wait_for(child).code, None, "it was not killed");
        release.store(1, Ordering::SeqCst);
        let ended = run_to_the_end(&here, &service);
        assert!([Some(0), Some(7)].contains(&ended.code), "request {number}: {}", ended.stderr);
        check(&here, &service, &format!("request {number}"));
    }
}

fn has_ended(here: &Workspace) -> bool {
    let path = here.path("shotlist-out/m/report.json");
    fs::read_to_string(path).is_ok_and(|report| report.matches("\"completed\"").count() > 3)
}

#[test]
fn power_lost_at_every_single_write_of_the_ledger() {
    // Uncommitted changes are gone. `synchronous=FULL` promises that a commit is synced; a test next to the schema checks that
    // setting.
    let mut losses = 0;
    for number in 2..200 {
        let Some((here, service)) = power_lost(number, 0) else { break };
        losses += 1;
        let ended = run_to_the_end(&here, &service);
        assert!([Some(0), Some(7)].contains(&ended.code), "{number}: {}", ended.stderr);
        check(&here, &service, &format!("power lost before commit {number}"));
    }
    assert!(losses >= 4, "only {losses} losses of power happened");
}

#[test]
fn ledger_without_its_last_commit_would_pay_twice() {
    // The control: with one commit less on the disk than was acknowledged, the promise must break somewhere. If it did
    // not, the test above could not fail.
    let mut broken = 0;
    for number in 3..200 {
        let Some((here, service)) = power_lost(number, 1) else { break };
        run_to_the_end(&here, &service);
        let posts = service.posts();
        let distinct: HashSet<&String> = posts.iter().collect();
        let report = here.report();
        let kept = |task: &String| report["jobs"].as_array().expect("jobs").iter().any(|job| job["task_id"] == **task);
        broken += usize::from(distinct.len() < posts.len() || !acknowledged(&service).iter().all(kept));
    }
    assert!(broken > 0, "losing an acknowledged commit went unnoticed");
}

/// A run that was cut off just before a commit, with a ledger that has lost that commit, and `more` before it. The
/// service remembers everything. Nothing if the run ended before it came there.
fn power_lost(number: usize, more: usize) -> Option<(Workspace, Service)> {
    let (service, here) = (Service::well(), Workspace::with_manifest(THREE_JOBS));
    let places = format!("after-commit:{},before-commit:{number}", number - 1 - more);
    let mut halted = Halted::start(&here, &service, &places)?;
    let synced: Vec<(&str, Vec<u8>)> =
        [LEDGER, LOG, WITNESS].into_iter().filter_map(|name| Some((name, fs::read(here.path(name)).ok()?))).collect();
    if !halted.goes_on() {
        return None;
    }
    halted.dies();
    for name in [LEDGER, LOG, INDEX, WITNESS] {
        let _was_not_there = fs::remove_file(here.path(name));
    }
    for (name, bytes) in synced {
        here.write(name, bytes);
    }
    Some((here, service))
}

const LEDGER: &str = ".shotlist/ledger.db";
const LOG: &str = ".shotlist/ledger.db-wal";
/// The commit counter is not synced, so a power loss takes its last entry, too.
const WITNESS: &str = ".shotlist/ledger.db.commits";
/// The index of the log lives in memory, and is gone with the power.
const INDEX: &str = ".shotlist/ledger.db-shm";

#[test]
fn three_hundred_kills_over_a_thousand_jobs_buy_nothing_twice() {
    random_kills(1000, 300);
}

/// A batch with a service that loses responses, resets connections, and fails, and a client that is killed repeatedly.
fn random_kills(jobs: usize, kills: usize) {
    let manifest = numbered_jobs(jobs);
    // Every task that was made, with its prompt.
    let made: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let (book, next) = (Arc::clone(&made), AtomicUsize::new(0));
    let service = Service::scripted(move |asked| faulty(asked, &book, &next));
    let here = Workspace::with_manifest(&manifest);
    let mut happened = 0;
    let mut random = 0x2545_f491_u64;
    for _ in 0..kills {
        let mut child = here.run(&service, &["-q", "--concurrency", "4", "--max-doubts", "1000"]).starts();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(std::time::Duration::from_millis(15 + (random >> 33) % 60));
        if child.try_wait().expect("a status").is_some() {
            break;
        }
        kill(&child, "-KILL");
        happened += usize::from(Ended::wait_for(child).code.is_none());
        let unanswered = here.ledger_if_any("SELECT job FROM attempt WHERE state = 'intended'");
        assert!(unanswered.len() <= 4, "one kill left {} doubts", unanswered.len());
    }
    assert!(happened >= kills / 2, "only {happened} of {kills} kills happened");
    // A page as the first response ends a run, because it may be of another server.
    for _ in 0..5 {
        let ended = here.run(&service, &["-q", "--concurrency", "16", "--max-doubts", "1000"]).ends();
        assert!([Some(0), Some(1), Some(6), Some(7)].contains(&ended.code), "{:?}\n{}", ended.code, ended.stderr);
        if !here.states().contains(&"pending".to_owned()) {
            break;
        }
    }

    let made = made.lock().expect("no panic").clone();
    let prompts: HashSet<&String> = made.iter().map(|(prompt, _)| prompt).collect();
    assert_eq!(prompts.len(), made.len(), "the service made two tasks for one job");
    let report = here.report();
    let rows = report["jobs"].as_array().expect("jobs");
    assert_eq!(rows.len(), jobs);
    let (mut completed, mut doubtful) = (0, 0);
    for row in rows {
        let prompt = row["prompt"].as_str().expect("a prompt").to_owned();
        let task = made.iter().find(|(other, _)| *other == prompt).map(|(_, task)| task.as_str());
        match row["state"].as_str().expect("a state") {
            "completed" => {
                completed += 1;
                assert_eq!(row["task_id"].as_str(), task, "{row}");
            }
            "in_doubt" => doubtful += 1,
            "rejected" => assert_eq!(task, None, "{row} was charged and called rejected"),
            other => panic!("{other}: {row}"),
        }
    }
    let known: HashSet<&str> = rows.iter().filter_map(|row| row["task_id"].as_str()).collect();
    for task in acknowledged(&service) {
        assert!(known.contains(task.as_str()), "the task {task} was acknowledged, and is lost");
    }
    assert!(made.len() <= completed + doubtful, "{} charged, {completed} completed, {doubtful} in doubt", made.len());
    assert!(completed > jobs / 3, "only {completed} of {jobs} completed, {doubtful} in doubt");
}

/// The faults of the service, by the number of the request.
pub(super) fn faulty(asked: &Asked, made: &Mutex<Vec<(String, String)>>, next: &AtomicUsize) -> Answer {
    let number = next.fetch_add(1, Ordering::SeqCst);
    if asked.method == "GET" {
        return match number % 11 {
            0 => Answer::Hangup,
            1 => raw(500, &[], ""),
            2 => raw(200, &[], "{\"status\": \"comp"),
            3 => answer(200, &json!({ "status": "in_progress", "progress": 50 })),
            _ => Answer::Well,
        };
    }
    let fault = number % 37;
    // Refused before anything was made.
    match fault {
        0 => return raw(429, &[("retry-after", "0")], ""),
        1 => return raw(503, &[("retry-after", "0")], ""),
        2 => return answer(422, &json!({ "error": { "message": "not today" } })),
        3 => return raw(500, &[], ""),
        _ => {}
    }
    let body: serde_json::Value = serde_json::from_str(&asked.body).expect("JSON");
    let (prompt, task) = (body["prompt"].as_str().expect("a prompt").to_owned(), format!("t{number}"));
    made.lock().expect("no panic").push((prompt, task.clone()));
    match fault {
        // Created and charged, but the response is lost.
        4 => Answer::Hangup,
        5 => raw(502, &[], ""),
        6 => Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"id\": \"".to_vec()),
        7 => raw(200, &[], "<html>"),
        _ => answer(200, &json!({ "id": task, "status": "queued" })),
    }
}

#[test]
fn frozen_run_continues_after_it_wakes_up() {
    // As a machine that slept for a moment: the service went on meanwhile.
    let ((service, done), here) = (Service::slow(), Workspace::with_manifest(THREE_JOBS));
    let child = here.run(&service, &[]).starts();
    here.waits_for_active_tasks(3);
    kill(&child, "-STOP");
    let polls = service.polls();
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert!(service.polls() <= polls + 3, "it was not frozen");
    done.store(true, Ordering::SeqCst);
    kill(&child, "-CONT");
    assert_eq!(Ended::wait_for(child).code, Some(0));
    assert_eq!(service.posts().len(), 3);
}
