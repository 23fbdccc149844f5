//! Confirmation: a run buys only jobs that were shown.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::support::{
    Answer, Ended, Service, TWO_JOBS, Workspace, codes, has_code, kill, numbered_jobs, raw, wait_until,
};

/// `run` with no confirmation but its arguments.
fn run(here: &Workspace, service: &Service, manifest: &str, args: &[&str]) -> Ended {
    here.shotlist(&[&["run", manifest], args].concat()).with_service(&service.url()).ends()
}

fn saved(here: &Workspace, args: &[&str]) -> Value {
    let plan = here.shotlist(&[&["run", "m.yaml", "--plan", "--format", "json"], args].concat()).ends_with(0).stdout;
    here.write("plan.json", &plan);
    serde_json::from_str(&plan).expect("JSON")
}

#[test]
fn approval_of_a_plan_without_retries_covers_none() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(1)));
    let plan = saved(&here, &[]);
    let digest = plan["digest"].as_str().expect("a digest");
    let refused = run(&here, &service, "m.yaml", &["--approved", digest, "--retries", "3"]);
    assert_eq!((refused.code, service.posts().len()), (Some(3), 0), "{}", refused.stderr);
}

#[test]
fn retake_outside_of_an_approval_is_refused() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    saved(&here, &[]);
    assert_eq!(run(&here, &service, "m.yaml", &["--approved", "plan.json"]).code, Some(0));
    let refused = run(&here, &service, "m.yaml", &["--approved", "plan.json", "--retake", "j1"]);
    assert_eq!((refused.code, service.posts().len()), (Some(3), 2));
    assert!(has_code(&refused.stderr, "plan-differs"), "{}", refused.stderr);
}

/// A catalog of a gateway that charges nothing for server errors.
const RETRIES: &str = "version: 1\nprices_taken_on: 9999-01-01\nretry_server_errors: true\n";

#[test]
fn retried_server_error_counts_under_an_approval() {
    let service = Service::scripted(|asked| if asked.method == "POST" { raw(502, &[], "") } else { Answer::Well });
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.write("catalog.yaml", RETRIES);
    saved(&here, &[]);
    for _ in 0..2 {
        let ended = run(&here, &service, "m.yaml", &["--approved", "plan.json", "--catalog", "catalog.yaml"]);
        assert_eq!((ended.code, service.posts().len()), (Some(1), 1), "{}", ended.stderr);
    }
    assert!(run(&here, &service, "m.yaml", &["--yes"]).code == Some(7), "without that word, it is in doubt");
}

/// It counts in the next plan, too: an earlier approval doesn't cover it.
#[test]
fn server_error_under_another_consent_changes_the_digest() {
    let service = Service::scripted(|asked| if asked.method == "POST" { raw(502, &[], "") } else { Answer::Well });
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.write("catalog.yaml", RETRIES);
    saved(&here, &[]);
    let child = here.run(&service, &["--catalog", "catalog.yaml"]).starts();
    wait_until("an error is recorded", || {
        here.ledger_if_any("SELECT declared FROM attempt LIMIT 1") == ["server_error"]
    });
    kill(&child, "-INT");
    drop(Ended::wait_for(child));
    let sent = service.posts().len();
    let refused = run(&here, &service, "m.yaml", &["--approved", "plan.json"]);
    assert_eq!((refused.code, service.posts().len()), (Some(3), sent), "{}", refused.stderr);
    assert!(has_code(&refused.stderr, "plan-differs"), "{}", refused.stderr);
}

#[test]
fn another_service_than_the_approved_plan_names_is_reported() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(1)));
    let with_url = ["--base-url", "https://other.example", "--header", "X-Team=secret-value"];
    let plan = saved(&here, &with_url);
    assert_eq!(plan["service"], serde_json::json!({ "base_url": "https://other.example", "headers": ["x-team"] }));
    let ended = run(&here, &service, "m.yaml", &["--approved", "plan.json"]);
    let told = ended.lacks(&["secret-value"]).line("warning[other-service]");
    insta::assert_snapshot!(told.replace(&service.url(), "URL"), @"warning[other-service]: the approved plan names another service: `https://other.example` with the headers x-team, found `URL`");
    // Also where the plan differs, too, and before anything is run.
    here.write("m.yaml", numbered_jobs(2));
    run(&here, &service, "m.yaml", &["--approved", "plan.json"]).shows("plan-differs").shows("other-service");
    run(&here, &service, "m.yaml", &["--approved", "plan.json", "--plan"]).shows("plan-differs").shows("other-service");
    assert_eq!(service.posts().len(), 1);
}

/// Copies of one manifest, started together: each plans before the others have bought anything.
#[test]
fn concurrent_copies_of_a_manifest_buy_nothing_twice() {
    for round in 0..3 {
        let (service, here) = (Service::well(), Workspace::new());
        let names = ["a.yaml", "b.yaml", "c.yaml"];
        for name in names {
            here.write(name, numbered_jobs(6));
        }
        let started = names
            .map(|name| here.shotlist(&["run", name, "--yes", "--no-download"]).with_service(&service.url()).starts());
        let ended = started.map(Ended::wait_for);
        let mut bought = service.posts();
        let all = bought.len();
        bought.sort();
        bought.dedup();
        assert_eq!(bought.len(), all, "round {round}: something was bought twice");
        for ended in &ended {
            assert!(matches!(ended.code, Some(0 | 3)), "{:?}: {}", ended.code, ended.stderr);
        }
        assert!(ended.iter().any(|ended| ended.code == Some(3)), "round {round}: nobody was stopped");
        // A later run questions the purchases of the others, job by job.
        let again = run(&here, &service, "a.yaml", &["--yes"]);
        assert!(matches!(again.code, Some(0 | 3)), "{}", again.stderr);
        assert_eq!(service.posts().len(), all);
    }
}

#[test]
fn batch_key_in_another_spelling_is_questioned() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    here.run(&service, &["--batch", "Fr\u{fc}hling"]).ends_with(0);
    for key in ["Fru\u{308}hling", "fr\u{fc}hling", "Fr\u{fc}hling ", "\u{a0}Fr\u{fc}hling"] {
        let refused = here.run(&service, &["--batch", key]).ends_with(3).stderr;
        let edit = "`batch: \"Fr\u{fc}hling\"`";
        assert!(has_code(&refused, "already-paid") && refused.contains(edit), "{refused}");
    }
    here.run(&service, &["--batch", "Sommer"]).ends_with(0);
    assert_eq!(service.posts().len(), 4);
}

/// An edit that removes the batch value, and a renamed manifest that gets back its name, but not its batch.
#[test]
fn lost_batch_value_is_questioned() {
    let list = |head: &str| format!("version: 1\n{head}\njobs: [{{ id: a, model: alpha-2, prompt: same }}]\n");
    let (service, here) = (Service::well(), Workspace::with_manifest(&list("name: shop\nbatch: Spring")));
    here.run(&service, &[]).ends_with(0);
    for (head, edits) in
        [("name: shop", &["`batch: \"Spring\"`"][..]), ("name: store", &["`name: \"shop\"`", "`batch: \"Spring\"`"])]
    {
        here.write("m.yaml", list(head));
        let refused = here.run(&service, &[]).fails_with("already-paid", 3).stderr;
        assert!(edits.iter().all(|edit| refused.contains(edit)), "{head}: {refused}");
    }
    assert_eq!(service.posts().len(), 1);
    // A new value is a new round, also after a batch without one.
    here.write("m.yaml", list("name: shop"));
    here.run(&service, &["--buy-again", "a"]).ends_with(0);
    here.write("m.yaml", list("name: shop\nbatch: Summer"));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
}

/// The guards compare with all jobs of the manifest.
#[test]
fn moved_rows_are_questioned_in_every_selection() {
    let manifest = "version: 1\njobs: [{ for_each: rows.csv, id: 'row-{{ row_number }}', model: alpha-2, prompt: '{{ row.p }}', tags: ['t{{ row_number }}'] }]\n";
    let (service, here) =
        (Service::well(), Workspace::with_manifest(manifest).file("rows.csv", "p\none\ntwo\nthree\n"));
    here.run(&service, &[]).ends_with(0);
    let selections: [&[&str]; 6] = [
        &[],
        &["--select", "row-2"],
        &["--tag", "t2"],
        &["--exclude", "row-1"],
        &["--sample", "2"],
        &["--sample", "3"],
    ];
    for (rows, selections) in [
        ("zero\none\ntwo\nthree\n", &selections[..]),
        ("two\nthree\n", &selections[..1]),
        ("three\none\ntwo\n", &selections[..1]),
        ("TWO\n one \nthree\n", &selections[..1]),
    ] {
        here.write("rows.csv", format!("p\n{rows}"));
        for selection in selections {
            let refused = here.run(&service, selection).ends();
            assert_eq!(
                (refused.code, service.posts().len()),
                (Some(3), 3),
                "{rows:?} {selection:?}: {}",
                refused.stderr
            );
        }
    }
}

/// Two simultaneous changes, each with a different guard.
#[test]
fn another_spelling_under_another_id_row_or_name_is_questioned() {
    let list = |name: &str, id: &str, prompt: &str| {
        format!("version: 1\nname: {name}\njobs: [{{ id: {id}, model: alpha-2, prompt: \"{prompt}\" }}]\n")
    };
    let (service, here) =
        (Service::well(), Workspace::with_manifest(&list("m", "a", "It's a \\\"red\\\" mug - top...")));
    here.run(&service, &[]).ends_with(0);
    let other = "it\u{2019}s  a \u{201c}Red\u{201d}\u{200b} mug \u{2013} top\u{2026}";
    for (name, id) in [("m", "a"), ("m", "b"), ("other", "a"), ("other", "b")] {
        here.write("m.yaml", list(name, id, other));
        here.run(&service, &[]).ends_with(3);
    }
    assert_eq!(service.posts().len(), 1);
    // A confirmation names the jobs.
    let two = format!("{}  \n", list("m", "a", other))
        .replace("}]", "}, { id: b, model: alpha-2, prompt: \"IT'S A 'RED' MUG\" }]");
    here.write("m.yaml", two);
    here.run(&service, &["--buy-again", "b"]).ends_with(3);
    here.run(&service, &["--buy-again", "a"]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
}

#[test]
fn one_purchase_elsewhere_explains_one_job() {
    let job = |id: &&str| format!("  - {{ id: {id}, model: alpha-2, prompt: same }}\n");
    let jobs = |ids: &[&str]| ids.iter().map(job).collect::<Vec<_>>().concat();
    let list = |name: &str, ids: &[&str]| format!("version: 1\nname: {name}\njobs:\n{}", jobs(ids));
    let (service, here) = (Service::well(), Workspace::with_manifest(&list("x", &["q"])));
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", list("y", &["old"]));
    here.run(&service, &["--buy-again", "*"]).ends_with(0);
    // `a` is `old` under another ID, and `b` repeats a purchase under the other name.
    here.write("m.yaml", list("y", &["a", "b"]));
    here.run(&service, &["--buy-again", "a"]).fails_with("warnings-not-accepted", 3);
    let refused = here.run(&service, &["--buy-again", "a", "--accept-warnings"]).fails_with("already-paid", 3);
    insta::assert_snapshot!(refused.line("error[already-paid]"), @"error[already-paid]: 1 job is already paid for");
    assert_eq!(service.posts().len(), 2);
}

/// A family with refunds: a failed task was not charged, so another name needs no confirmation.
#[test]
fn failure_without_charge_is_no_purchase_elsewhere() {
    let failed =
        || raw(200, &[("content-type", "application/json")], r#"{ "status": "failed", "error": { "message": "no" } }"#);
    let service = Service::scripted(move |asked| if asked.method == "POST" { Answer::Well } else { failed() });
    let list =
        |name: &str| format!("version: 1\nname: {name}\njobs: [{{ id: a, model: beta-2.0-lite, prompt: same }}]\n");
    let here = Workspace::with_manifest(&list("x")).file(
        "c.yaml",
        "version: 1\nprices_taken_on: 2026-11-01\nfamilies: { beta: { charging: refunded_on_failure } }\n",
    );
    let catalog = ["--catalog", "c.yaml"];
    here.run(&service, &catalog).ends_with(1);
    here.write("m.yaml", list("y"));
    here.run(&service, &catalog).ends_with(1);
    assert_eq!(service.posts().len(), 2);
    // Where the charge is unknown, there is.
    here.write("m.yaml", list("z"));
    here.run(&service, &[]).ends_with(1);
    here.write("m.yaml", list("w"));
    here.run(&service, &catalog).fails_with("already-paid", 3);
}

/// A report that names a task which the ledger has under another job: one of the two is wrong.
#[test]
fn task_of_another_job_in_the_ledger_is_reported() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--select", "one"]).ends_with(0);
    let report = here.path("shotlist-out/m/report.json");
    let mut value: Value = serde_json::from_str(&fs::read_to_string(&report).expect("a report")).expect("JSON");
    for job in value["jobs"].as_array_mut().expect("jobs") {
        if job["id"] == "two" {
            (job["task_id"], job["state"]) = ("t0".into(), "completed".into());
        }
    }
    fs::write(&report, value.to_string()).expect("a report");
    here.run(&service, &[]).fails_with("report-unknown", 3);
    let before = &here.plan(&[])["bought_before"][0];
    assert_eq!(
        (&before["job"], &before["known_from"], &before["task_id"]),
        (&"two".into(), &"report".into(), &"t0".into())
    );
}

#[test]
fn retake_by_a_pattern_continues_after_a_kill() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(10)));
    here.run(&service, &[]).ends_with(0);
    let flag = here.path("halted");
    let retake = ["--retake", "*", "--concurrency", "1"];
    let child = here.run(&service, &retake).env("SHOTLIST_HALT_AT", "after-commit:14");
    let child = child.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it has retaken some", || flag.exists());
    kill(&child, "-KILL");
    drop(Ended::wait_for(child));
    let retaken = service.posts().len() - 10;
    assert!((1..10).contains(&retaken), "{retaken}");
    here.shotlist(&["resolve", "m.yaml", "*", "--never-created"]).ends();
    let command = "`--retake '*'`";
    here.shotlist(&["status", "m.yaml"]).ends_with(0).line(command);
    assert!(codes(&here.plan(&["--retake", "j1"])).contains(&"retake-unfinished"));
    here.shotlist(&["ledger", "backup", "backup.db"]).ends_with(0);
    here.shotlist(&["ledger", "copy", "backup.db", "copy.db"]).ends_with(0);
    assert!(codes(&here.plan(&["--retake", "*", "--ledger", "copy.db"])).contains(&"choice-spent"));
    here.run(&service, &[&retake[..], &["--log-format", "json"]].concat()).ends_with(0).shows("choice-spent");
    here.shotlist(&["status", "m.yaml"]).ends_with(0).lacks(&[command]);
    let bought = here.ledger("SELECT count(*) FROM attempt WHERE state = 'completed' GROUP BY job");
    assert!(bought.iter().all(|count| count == &["2"]), "{bought:?}");
    // That run has ended: the same command is one more retake.
    here.run(&service, &["--retake", "j0"]).ends_with(0);
    here.run(&service, &["--retake", "j0"]).ends_with(0);
    assert_eq!(here.ledger("SELECT count(*) FROM attempt WHERE job = 'j0' AND state = 'completed'"), [["4"]]);
}

#[test]
fn frozen_ledger_buys_nothing_and_says_so() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    here.run(&service, &["--select", "j0"]).ends_with(0);
    here.shotlist(&["limit", "set", "--freeze"]).ends_with(0);
    let shown = here.shotlist(&["limit", "show"]).ends_with(0).stdout;
    insta::assert_snapshot!(shown, @"
    no limit is set
    purchases are frozen: `shotlist limit set --freeze`; `shotlist limit set --unfreeze` allows them again
    ");
    assert!(codes(&here.plan(&[])).contains(&"purchases-frozen"));
    here.shotlist(&["run", "m.yaml", "--plan"]).fails_with("frozen", 3);
    assert!(here.status(&[])["frozen"].is_string(), "{}", here.status(&[]));
    here.shotlist(&["ledger", "copy", ".shotlist/ledger.db", "copy.db"]).ends_with(0);
    let copied = here.plan(&["--ledger", "copy.db"]);
    assert!(codes(&copied).contains(&"purchases-frozen"), "a copy lifts no freeze: {copied}");
    let refused = here.run(&service, &[]).fails_with("frozen", 3).stderr;
    // Paid videos are still downloaded.
    fs::remove_file(here.path("shotlist-out/m/j0.mp4")).expect("a video");
    here.run(&service, &["--select", "j0"]).ends_with(0);
    assert_eq!(service.posts().len(), 1);
    // In another directory, the command would create another ledger.
    here.shotlist(&["limit", "set", "--unfreeze", "--ledger", "stray.db"]).ends_with(2);
    assert!(!here.path("stray.db").exists());
    insta::assert_snapshot!(refused, @"
    error[frozen]: purchases are frozen: it was copied to copy.db
      note: nothing was submitted; nothing was spent
      help: run `shotlist limit set --unfreeze --ledger .shotlist/ledger.db` to allow purchases again; `shotlist run m.yaml --plan` shows what it would buy
    ");
    here.shotlist(&["limit", "set", "--unfreeze", "--ledger", ".shotlist/ledger.db"]).ends_with(0);
    here.run(&service, &[]).ends_with(0);
}

/// Paid tasks are polled to their end.
#[test]
fn frozen_ledger_still_collects_active_tasks() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    let flag = here.path("halted");
    let child = here.run(&service, &["--select", "j0"]).env("SHOTLIST_HALT_AT", "after-commit:3");
    let child = child.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("j0 is accepted", || flag.exists());
    kill(&child, "-KILL");
    drop(Ended::wait_for(child));
    assert_eq!(here.ledger("SELECT state FROM attempt"), [["queued"]]);
    here.shotlist(&["limit", "set", "--freeze"]).ends_with(0);
    let ended = here.run(&service, &[]).ends_with(3);
    insta::assert_snapshot!(ended.line("warning[purchases-frozen]"), @"warning[purchases-frozen]: purchases are frozen: `shotlist limit set --freeze`; this run polls and downloads only");
    assert_eq!(here.ledger("SELECT job, state FROM attempt WHERE state <> 'void'"), [["j0", "completed"]]);
    assert!(here.path("shotlist-out/m/j0.mp4").exists());
    assert_eq!(service.posts().len(), 1);
}

#[test]
fn freeze_stops_an_active_run() {
    let (service, release) = Service::holding("number 0");
    let here = Workspace::with_manifest(&numbered_jobs(3));
    let child = here.run(&service, &["--concurrency", "1"]).starts();
    wait_until("the first is sent", || service.posts().len() == 1);
    here.shotlist(&["limit", "set", "--freeze"]).ends_with(0);
    release.store(true, Ordering::SeqCst);
    let ended = Ended::wait_for(child);
    assert_eq!((ended.code, service.posts().len()), (Some(3), 1), "{}", ended.stderr);
    drop(ended.shows("stopping"));
}

/// An early end with a number of jobs: the same words would buy others.
#[test]
fn command_after_an_early_end_buys_only_the_rest() {
    let release = Arc::new(AtomicBool::new(false));
    let is_released = Arc::clone(&release);
    let service = Service::scripted(move |asked| {
        // The third retake.
        if asked.method == "POST" && asked.earlier == 8 {
            wait_until("the test lets go", || is_released.load(Ordering::SeqCst));
        }
        Answer::Well
    });
    let here = Workspace::with_manifest(&numbered_jobs(6));
    here.run(&service, &["--concurrency", "1"]).ends_with(0);
    let report = here.report();
    let jobs = report["jobs"].as_array().expect("jobs");
    let tasks: serde_json::Map<_, _> =
        jobs.iter().map(|job| (job["id"].as_str().expect("an ID").to_owned(), job["task_id"].clone())).collect();
    let again: Vec<&String> = tasks.keys().collect();
    here.write("choices.json", serde_json::json!({ "name": "m", "retake": again, "tasks": tasks }).to_string());
    let child = here.run(&service, &["--retake", "@choices.json", "--sample", "4", "--concurrency", "1"]).starts();
    wait_until("three are sent", || service.posts().len() == 9);
    kill(&child, "-INT");
    release.store(true, Ordering::SeqCst);
    let told = Ended::wait_for(child).stderr;
    let command = told.split('`').find(|part| part.starts_with("shotlist run m.yaml --select")).expect(&told);
    insta::assert_snapshot!(command, @"shotlist run m.yaml --select j5 --retake '*' --concurrency 1");
    let words = command.replace("shotlist run m.yaml ", "").replace('\'', "");
    here.run(&service, &words.split(' ').collect::<Vec<_>>()).ends_with(0);
    assert_eq!(service.posts().len(), 10, "only the one that was left");
}

/// A machine where the team's ledger is not set would buy everything again.
#[test]
fn manifest_with_a_shared_ledger_refuses_a_private_one() {
    let manifest = "version: 1\nledger: shared\njobs: [{ id: a, model: alpha-2, prompt: x }]\n";
    let (service, here) = (Service::well(), Workspace::with_manifest(manifest));
    for option in ["--yes", "--plan"] {
        let refused = run(&here, &service, "m.yaml", &[option]).shows("ledger-private");
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    }
    assert_eq!(service.posts().len(), 0);
    here.shotlist(&["run", "m.yaml", "--plan", "--sandbox"]).ends_with(0);
    here.write("m.yaml", manifest.replace("shared", "private"));
    let wrong = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2);
    insta::assert_snapshot!(wrong.stderr, @"
    error[wrong-type]: `ledger` must be `shared`
     --> m.yaml:2:9
      |
    2 | ledger: private
      |         ^^^^^^^
      |
      = help: write `ledger: shared`, and name the database in `SHOTLIST_LEDGER`

    error[manifest-invalid]: `m.yaml` has 1 error
      note: nothing was submitted; nothing was spent
    ");
}
