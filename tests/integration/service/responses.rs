//! Responses of gateways to polls: the end of a task, its video, and its reason.

use serde_json::{Value, json};

use crate::support::{Answer, Asked, Service, Workspace, json as answer, numbered_jobs, raw};

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
fn empty_error_ends_no_task() {
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

/// A service that rejects submissions with the result of this function.
fn rejecting(rejection: fn(number: usize, body: &str) -> Option<(u16, Value)>) -> Service {
    Service::scripted(move |asked| match asked.method.as_str() {
        "POST" => rejection(asked.earlier, &asked.body).map_or(Answer::Well, |(status, body)| answer(status, &body)),
        _ => Answer::Well,
    })
}

#[test]
fn refused_content_rejects_one_job_also_with_403() {
    let policy = |_: usize, body: &str| {
        let error =
            json!({ "error": { "code": "content_policy_violation", "message": "the prompt breaks the rules" } });
        let request: Value = serde_json::from_str(body).expect("JSON");
        (request["prompt"] == "number 0").then_some((403, error))
    };
    // Without a code, a 403 is about the key only before the first acceptance.
    let after = |number: usize, _: &str| (number == 3).then(|| (403, json!({ "message": "not this one" })));
    for (case, service) in [("a code", rejecting(policy)), ("after an acceptance", rejecting(after))] {
        let here = Workspace::with_manifest(&numbered_jobs(6));
        let ended = here.run(&service, &["--concurrency", "1"]).ends();
        assert_eq!(ended.code, Some(1), "{case}: {}", ended.stderr);
        let states = here.states();
        let count = |state: &str| states.iter().filter(|other| *other == state).count();
        assert_eq!((count("completed"), count("rejected")), (5, 1), "{case}");
    }
    let refused = rejecting(|_, _| Some((403, json!({ "message": "not in the group" }))));
    Workspace::with_manifest(&numbered_jobs(2)).run(&refused, &[]).ends_with(4);
}

#[test]
fn missing_funds_are_known_by_their_words() {
    let service = rejecting(|number, _| {
        let error =
            json!({ "error": { "type": "invalid_request_error", "message": "Not enough credit on this account" } });
        (number > 4).then_some((400, error))
    });
    let here = Workspace::with_manifest(&numbered_jobs(30));
    here.run(&service, &["--concurrency", "1"]).ends_with(1);
    assert_eq!(service.posts().len(), 5 + 3, "three rejections in a row stop the run");
}

#[test]
fn page_in_place_of_the_first_response_is_a_wrong_address() {
    for status in [401, 403] {
        let page = move |asked: &Asked| match asked.method.as_str() {
            "POST" => raw(status, &[("content-type", "text/html")], "<!doctype html><title>Sign in</title>"),
            _ => Answer::Well,
        };
        let (service, here) = (Service::scripted(page), Workspace::with_manifest(&numbered_jobs(4)));
        here.run(&service, &[]).ends_with(6);
        assert_eq!(service.posts().len(), 1, "{status}");
    }
}

#[test]
fn video_of_the_request_is_not_taken_for_its_result() {
    let service = polled(
        |id, _, _| json!({ "id": id, "status": "completed", "input": { "clip": "https://mine.example/reference.mp4" } }),
    );
    let job = "{ id: a, model: alpha-2, prompt: x, extra: { clip: \"https://mine.example/reference.mp4\" } }";
    let here = Workspace::with_manifest(&format!("version: 1\njobs: [{job}]\n"));
    here.run(&service, &["--no-download"]).ends_with(0);
    let url = here.report()["jobs"][0]["video_url"].clone();
    assert!(url.as_str().is_none_or(|url| url.ends_with("/content")), "{url}");
}

#[test]
fn link_with_the_key_is_dropped_wherever_it_is() {
    let service = polled(
        |id, url, _| json!({ "id": id, "status": "completed", "outputs": [format!("{url}?k=very-secret-key")] }),
    );
    let here = Workspace::with_manifest(&numbered_jobs(1));
    let key = "very-secret-key";
    here.run(&service, &["--no-download", "-v"]).env("SHOTLIST_API_KEY", key).ends_with(0).lacks(&[key]);
    assert!(!here.report().to_string().contains(key));
    assert!(!here.ledger("SELECT record FROM attempt")[0][0].contains(key));
}
