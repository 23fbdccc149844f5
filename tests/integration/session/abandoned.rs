//! Abandoned tasks: polled once by each later run, before it buys anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::support::{Answer, LEFT_AFTER, Service, Workspace, json as answer, numbered_jobs};

/// A batch with one abandoned task, which ends once the switch is set.
fn abandoned() -> (Service, Workspace, Arc<AtomicBool>) {
    let (service, ends) = Service::slow();
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
    here.shotlist(&["resolve", "m.yaml", "j0", "--abandon"]).ends_with(0);
    (service, here, ends)
}

#[test]
fn running_abandoned_task_is_polled_once() {
    let (service, here, _ends) = abandoned();
    let plan = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stdout;
    assert!(plan.contains("1 abandoned task to poll once, before anything is bought"), "{plan}");
    let polls = service.polls();
    for run in 1..=2 {
        here.run(&service, &[]).ends_with(1);
        assert_eq!((service.polls(), here.states()), (polls + run, vec!["failed".to_owned()]));
    }
    // `fetch` without missing URLs polls no task.
    here.shotlist(&["fetch", "m.yaml"]).ends_with(0);
    assert_eq!((service.polls(), service.posts().len()), (polls + 2, 1));
}

#[test]
fn completed_abandoned_task_is_not_bought_again() {
    let (service, here, ends) = abandoned();
    ends.store(true, Ordering::SeqCst);
    assert_eq!(here.planned(&["--retry-failed"]), (1, "0.90".to_owned()), "a plan asks nobody");
    let ended = here.run(&service, &["--retry-failed"]).ends_with(0);
    let said = ended.stderr.lines().next().expect("a line");
    assert_eq!(said, "j0: its abandoned task has completed; its video is taken, at no cost");
    assert_eq!((service.posts().len(), service.fetched().len()), (1, 1));
    assert_eq!(here.states(), ["completed"]);
    here.run(&service, &["--retry-failed"]).ends_with(0);
    assert_eq!((service.posts().len(), service.fetched().len()), (1, 1));
}

#[test]
fn abandoned_task_of_another_account_is_not_polled() {
    let (service, here, ends) = abandoned();
    let polls = service.polls();
    here.run(&service, &[]).env("SHOTLIST_API_KEY", "another").ends_with(1);
    assert_eq!(service.polls(), polls);
    // The first poll finds the task running, so the retry is bought. From then on, the retry counts.
    here.run(&service, &["--retry-failed", "--deadline", LEFT_AFTER]).ends_with(1);
    assert_eq!(service.posts().len(), 2);
    ends.store(true, Ordering::SeqCst);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(here.ledger("SELECT state FROM attempt ORDER BY id"), [["failed"], ["completed"]]);
}

#[test]
fn incomplete_response_leaves_an_abandoned_task() {
    for (status, body) in [
        (404, json!({ "error": { "message": "no such task" } })),
        (500, json!({})),
        (200, json!({ "id": "other", "status": "completed", "video_url": "http://127.0.0.1:9/v.mp4" })),
        (200, json!({ "status": "failed", "error": { "message": "broke" } })),
        (200, json!({ "status": "completed" })),
    ] {
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let (switch, shown) = (Arc::clone(&is_abandoned), body.to_string());
        let service = Service::scripted(move |asked| match asked.method.as_str() {
            "POST" => Answer::Well,
            _ if switch.load(Ordering::SeqCst) => answer(status, &body),
            _ => answer(200, &json!({ "status": "in_progress" })),
        });
        let here = Workspace::with_manifest(&numbered_jobs(1));
        here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
        here.shotlist(&["resolve", "m.yaml", "j0", "--abandon"]).ends_with(0);
        is_abandoned.store(true, Ordering::SeqCst);
        let polls = service.polls();
        here.run(&service, &[]).ends_with(1);
        assert_eq!(service.polls(), polls + 1, "{shown}");
        let recorded = here.ledger("SELECT state, record ->> '$.particulars.declared.what' FROM attempt");
        assert_eq!(recorded, [["failed", "lost"]], "{shown}");
    }
}

#[test]
fn killed_fetch_of_an_abandoned_task_continues() {
    for halt in ["before-commit:1", "after-commit:1", "before-commit:2", "after-commit:2", "before-commit:3"] {
        let (service, here, ends) = abandoned();
        ends.store(true, Ordering::SeqCst);
        here.run(&service, &["--retry-failed"]).dies_at(halt);
        here.run(&service, &["--retry-failed"]).ends_with(0);
        assert_eq!((service.posts().len(), here.states()), (1, vec!["completed".to_owned()]), "{halt}");
    }
}
