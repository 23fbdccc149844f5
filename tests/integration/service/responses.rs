//! Responses to polls, as gateways write them: what ends a task, and where its video and its reason are.

use serde_json::{Value, json};

use crate::support::{Answer, Asked, Service, Workspace, json as answer, numbered_jobs};

/// Polls `number` of a task at a service with this URL.
type Poll = fn(task: &str, url: &str, number: usize) -> Value;

fn polled(poll: Poll) -> Service {
    Service::scripted(move |asked: &Asked| {
        let task = asked.path.rsplit('/').next().unwrap_or_default();
        if asked.method == "POST" || !task.starts_with('t') {
            return Answer::Well;
        }
        let url = format!("http://{}/videos/{task}.mp4", asked.headers["host"]);
        answer(200, &poll(task, &url, asked.earlier))
    })
}

#[test]
fn error_that_is_none_ends_no_task() {
    let cases: [(&str, Poll); 8] = [
        ("blank fields", |id, url, n| {
            let error = json!({ "message": "", "code": "" });
            if n < 5 {
                json!({ "id": id, "status": "processing", "progress": 20, "error": error })
            } else {
                json!({ "id": id, "status": "completed", "video_url": url, "error": error })
            }
        }),
        ("words of success", |id, url, n| {
            let error = json!({ "code": 0, "message": "success" });
            if n < 5 {
                json!({ "id": id, "status": "RUNNING", "error": error })
            } else {
                json!({ "id": id, "status": "SUCCESS", "error": error, "video_url": url })
            }
        }),
        ("a real error beside a running state", |id, url, n| {
            if n < 5 {
                json!({ "id": id, "status": "Queueing", "error": { "message": "a worker was restarted" } })
            } else {
                json!({ "id": id, "status": "completed", "video_url": url })
            }
        }),
        ("a link in place of the reason", |id, url, n| {
            let (status, reason) = if n < 2 { ("IN_PROGRESS", "") } else { ("SUCCESS", url) };
            json!({ "code": "success", "data": { "id": 4711, "task_id": id, "status": status, "fail_reason": reason } })
        }),
        ("a bare error under 200", |id, url, n| {
            if n < 5 {
                json!({ "error": { "message": "the provider failed", "code": 502 } })
            } else {
                json!({ "id": id, "status": "completed", "video_url": url })
            }
        }),
        ("a bare rate limit under 200", |id, url, n| {
            if n < 2 {
                json!({ "error": { "message": "slow down", "code": 429 } })
            } else {
                json!({ "id": id, "status": "completed", "video_url": url })
            }
        }),
        (
            "a list of outputs",
            |id, url, _| json!({ "code": 200, "data": { "id": id, "status": "completed", "outputs": [url], "error": "" } }),
        ),
        (
            "outputs by name",
            |id, url, _| json!({ "id": id, "status": "completed", "outputs": { "cost": 0.28, "film": url, "cover": "https://x.example/a.jpg" } }),
        ),
    ];
    for (case, poll) in cases {
        let (service, here) = (polled(poll), Workspace::with_manifest(&numbered_jobs(2)));
        let ended = here.run(&service, &[]).ends();
        assert_eq!(ended.code, Some(0), "{case}: {}", ended.stderr);
        here.run(&service, &["--retry-failed"]).ends_with(0);
        assert_eq!(service.posts().len(), 2, "{case}");
        assert!(here.path("shotlist-out/m/j1.mp4").exists(), "{case}");
    }
}

#[test]
fn reason_beside_a_failed_state_is_reported() {
    let cases: [(Poll, &str, &str); 3] = [
        (
            |id, _, _| json!({ "task_id": id, "status": "FAILED", "code": "Inspection", "message": "it was judged unsuitable" }),
            "it was judged unsuitable",
            "Inspection",
        ),
        (
            |id, _, _| json!({ "id": id, "status": "FAILED", "failure": "the image was refused", "failureCode": "SAFETY" }),
            "the image was refused",
            "SAFETY",
        ),
        (
            |id, _, _| json!({ "id": id, "status": "cancelled", "detail": "cancelled by the operator" }),
            "cancelled by the operator",
            "",
        ),
    ];
    for (poll, message, code) in cases {
        let (service, here) = (polled(poll), Workspace::with_manifest(&numbered_jobs(1)));
        here.run(&service, &[]).ends_with(1);
        let job = &here.report()["jobs"][0];
        assert_eq!((&job["error_message"], job["error_code"].as_str().unwrap_or_default()), (&message.into(), code));
    }
}
