//! Choices of reviewers in the ledger, and the retakes that runs buy for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use shotlist::domain::{BatchKey, OutputPath};
use shotlist::ledger::{Event, Ledger};

use crate::support::{Answer, Service, Workspace, codes, has_code, json as answer, numbered_jobs};

/// A service, and a batch with downloaded videos.
fn bought(jobs: usize) -> (Service, Workspace) {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(jobs)));
    here.run(&service, &[]).ends_with(0);
    (service, here)
}

fn task(here: &Workspace, job: &str) -> Value {
    task_in(&here.report(), job)
}

fn task_in(report: &Value, job: &str) -> Value {
    let jobs = report["jobs"].as_array().expect("jobs");
    jobs.iter().find(|row| row["id"] == job).expect("the job")["task_id"].clone()
}

/// Saves choices about the videos in the report, as the page does.
fn save(here: &Workspace, file: &str, by: &str, keep: &[&str], again: &[&str]) {
    let report = here.report();
    let tasks: serde_json::Map<String, Value> =
        keep.iter().chain(again).map(|id| ((*id).to_owned(), task_in(&report, id))).collect();
    let notes: serde_json::Map<String, Value> =
        again.iter().map(|id| ((*id).to_owned(), json!(format!("{by} wants another")))).collect();
    let choices = json!({ "name": "m", "batch": "", "reviewer": by, "keep": keep, "retake": again, "tasks": tasks, "notes": notes });
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
    assert_eq!(retaken["reviewer"], "anna", "until someone chooses the new take");
    save(&here, "ben.json", "ben", &["j0"], &[]);
    here.shotlist(&["choose", "m.yaml", "ben.json"]).ends_with(0);
    assert_eq!((&row(&here, "j0")["choice"], &row(&here, "j0")["reviewer"]), (&json!("keep"), &json!("ben")));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 5);
}

/// The lead of a team ends a conflict, and a reviewer takes a choice back.
#[test]
fn decision_ends_conflict_and_withdrawal_takes_choice_back() {
    let (service, here) = bought(3);
    save(&here, "anna.json", "anna", &["j2"], &["j0"]);
    save(&here, "ben.json", "ben", &["j0"], &[]);
    here.shotlist(&["choose", "m.yaml", "anna.json", "ben.json"]).ends_with(0);
    let choose = |args: &[&str]| here.shotlist(&[&["choose", "m.yaml"], args].concat());
    let decided = choose(&["--decide", "j0=keep", "--by", "lead"]).ends_with(0).stdout;
    assert_eq!(decided.lines().next(), Some("recorded 1 new choice; nothing was spent"));
    let kept = row(&here, "j0");
    assert_eq!((&kept["choice"], &kept["reviewer"]), (&json!("keep"), &json!("lead")));
    here.run(&service, &["--retake", "@ledger"]).ends_with(0);
    assert_eq!(service.posts().len(), 3, "the retake that anna wished is not bought");
    // A later choice counts again.
    save(&here, "anna.json", "anna", &[], &["j0"]);
    choose(&["anna.json"]).ends_with(0);
    save(&here, "anna.json", "anna", &["j0"], &[]);
    choose(&["anna.json"]).ends_with(0);
    assert_eq!(row(&here, "j0")["choice"], "keep");
    choose(&["--decide", "j0=retake", "--by", "lead"]).ends_with(0);
    assert_eq!(row(&here, "j0")["choice"], "retake");
    choose(&["--withdraw", "j0", "--by", "lead"]).ends_with(0);
    assert_eq!(row(&here, "j0")["choice"], "keep", "what the others said counts again");
    // A file from before the decision does not overrule it, also where its choices are recorded already.
    save(&here, "anna.json", "anna", &[], &["j0"]);
    choose(&["anna.json"]).ends_with(0);
    choose(&["--decide", "j0=keep", "--by", "lead"]).ends_with(0);
    here.run(&service, &["--retake", "@anna.json"]).ends_with(0);
    assert_eq!(service.posts().len(), 3, "the lead kept it");
    for wrong in [
        &["--withdraw", "j1", "--by", "lead"][..],
        &["--decide", "none=keep"],
        &["--decide", "j0=keep", "--by", " "],
        &["--decide", "j0=keep", "--by", "a\u{1b}[31mb"],
        &["--decide", "j0=keep", "--decide", "j0=retake", "--by", "ben"],
        &["--decide", "j0=retake", "--withdraw", "j0", "--by", "lead"],
    ] {
        choose(wrong).fails_with("choices-invalid", 2);
    }
    choose(&["--decide", "j0=maybe"]).ends_with(2);
}

/// Two people who leave the name empty are two: the second file must not overrule the first.
#[test]
fn unnamed_reviewers_differ_by_their_browser() {
    let (service, here) = bought(2);
    let save = |file: &str, browser: &str, keep: &[&str], retake: &[&str]| {
        let tasks = json!({ "j0": task(&here, "j0"), "j1": task(&here, "j1") });
        let choices =
            json!({ "name": "m", "batch": "", "browser": browser, "keep": keep, "retake": retake, "tasks": tasks });
        here.write(file, choices.to_string());
    };
    save("one.json", "0123456789abcdef", &["j0"], &["j1"]);
    save("two.json", "fedcba9876543210", &["j1"], &["j0"]);
    here.shotlist(&["choose", "m.yaml", "one.json", "two.json"]).ends_with(0);
    for job in ["j0", "j1"] {
        let row = row(&here, job);
        assert_eq!((&row["choice"], &row["reviewer"]), (&json!("conflict"), &json!("unnamed-012345, unnamed-fedcba")));
    }
    here.run(&service, &["--retake", "@two.json"]).ends_with(0);
    assert_eq!(service.posts().len(), 2, "nothing is bought while they disagree");
    // A job without a choice in the file: its choice was withdrawn on the page.
    save("one.json", "0123456789abcdef", &[], &["j1"]);
    here.shotlist(&["choose", "m.yaml", "one.json"]).ends_with(0);
    assert_eq!((&row(&here, "j0")["choice"], &row(&here, "j1")["choice"]), (&json!("retake"), &json!("conflict")));
    let again = here.shotlist(&["choose", "m.yaml", "one.json"]).ends_with(0).stdout;
    assert!(again.lines().any(|line| line.starts_with("recorded 0")), "{again}");
}

#[test]
fn conflict_between_reviewers_buys_nothing() {
    let (service, here) = bought(3);
    save(&here, "anna.json", "anna", &["j2"], &["j0", "j1"]);
    save(&here, "ben.json", "ben", &["j0"], &["j1"]);
    let recorded = here.shotlist(&["choose", "m.yaml", "anna.json", "ben.json"]).ends_with(0).stdout;
    insta::assert_snapshot!(recorded, @"
    anna.json by anna: 1 keep, 2 retake, 2 notes
    ben.json by ben: 1 keep, 1 retake, 1 note
    recorded 5 new choices; nothing was spent
    in conflict, so nothing is bought: j0 (anna retakes take 1, ben keeps take 1)
    to retake: j1
    to see what the retakes cost: `shotlist run m.yaml --retake @ledger --plan`
    ");
    assert_eq!(row(&here, "j0")["choice"], "conflict");
    let status = here.shotlist(&["status", "m.yaml"]).ends_with(0).stdout;
    insta::assert_snapshot!(status, @"
    1 job in conflict (j0): anna retakes take 1, ben keeps take 1
      nothing is bought until they agree, or you decide: shotlist choose m.yaml --decide JOB=keep
    m: 3 jobs: 3 completed
    $2.70 spent
    videos: 3 in shotlist-out/m
    choices: 1 kept, 1 to retake, 1 in conflict

       STATE      JOB  MODEL     COST  DETAIL
       completed  j0   alpha-2  $0.90  conflict: anna retakes take 1, ben keeps take 1
       completed  j1   alpha-2  $0.90  j1.mp4
       completed  j2   alpha-2  $0.90  j2.mp4
    ");
    for chosen in ["@ledger", "@anna.json", "@ledger"] {
        here.run(&service, &["--retake", chosen]).ends_with(0);
        assert_eq!(service.posts().len(), 4, "one retake, by both");
    }
    // Anna changes her choices, and is told which ones that replaces.
    save(&here, "mixed.json", "anna", &["j0"], &["j2"]);
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--retake", "@mixed.json"]).ends_with(0).stdout;
    let replaced = plan.lines().find(|line| line.starts_with("no longer counts")).unwrap_or_default();
    save(&here, "anna.json", "anna", &["j0"], &[]);
    let changed = here.shotlist(&["choose", "m.yaml", "anna.json"]).ends_with(0).stdout;
    insta::with_settings!({ filters => vec![(r"of \d[^)]* UTC", "of TIME")] }, {
        insta::assert_snapshot!(replaced, @"no longer counts: j0 (retake by anna of TIME), j2 (keep by anna of TIME)");
        insta::assert_snapshot!(changed, @"
        anna.json by anna: 1 keep, 0 retake, 0 notes
        recorded 1 new choice; nothing was spent
        no longer counts: j0 (retake by anna of TIME)
        ");
    });
    assert_eq!(row(&here, "j0")["choice"], "keep");
}

#[test]
fn kept_earlier_take_is_the_video_of_its_job() {
    let (service, here) = bought(1);
    save(&here, "choices.json", "anna", &["j0"], &[]);
    let first = task(&here, "j0");
    here.run(&service, &["--retake", "j0"]).ends_with(0);
    assert_ne!(task(&here, "j0"), first);
    let kept = std::fs::read(here.path("shotlist-out/m/j0~1.mp4")).expect("the first take");
    let recorded = here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0).stdout;
    assert_eq!(recorded.lines().nth(2), Some("renamed after their jobs: 1 video"));
    // The page and the files agree before any run, and after one.
    for again in [false, true] {
        if again {
            here.run(&service, &[]).ends_with(0);
        }
        let report = here.report();
        assert_eq!((&report["jobs"][0]["task_id"], &report["jobs"][0]["file"]), (&first, &json!("j0.mp4")));
        assert_eq!(report["superseded"][0]["file"], "j0~1.mp4", "the other take was paid for as well");
        assert_eq!(std::fs::read(here.path("shotlist-out/m/j0.mp4")).expect("a video"), kept);
    }
    let again = here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0).stdout;
    assert_eq!(again.lines().nth(1), Some("recorded 0 new choices; nothing was spent"));
    // Once the choice is withdrawn, the newest take is the job's again.
    here.shotlist(&["choose", "m.yaml", "--withdraw", "j0", "--by", "anna"]).ends_with(0);
    assert_ne!(task(&here, "j0"), first);
    assert_eq!(std::fs::read(here.path("shotlist-out/m/j0~1.mp4")).expect("the first take"), kept);
    here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0);
    // Only the kept take is downloaded again.
    for video in ["j0.mp4", "j0~1.mp4"] {
        std::fs::remove_file(here.path(&format!("shotlist-out/m/{video}"))).expect("removed");
    }
    here.run(&service, &[]).ends_with(0);
    let report = here.report();
    assert_eq!(report["jobs"][0]["task_id"], first);
    assert!(report["jobs"][0]["file"].is_string(), "{report}");
    assert_eq!((service.posts().len(), here.videos().len()), (2, 1));
}

/// A keep was withdrawn, and the run died after the files had exchanged their names: the ledger has one of the two new names.
#[tokio::test]
async fn exchange_of_names_continues_after_a_kill_between_its_records() {
    let (service, here) = bought(1);
    here.run(&service, &["--retake", "j0"]).ends_with(0);
    let key = BatchKey { name: "m".to_owned(), batch: String::new() };
    let ledger = Ledger::in_file(here.path(".shotlist/ledger.db"));
    let batch = ledger.lock(&key).await.expect("a batch");
    let newest = ledger.history(&key).await.expect("a history").attempts().last().expect("two takes").id;
    batch.record(newest, Event::Moved(OutputPath::new("j0~1.mp4").expect("a path"))).await.expect("a record");
    drop((batch, ledger));
    save(&here, "note.json", "anna", &[], &[]);
    here.shotlist(&["choose", "m.yaml", "note.json"]).ends_with(0);
    assert_eq!(here.report()["jobs"][0]["file"], "j0.mp4");
    assert_eq!(service.fetched().len(), 2, "nothing is downloaded again");
}

/// Neither overrules the other without a word, and nobody signs for a take that another one chose.
#[test]
fn keeps_of_different_takes_are_a_conflict() {
    let (service, here) = bought(1);
    save(&here, "anna.json", "anna", &["j0"], &[]);
    here.run(&service, &["--retake", "j0"]).ends_with(0);
    save(&here, "ben.json", "ben", &["j0"], &[]);
    here.shotlist(&["choose", "m.yaml", "anna.json"]).ends_with(0);
    let recorded = here.shotlist(&["choose", "m.yaml", "ben.json"]).ends_with(0).stdout;
    insta::assert_snapshot!(recorded, @"
    ben.json by ben: 1 keep, 0 retake, 0 notes
    recorded 1 new choice; nothing was spent
    in conflict, so nothing is bought: j0 (anna keeps take 1, ben keeps take 2)
    renamed after their jobs: 1 video
    ");
    assert_eq!(row(&here, "j0")["choice"], "conflict");
    here.run(&service, &["--retake", "@ledger"]).ends_with(0);
    assert_eq!(service.posts().len(), 2, "nothing is bought while they disagree");
    here.shotlist(&["choose", "m.yaml", "--decide", "j0=keep", "--by", "lead"]).ends_with(0);
    assert_eq!((&row(&here, "j0")["choice"], &row(&here, "j0")["reviewer"]), (&json!("keep"), &json!("lead")));
}

#[test]
fn uncertain_choices_are_refused_as_a_whole() {
    let (service, here) = bought(2);
    let choices = |file: &str, value: Value| here.write(file, value.to_string());
    let own = task(&here, "j0");
    choices("other.json", json!({ "name": "other", "keep": ["j0"], "tasks": { "j0": own } }));
    choices("task.json", json!({ "name": "m", "keep": ["j0", "j1"], "tasks": { "j0": own, "j1": own } }));
    choices("none.json", json!({ "name": "m", "keep": ["j0"] }));
    choices("both.json", json!({ "name": "m", "keep": ["j0"], "retake": ["j0"], "tasks": { "j0": own } }));
    choices("blank.json", json!({ "name": "m", "keep": ["j0"], "tasks": { "j0": own } }));
    choices("long.json", json!({ "name": "m", "notes": { "j0": "é".repeat(2001) }, "tasks": { "j0": own } }));
    here.write("text.json", "j0\n");
    save(&here, "one.json", "anna", &["j0"], &[]);
    save(&here, "two.json", "anna", &[], &["j0"]);
    for files in [
        &["other.json"][..],
        &["task.json"],
        &["none.json"],
        &["both.json"],
        &["blank.json", "--by", " "],
        &["long.json"],
        &["text.json"],
        &["gone.json"],
        // The order of the two files is unknown.
        &["one.json", "two.json"],
        &["one.json", "two.json", "--by", "anna"],
    ] {
        here.shotlist(&[&["choose", "m.yaml"], files].concat()).fails_with("choices-invalid", 2);
    }
    assert_eq!(row(&here, "j0")["choice"], Value::Null);
    assert_eq!(service.posts().len(), 2);
}

/// After a kill at any point, the same command records the rest, and buys each retake once.
#[test]
fn killed_recording_of_choices_buys_nothing_twice() {
    for halt in 2..9 {
        let (service, here) = bought(2);
        save(&here, "choices.json", "anna", &["j1"], &["j0"]);
        let command = ["--retake", "@choices.json"];
        here.run(&service, &command).dies_at(&format!("before-commit:{halt}"));
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

fn until_kept(jobs: usize, up_to: usize) -> String {
    format!(
        "version: 1\nname: m\ndefaults: {{ model: alpha-2, takes: {{ up_to: {up_to}, until: kept }} }}\njobs:\n  - id: \"j{{{{ row.n }}}}\"\n    prompt: \"a {{{{ row.n }}}}\"\n    for_each: [{}]\n",
        (0..jobs).map(|n| format!("{{ n: {n} }}")).collect::<Vec<_>>().join(", ")
    )
}

#[test]
fn plan_has_undecided_takes_and_their_worst_case() {
    let fails = Arc::new(AtomicBool::new(false));
    let is_failing = Arc::clone(&fails);
    let service = Service::scripted(move |asked| match asked.path.rsplit('/').next() {
        Some(task) if asked.method == "GET" && task.starts_with('t') && is_failing.load(Ordering::SeqCst) => {
            answer(200, &json!({ "id": task, "status": "failed", "error": { "message": "no" } }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&until_kept(2, 3));
    let statement = |here: &Workspace| {
        let plan = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stdout;
        plan.lines().find(|line| line.ends_with("is kept")).unwrap_or_default().to_owned()
    };
    let more = |usd: &str| format!("later runs may buy takes for {usd} more, until one of each job is kept");
    assert_eq!((statement(&here), here.planned(&[])), (more("$3.60"), (2, "1.80".to_owned())));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(statement(&here), format!("2 jobs wait for a choice (j0, j1); {}", more("$3.60")));
    assert_eq!(here.planned(&[]), (0, "0.00".to_owned()), "without a choice, no take is due");
    save(&here, "anna.json", "anna", &["j0"], &["j1"]);
    save(&here, "ben.json", "ben", &[], &["j0"]);
    here.shotlist(&["choose", "m.yaml", "anna.json"]).ends_with(0);
    assert_eq!(statement(&here), more("$0.90"));
    assert_eq!(here.planned(&[]), (1, "0.90".to_owned()));
    // An approval of one take does not cover the next one.
    let digest = here.plan(&[])["digest"].as_str().expect("a digest").to_owned();
    here.run(&service, &["--approved", &digest]).ends_with(0);
    save(&here, "anna.json", "anna", &[], &["j1"]);
    here.shotlist(&["choose", "m.yaml", "anna.json", "ben.json"]).ends_with(0);
    here.run(&service, &["--approved", &digest]).ends();
    assert_eq!(service.posts().len(), 3);
    // Reviewers disagree about j0, which waits. The last take of j1 is due.
    assert_eq!(statement(&here), format!("1 job waits for a choice (j0); {}", more("$1.80")));
    assert_eq!(here.planned(&[]), (1, "0.90".to_owned()));
    // A failed take counts, and is not retried without `--retry-failed`.
    fails.store(true, Ordering::SeqCst);
    here.run(&service, &[]).ends();
    here.run(&service, &[]).ends();
    assert_eq!((service.posts().len(), here.planned(&[])), (4, (0, "0.00".to_owned())));
}

/// Recorded choices never pass the bound of `up_to`. A pattern under `--retake` may.
#[test]
fn recorded_retakes_stop_at_the_bound_and_say_so() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&until_kept(1, 2)));
    for _ in 0..2 {
        here.run(&service, &[]).ends_with(0);
        save(&here, "anna.json", "anna", &[], &["j0"]);
        here.shotlist(&["choose", "m.yaml", "anna.json"]).ends_with(0);
    }
    for args in [&[][..], &["--retake", "@ledger"]] {
        assert!(codes(&here.plan(args)).contains(&"choice-spent"));
        here.run(&service, args).ends_with(0);
        assert_eq!(service.posts().len(), 2);
    }
    here.run(&service, &["--retake", "j0"]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
}

/// Drafts of a cheap model are chosen, and their finals are bought with a better one.
#[test]
fn kept_drafts_are_selected_for_another_manifest() {
    let (service, here) = bought(3);
    save(&here, "choices.json", "anna", &["j0", "j2"], &["j1"]);
    here.write("final.yaml", numbered_jobs(4).replace("alpha-2", "beta-2.0-lite"));
    let url = service.url();
    let run = |selected: &str| here.shotlist(&["run", "final.yaml", "--yes", "--select", selected, "--base-url", &url]);
    let run = |selected: &str| run(selected).env("SHOTLIST_API_KEY", "k");
    insta::assert_snapshot!(run("@choices.json").ends_with(2).stderr, @"
    error[choices-invalid]: `@choices.json` must be about `final`, found `m`
      note: nothing was submitted; nothing was spent
      help: save the choices on the contact sheet of this batch, or pass their IDs in a file with one ID a line
    ");
    here.write("kept.txt", "j0\nj2\n");
    run("@kept.txt").ends_with(0);
    assert_eq!(
        here.ledger("SELECT job FROM attempt JOIN batch ON batch.id = attempt.batch WHERE name = 'final' ORDER BY job"),
        [["j0"], ["j2"]]
    );
}
