//! The whole tool against the simulator's faults, one after the other: money is counted once, and whatever the service
//! did not lose is completed.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::support::{Ended, Simulator, Workspace, numbered_jobs, request, wait_until};

const JOBS: usize = 24;

/// Runs the batch against a simulator with faults.
fn rehearse(faults: &[&str]) -> (Workspace, Simulator, Ended) {
    let here = Workspace::with_manifest(&numbered_jobs(JOBS));
    // A task takes some hundredths of a second.
    let simulator = Simulator::start(&here, &[&["--speed", "2000"], faults].concat());
    let ended = run(&here, &simulator);
    (here, simulator, ended)
}

fn run(here: &Workspace, simulator: &Simulator) -> Ended {
    let quick = ["run", "m.yaml", "--yes", "--first-poll", "40ms", "--poll-interval", "50ms", "--poll-floor", "5ms"];
    // This test is about each fault, not about the circuit breaker.
    here.shotlist(&[&quick[..], &["--max-doubts", "1000"]].concat()).with_service(simulator.url()).ends()
}

fn charges(simulator: &Simulator) -> Vec<Value> {
    simulator.ledger()["charges"].as_array().expect("charges").clone()
}

/// Each charge belongs to one job, and each job has a state.
fn assert_counted_once(here: &Workspace, simulator: &Simulator, what: &str) {
    let charged: HashMap<String, String> = charges(simulator)
        .iter()
        .map(|charge| (charge["prompt"].as_str().expect("a prompt"), charge["task_id"].as_str().expect("a task")))
        .map(|(prompt, task)| (prompt.to_owned(), task.to_owned()))
        .collect();
    assert_eq!(charged.len(), charges(simulator).len(), "{what}: a job was charged twice");
    let report = here.report();
    for job in report["jobs"].as_array().expect("jobs") {
        let task = charged.get(job["prompt"].as_str().expect("a prompt"));
        match job["state"].as_str().expect("a state") {
            "completed" => assert_eq!(job["task_id"].as_str(), task.map(String::as_str), "{what}: {job}"),
            "in_doubt" => {}
            state => panic!("{what}: a job is {state}: {job}"),
        }
    }
}

#[test]
fn fault_without_a_lost_submission_completes_every_job() {
    for faults in [["--fault", "retry-after=0.08"], ["--fault", "slow=0.3"], ["--max-tasks", "3"]] {
        let (here, simulator, ended) = rehearse(&faults);
        assert_eq!(ended.code, Some(0), "{faults:?}: {}", ended.stderr);
        assert_counted_once(&here, &simulator, &faults.join(" "));
        assert_eq!(here.states(), ["completed"; JOBS], "{faults:?}");
        assert_eq!(charges(&simulator).len(), JOBS, "{faults:?}");
    }
}

#[test]
fn lost_submission_is_in_doubt_and_never_sent_again() {
    for fault in ["lost-response=0.3", "server-error=0.3"] {
        let (here, simulator, ended) = rehearse(&["--fault", fault]);
        assert_eq!(ended.code, Some(7), "{fault}: {}", ended.stderr);
        assert_counted_once(&here, &simulator, fault);
        let doubtful = here.states().iter().filter(|state| *state == "in_doubt").count();
        assert!((1..JOBS).contains(&doubtful), "{fault}: {doubtful} in doubt");
        let before = charges(&simulator).len();
        assert_eq!(run(&here, &simulator).code, Some(7), "{fault}");
        assert_eq!(charges(&simulator).len(), before, "{fault}: sent again");
        assert_counted_once(&here, &simulator, fault);
    }
}

#[test]
fn all_of_them_together() {
    let all = [
        "--fault",
        "lost-response=0.05",
        "--fault",
        "server-error=0.05",
        "--fault",
        "slow=0.1",
        "--fault",
        "retry-after=0.02",
        "--max-tasks",
        "6",
    ];
    let (here, simulator, _) = rehearse(&all);
    assert_counted_once(&here, &simulator, "all");
}

#[test]
fn each_fault_has_its_effect() {
    let (here, key) = (Workspace::new(), "authorization: Bearer k");
    let body = r#"{"model": "alpha-2", "prompt": "x"}"#;
    let statuses = |fault: &str| -> HashSet<u16> {
        let simulator = Simulator::start(&here, &["--fault", fault]);
        (0..30)
            .map(|_| {
                request(
                    "POST",
                    &format!("{}/v1/videos", simulator.url()),
                    &[key, "content-type: application/json"],
                    body,
                )
                .status
            })
            .collect()
    };
    assert_eq!(statuses("server-error=1"), HashSet::from([500, 502, 503, 504]));
    assert_eq!(statuses("retry-after=1"), HashSet::from([429]));
    let simulator = Simulator::start(&here, &["--fault", "retry-after=1"]);
    let reply =
        request("POST", &format!("{}/v1/videos", simulator.url()), &[key, "content-type: application/json"], body);
    assert!(format!("{}\r\n", reply.head).contains("retry-after: 1\r\n"), "{}", reply.head);
    assert_eq!(simulator.ledger()["count"], 0, "it is refused before anything is made");
    let simulator = Simulator::start(&here, &["--speed", "1000000", "--fault", "expired-url=1"]);
    let made =
        request("POST", &format!("{}/v1/videos", simulator.url()), &[key, "content-type: application/json"], body)
            .json();
    let task = made["id"].as_str().expect("an id");
    let link = format!("{}/videos/{task}.mp4", simulator.url());
    // Until the task is completed, there is nothing at the link.
    wait_until("the link has expired", || request("GET", &link, &[], "").status == 403);
    let content = request("GET", &format!("{}/v1/videos/{task}/content", simulator.url()), &[key], "");
    assert_eq!(content.status, 200, "the content endpoint is spared");

    let ended = here.shotlist(&["sandbox", "--fault", "slw=0.1"]).ends_with(2);
    assert!(ended.stderr.contains("`slw`; write one of lost-response"), "{}", ended.stderr);
    here.shotlist(&["sandbox", "--fault", "slow"]).ends_with(2);
    here.shotlist(&["sandbox", "--fault", "slow=2"]).ends_with(2);
}
