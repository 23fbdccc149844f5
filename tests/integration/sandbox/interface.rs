//! The simulator as the interface document describes the service.

use serde_json::{Value, json};
use shotlist::domain::{Request, Spec};
use shotlist::service::{ApiKey, Credentials, Endpoint, HttpService, Submission, VideoService as _};

use crate::support::{Ended, Simulator, Workspace, kill, line_of, numbered_jobs, request, wait_until};

const KEY: &str = "authorization: Bearer k";
const JSON: &str = "content-type: application/json";

fn submit(simulator: &Simulator, body: &Value) -> (u16, Value) {
    let reply = request("POST", &format!("{}/v1/videos", simulator.url()), &[KEY, JSON], &body.to_string());
    (reply.status, reply.json())
}

fn poll(simulator: &Simulator, task: &str) -> Value {
    request("GET", &format!("{}/v1/videos/{task}", simulator.url()), &[KEY], "").json()
}

#[test]
fn task_waits_runs_and_ends_with_a_playable_video() {
    // A minute of real time takes about half a second.
    let here = Workspace::new();
    let simulator = Simulator::start(&here, &["--speed", "120"]);
    let (status, task) = submit(&simulator, &json!({ "model": "alpha-2", "prompt": "x", "aspect_ratio": "9:16" }));
    assert_eq!((status, &task["status"], &task["progress"]), (200, &json!("queued"), &json!(0)));
    assert_eq!(task["id"], task["task_id"]);
    let id = task["id"].as_str().expect("an id");

    let mut seen = Vec::new();
    wait_until("it is completed", || {
        let now = poll(&simulator, id);
        seen.push((now["status"].as_str().expect("a status").to_owned(), now["progress"].as_i64().unwrap_or(-1)));
        now["status"] == "completed"
    });
    assert!(seen.iter().any(|(status, progress)| status == "in_progress" && (1..=99).contains(progress)), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{seen:?}");

    let done = poll(&simulator, id);
    assert!(done["completed_at"].is_i64());
    let url = done["video_url"].as_str().expect("a URL");
    let video = request("GET", url, &[], "");
    line_of(&video.head, "content-type: video/mp4");
    assert_eq!(&video.body[4..8], b"ftyp");
    let content = request("GET", &format!("{}/v1/videos/{id}/content", simulator.url()), &[KEY], "");
    assert_eq!(content.body, video.body);
}

#[test]
fn simulator_refuses_invalid_submissions() {
    let here = Workspace::new();
    let simulator = Simulator::start(&here, &[]);
    let url = format!("{}/v1/videos", simulator.url());
    for (key, status) in [
        ("x-none: 1", 401),
        ("authorization: Bearer unknown-key", 401),
        ("authorization: Bearer key-without-group", 403),
    ] {
        let reply = request("POST", &url, &[key, JSON], "{}");
        assert_eq!(reply.status, status, "{key}");
        assert!(reply.json()["error"]["message"].is_string());
    }
    assert_eq!(request("POST", &url, &["x-none: 1", JSON], "{}").json()["error"]["code"], "missing_key");
    let form = request("POST", &url, &["authorization: bearer k", JSON], "--boundary");
    assert_eq!((form.status, &form.json()["error"]["message"]), (400, &json!("the body is a form")));
    let long = request("POST", &url, &[KEY, JSON], &" ".repeat(3_000_000));
    assert_eq!((long.status, &long.json()["error"]["code"]), (413, &json!("unreadable_body")));
    for bad in [
        json!({}),
        json!({ "model": "alpha-3", "prompt": "x" }),
        json!({ "model": "alpha-2" }),
        json!({ "model": "alpha-2", "prompt": "x", "duration": 10 }),
        json!({ "model": "alpha-2", "prompt": "x", "aspect_ratio": "1:1" }),
        json!({ "model": "beta-2.0-lite", "prompt": "x".repeat(1501) }),
        json!({ "model": "beta-2.0-lite", "prompt": "x", "duration": 11 }),
        json!({ "model": "beta-2.0-lite", "prompt": "x", "size": "big" }),
        json!({ "model": "beta-2.0-lite", "prompt": 7 }),
    ] {
        let (status, answer) = submit(&simulator, &bad);
        assert_eq!(status, 400, "{bad}: {answer}");
    }
    assert_eq!(request("POST", &url, &[KEY, JSON], "no json").status, 400);
    // Clients of similar services send a form by default; the interface has only JSON.
    for kind in ["content-type: multipart/form-data; boundary=x", "content-type: text/plain", "x-none: 1"] {
        let reply = request("POST", &url, &[KEY, kind], &json!({ "model": "alpha-2", "prompt": "x" }).to_string());
        assert_eq!(reply.status, 415, "{kind}");
        let told = reply.json()["error"]["message"].as_str().expect("a message").to_owned();
        assert!(told.starts_with("send the body as JSON, with Content-Type: application/json; "), "{told}");
    }
    let deletion = request("DELETE", &format!("{url}/task_0"), &[KEY], "");
    assert_eq!((deletion.status, deletion.json()["error"]["code"].as_str()), (405, Some("method_not_allowed")));
    assert_eq!(request("GET", &format!("{url}/task_0"), &[KEY], "").status, 404);
    let (_, task) = submit(&simulator, &json!({ "model": "alpha-2", "prompt": "x" }));
    let id = task["id"].as_str().expect("an id");
    assert_eq!(request("GET", &format!("{url}/{id}/content"), &[KEY], "").status, 404, "it has no video yet");
    assert_eq!(simulator.ledger()["total_usd"], "0.90");
}

/// A run polls it at this speed.
#[tokio::test]
async fn each_response_reports_the_speed() {
    let simulator = Simulator::start(&Workspace::new(), &["--speed", "400"]);
    let service = |url: &str| {
        let endpoint = Endpoint::parse(url, false).expect("a URL");
        HttpService::new(endpoint, Credentials::new(ApiKey::new("k").expect("a key"), Vec::new())).expect("a client")
    };
    let probing = service(simulator.url());
    assert!((probing.speed() - 1.0).abs() < f64::EPSILON, "before a response");
    probing.probe().await.expect("a response");
    let submitting = service(simulator.url());
    let spec = Spec { model: "alpha-2".into(), prompt: Some("x".into()), ..Spec::default() };
    let accepted = submitting.submit(&Request::new(&spec), None).await;
    assert!(matches!(accepted, Ok(Submission::Accepted(..))), "{accepted:?}");
    assert_eq!([probing.speed(), submitting.speed()].map(|speed| speed.to_string()), ["400", "400"]);
    for unknown in ["/nope", "/v1/videos"] {
        let response = request("DELETE", &format!("{}{unknown}", simulator.url()), &[KEY], "");
        assert!(response.head.lines().any(|header| header == "x-sandbox-speed: 400"), "{unknown}: {}", response.head);
    }
}

/// At the documented speed, the first poll comes after 7 s, when each task has ended.
#[test]
fn new_and_resumed_runs_use_speed_of_simulator() {
    let here = Workspace::with_manifest(&numbered_jobs(2));
    let simulator = Simulator::start(&here, &["--speed", "20"]);
    let run = |batch: &str| {
        let run = here.shotlist(&["run", "m.yaml", "--yes", "--batch", batch]).with_service(simulator.url());
        run.without_env("SHOTLIST_FIRST_POLL").without_env("SHOTLIST_POLL_INTERVAL").without_env("SHOTLIST_POLL_FLOOR")
    };
    let killed = run("b").starts();
    here.waits_for_active_tasks(2);
    kill(&killed, "-KILL");
    drop(Ended::wait_for(killed));
    for batch in ["b", "a"] {
        run(batch).ends_with(0);
        let jobs = here.json(&format!("shotlist-out/m/{batch}/report.json"))["jobs"].clone();
        for job in jobs.as_array().expect("jobs") {
            assert!(job["polls"].as_u64().is_some_and(|polls| polls > 1), "{job}");
        }
    }
}

#[test]
fn tasks_fail_as_often_as_it_was_reported() {
    let here = Workspace::new();
    here.write("m.yaml", numbered_jobs(40));
    let run = |rate: &str, batch: &str| {
        let simulator = Simulator::start(&here, &["--speed", "5000", "--fault", &format!("failed-task={rate}")]);
        let args = ["run", "m.yaml", "--batch", batch, "--concurrency", "20", "--yes", "-q"];
        let ended = here.shotlist(&args).with_service(simulator.url()).ends();
        let report = here.json(&format!("shotlist-out/m/{batch}/report.json"));
        (ended.code, report["totals"]["states"]["failed"].as_u64().expect("a count"))
    };
    assert_eq!(run("0", "none"), (Some(0), 0));
    assert_eq!(run("1", "all"), (Some(1), 40));
    let (code, failed) = run("0.5", "half");
    assert!(code == Some(1) && (8..=32).contains(&failed), "{failed} of 40 failed");
}

/// Each family responds in its documented form (§2.3, §4), with exactly these fields.
#[test]
fn each_family_answers_in_its_own_shape() {
    let here = Workspace::new();
    let simulator = Simulator::start(&here, &["--speed", "1000", "--fault", "failed-task=0.5"]);
    let keys = |answer: &Value| answer.as_object().expect("an object").keys().cloned().collect::<Vec<_>>().join(" ");
    let alpha = json!({ "model": "alpha-2", "prompt": "x", "aspect_ratio": "9:16" });
    let beta = json!({ "model": "beta-2.0-lite", "prompt": "x", "duration": 7 });
    let (_, of_alpha) = submit(&simulator, &alpha);
    let (_, of_beta) = submit(&simulator, &beta);
    assert_eq!(keys(&of_alpha), "id model object progress status task_id video_url");
    assert_eq!(keys(&of_beta), "duration id model progress size status task_id");
    assert_eq!((&of_beta["size"], &of_beta["duration"]), (&json!("1280x720"), &json!(7)));
    let (mut completed, mut failed) = (0, 0);
    for number in 0..20 {
        let (body, extra) = if number % 2 == 0 { (&alpha, "aspect_ratio ") } else { (&beta, "") };
        let (_, task) = submit(&simulator, body);
        let id = task["id"].as_str().expect("an id");
        wait_until("it has ended", || matches!(poll(&simulator, id)["status"].as_str(), Some("completed" | "failed")));
        let ended = poll(&simulator, id);
        let of_family = if extra.is_empty() { "id model progress" } else { "duration id model object progress" };
        if ended["status"] == "completed" {
            completed += 1;
            assert_eq!(keys(&ended), format!("{extra}completed_at {of_family} status task_id video_url"));
            assert_eq!(ended["progress"], 100);
        } else {
            failed += 1;
            assert!(
                ended["error"]["message"].is_string() && ended["progress"].as_u64().is_some_and(|p| p < 100),
                "{ended}"
            );
        }
    }
    assert!(completed > 0 && failed > 0, "{completed} and {failed}");
}

#[test]
fn clip_has_the_duration_and_shape_of_its_task() {
    let here = Workspace::with_manifest(
        "version: 1
jobs:
  - { id: 'wide-{{ duration }}', model: beta-2.0-lite, prompt: x, matrix: { duration: [5, 7, 10] } }
  - { id: tall, model: beta-2.0-lite, prompt: x, size: 720x1280 }
  - { id: alpha, model: alpha-2, prompt: x, aspect_ratio: '9:16' }
",
    );
    here.shotlist(&["run", "m.yaml", "--sandbox", "-q"]).ends_with(0);
    let report = here.json("shotlist-sandbox/m/report.json");
    let jobs = report["jobs"].as_array().expect("jobs");
    let facts = |job: &Value| ["delivered_s", "width", "height"].map(|name| job[name].as_f64());
    let expected = [(5, 1280, 720), (7, 1280, 720), (10, 1280, 720), (5, 720, 1280), (12, 720, 1280)];
    for (job, (seconds, width, height)) in jobs.iter().zip(expected) {
        assert_eq!(facts(job), [seconds, width, height].map(|it| Some(f64::from(it))), "{job}");
    }
    let hashes: std::collections::HashSet<&Value> = jobs.iter().map(|job| &job["sha256"]).collect();
    assert_eq!(hashes.len(), 5, "clips of different tasks differ");
}
