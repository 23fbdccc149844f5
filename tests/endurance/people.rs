//! A random model of the people who edit a manifest: no request is paid for twice without a question that names its job.
//!
//! Each step is an edit and a run of the real program against a service with its own books. Rows are inserted, deleted, sorted, and edited, in
//! their words or only in their spelling; IDs are renamed, with `moved` and without; names, batches, and takes change; a run has all
//! jobs, a selection, a sample, or a retake, and some are killed. Funds run out during retakes, and the same command continues later. In some
//! lives, the ledger is lost, and restored from the report or not; in some, a job waits for the review of its face.
//! Videos are archived on another mount.
//! `PEOPLE_STEPS` sets a larger number of steps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::random::Rng;
use crate::support::{Answer, Ended, Service, Workspace, has_code, json as answer, kill, wait_until};

/// The steps of one life: a directory with its ledger.
const LIFE: usize = 25;
/// The steps in the suite.
const STEPS: usize = 100;

const WORDS: [&str; 6] =
    ["a red mug", "a blue mug", "a cat asleep", "It's \"dawn\" - over town...", "caf\u{e9}", "two dogs"];

/// One row: its ID, and its prompt as written.
#[derive(Clone, Debug)]
struct Row {
    id: String,
    word: usize,
    spelling: usize,
}

impl Row {
    fn prompt(&self) -> String {
        let word = WORDS[self.word];
        match self.spelling {
            0 => word.to_owned(),
            1 => format!(" {} ", word.replace(' ', "  ")),
            2 => word.to_uppercase(),
            3 => word.replace('\'', "\u{2019}").replace(" - ", " \u{2013} ").replace("...", "\u{2026}"),
            4 => word.replace('\u{e9}', "e\u{301}").replace(' ', "\u{200b} "),
            _ => word.replace(' ', "\u{a0}"),
        }
    }
}

/// The manifest as people edit it.
#[derive(Clone, Debug)]
struct Desk {
    name: String,
    batch: String,
    /// Whether IDs count rows.
    counts: bool,
    /// Whether its ledger is lost at times. A report knows nothing of other names and batches, so there are none.
    loses: bool,
    /// Whether a job waits for the review of its face.
    holds: bool,
    rows: Vec<Row>,
    takes: BTreeMap<String, usize>,
    moved: Vec<(String, String)>,
    next: usize,
}

impl Desk {
    fn new(rng: &mut Rng) -> Self {
        let rows = (0..3).map(|id| Row { id: format!("r{id}"), word: id, spelling: 0 }).collect();
        Self {
            name: "n0".into(),
            batch: String::new(),
            counts: rng.below(2) == 0,
            loses: rng.below(4) == 0,
            holds: rng.below(4) == 0,
            rows,
            takes: BTreeMap::new(),
            moved: Vec::new(),
            next: 3,
        }
    }

    fn id(&self, place: usize) -> String {
        if self.counts { format!("row-{}", place + 1) } else { self.rows[place].id.clone() }
    }

    fn manifest(&self) -> String {
        let quoted = |text: &str| serde_json::to_string(text).expect("JSON");
        let mut text = format!("version: 1\nname: {}\ndefaults: {{ model: alpha-2 }}\njobs:\n", self.name);
        for (place, row) in self.rows.iter().enumerate() {
            let id = self.id(place);
            let takes = self.takes.get(&id).copied().unwrap_or(1);
            let _infallible = writeln!(
                text,
                "  - {{ id: {id}, prompt: {}, takes: {takes}, tags: [t{}] }}",
                quoted(&row.prompt()),
                place % 2
            );
        }
        if self.holds {
            text.push_str("  - { id: held, model: beta-2.0-lite, prompt: a face, face: mia }\nfaces: { mia: { review: pending } }\n");
        }
        if !self.batch.is_empty() {
            let _infallible = writeln!(text, "batch: {}", quoted(&self.batch));
        }
        if !self.moved.is_empty() {
            text.push_str("moved:\n");
            for (from, to) in &self.moved {
                let _infallible = writeln!(text, "  - {{ from: {from}, to: {to} }}");
            }
        }
        text
    }

    /// One edit.
    fn edit(&mut self, rng: &mut Rng) -> &'static str {
        let place = rng.below(self.rows.len());
        self.moved.clear();
        match rng.below(13) {
            0..2 => {
                let word = rng.below(WORDS.len());
                self.rows.insert(place, Row { id: format!("r{}", self.next), word, spelling: 0 });
                self.next += 1;
                "insert"
            }
            2 if self.rows.len() > 1 => {
                self.rows.remove(place);
                "delete"
            }
            3 => {
                self.rows.sort_by_key(|row| (row.word, row.id.clone()));
                "sort"
            }
            4 => {
                self.rows.reverse();
                "reverse"
            }
            5..7 => {
                self.rows[place].spelling = rng.below(6);
                "respell"
            }
            7 => {
                self.rows[place].word = rng.below(WORDS.len());
                "reword"
            }
            8 => {
                self.rows[place].id = format!("r{}", self.next);
                self.next += 1;
                "rename"
            }
            9 if !self.counts => {
                let to = format!("r{}", self.next);
                self.next += 1;
                self.moved.push((std::mem::replace(&mut self.rows[place].id, to.clone()), to));
                "move"
            }
            10 if !self.loses => {
                self.name = format!("n{}", rng.below(2));
                "name"
            }
            11 if !self.loses => {
                self.batch = ["", "Spring", "spring ", "fr\u{fc}h", "fru\u{308}h"][rng.below(5)].into();
                "batch"
            }
            _ => {
                let id = self.id(place);
                self.takes.insert(id, 1 + rng.below(2));
                "takes"
            }
        }
    }
}

/// A service with an account that may be empty.
struct Paid {
    service: Service,
    is_empty: Arc<AtomicBool>,
    /// The numbers of refused submissions.
    refused: Arc<Mutex<BTreeSet<usize>>>,
}

impl Paid {
    fn new() -> Self {
        let (is_empty, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(BTreeSet::new())));
        let (empty, numbers) = (Arc::clone(&is_empty), Arc::clone(&refused));
        let service = Service::scripted(move |asked| {
            // The first one is accepted, so that a run ends in the middle.
            if asked.method != "POST" || !empty.load(Ordering::SeqCst) || asked.earlier.is_multiple_of(5) {
                return Answer::Well;
            }
            numbers.lock().expect("no panic").insert(asked.earlier);
            answer(402, &json!({ "error": { "message": "insufficient balance" } }))
        });
        Self { service, is_empty, refused }
    }

    /// The bodies that were paid for, each with the number of its task.
    fn posts(&self) -> Vec<(usize, String)> {
        let refused = self.refused.lock().expect("no panic");
        let all = self.service.posts().into_iter().enumerate();
        all.filter(|(number, _)| !refused.contains(number)).map(|(_, body)| body).enumerate().collect()
    }

    /// The requests that were paid for, normalized and counted.
    fn books(&self) -> BTreeMap<String, usize> {
        self.posts().iter().fold(BTreeMap::new(), |mut books, (_, body)| {
            let body: Value = serde_json::from_str(body).expect("JSON");
            *books.entry(shotlist::domain::normalized(body["prompt"].as_str().expect("a prompt"))).or_default() += 1;
            books
        })
    }
}

/// Removes the ledger, once its report is up to date; makes it again from the report, or leaves that to the guards.
fn lose(here: &Workspace, paid: &Paid, imports: bool) -> &'static str {
    if !here.path(".shotlist/ledger.db").exists() {
        return "nothing to lose";
    }
    let refreshed = here.shotlist(&["report", "m.yaml"]).ends();
    // The guard of an earlier loss keeps the report unchanged.
    assert!(matches!(refreshed.code, Some(0 | 3)), "{:?}: {}", refreshed.code, refreshed.stderr);
    std::fs::remove_dir_all(here.path(".shotlist")).expect("a ledger");
    if !imports {
        return "lost";
    }
    let import = here.shotlist(&["import", "m.yaml", "shotlist-out/n0/report.json"]);
    let ended = import.with_service(&paid.service.url()).ends();
    // A report may have no task.
    assert!(matches!(ended.code, Some(0 | 2)), "{:?}: {}", ended.code, ended.stderr);
    "lost and imported"
}

/// A directory on another file system than the workspaces, where there is one.
fn on_another_mount() -> tempfile::TempDir {
    let other = if std::env::temp_dir().starts_with("/dev/shm") { "/tmp" } else { "/dev/shm" };
    tempfile::tempdir_in(other).or_else(|_| tempfile::tempdir()).expect("a directory")
}

/// Fetches the videos of the batch, and moves them away: nothing that is archived is bought for that.
fn archive(here: &Workspace, paid: &Paid, to: &Path) -> &'static str {
    let fetch = here.shotlist(&["fetch", "m.yaml"]);
    let fetched = fetch.with_service(&paid.service.url()).ends();
    if fetched.code != Some(0) {
        return "nothing to archive";
    }
    let status = here.shotlist(&["status", "m.yaml", "--state", "completed", "--format", "json"]).ends_with(0).stdout;
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let completed = status["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["id"].as_str());
    let completed = format!("{{{}}}", completed.collect::<Vec<_>>().join(","));
    let moved = here.shotlist(&["archive", "m.yaml", &completed, "--to", &to.to_string_lossy()]).ends();
    // None may be completed, and an older video of that name may be archived already.
    assert!(matches!(moved.code, Some(0..=2 | 74)), "{:?}: {}", moved.code, moved.stderr);
    if moved.code == Some(0) { "archived" } else { "not archived" }
}

/// A batch value as people see it.
fn seen(batch: &str) -> String {
    shotlist::domain::normalized(batch)
}

/// The jobs that paid for a request in any spelling, in batches with a value.
fn paid_in_rounds(here: &Workspace, request: &str) -> usize {
    let paid = "SELECT name, batch.batch, job, request FROM attempt JOIN batch ON batch.id = attempt.batch
         WHERE batch.batch <> '' AND state NOT IN ('void', 'rejected')";
    let prompt = |body: &str| {
        let body: Value = serde_json::from_str(body).expect("JSON");
        shotlist::domain::normalized(body["prompt"].as_str().expect("a prompt"))
    };
    let paid = if here.path(".shotlist/ledger.db").exists() { here.ledger(paid) } else { Vec::new() };
    let jobs: BTreeSet<&[String]> = paid.iter().filter(|row| prompt(&row[3]) == request).map(|row| &row[..3]).collect();
    jobs.len()
}

/// The jobs to buy by a plan, and the questioned ones, each with its normalized request.
fn plan(here: &Workspace, args: &[&str]) -> Option<(BTreeMap<String, String>, BTreeSet<String>)> {
    let shown = here.shotlist(&[&["run", "m.yaml", "--plan", "--format", "json"], args].concat()).ends();
    let plan: Value = serde_json::from_str(&shown.stdout).ok().filter(|_| shown.code == Some(0))?;
    let jobs = plan["jobs"].as_array().expect("jobs").iter();
    let buys = jobs
        .filter(|job| ["submit", "changed", "retry", "retake"].contains(&job["action"].as_str().expect("an action")));
    let due = buys.map(|job| {
        let prompt = job["request"]["prompt"].as_str().expect("a prompt");
        (job["id"].as_str().expect("an ID").to_owned(), shotlist::domain::normalized(prompt))
    });
    let before = plan["bought_before"].as_array().expect("a list");
    Some((due.collect(), before.iter().map(|job| job["job"].as_str().expect("an ID").to_owned()).collect()))
}

/// The wanted purchases: for each batch and request the largest number of simultaneous jobs, and the confirmed repeats.
#[derive(Default)]
struct Wanted(BTreeMap<(String, String), usize>);

impl Wanted {
    /// The most charges for a request by now.
    fn most(&self, request: &str) -> usize {
        self.0.iter().filter(|((_, of), _)| of == request).map(|(_, count)| count).sum()
    }
}

/// The jobs that a run is about.
fn selection<'f>(rng: &mut Rng, first: &'f str) -> Vec<&'f str> {
    match rng.below(8) {
        0..2 => vec!["--select", first],
        2 => vec!["--tag", "t1"],
        3 => vec!["--exclude", first],
        4 => vec!["--sample", "1"],
        5 => vec!["--sample", "2"],
        _ => vec![],
    }
}

fn live(seed: u64, steps: usize) -> (usize, usize) {
    let (mut rng, paid) = (Rng(seed), Paid::new());
    let service = &paid.service;
    let (here, mut desk) = (Workspace::new(), Desk::new(&mut rng));
    let archived = on_another_mount();
    let (mut wanted, mut story, mut asked) = (Wanted::default(), Vec::new(), 0);
    for _ in 0..steps {
        if desk.loses && rng.below(6) == 0 && here.path("m.yaml").exists() {
            story.push(lose(&here, &paid, rng.below(2) == 0).to_owned());
        }
        if rng.below(8) == 0 && here.path("m.yaml").exists() {
            story.push(archive(&here, &paid, archived.path()).to_owned());
        }
        for _ in 0..=rng.below(2) {
            story.push(desk.edit(&mut rng).to_owned());
        }
        here.write("m.yaml", desk.manifest());
        let first = desk.id(rng.below(desk.rows.len()));
        let (is_retake, is_killed) = (rng.below(8) == 0, rng.below(8) == 0);
        let is_cut = is_retake && !is_killed && rng.below(2) == 0;
        let mut args = selection(&mut rng, &first);
        if is_retake {
            args = if is_cut { vec!["--retake", "*"] } else { vec!["--select", &first, "--retake", &first] };
        }
        story.push(format!("{args:?}{}", if is_killed { " killed" } else { "" }));
        let Some((due, questioned)) = plan(&here, &args) else { continue };
        asked += questioned.len();
        // A purchase without a question is new, or a defect: the charges of the service show which.
        let key = seen(&desk.batch);
        for (job, request) in &due {
            if questioned.contains(job) || is_retake {
                continue;
            }
            let copies =
                desk.rows.iter().enumerate().filter(|(_, row)| shotlist::domain::normalized(&row.prompt()) == *request);
            let copies: usize = copies.map(|(place, _)| desk.takes.get(&desk.id(place)).copied().unwrap_or(1)).sum();
            // Without a batch value, a purchase of another round is no new wish: the value may be lost.
            let earlier = if key.is_empty() { paid_in_rounds(&here, request) } else { 0 };
            let of_batch = wanted.0.entry((key.clone(), request.clone())).or_default();
            *of_batch = copies.saturating_sub(earlier).max(*of_batch);
        }
        // Now and then, people agree to the repeats that the plan names.
        let agrees = rng.below(4) == 0;
        let again = format!("{{{}}}", questioned.iter().cloned().collect::<Vec<_>>().join(","));
        if agrees && !questioned.is_empty() {
            args.extend(["--buy-again", &again]);
        }
        let may_repeat = |job: &String| is_retake || (agrees && questioned.contains(job));
        for (job, request) in &due {
            if may_repeat(job) {
                *wanted.0.entry((format!("agreed {}", wanted.0.len()), request.clone())).or_default() += 1;
            }
        }
        let run = || here.run(service, &[&args[..], &["--no-download", "--skip-other-batches"]].concat());
        if is_cut {
            paid.is_empty.store(true, Ordering::SeqCst);
            let cut = run().ends();
            assert!(matches!(cut.code, Some(0..=3 | 5)), "{story:?}: {:?}: {}", cut.code, cut.stderr);
            paid.is_empty.store(false, Ordering::SeqCst);
            // A complete run has also ended its retake: the same command would be another one.
            if !has_code(&cut.stderr, "stopping") {
                continue;
            }
            story.push("again".to_owned());
            // An earlier task is completed now, and the plan shows its retake. Earlier due jobs are bought once.
            let later = plan(&here, &args).map(|(later, _)| later).unwrap_or_default();
            for (_, request) in later.iter().filter(|(job, _)| !due.contains_key(*job)) {
                *wanted.0.entry((format!("agreed {}", wanted.0.len()), request.clone())).or_default() += 1;
            }
        }
        let program = run();
        if is_killed {
            let flag = here.path("halted");
            let child =
                program.env("SHOTLIST_HALT_AT", "after-commit:3").env("SHOTLIST_HALT_FILE", &flag.to_string_lossy());
            let mut child = child.starts();
            wait_until("it stands still, or has ended", || {
                flag.exists() || child.try_wait().expect("a status").is_some()
            });
            if flag.exists() {
                kill(&child, "-KILL");
                std::fs::remove_file(&flag).expect("a flag");
            }
            drop(Ended::wait_for(child));
            settle(&here, &paid);
        } else {
            let ended = program.ends();
            assert!(matches!(ended.code, Some(0..=3 | 5)), "{story:?}: {:?}: {}", ended.code, ended.stderr);
            // A held job hides no failure, and a refusal bought nothing: the question remains.
            assert!(ended.code != Some(5) || desk.holds, "{story:?}: {}", ended.stderr);
        }
        for (request, paid) in paid.books() {
            let most = wanted.most(&request);
            assert!(
                paid <= most,
                "seed {seed}: {request:?} was paid for {paid} times, wanted {most}: {story:?}\n{}",
                desk.manifest()
            );
        }
    }
    (paid.posts().len(), asked)
}

/// Resolves jobs that a kill left in doubt, by the charges of the service.
fn settle(here: &Workspace, paid: &Paid) {
    let doubts = here.ledger("SELECT attempt.id, job, request, name, batch.batch FROM attempt JOIN batch ON batch.id = attempt.batch WHERE state IN ('in_doubt', 'intended')");
    for doubt in doubts {
        let [_, job, request, name, batch] = doubt.as_slice() else { panic!("five columns") };
        let known = here.ledger("SELECT task FROM attempt WHERE task IS NOT NULL").concat();
        let posts = paid.posts();
        let lost = posts.iter().find(|(number, body)| body == request && !known.contains(&format!("t{number}")));
        // Another manifest may have taken the place of the one that was killed.
        let manifest = format!("version: 1\nname: {name}\njobs: [{{ id: {job}, model: alpha-2, prompt: x }}]\n");
        here.write("settle.yaml", manifest);
        let task = lost.map(|(number, _)| format!("t{number}"));
        let verdict: Vec<&str> = task.as_deref().map_or_else(|| vec!["--never-created"], |task| vec!["--task", task]);
        let key: Vec<&str> = if batch.is_empty() { vec!["--batch", ""] } else { vec!["--batch", batch] };
        // The next run of the batch puts it in doubt.
        let program = here.shotlist(&[&["resolve", "settle.yaml", job], &verdict[..], &key[..]].concat());
        program.with_service(&paid.service.url()).ends_with(0);
    }
}

#[test]
fn no_request_is_charged_twice_without_a_question() {
    let steps = std::env::var("PEOPLE_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(STEPS);
    let seed = std::env::var("PEOPLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let lives = steps.div_ceil(LIFE);
    let next = AtomicUsize::new(0);
    let some_lives = || {
        let mut sums = (0, 0);
        loop {
            let life = next.fetch_add(1, Ordering::Relaxed);
            if life >= lives {
                break sums;
            }
            let (posts, questions) = live(seed + u64::try_from(life).expect("few"), LIFE);
            sums = (sums.0 + posts, sums.1 + questions);
        }
    };
    let (paid, asked) = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(some_lives));
        let sums = threads.map(|thread| thread.join().expect("no life broke a rule"));
        sums.into_iter().fold((0, 0), |(paid, asked), (posts, questions)| (paid + posts, asked + questions))
    });
    let told = writeln!(std::io::stdout(), "{} steps, {paid} tasks, {asked} questions", lives * LIFE);
    told.expect("stdout");
    assert!(paid > lives && asked > lives, "{paid} tasks, {asked} questions");
}
