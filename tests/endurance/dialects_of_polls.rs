//! Responses about the state of a task.

use serde_json::json;

use super::dialect::{COMPLETED, Dialect, FAILED, Must, OPEN, RUNNING, all_hold, looked, said, seen, text};

#[test]
fn end_of_a_task_is_known_by_its_word_or_its_video() {
    all_hold(vec![
        seen(
            "interface",
            &json!({ "id": "t0", "task_id": "t0", "status": "completed", "progress": 100, "video_url": "$V", "completed_at": 1_790_000_000, "error": null }),
            COMPLETED,
        ),
        seen("no id", &json!({ "status": "completed", "video_url": "$V" }), COMPLETED),
        seen("only task_id", &json!({ "task_id": "t0", "status": "completed", "video_url": "$V" }), COMPLETED),
        seen("capitals", &json!({ "status": "COMPLETED", "video_url": "$V" }), COMPLETED),
        seen("capital", &json!({ "status": "Completed", "video_url": "$V" }), COMPLETED),
        seen("complete", &json!({ "status": "complete", "video_url": "$V" }), COMPLETED),
        seen("succeeded", &json!({ "status": "succeeded", "video_url": "$V" }), COMPLETED),
        seen("success", &json!({ "status": "success", "video_url": "$V" }), COMPLETED),
        seen("SUCCESS", &json!({ "status": "SUCCESS", "video_url": "$V" }), COMPLETED),
        seen("SUCCEEDED", &json!({ "status": "SUCCEEDED", "video_url": "$V" }), COMPLETED),
        seen("done", &json!({ "status": "done", "video_url": "$V" }), COMPLETED),
        seen("finished", &json!({ "status": "finished", "video_url": "$V" }), COMPLETED),
        seen("ready", &json!({ "status": "ready", "video_url": "$V" }), COMPLETED),
        seen("ok", &json!({ "status": "ok", "video_url": "$V" }), COMPLETED),
        seen("no status", &json!({ "id": "t0", "video_url": "$V" }), COMPLETED),
        seen("status null", &json!({ "status": null, "video_url": "$V" }), COMPLETED),
        seen("status a number", &json!({ "status": 2, "video_url": "$V" }), COMPLETED),
        seen(
            "by its time",
            &json!({ "status": "success", "progress": 100, "completed_at": 1_790_000_000, "video_url": null, "metadata": {} }),
            Must { polls: 3, ..COMPLETED },
        ),
        seen(
            "wrapped",
            &json!({ "code": "success", "message": "", "data": { "task_id": "t0", "status": "SUCCESS", "progress": "100%", "result_url": "$V" } }),
            COMPLETED,
        ),
    ]);
}

#[test]
fn video_is_found_in_each_known_field() {
    let content = |name, poll| seen(name, poll, COMPLETED);
    all_hold(vec![
        seen("metadata.url", &json!({ "status": "completed", "metadata": { "url": "$V" } }), COMPLETED),
        seen("video.url", &json!({ "status": "done", "video": { "url": "$V", "duration": 12 } }), COMPLETED),
        seen("data[0].url", &json!({ "status": "completed", "data": [{ "url": "$V" }] }), COMPLETED),
        seen("result_url", &json!({ "status": "completed", "result_url": "$V" }), COMPLETED),
        seen("url", &json!({ "status": "completed", "url": "$V" }), COMPLETED),
        seen("null beside url", &json!({ "status": "completed", "video_url": null, "url": "$V" }), COMPLETED),
        seen(
            "blank beside metadata.url",
            &json!({ "status": "completed", "video_url": "", "metadata": { "url": "$V" } }),
            COMPLETED,
        ),
        // Without such a field, the content is requested immediately.
        content(
            "OpenAI",
            &json!({ "id": "t0", "object": "video", "status": "completed", "progress": 100, "model": "alpha-2", "seconds": "12", "size": "1280x720" }),
        ),
        content("only a status", &json!({ "status": "completed" })),
        content("a list of texts", &json!({ "status": "completed", "data": ["$V"] })),
        // An address that is none is never opened: the content is in for it.
        content("data:", &json!({ "status": "completed", "video_url": "data:video/mp4;base64,AAAA" })),
        content("file:", &json!({ "status": "completed", "video_url": "file:///etc/passwd" })),
        content("javascript:", &json!({ "status": "completed", "video_url": "javascript:alert(1)" })),
        content("relative", &json!({ "status": "completed", "video_url": "/videos/t0.mp4" })),
        content("no host", &json!({ "status": "completed", "video_url": "https://" })),
        // An empty field may be filled in later: it is polled twice more.
        seen("never filled in", &json!({ "status": "completed", "video_url": null }), Must { polls: 3, ..COMPLETED }),
        seen("a list", &json!({ "status": "completed", "video_url": ["$V"] }), Must { polls: 3, ..COMPLETED }),
        looked(
            "filled in later",
            vec![
                said(200, &json!({ "status": "completed", "video_url": null })),
                said(200, &json!({ "status": "completed", "video_url": "$V" })),
            ],
            Must { polls: 2, ..COMPLETED },
        ),
        seen("content redirects", &json!({ "status": "completed" }), COMPLETED).with_content(text(
            302,
            &[("location", "$V")],
            "",
        )),
        seen("content is JSON", &json!({ "status": "completed" }), COMPLETED)
            .with_content(said(200, &json!({ "url": "$V" }))),
        seen("content is a text", &json!({ "status": "completed" }), COMPLETED).with_content(said(200, &json!("$V"))),
    ]);
}

#[test]
fn failure_is_recorded_with_its_reason() {
    let failed = |name, poll, shows| seen(name, poll, Must { shows, ..FAILED });
    all_hold(vec![
        failed(
            "interface",
            &json!({ "id": "t0", "status": "failed", "error": { "message": "too dark", "code": "dark" } }),
            "too dark",
        ),
        failed("capitals", &json!({ "status": "FAILED", "error": { "message": "too dark", "code": 7 } }), "too dark"),
        failed("cancelled", &json!({ "status": "cancelled", "error": "by the operator" }), "by the operator"),
        failed(
            "canceled",
            &json!({ "status": "canceled", "error": { "message": "by the operator" } }),
            "by the operator",
        ),
        failed("expired", &json!({ "status": "Expired", "fail_reason": "too late" }), "too late"),
        failed("rejected", &json!({ "status": "rejected", "error": { "msg": "moderated" } }), "moderated"),
        failed("error", &json!({ "status": "error", "error": { "detail": "no worker" } }), "no worker"),
        failed("failure", &json!({ "status": "FAILURE", "fail_reason": "no worker" }), "no worker"),
        failed(
            "fail_reason",
            &json!({ "status": "failed", "error": null, "fail_reason": "no capacity" }),
            "no capacity",
        ),
        failed("error a list", &json!({ "status": "failed", "error": ["a", "b"] }), "[\"a\",\"b\"]"),
        failed("error a number", &json!({ "status": "failed", "error": 17 }), "17"),
        failed("error nested", &json!({ "status": "failed", "error": { "error": { "message": "deep" } } }), "deep"),
        failed("error empty", &json!({ "status": "failed", "error": {} }), "no reason"),
        failed("no error", &json!({ "status": "failed" }), "no reason"),
        failed(
            "code a mapping",
            &json!({ "status": "failed", "error": { "message": "odd", "code": { "a": 1 } } }),
            "odd",
        ),
        failed("with a video", &json!({ "status": "failed", "error": "half of it", "video_url": "$V" }), "half of it"),
        failed(
            "wrapped",
            &json!({ "code": "success", "data": { "task_id": "t0", "status": "FAILURE", "fail_reason": "no worker" } }),
            "no worker",
        ),
    ]);
}

#[test]
fn unknown_state_is_polled_again_and_reported() {
    let running = |name, poll| seen(name, poll, RUNNING);
    let open = |name, poll, shows| seen(name, poll, Must { shows, ..OPEN });
    let trouble = |name, answer, shows| looked(name, vec![answer], Must { shows, ..OPEN });
    all_hold(vec![
        seen("queued", &json!({ "status": "queued" }), OPEN),
        seen("queued with a video", &json!({ "status": "queued", "video_url": "$V" }), OPEN),
        running("in_progress", &json!({ "status": "in_progress", "progress": 50 })),
        running("progress a text", &json!({ "status": "in_progress", "progress": "45%" })),
        running("progress a share", &json!({ "status": "in_progress", "progress": 0.45 })),
        running("progress null", &json!({ "status": "in_progress", "progress": null })),
        running("progress absent", &json!({ "status": "IN_PROGRESS" })),
        running("progress beyond", &json!({ "status": "in_progress", "progress": 150 })),
        running("progress below", &json!({ "status": "in_progress", "progress": -1 })),
        running("progress a mapping", &json!({ "status": "in_progress", "progress": { "value": 3 } })),
        running("100 early", &json!({ "status": "in_progress", "progress": 100 })),
        running(
            "completed_at before the end",
            &json!({ "status": "in_progress", "progress": 40, "completed_at": 1_790_000_000 }),
        ),
        looked("NaN", vec![text(200, &[], r#"{"status": "in_progress", "progress": NaN, "eta": -Infinity}"#)], RUNNING),
        running("processing", &json!({ "status": "processing", "progress": 10 })),
        seen("PENDING", &json!({ "status": "PENDING" }), OPEN),
        seen("NOT_START", &json!({ "status": "NOT_START", "error": "none" }), OPEN),
        seen("its own address", &json!({ "status": "rendering", "url": "$S/v1/videos/t0" }), OPEN),
        open("cancelled without a reason", &json!({ "status": "cancelled" }), "`cancelled`"),
        open("cancelled with a video", &json!({ "status": "cancelled", "video_url": "$V" }), "`cancelled`"),
        open("limbo", &json!({ "status": "limbo", "progress": 100 }), "resolve m.yaml a --abandon"),
        running("a preview", &json!({ "status": "rendering", "progress": 40, "video_url": "$V" })),
        seen(
            "success alone, and no content",
            &json!({ "status": "SUCCEEDED" }),
            Must { shows: "`SUCCEEDED` without a video", ..OPEN },
        )
        .with_content(said(404, &json!({ "error": { "message": "no such file" } }))),
        open("success in the middle", &json!({ "status": "success", "progress": 40 }), "`success`"),
        open("empty", &json!({}), "not a task"),
        trouble("404", said(404, &json!({ "error": { "message": "no such task" } })), "no such task"),
        trouble("410", said(410, &json!({ "error": { "message": "gone for good" } })), "gone for good"),
        trouble(
            "400 that denies it",
            said(400, &json!({ "code": "task_not_exist", "message": "task_not_exist" })),
            "task_not_exist",
        ),
        trouble("400", said(400, &json!({ "error": { "message": "bad moment" } })), "bad moment"),
        trouble("500", said(500, &json!({ "detail": "worker died" })), "worker died"),
        trouble(
            "502",
            text(502, &[("content-type", "text/html")], "<html><h1>502 Bad Gateway</h1></html>"),
            "502 Bad Gateway",
        ),
        trouble("a list", said(200, &json!([])), "is not a task"),
        trouble("HTML with 200", text(200, &[], "<html>please log in</html>"), "is not a task"),
        trouble("cut off", text(200, &[], "{\"id\": \"t0\", \"status\": \"comp"), "is not a task"),
        trouble("nothing", text(204, &[], ""), "is not a task"),
        trouble("redirects without end", text(307, &[("location", "$S/v1/videos/t0")], ""), "redirects a poll"),
        trouble("redirect to another origin", text(307, &[("location", "http://localhost:9/t0")], ""), "HTTP 307"),
        trouble("403 with a page", text(403, &[], "<html>blocked</html>"), "blocked"),
        trouble("500 with the end of another task", said(500, &json!({ "id": "t9", "status": "failed" })), "HTTP 500"),
        looked(
            "trouble, then the end",
            vec![
                said(500, &json!({})),
                text(200, &[], "<html>"),
                said(404, &json!({})),
                said(200, &json!({ "status": "completed", "video_url": "$V" })),
            ],
            Must { polls: 4, ..COMPLETED },
        ),
    ]);
}

#[test]
fn unknown_word_with_an_error_is_a_failure() {
    let refused = |status: &str, more: serde_json::Value| {
        let mut task = json!({ "id": "t0", "status": status, "error": { "message": "the prompt was refused" } });
        task.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        task
    };
    let at_the_end = json!({ "progress": 100, "completed_at": 1_795_436_000, "video_url": null });
    let failed = |name, poll: &serde_json::Value, polls| {
        seen(name, poll, Must { shows: "the prompt was refused", polls, ..FAILED })
    };
    all_hold(vec![
        failed("moderation_blocked at 100", &refused("moderation_blocked", at_the_end.clone()), 1),
        failed("nsfw at 100", &refused("nsfw", at_the_end.clone()), 1),
        failed("refunded at 100", &refused("refunded", at_the_end.clone()), 1),
        failed("done with an error at 100", &refused("done", at_the_end), 1),
        failed("moderation_blocked", &refused("moderation_blocked", json!({})), 3),
        failed("incomplete at 40", &refused("incomplete", json!({ "progress": 40 })), 3),
        failed("timeout", &refused("timeout", json!({})), 1),
        failed("deleted", &refused("deleted", json!({})), 1),
        failed("fail", &refused("fail", json!({ "progress": 100 })), 1),
        looked(
            "an error for a while",
            vec![
                said(200, &refused("retrying", json!({}))),
                said(200, &refused("retrying", json!({}))),
                said(200, &json!({ "status": "in_progress" })),
                said(200, &refused("retrying", json!({}))),
                said(200, &json!({ "status": "completed", "video_url": "$V" })),
            ],
            Must { polls: 5, ..COMPLETED },
        ),
    ]);
}

#[test]
fn success_without_the_usual_marks_is_found() {
    let found = |name, poll| seen(name, poll, COMPLETED);
    all_hold(vec![
        found("content.video_url", &json!({ "id": "t0", "status": "succeeded", "content": { "video_url": "$V" } })),
        found("videos[0].url", &json!({ "status": "succeeded", "videos": [{ "url": "$V" }] })),
        found("output", &json!({ "status": "succeeded", "output": "$V" })),
        found("output[0]", &json!({ "status": "succeeded", "output": ["$V"] })),
        found("task_result", &json!({ "status": "succeed", "task_result": { "videos": [{ "url": "$V" }] } })),
        found("generations[0].url", &json!({ "status": "succeeded", "generations": [{ "url": "$V" }] })),
        seen("success alone", &json!({ "status": "SUCCEEDED" }), Must { polls: 2, ..COMPLETED }),
    ]);
}

#[test]
fn body_counts_with_any_status() {
    let failed = |name, status| {
        let body = json!({ "id": "t0", "status": "failed", "error": { "message": "CUDA out of memory" } });
        looked(name, vec![said(status, &body)], Must { shows: "CUDA out of memory", ..FAILED })
    };
    let done = json!({ "id": "t0", "status": "completed", "video_url": "$V" });
    all_hold(vec![
        failed("failed under 400", 400),
        failed("failed under 422", 422),
        failed("failed under 500", 500),
        failed("failed under 503", 503),
        looked("completed under 500", vec![said(500, &done)], COMPLETED),
        Dialect {
            polls: vec![("t0", text(307, &[("location", "$S/v1/videos/moved")], "")), ("moved", said(200, &done))],
            ..seen("redirect within the origin", &json!({}), COMPLETED)
        },
    ]);
}
