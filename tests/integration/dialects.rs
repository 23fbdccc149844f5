//! How gateways and services of the same shape say it: each shape with what has to come of it, by the whole program.

use serde_json::{Value, json};

use crate::support::{Answer, Service, Workspace, json as answer, raw};

const ONE_JOB: &str = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n";

/// A service whose tasks are seen so, with `$V` for the address of a video of its own.
fn seen_as(shape: &Value) -> (Service, Workspace) {
    let shape = shape.to_string();
    let service = Service::scripted(move |asked| match asked.method.as_str() {
        "POST" => Answer::Well,
        _ if asked.path.ends_with("/content") => raw(404, &[], ""),
        _ => {
            let host = asked.headers.get("host").expect("a host");
            let shape = shape.replace("$V", &format!("http://{host}/videos/t0.mp4"));
            answer(200, &serde_json::from_str(&shape).expect("JSON"))
        }
    });
    (service, Workspace::with_manifest(ONE_JOB))
}

#[test]
fn an_end_is_understood_in_the_words_of_gateways() {
    for shape in [
        json!({ "status": "completed", "video_url": "$V" }),
        json!({ "status": "COMPLETED", "video_url": "$V" }),
        json!({ "status": "succeeded", "video_url": "$V" }),
        json!({ "status": "SUCCESS", "metadata": { "url": "$V" } }),
        json!({ "status": "done", "video": { "url": "$V", "duration": 12 } }),
        json!({ "status": "finished", "data": [{ "url": "$V" }] }),
        json!({ "status": "ready", "result_url": "$V" }),
        json!({ "status": "Completed", "url": "$V" }),
        json!({ "id": "t0", "task_id": "t0", "status": "complete", "progress": 100, "video_url": "$V", "completed_at": 1_790_000_000 }),
    ] {
        let (service, here) = seen_as(&shape);
        here.run(&service, &[]).ends_with(0);
        assert_eq!((service.looks(), here.states()), (1, vec!["completed".to_owned()]), "{shape}");
        assert!(here.path("shotlist-out/m/a.mp4").exists(), "{shape}");
    }
    for (shape, told) in [
        (json!({ "status": "FAILED", "error": { "message": "too dark", "code": 7 } }), "too dark"),
        (json!({ "status": "cancelled", "error": "by the operator" }), "by the operator"),
        (json!({ "status": "Expired", "fail_reason": "too late" }), "too late"),
        (json!({ "status": "rejected", "error": { "msg": "moderated" } }), "moderated"),
        (json!({ "status": "failed", "error": null, "fail_reason": "no capacity" }), "no capacity"),
    ] {
        let (service, here) = seen_as(&shape);
        let ended = here.run(&service, &[]).ends_with(1);
        assert!(ended.stderr.contains(told), "{shape}: {}", ended.stderr);
        assert_eq!((service.looks(), here.states()), (1, vec!["failed".to_owned()]), "{shape}");
    }
    // What is no end is asked about again, and told with the service's own word.
    for shape in [
        json!({ "status": "rendering", "url": "$V" }),
        json!({ "status": "cancelled" }),
        json!({ "status": "success", "progress": 100 }),
        json!({ "status": "queued", "video_url": "$V" }),
    ] {
        let (service, here) = seen_as(&shape);
        here.run(&service, &["--deadline", "300ms"]).ends_with(1);
        assert!(service.looks() > 1, "{shape}");
        assert!(["queued", "in_progress"].contains(&here.states()[0].as_str()), "{shape}");
    }
}

#[test]
fn a_service_that_has_no_such_field_is_asked_for_the_content_at_once() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => Answer::Well,
        _ if asked.path.ends_with("/content") => Answer::Bytes(crate::support::answer_of_video("x")),
        _ => answer(200, &json!({ "id": "t0", "status": "completed", "progress": 100 })),
    });
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(0);
    let tasks = service.asked().iter().filter(|asked| asked.path == "/v1/videos/t0").count();
    // One look says that it is completed; the download asks once more for an address.
    assert!(tasks <= 2 && here.path("shotlist-out/m/a.mp4").exists(), "{tasks} looks");
}

#[test]
fn a_refusal_is_told_in_the_words_of_whoever_refused() {
    for (status, body, told) in [
        (
            422,
            json!({ "detail": [{ "loc": ["body", "seconds"], "msg": "field required" }] }).to_string(),
            "field required",
        ),
        (400, json!({ "title": "Bad Request", "detail": "no such model" }).to_string(), "no such model"),
        (402, json!({ "errors": [{ "message": "insufficient credit" }] }).to_string(), "insufficient credit"),
        (400, "<html><body><h1>The plain HTTP request was sent to HTTPS port</h1>".to_owned(), "sent to HTTPS port"),
        (413, "too large for this gateway".to_owned(), "too large for this gateway"),
    ] {
        let service = Service::scripted(move |_| raw(status, &[], &body));
        let here = Workspace::with_manifest(ONE_JOB);
        let ended = here.run(&service, &[]).ends_with(1);
        assert!(ended.stderr.contains(told), "{status}: {}", ended.stderr);
        assert_eq!(here.states(), ["rejected"]);
    }
}
