//! Services that honor idempotency keys: a doubt settles by itself, and nothing is made twice.

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::support::{Answer, Asked, LEFT_AFTER, Program, Service, Workspace, codes, json as answer, numbered_jobs};

const HONORED: &str = "
version: 1
prices_taken_on: 9999-01-01
idempotency: { header: Idempotency-Key, for: 24h }
";

/// A workspace whose catalog says that the service honors keys.
fn workspace(jobs: usize) -> Workspace {
    Workspace::with_manifest(&numbered_jobs(jobs)).file("catalog.yaml", HONORED)
}

fn run(here: &Workspace, service: &Service, args: &[&str]) -> Program {
    here.run(service, &[&["--catalog", "catalog.yaml"], args].concat())
}

/// A service that honors keys: it makes one task for each. `bad` is what it answers to a submission, by their number, once the task is made;
/// nothing for the task.
fn honoring(bad: impl Fn(usize) -> Option<Answer> + Send + Sync + 'static) -> Service {
    let tasks = Mutex::<HashMap<String, usize>>::default();
    Service::scripted(move |asked| {
        if asked.method != "POST" {
            return Answer::Well;
        }
        let mut tasks = tasks.lock().expect("no panic");
        let next = tasks.len();
        let task = *tasks.entry(asked.headers["idempotency-key"].clone()).or_insert(next);
        bad(asked.earlier).unwrap_or_else(|| answer(200, &made(task)))
    })
}

fn made(task: usize) -> Value {
    json!({ "id": format!("t{task}"), "status": "queued" })
}

fn submissions(service: &Service) -> Vec<Asked> {
    service.asked().into_iter().filter(|asked| asked.method == "POST").collect()
}

#[test]
fn lost_response_is_asked_for_again_in_the_same_run() {
    let (here, service) = (workspace(1), honoring(|number| (number == 0).then_some(Answer::Hangup)));
    run(&here, &service, &[]).ends_with(0);
    let sent = submissions(&service);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].headers["idempotency-key"], sent[1].headers["idempotency-key"]);
    assert_eq!(sent[0].body, sent[1].body);
    assert_eq!(
        (here.states(), here.report()["totals"]["spent_usd"].clone()),
        (vec!["completed".into()], "0.90".into())
    );
}

#[test]
fn each_submission_has_a_key_of_its_own() {
    let (here, service) = (workspace(4), honoring(|_| None));
    run(&here, &service, &[]).ends_with(0);
    let keys: HashMap<String, String> =
        submissions(&service).into_iter().map(|asked| (asked.headers["idempotency-key"].clone(), asked.body)).collect();
    assert_eq!(keys.len(), 4);
}

#[test]
fn without_the_statement_no_key_is_sent_and_nothing_is_repeated() {
    let here = workspace(1);
    let service = Service::scripted(|_| Answer::Hangup);
    for _ in 0..2 {
        here.run(&service, &[]).ends_with(7);
    }
    // The statement is not about a submission that left without a key.
    run(&here, &service, &[]).ends_with(7);
    let sent = submissions(&service);
    assert_eq!(sent.len(), 1);
    assert!(!sent[0].headers.contains_key("idempotency-key"));
}

#[test]
fn only_a_task_settles_a_doubt() {
    for (status, body) in [
        (400, json!({ "error": { "message": "no such prompt" } })),
        (409, json!({ "error": { "message": "the first is still at it" } })),
        (429, json!({ "error": { "message": "slow down" } })),
        (500, json!({})),
        (200, json!({ "status": "queued" })),
    ] {
        let shown = format!("{status} {body}");
        let service = honoring(move |number| match number {
            0 => Some(Answer::Hangup),
            1..=3 => Some(answer(status, &body)),
            _ => None,
        });
        let here = workspace(1);
        // Interrupted by its own limit, the run leaves the rest of the repetitions to the next one.
        run(&here, &service, &["--max-duration", "3s"]).ends_with(7);
        assert_eq!(here.states(), ["in_doubt"], "{shown}");
        let tries = submissions(&service).len();
        assert!((2..=4).contains(&tries), "{shown}: {tries} submissions");
        while here.states() == ["in_doubt"] && submissions(&service).len() < 6 {
            run(&here, &service, &[]).ends();
        }
        let sent = submissions(&service);
        assert_eq!((here.states(), sent.len()), (vec!["completed".to_owned()], 5), "{shown}");
        assert!(sent.iter().all(|asked| asked.headers["idempotency-key"] == sent[0].headers["idempotency-key"]));
    }
}

/// A batch of one job that is in doubt, at a service that responds from the third submission on; and the number of submissions so far.
fn in_doubt() -> (Workspace, Service, usize) {
    let (here, service) = (workspace(1), honoring(|number| (number < 2).then_some(Answer::Hangup)));
    run(&here, &service, &["--max-duration", LEFT_AFTER]).ends_with(7);
    let sent = submissions(&service).len();
    assert_eq!((here.states(), (1..=2).contains(&sent)), (vec!["in_doubt".to_owned()], true), "{sent}");
    if sent == 1 {
        // The second one is lost as well.
        run(&here, &service, &[]).ends_with(7);
    }
    (here, service, 2)
}

#[test]
fn plan_states_what_the_run_repeats_and_sends_nothing() {
    let (here, service, sent) = in_doubt();
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--catalog", "catalog.yaml"]).ends_with(0).stdout;
    let said = "1 submission in doubt to repeat, each with its idempotency key";
    assert!(plan.contains(said) && !plan.contains("never sent again"), "{plan}");
    let as_json = ["run", "m.yaml", "--plan", "--format", "json"];
    let plan = |args: &[&str]| -> Value {
        let plan = here.shotlist(&[&as_json, args].concat()).ends_with(0).stdout;
        serde_json::from_str(&plan).expect("JSON")
    };
    let (honored, withdrawn) = (plan(&["--catalog", "catalog.yaml"]), plan(&[]));
    assert!(codes(&honored).contains(&"asked-again"), "{honored:#}");
    assert!(!codes(&withdrawn).contains(&"asked-again"), "{withdrawn:#}");
    assert_eq!(submissions(&service).len(), sent);
    run(&here, &service, &[]).ends_with(0);
    assert_eq!((here.states(), submissions(&service).len()), (vec!["completed".to_owned()], sent + 1));
}

#[test]
fn neither_another_account_nor_a_frozen_ledger_nor_a_download_repeats_anything() {
    let (here, service, sent) = in_doubt();
    run(&here, &service, &[]).env("SHOTLIST_API_KEY", "another").ends_with(7);
    here.shotlist(&["limit", "set", "--freeze"]).ends_with(0);
    run(&here, &service, &[]).ends_with(7);
    here.shotlist(&["limit", "set", "--unfreeze"]).ends_with(0);
    let fetch = here.shotlist(&["fetch", "m.yaml"]).env("SHOTLIST_BASE_URL", &service.url());
    fetch.env("SHOTLIST_API_KEY", "k").ends();
    // The statement was withdrawn, or corrected: no key is remembered for so long.
    here.run(&service, &[]).ends_with(7);
    here.write("catalog.yaml", HONORED.replace("Idempotency-Key", "Other-Key"));
    run(&here, &service, &[]).ends_with(7);
    // Tasks of another account have its keys.
    here.write("catalog.yaml", HONORED);
    run(&here, &service, &["--same-account"]).env("SHOTLIST_API_KEY", "another").ends_with(7);
    run(&here, &service, &["--same-account"]).env("SHOTLIST_API_KEY", "another").ends_with(7);
    assert_eq!(submissions(&service).len(), sent);
}

#[test]
fn doubt_about_an_earlier_wording_settles_before_the_new_one_is_bought() {
    let (here, service, sent) = in_doubt();
    here.write("m.yaml", numbered_jobs(1).replace("number 0", "another number"));
    let first = submissions(&service)[0].body.clone();
    run(&here, &service, &[]).ends();
    let posts: Vec<String> = service.posts();
    assert_eq!(posts, vec![first; sent + 1], "what is new needs a plan that shows it");
    // The earlier video is kept as a version, and the new wording is due now.
    assert_eq!(here.planned(&[]), (1, "0.90".to_owned()));
    run(&here, &service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), sent + 2);
    assert_eq!(here.ledger("SELECT state FROM attempt ORDER BY id"), [["completed"], ["completed"]]);
}

#[test]
fn job_that_the_manifest_has_no_more_settles_as_well() {
    let (here, service, _) = in_doubt();
    here.write("m.yaml", numbered_jobs(1).replace("id: j0, prompt: number 0", "id: other, prompt: another"));
    run(&here, &service, &[]).ends();
    assert_eq!(here.ledger("SELECT state FROM attempt WHERE job = 'j0'"), [["completed"]]);
}

#[test]
fn task_of_another_job_settles_no_doubt() {
    let here = workspace(2);
    // It answers to each key with the same task, once the first answer to the second job is lost.
    let service = Service::scripted(|asked| match (&*asked.method, asked.earlier) {
        ("POST", 1) => Answer::Hangup,
        ("POST", _) => answer(200, &made(0)),
        _ => Answer::Well,
    });
    run(&here, &service, &["--concurrency", "1", "--max-duration", "4s"]).ends_with(7);
    for _ in 0..2 {
        let said = run(&here, &service, &[]).ends_with(7);
        assert!(said.stdout.contains("`t0`"), "{}", said.stdout);
    }
    let kept = here.ledger("SELECT job, state, coalesce(task, '') FROM attempt ORDER BY job");
    assert_eq!(kept, [["j0", "completed", "t0"], ["j1", "in_doubt", ""]]);
}

#[test]
fn repetition_needs_consent_to_its_price() {
    let (here, service, sent) = in_doubt();
    let run = |consent: &[&str]| {
        let quick = ["run", "m.yaml", "--catalog", "catalog.yaml", "--first-poll", "0s"];
        let run = here.shotlist(&[&quick, consent].concat());
        run.env("SHOTLIST_BASE_URL", &service.url()).env("SHOTLIST_API_KEY", "k")
    };
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let digest = plan["digest"].as_str().expect("a digest");
    for consent in [&[][..], &["--max-cost", "0.89"], &["--approved", digest]] {
        run(consent).ends_with(7);
        assert_eq!(submissions(&service).len(), sent, "{consent:?}");
    }
    run(&["--max-cost", "0.90"]).ends_with(0);
    assert_eq!(submissions(&service).len(), sent + 1);
}
