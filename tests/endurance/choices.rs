//! Random choices of several reviewers and archived videos, with kills: no video is retaken twice, nothing is bought while reviewers disagree, and no archived
//! video is fetched again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::random::Rng;
use crate::support::{Program, Service, Workspace, numbered_jobs};

const LIVES: u64 = 8;
const STEPS: usize = 12;
const JOBS: usize = 4;
const REVIEWERS: [&str; 3] = ["anna", "ben", "cleo"];

/// The last choice of each reviewer about a job: true to retake the video of this task.
type Choices = BTreeMap<(usize, &'static str), (bool, String)>;

/// The tasks of each job's completed takes, oldest first.
fn takes(here: &Workspace) -> Vec<Vec<String>> {
    let of = |job| format!("SELECT task FROM attempt WHERE job = 'j{job}' AND state = 'completed' ORDER BY id");
    (0..JOBS).map(|job| here.ledger(&of(job)).concat()).collect()
}

/// The jobs to retake: a reviewer wants another video than the newest, and nobody keeps one.
fn to_retake(choices: &Choices, takes: &[Vec<String>]) -> BTreeSet<usize> {
    let of = |job: usize| REVIEWERS.iter().filter_map(move |by| choices.get(&(job, *by)));
    let is_again = |job: &usize| of(*job).any(|(is_again, task)| *is_again && takes[*job].last() == Some(task));
    (0..JOBS).filter(is_again).filter(|job| of(*job).all(|(is_again, _)| *is_again)).collect()
}

/// Ends a program well, or kills it before one of its commits.
fn end(program: Program, kill_before: Option<usize>) {
    if let Some(commit) = kill_before {
        program.dies_at(&format!("before-commit:{commit}"));
        return;
    }
    let ended = program.ends();
    assert!(matches!(ended.code, Some(0..=3)), "{:?}: {}", ended.code, ended.stderr);
}

/// Takes the video of a job away, and archived videos it; a command that is killed is given again.
fn release(here: &Workspace, job: usize, kill_before: Option<usize>) {
    if let Some(file) = here.report()["jobs"][job]["file"].as_str() {
        std::fs::remove_file(here.path("shotlist-out/m").join(file)).expect("a video");
    }
    let job = format!("j{job}");
    for kill_before in kill_before.map(Some).into_iter().chain([None]) {
        end(here.shotlist(&["archive", "m.yaml", &job]), kill_before);
    }
}

/// The number of fetches of each archived video.
fn fetches(here: &Workspace, service: &Service) -> BTreeMap<String, usize> {
    let urls = here
        .ledger("SELECT record ->> '$.video_url' FROM attempt WHERE record ->> '$.particulars.archived' IS NOT NULL");
    let fetched = service.fetched();
    let count = |url: &String| fetched.iter().filter(|path| url.ends_with(*path)).count();
    urls.concat().into_iter().map(|url| (url.clone(), count(&url))).collect()
}

/// Returns how many videos were retaken and archived.
fn live(seed: u64) -> [usize; 2] {
    let (mut rng, service) = (Rng(seed), Service::well());
    let here = Workspace::with_manifest(&numbered_jobs(JOBS));
    end(here.run(&service, &[]), None);
    let (mut choices, mut archived) = (Choices::new(), 0);
    for step in 0..STEPS {
        let mut dies = |one_in: usize, commits: usize| (rng.below(one_in) == 0).then(|| 1 + rng.below(commits));
        let (dies_releasing, dies_running) = (dies(2, 4), dies(3, 8));
        if rng.below(3) == 0 {
            release(&here, rng.below(JOBS), dies_releasing);
        }
        let fetched_before = fetches(&here, &service);
        let by = REVIEWERS[rng.below(REVIEWERS.len())];
        let (mut keep, mut again, mut tasks) = (Vec::new(), Vec::new(), Map::new());
        for (job, takes) in takes(&here).iter().enumerate().filter(|_| rng.below(2) == 0).collect::<Vec<_>>() {
            let (is_again, task) = (rng.below(2) == 0, &takes[rng.below(takes.len())]);
            if is_again { &mut again } else { &mut keep }.push(format!("j{job}"));
            tasks.insert(format!("j{job}"), json!(task));
            choices.insert((job, by), (is_again, task.clone()));
        }
        let has_retakes = !again.is_empty();
        let file = json!({ "name": "m", "batch": "", "reviewer": by, "keep": keep, "retake": again, "tasks": tasks });
        here.write("choices.json", file.to_string());
        // Either records them: a run that buys, or the command that only records.
        let records_first = !has_retakes || rng.below(2) == 0;
        if records_first {
            here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0);
        }
        let (before, may_buy) = (service.posts().len(), to_retake(&choices, &takes(&here)));
        let retake = if has_retakes && !records_first { "@choices.json" } else { "@ledger" };
        end(here.run(&service, &["--retake", retake]), dies_running);
        settle(&here, &service);
        // A killed run is repeated, and records the rest.
        end(here.run(&service, &["--retake", retake]), None);
        assert_eq!(fetches(&here, &service), fetched_before, "seed {seed}, step {step}: an archived video came back");
        archived = fetched_before.len();
        let bought: Vec<usize> = service.posts()[before..].iter().map(|body| job_of(body)).collect();
        let once: BTreeSet<usize> = bought.iter().copied().collect();
        assert_eq!(bought.len(), once.len(), "seed {seed}, step {step}: a video was retaken twice: {bought:?}");
        assert!(
            once.is_subset(&may_buy),
            "seed {seed}, step {step}: bought {once:?}, may buy {may_buy:?}: {choices:?}"
        );
        if retake == "@ledger" {
            assert_eq!(once, may_buy, "seed {seed}, step {step}: {choices:?}");
        }
    }
    [service.posts().len() - JOBS, archived]
}

/// The job that a request is for.
fn job_of(body: &str) -> usize {
    let body: Value = serde_json::from_str(body).expect("JSON");
    let digits: String = body["prompt"].as_str().expect("a prompt").chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("the number of a job")
}

/// Resolves jobs that a kill left in doubt, by the charges of the service.
fn settle(here: &Workspace, service: &Service) {
    for doubt in here.ledger("SELECT job, record FROM attempt WHERE state IN ('in_doubt', 'intended')") {
        let record: Value = serde_json::from_str(&doubt[1]).expect("JSON");
        let known = here.ledger("SELECT task FROM attempt WHERE task IS NOT NULL").concat();
        let posts = service.posts();
        let is_lost = |(number, body): &(usize, &String)| {
            **body == record["purchase"]["request"]["body"].as_str().expect("a request")
                && !known.contains(&format!("t{number}"))
        };
        let task = posts.iter().enumerate().find(is_lost).map(|(number, _)| format!("t{number}"));
        let verdict: Vec<&str> = task.as_deref().map_or_else(|| vec!["--never-created"], |task| vec!["--task", task]);
        let program = here.shotlist(&[&["resolve", "m.yaml", &doubt[0]], &verdict[..]].concat());
        program.with_service(&service.url()).ends_with(0);
    }
}

#[test]
fn random_choices_buy_each_agreed_retake_once() {
    let [bought, archived] = (1..=LIVES).map(live).fold([0; 2], |sum, life| [sum[0] + life[0], sum[1] + life[1]]);
    assert!(bought > 8 && archived > 8, "only {bought} retakes and {archived} archived videos: the test shows nothing");
}
