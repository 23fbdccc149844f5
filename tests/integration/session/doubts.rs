//! What is in doubt: listed with all that helps to look it up, and settled one by one or by a pattern.

use serde_json::json;

use crate::support::{Answer, Service, Workspace, has_code, json as answer};

const SPINS: &str = "version: 1
defaults: { model: alpha-2 }
jobs:
  - { id: spin-mug, prompt: a blue mug }
  - { id: spin-lamp, prompt: a brass lamp }
  - { id: hero, prompt: a crane }
";

/// Every submission fails in the service's own words, and one more is asked for.
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
fn doubts_are_listed_with_time_price_prompt_and_what_is_known() {
    let (service, here) = failing();
    let listed = here.shotlist(&["resolve", "m.yaml"]).ends_with(0).stdout;
    assert_eq!(listed.matches(" UTC").count(), 3, "{listed}");
    let shown = hide_times(&listed);
    insta::assert_snapshot!(shown, @r"
    3 submissions in doubt, $2.70 at risk

      spin-mug   1970-01-01 00:00:00 UTC  $0.90  a blue mug
                 the service failed with the request (HTTP 500): worker crashed
      spin-lamp  1970-01-01 00:00:00 UTC  $0.90  a brass lamp
                 the service failed with the request (HTTP 500): worker crashed
      hero       1970-01-01 00:00:00 UTC  $0.90  a crane
                 the service failed with the request (HTTP 500): worker crashed

    Look up each job at the service by time and prompt. If a task exists:
      shotlist resolve m.yaml JOB --task ID
    If none exists, make the job due again; JOB can be a pattern:
      shotlist resolve m.yaml JOB --never-created
    ");
    assert_eq!(service.posts().len(), 3);
    // Nothing was bought in a batch that is new, and nothing is made for it.
    let empty = here.shotlist(&["resolve", "m.yaml", "--batch", "new"]).ends_with(0).stdout;
    assert_eq!(
        empty,
        "no jobs in doubt\nin `m`: 3 submissions in doubt, $2.70 at risk: shotlist resolve m.yaml --no-batch\n"
    );
}

#[test]
fn a_pattern_settles_several_and_a_task_only_one() {
    let (_, here) = failing();
    here.shotlist(&["resolve", "m.yaml", "--never-created"]).ends_with(2);
    here.shotlist(&["resolve", "m.yaml", "spin-*"]).ends_with(2);
    here.shotlist(&["resolve", "m.yaml", "spin-*", "--task", "t"])
        .env("SHOTLIST_BASE_URL", "http://127.0.0.1:9")
        .env("SHOTLIST_API_KEY", "k")
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

/// The listing without its times, which are those of the test.
fn hide_times(text: &str) -> String {
    let hidden = |line: &str| match line.find(" UTC") {
        Some(at) => format!("{}1970-01-01 00:00:00{}", &line[..at - 23], &line[at..]),
        None => line.to_owned(),
    };
    text.lines().map(hidden).collect::<Vec<_>>().join("\n")
}

/// A person may be wrong: the task turns up, and what it cost is known again.
#[test]
fn what_was_said_to_be_never_created_can_be_found_after_all() {
    let service = Service::scripted(|asked| match (asked.method.as_str(), asked.earlier) {
        ("POST", 0) => Answer::Hangup,
        ("GET", _) if asked.path.ends_with("/mine") => answer(
            200,
            &json!({ "id": "mine", "status": "completed", "model": "alpha-2", "video_url": "http://127.0.0.1:1/v.mp4" }),
        ),
        ("GET", _) if asked.path.ends_with("/beta") => {
            answer(200, &json!({ "id": "beta", "status": "completed", "model": "beta-2.0-lite" }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: x }]\n");
    here.run(&service, &["--batch", "b"]).ends_with(7);
    // Of another batch, too, it is told where it is.
    let listed = here.shotlist(&["resolve", "m.yaml"]).ends_with(0).stdout;
    assert!(listed.contains("shotlist resolve m.yaml --batch b\n"), "{listed}");
    here.shotlist(&["resolve", "m.yaml", "a", "--never-created", "--batch", "b"]).ends_with(0);
    let found = |task: &str| {
        let resolve = here.shotlist(&["resolve", "m.yaml", "a", "--batch", "b", "--task", task]);
        resolve.env("SHOTLIST_BASE_URL", &service.url()).env("SHOTLIST_API_KEY", "k").ends()
    };
    let other = found("beta");
    assert!(other.code == Some(2) && has_code(&other.stderr, "task-differs"), "{}", other.stderr);
    assert_eq!(found("mine").code, Some(0));
    here.run(&service, &["--batch", "b", "--no-download"]).ends_with(0);
    assert_eq!(service.posts().len(), 1);
    assert!(here.shotlist(&["spend"]).ends_with(0).stdout.contains("spent: $0.90, at risk: $0.00"));
    here.shotlist(&["ledger", "check"]).ends_with(0);
}
