//! Choices of reviewers in the ledger: what they say of a job, what they buy, and what they never buy.

use serde_json::{Value, json};

use crate::support::{Ended, Service, Workspace, has_code, kill, numbered_jobs, wait_until};

/// A batch whose videos are here, and its service.
fn bought(jobs: usize) -> (Service, Workspace) {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(jobs)));
    here.run(&service, &[]).ends_with(0);
    (service, here)
}

fn task(here: &Workspace, job: &str) -> Value {
    let report = here.report();
    let jobs = report["jobs"].as_array().expect("jobs");
    jobs.iter().find(|row| row["id"] == job).expect("the job")["task_id"].clone()
}

/// Saves choices about the videos that the report shows, as the page does.
fn save(here: &Workspace, file: &str, by: &str, keep: &[&str], again: &[&str]) {
    let tasks: serde_json::Map<String, Value> =
        keep.iter().chain(again).map(|id| ((*id).to_owned(), task(here, id))).collect();
    let notes: serde_json::Map<String, Value> =
        again.iter().map(|id| ((*id).to_owned(), json!(format!("{by} wants another")))).collect();
    let choices =
        json!({ "name": "m", "batch": "", "by": by, "keep": keep, "again": again, "tasks": tasks, "notes": notes });
    here.write(file, choices.to_string());
}

fn row(here: &Workspace, job: &str) -> Value {
    let shown = here.shotlist(&["status", "m.yaml", "--format", "json"]).ends_with(0).stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    shown["jobs"].as_array().expect("jobs").iter().find(|row| row["id"] == job).expect("the job").clone()
}

#[test]
fn choices_are_recorded_and_only_their_retakes_are_bought() {
    let (service, here) = bought(3);
    here.write("m.yaml", numbered_jobs(4));
    save(&here, "choices.json", "anna", &["j1"], &["j0"]);
    here.run(&service, &["--retake", "@choices.json"]).ends_with(0);
    assert_eq!(service.posts().len(), 4, "the new job is left for another run");
    let kept = row(&here, "j1");
    assert_eq!((&kept["choice"], &kept["reviewer"], &kept["note"]), (&json!("keep"), &json!("anna"), &Value::Null));
    let retaken = row(&here, "j0");
    assert_eq!((&retaken["choice"], &retaken["note"]), (&Value::Null, &json!("anna wants another")), "decided anew");
    here.run(&service, &["--retake", "@choices.json", "--and-due"]).ends_with(0);
    assert_eq!(service.posts().len(), 5);
}

#[test]
fn reviewers_who_disagree_buy_nothing() {
    let (service, here) = bought(3);
    save(&here, "anna.json", "anna", &["j2"], &["j0", "j1"]);
    save(&here, "ben.json", "ben", &["j0"], &["j1"]);
    let recorded = here.shotlist(&["choose", "m.yaml", "anna.json", "ben.json"]).ends_with(0).stdout;
    insta::assert_snapshot!(recorded, @"
    anna.json by anna: 1 keep, 2 again, 2 notes
    ben.json by ben: 1 keep, 1 again, 1 note
    recorded 5 new choices; nothing was spent
    in conflict, so nothing is bought: j0
    to retake: j1
    to see what the retakes cost: `shotlist run m.yaml --retake @ledger --plan`
    ");
    assert_eq!(row(&here, "j0")["choice"], "conflict");
    let status = here.shotlist(&["status", "m.yaml"]).ends_with(0).stdout;
    assert!(status.contains("choices: 1 kept, 1 to retake, 1 in conflict"), "{status}");
    assert!(status.contains("reviewers disagree: anna, ben"), "{status}");
    for chosen in ["@ledger", "@anna.json", "@ledger"] {
        here.run(&service, &["--retake", chosen]).ends_with(0);
        assert_eq!(service.posts().len(), 4, "one retake, by both");
    }
    // One of them gives in.
    save(&here, "anna.json", "anna", &["j0"], &[]);
    here.shotlist(&["choose", "m.yaml", "anna.json"]).ends_with(0);
    assert_eq!(row(&here, "j0")["choice"], "keep");
}

#[test]
fn a_kept_earlier_take_is_the_video_of_its_job() {
    let (service, here) = bought(1);
    save(&here, "choices.json", "anna", &["j0"], &[]);
    let first = task(&here, "j0");
    here.run(&service, &["--retake", "j0"]).ends_with(0);
    assert_ne!(task(&here, "j0"), first);
    here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0);
    here.run(&service, &[]).ends_with(0);
    let report = here.report();
    assert_eq!((&report["jobs"][0]["task_id"], &report["jobs"][0]["file"]), (&first, &json!("j0~1.mp4")));
    assert_eq!(report["superseded"].as_array().map(Vec::len), Some(1), "the other take was paid for as well");
    // It is fetched again if it is missing, and the other one is not.
    for video in ["j0.mp4", "j0~1.mp4"] {
        std::fs::remove_file(here.path(&format!("shotlist-out/m/{video}"))).expect("removed");
    }
    here.run(&service, &[]).ends_with(0);
    let report = here.report();
    assert_eq!(report["jobs"][0]["task_id"], first);
    assert!(report["jobs"][0]["file"].is_string(), "{report}");
    assert_eq!((service.posts().len(), here.files().iter().filter(|file| file.contains(".mp4")).count()), (2, 1));
}

#[test]
fn choices_that_can_not_be_certain_are_refused_whole() {
    let (service, here) = bought(2);
    let nothing = || assert_eq!(row(&here, "j0")["choice"], Value::Null);
    let refused = |args: &[&str], code: &str| {
        let ended = here.shotlist(&[&["choose", "m.yaml"], args].concat()).fails_with(code, 2);
        nothing();
        ended.stderr
    };
    let choices = |file: &str, value: Value| here.write(file, value.to_string());
    let own = task(&here, "j0");
    choices("other.json", json!({ "name": "other", "keep": ["j0"], "tasks": { "j0": own } }));
    refused(&["other.json"], "choices-invalid");
    choices("task.json", json!({ "name": "m", "keep": ["j0", "j1"], "tasks": { "j0": own, "j1": own } }));
    refused(&["task.json"], "choices-invalid");
    choices("none.json", json!({ "name": "m", "keep": ["j0"] }));
    refused(&["none.json"], "choices-invalid");
    choices("blank.json", json!({ "name": "m", "keep": ["j0"], "tasks": { "j0": own } }));
    refused(&["blank.json", "--by", " "], "choices-invalid");
    here.write("text.json", "j0\n");
    refused(&["text.json"], "choices-invalid");
    refused(&["gone.json"], "choices-invalid");
    // Nobody knows which of the two is the later one.
    save(&here, "one.json", "anna", &["j0"], &[]);
    save(&here, "two.json", "anna", &[], &["j0"]);
    refused(&["one.json", "two.json"], "choices-invalid");
    here.shotlist(&["choose", "m.yaml", "one.json", "two.json", "--by", "anna"]).ends_with(2);
    nothing();
    assert_eq!(service.posts().len(), 2);
}

#[test]
fn newest_choices_of_the_batch_are_found_where_browsers_save() {
    let (_service, here) = bought(2);
    std::fs::create_dir(here.path("Downloads")).expect("a directory");
    let run = |args: &[&str]| {
        let program = here.shotlist(&[&["choose", "m.yaml"], args].concat());
        program.env("XDG_DOWNLOAD_DIR", &here.path("Downloads").to_string_lossy())
    };
    run(&["--yes"]).fails_with("choices-invalid", 2);
    save(&here, "Downloads/choices.json", "anna", &["j0"], &[]);
    here.write("Downloads/choices-9.json", json!({ "name": "other", "keep": ["j0"] }).to_string());
    let before = std::fs::File::options().append(true).open(here.path("Downloads/choices.json")).expect("a file");
    before.set_modified(std::time::UNIX_EPOCH).expect("an older file");
    save(&here, "Downloads/choices-2.json", "anna", &["j1"], &[]);
    run(&[]).fails_with("not-confirmed", 3);
    assert_eq!(row(&here, "j1")["choice"], Value::Null);
    let recorded = run(&["--yes"]).ends_with(0).stdout;
    assert!(recorded.contains("choices-2.json by anna: 1 keep"), "{recorded}");
    assert_eq!((row(&here, "j0")["choice"].clone(), row(&here, "j1")["choice"].clone()), (Value::Null, json!("keep")));
}

/// Whenever the process dies, the same command records the rest, and buys each retake once.
#[test]
fn a_process_that_dies_while_it_records_buys_nothing_twice() {
    for halt in 2..9 {
        let (service, here) = bought(2);
        save(&here, "choices.json", "anna", &["j1"], &["j0"]);
        let flag = here.path("halted");
        let command = ["--retake", "@choices.json"];
        let run = here.run(&service, &command).env("SHOTLIST_HALT_AT", &format!("before-commit:{halt}"));
        let mut child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
        wait_until("it stands still, or has ended", || flag.exists() || child.try_wait().expect("a status").is_some());
        if flag.exists() {
            kill(&child, "-KILL");
            std::fs::remove_file(&flag).expect("a flag");
        }
        drop(Ended::of(child));
        let again = here.run(&service, &command).ends();
        let sent = service.posts().len();
        assert!(sent <= 3, "{sent} requests after a kill before commit {halt}");
        assert_eq!(row(&here, "j1")["choice"], "keep", "after a kill before commit {halt}");
        assert!(sent == 3 || again.code == Some(7), "{sent} requests, {:?}: {}", again.code, again.stderr);
    }
}

#[test]
fn choices_of_another_manifest_and_a_missing_ledger_say_so() {
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.write("choices.json", json!({ "name": "m", "keep": ["j0"], "tasks": { "j0": "t0" } }).to_string());
    let refused = here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(2).stderr;
    assert!(has_code(&refused, "choices-invalid"), "{refused}");
    assert!(!here.path(".shotlist").exists(), "no ledger is made for it");
}
