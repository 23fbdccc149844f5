//! Jobs in doubt: the list for a search at the service, and their resolution by ID or pattern.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::support::{Answer, Service, Workspace, has_code, json as answer, numbered_jobs};

const SPINS: &str = "version: 1
defaults: { model: alpha-2 }
jobs:
  - { id: spin-mug, prompt: a blue mug }
  - { id: spin-lamp, prompt: a brass lamp }
  - { id: hero, prompt: a crane }
";

/// Three jobs, and a service that fails each submission.
fn failing() -> (Service, Workspace) {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => answer(500, &json!({ "error": { "message": "worker crashed" } })),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(SPINS);
    here.run(&service, &[]).ends_with(7);
    (service, here)
}

#[test]
fn doubts_are_listed_with_time_price_prompt_and_cause() {
    let (service, here) = failing();
    let listed = here.shotlist(&["resolve", "m.yaml"]).ends_with(0).stdout;
    assert_eq!(listed.matches(" UTC").count(), 3, "{listed}");
    let shown = hide_times(&listed);
    insta::assert_snapshot!(shown, @r"
    3 submissions in doubt, $2.70 at risk

       JOB        SENT                          COST  PROMPT
       spin-mug   1970-01-01 00:00:00 UTC  $0.90  a blue mug
       spin-lamp  1970-01-01 00:00:00 UTC  $0.90  a brass lamp
       hero       1970-01-01 00:00:00 UTC  $0.90  a crane

      spin-mug, spin-lamp, hero: the service failed with the request (HTTP 500): worker crashed

    Look up each job at the service by time and prompt. If a task exists:
      shotlist resolve m.yaml JOB --task ID
    If none exists, make the job due again; JOB can be a pattern:
      shotlist resolve m.yaml JOB --never-created
    ");
    assert_eq!(service.posts().len(), 3);
    // A new batch has no jobs in doubt.
    let empty = here.shotlist(&["resolve", "m.yaml", "--batch", "new"]).ends_with(0).stdout;
    assert_eq!(
        empty,
        "no jobs in doubt\nin `m`: 3 submissions in doubt, $2.70 at risk: shotlist resolve m.yaml --batch ''\n"
    );
}

/// The manifest lacks the job, and its price is at risk.
#[test]
fn removed_job_in_doubt_is_in_status_and_summary() {
    let (service, here) = failing();
    here.write("m.yaml", SPINS.replace("  - { id: spin-mug, prompt: a blue mug }\n", ""));
    let removed =
        "3 jobs in doubt (spin-lamp, hero, spin-mug): the service failed with the request (HTTP 500): worker crashed
  $2.70 at risk; look for the task at the service, and resolve it: shotlist resolve m.yaml\n";
    for shown in
        [here.shotlist(&["status", "m.yaml"]).ends_with(0).stdout, here.run(&service, &["-q"]).ends_with(7).stdout]
    {
        assert!(shown.contains(removed), "{shown}");
    }
}

#[test]
fn pattern_settles_several_doubts_and_a_task_one() {
    let (_, here) = failing();
    here.shotlist(&["resolve", "m.yaml", "--never-created"]).ends_with(2);
    here.shotlist(&["resolve", "m.yaml", "spin-*"]).ends_with(2);
    here.shotlist(&["resolve", "m.yaml", "spin-*", "--task", "t"])
        .with_service("http://127.0.0.1:9")
        .fails_with("not-resolvable", 2);
    here.shotlist(&["resolve", "m.yaml", "spin-*", "--abandon"]).ends_with(2);
    let settled = here.shotlist(&["resolve", "m.yaml", "spin-*", "--never-created"]).ends_with(0).stderr;
    assert_eq!(settled.matches("is due again; the next run submits it for $0.90").count(), 2, "{settled}");
    assert_eq!(
        here.ledger("SELECT job, state FROM attempt ORDER BY id"),
        [["spin-mug", "void"], ["spin-lamp", "void"], ["hero", "in_doubt"]]
    );
    here.shotlist(&["resolve", "m.yaml", "spin-*", "--never-created"]).ends_with(2);
    here.run(&Service::well(), &[]).ends_with(7);
}

/// The list with fixed times.
fn hide_times(text: &str) -> String {
    let hidden = |line: &str| match line.find(" UTC") {
        Some(at) => format!("{}1970-01-01 00:00:00{}", &line[..at - 23], &line[at..]),
        None => line.to_owned(),
    };
    text.lines().map(hidden).collect::<Vec<_>>().join("\n")
}

/// A user's mistake: the task is found later, with its cost.
#[test]
fn task_can_be_named_after_never_created() {
    let service = Service::scripted(|asked| match (asked.method.as_str(), asked.earlier) {
        ("POST", 0) => Answer::Hangup,
        ("GET", _) if asked.path.ends_with("/mine") => answer(
            200,
            // The last day of the calendar.
            &json!({ "id": "mine", "status": "completed", "model": "alpha-2", "video_url": "http://127.0.0.1:1/v.mp4", "completed_at": 253_402_206_900_000_i64 }),
        ),
        ("GET", _) if asked.path.ends_with("/beta") => {
            answer(200, &json!({ "id": "beta", "status": "completed", "model": "beta-2.0-lite" }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: x }]\n");
    here.run(&service, &["--batch", "b"]).ends_with(7);
    // The list names other batches with jobs in doubt.
    insta::assert_snapshot!(here.shotlist(&["resolve", "m.yaml"]).ends_with(0).line("--batch b"), @"in `m / b`: 1 submission in doubt, $0.90 at risk: shotlist resolve m.yaml --batch b");
    here.shotlist(&["resolve", "m.yaml", "a", "--never-created", "--batch", "b"]).ends_with(0);
    let found = |task: &str| {
        let resolve = here.shotlist(&["resolve", "m.yaml", "a", "--batch", "b", "--task", task]);
        resolve.with_service(&service.url()).ends()
    };
    let other = found("beta");
    assert!(other.code == Some(2) && has_code(&other.stderr, "task-mismatch"), "{}", other.stderr);
    assert_eq!(found("mine").code, Some(0));
    here.run(&service, &["--batch", "b", "--no-download"]).ends_with(0);
    assert_eq!(service.posts().len(), 1);
    insta::assert_snapshot!(here.shotlist(&["spend"]).ends_with(0).line("spent: "), @"spent: $0.90, at risk: $0.00, unknown: $0.00");
    here.shotlist(&["ledger", "check"]).ends_with(0);
}

/// `--undo` reverses an outcome until a purchase depends on it.
#[test]
fn statement_can_be_undone_until_a_purchase() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let service = Service::scripted(move |asked| match asked.method.as_str() {
        "POST" if !well.load(Ordering::SeqCst) => Answer::Hangup,
        "GET" if !well.load(Ordering::SeqCst) => {
            answer(200, &json!({ "id": asked.path.rsplit('/').next(), "status": "in_progress" }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    let resolve = |args: &[&str]| {
        let program = here.shotlist(&[&["resolve", "m.yaml"], args].concat());
        program.with_service(&service.url())
    };
    here.run(&service, &[]).ends_with(7);
    let doubts = here.report()["totals"]["at_risk_usd"].clone();
    resolve(&["j0", "--undo"]).fails_with("not-resolvable", 2);

    resolve(&["j0", "--never-created"]).ends_with(0);
    assert_eq!(here.planned(&[]), (1, "0.90".to_owned()));
    let told = resolve(&["j0", "--undo"]).ends_with(0).stderr;
    assert_eq!(told, "took back the outcome; j0 is in doubt again, and $0.90 at risk\n");
    assert_eq!(here.planned(&[]), (0, "0.00".to_owned()), "in doubt again: never sent by itself");
    resolve(&["j0", "--undo"]).fails_with("not-resolvable", 2);

    resolve(&["j0", "--task", "wrong"]).ends_with(0);
    resolve(&["j0", "--undo"]).ends_with(0);
    // The task belongs to no job now.
    resolve(&["j1", "--task", "wrong"]).ends_with(0);
    resolve(&["j1", "--abandon"]).ends_with(0);
    resolve(&["j1", "--undo"]).ends_with(0);
    let states = here.ledger("SELECT job, state, task FROM attempt ORDER BY id");
    assert_eq!(states, [["j0", "in_doubt", "NULL"], ["j1", "queued", "wrong"]]);
    assert_eq!(doubts, "1.80");

    // A purchase depends on the outcome.
    resolve(&["j0", "--never-created"]).ends_with(0);
    is_well.store(true, Ordering::SeqCst);
    here.run(&service, &[]).ends_with(0);
    let refused = resolve(&["j0", "--undo"]).fails_with("not-resolvable", 2).stderr;
    insta::assert_snapshot!(refused, @"
    error[not-resolvable]: can't undo the outcome of `j0`: none was recorded, something was bought since, or its task has ended
      note: nothing was spent; what is in doubt stays in doubt
      help: look at the job with `shotlist status m.yaml`
    ");
    resolve(&["j1", "--undo"]).fails_with("not-resolvable", 2);
    assert_eq!(here.ledger("SELECT count(*) FROM attempt WHERE state = 'in_doubt'"), [["0"]]);
}
