//! Responses and their tasks, over several tasks and runs, and tasks without an end.

use serde_json::json;

use crate::support::{
    Answer, Asked, LEFT_AFTER, Program, Service, Workspace, has_code, json as answer, line_of, numbered_jobs,
    open_ledger, raw,
};

fn asked_for(asked: &Asked) -> String {
    asked.path.rsplit('/').next().expect("a name").to_owned()
}

/// The word that a task is completed, under this name.
fn completed(asked: &Asked, id: &str) -> Answer {
    let host = asked.headers.get("host").expect("a host");
    answer(200, &json!({ "id": id, "status": "completed", "video_url": format!("http://{host}/videos/{id}.mp4") }))
}

/// Resolves the second job with its task ID, as after a lost response.
fn naming_the_second_task(here: &Workspace, service: &Service) -> Program {
    let sql = "UPDATE attempt SET state = 'in_doubt', task = NULL, alias = NULL, charge = 'unknown',
         record = json_set(record, '$.state', 'in_doubt', '$.task', NULL) WHERE job = 'j1'";
    open_ledger(&here.path(".shotlist/ledger.db")).execute(sql, []).expect("changed");
    let resolve = here.shotlist(&["resolve", "m.yaml", "j1", "--task", "t1"]);
    resolve.with_service(&service.url())
}

#[test]
fn stable_alias_is_recorded_for_the_next_run() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => Answer::Well,
        _ => answer(200, &json!({ "id": format!("poll-{}", asked_for(asked)), "status": "in_progress" })),
    });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    let ended = here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
    ended.line("(also poll-t");
    assert_eq!(here.ledger("SELECT task, alias FROM attempt ORDER BY id"), [["t0", "poll-t0"], ["t1", "poll-t1"]]);

    let service = Service::scripted(|asked| completed(asked, &format!("poll-{}", asked_for(asked))));
    here.run(&service, &["--same-account"]).ends_with(0);
    assert_eq!((service.polls(), service.posts().len()), (2, 0), "one poll for each");
}

#[test]
fn response_with_another_recorded_task_is_refused() {
    // Each poll returns the first task, as from a faulty cache.
    let service =
        Service::scripted(|asked| if asked.method.as_str() == "POST" { Answer::Well } else { completed(asked, "t0") });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    let ended = here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
    assert_eq!(here.states(), ["completed", "queued"]);
    insta::assert_snapshot!(ended.line("[task-left]"), @"warning[task-left]: j1 passed its deadline; its task stays active, and the next run polls it; last state: poll for task t1: task `t0` belongs to `j0` of `m`");
    assert_eq!(here.ledger("SELECT count(alias) FROM attempt"), [["0"]]);
    // Nor is it believed when the user names the second task.
    let ended = naming_the_second_task(&here, &service).ends_with(2);
    assert!(has_code(&ended.stderr, "task-taken"), "{}", ended.stderr);
}

#[test]
fn named_task_may_have_an_alias() {
    let service =
        Service::scripted(
            |asked| {
                if asked.method.as_str() == "POST" { Answer::Hangup } else { completed(asked, "by-poll") }
            },
        );
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.run(&service, &[]).ends_with(7);
    let resolve = here.shotlist(&["resolve", "m.yaml", "j0", "--task", "by-hand"]);
    let resolve = resolve.with_service(&service.url()).ends_with(0);
    insta::assert_snapshot!(resolve.stderr, @"recorded by-hand (also by-poll) for j0; `shotlist run m.yaml` polls it, free of charge");
    here.run(&service, &[]).ends_with(0);
    assert_eq!((here.states(), service.posts().len()), (vec!["completed".to_owned()], 1));
}

#[test]
fn endless_task_can_be_abandoned_and_bought_again() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "GET" if asked_for(asked) == "t0" => answer(200, &json!({ "status": "limbo" })),
        _ => Answer::Well,
    });
    let beta = "version: 1\njobs: [{ id: a, model: beta-2.0-lite, prompt: a }]\n";
    let here = Workspace::with_manifest(beta);
    let ended = here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
    insta::assert_snapshot!(ended.stderr, @"
    1 job to submit for $3.75
    warning[unknown-status]: the service reports the unknown state `limbo`; polling continues
    warning[task-left]: a passed its deadline; its task stays active, and the next run polls it; last state: the service reports `limbo`; `shotlist resolve m.yaml a --abandon` gives up a task that never ends, but a retry pays twice if it is still running
    ");
    let lost = here.shotlist(&["resolve", "m.yaml", "a", "--abandon"]).ends_with(0);
    insta::assert_snapshot!(lost.stderr, @"gave up the task of a; the charge of $3.75 stays unknown; `run --retry-failed` buys the job again, and `shotlist resolve m.yaml a --undo` polls the task again");
    here.shotlist(&["resolve", "m.yaml", "a", "--abandon"]).ends_with(2);

    // The task is not polled, nothing is bought without a request, and the charge stays unknown.
    let polls = service.polls();
    here.run(&service, &[]).ends_with(1);
    let job = here.report()["jobs"][0].clone();
    assert_eq!((&job["state"], &job["charge"], &job["cost_usd"]), (&json!("failed"), &json!("unknown"), &json!(null)));
    assert_eq!((service.polls(), service.posts().len()), (polls, 1));
    here.run(&service, &["--retry-failed"]).ends_with(0);
    assert_eq!((here.states(), service.posts().len()), (vec!["completed".to_owned()], 2));
    assert_eq!(here.ledger("SELECT state FROM attempt ORDER BY id"), [["failed"], ["completed"]]);
}

#[test]
fn of_two_tasks_of_a_job_the_endless_one_has_to_be_named() {
    let (service, _) = Service::slow();
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: before }]\n");
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
    here.write("m.yaml", "version: 1\njobs: [{ id: a, model: alpha-2, prompt: now }]\n");
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
    let unclear = here.shotlist(&["resolve", "m.yaml", "a", "--abandon"]).ends_with(2);
    assert!(has_code(&unclear.stderr, "not-resolvable"), "{}", unclear.stderr);
    here.shotlist(&["resolve", "m.yaml", "a", "--abandon=t7"]).ends_with(2);
    let lost = here.shotlist(&["resolve", "m.yaml", "a", "--abandon=t0"]).ends_with(0);
    insta::assert_snapshot!(lost.stderr, @"gave up the task of a; the $0.90 stays spent; `run --retry-failed` buys the job again, and `shotlist resolve m.yaml a --undo` polls the task again");
    assert_eq!(here.ledger("SELECT state FROM attempt ORDER BY id"), [["failed"], ["in_progress"]]);
}

/// Two tasks with the same second ID, such as a group ID: it is no alias, and is never polled.
#[test]
fn alias_of_another_task_is_refused() {
    let service = Service::scripted(|asked| {
        let host = asked.headers.get("host").expect("a host");
        let completed = |id: &str| {
            answer(
                200,
                &json!({ "id": id, "task_id": "group", "status": "completed", "video_url": format!("http://{host}/videos/{id}.mp4") }),
            )
        };
        match asked.method.as_str() {
            "POST" => {
                answer(200, &json!({ "id": format!("t{}", asked.earlier), "task_id": "group", "status": "queued" }))
            }
            // Not everywhere yet: the first poll of the second task finds nothing.
            _ if asked_for(asked) == "t1" && asked.earlier == 0 => answer(404, &json!({})),
            _ if asked_for(asked) == "group" => completed("t0"),
            _ => completed(&asked_for(asked)),
        }
    });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(here.ledger("SELECT task, alias FROM attempt ORDER BY id"), [["t0", "group"], ["t1", "NULL"]]);
    let urls = here.ledger("SELECT video_url FROM attempt ORDER BY id");
    assert!(urls[0][0].ends_with("t0.mp4") && urls[1][0].ends_with("t1.mp4"), "{urls:?}");
    assert!(!service.asked().iter().any(|asked| asked_for(asked) == "group"), "asked by a name of another");
    // The user may settle such a task, too.
    naming_the_second_task(&here, &service).ends_with(0);
}

/// The service denies the second ID. It is polled once, and the first ID keeps its grace time.
#[test]
fn invalid_alias_does_not_hide_a_task() {
    for bad in [400, 403, 500] {
        let service = Service::scripted(move |asked| match asked.method.as_str() {
            "POST" => answer(200, &json!({ "id": 4711, "task_id": "t_1", "status": "queued" })),
            _ if asked_for(asked) == "4711" => answer(bad, &json!({ "error": "no such form" })),
            _ if asked.earlier < 2 => answer(404, &json!({})),
            _ => {
                let host = asked.headers.get("host").expect("a host");
                answer(200, &json!({ "status": "completed", "video_url": format!("http://{host}/videos/a.mp4") }))
            }
        });
        let here = Workspace::with_manifest(&numbered_jobs(1));
        here.run(&service, &["--deadline", "60s"]).ends_with(0);
        assert_eq!(here.states(), ["completed"], "{bad}");
    }
}

/// A gateway does so for each task.
#[test]
fn second_ids_are_warned_of_once_and_counted() {
    let service = Service::scripted(|asked| {
        if asked.method == "POST" {
            return Answer::Well;
        }
        let (id, is_over) = (asked.path.rsplit('/').next().unwrap_or_default(), asked.earlier >= 4);
        let status = if is_over { "completed" } else { "in_progress" };
        raw(200, &[], format!(r#"{{"id": "x-{id}", "status": "{status}"}}"#))
    });
    let here = Workspace::with_manifest(&numbered_jobs(5));
    let stderr = here.run(&service, &["--no-download"]).ends_with(0).stderr;
    assert_eq!(stderr.matches("has two IDs for").count(), 2, "the first one, and their count: {stderr}");
    insta::assert_snapshot!(line_of(&stderr, "for each of"), @"the service has two IDs for each of 5 tasks");
}
