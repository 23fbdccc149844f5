//! Accepted and refused submissions, and the names of tasks.

use serde_json::{Value, json};

use super::dialect::{COMPLETED, Dialect, IN_DOUBT, Must, OPEN, PENDING, REJECTED, all_hold, posted, said, text};

/// `{"id": "t0"}`, compressed.
const GZIP: [u8; 32] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 202, 76, 81, 178, 82, 80, 42, 49, 80, 170, 5, 0, 14, 85, 93, 158, 12, 0,
    0, 0,
];
const DEFLATE: [u8; 20] = [120, 156, 171, 86, 202, 76, 81, 178, 82, 80, 42, 49, 80, 170, 5, 0, 22, 21, 3, 76];

#[test]
fn task_is_known_by_each_of_its_names() {
    let well = || said(200, &json!({ "status": "completed", "video_url": "$V" }));
    let unknown = || said(404, &json!({ "error": { "message": "unknown" } }));
    let named = |name, post: &Value, polls, must| Dialect { name, post: said(200, post), polls, content: None, must };
    let strange = |id: &str| said(200, &json!({ "id": id, "status": "completed", "video_url": "$V" }));
    all_hold(vec![
        named("only id", &json!({ "id": "t0" }), vec![("t0", well()), ("", unknown())], COMPLETED),
        named("only task_id", &json!({ "task_id": "t0" }), vec![("t0", well()), ("", unknown())], COMPLETED),
        Dialect {
            post: text(200, &[], r#"{"id": 10000000000000000000000001}"#),
            ..named(
                "a number beyond 64 bits",
                &json!({}),
                vec![("10000000000000000000000001", well()), ("", unknown())],
                COMPLETED,
            )
        },
        named("a number", &json!({ "id": 4711 }), vec![("4711", well()), ("", unknown())], COMPLETED),
        named(
            "two names, the first is known",
            &json!({ "id": "v0", "task_id": "t0" }),
            vec![("v0", well()), ("", unknown())],
            COMPLETED,
        ),
        named(
            "two names, the second is known",
            &json!({ "id": "v0", "task_id": "t0" }),
            vec![("t0", well()), ("", unknown())],
            Must { polls: 2, ..COMPLETED },
        ),
        named(
            "a number and a text",
            &json!({ "id": 4711, "task_id": "t0" }),
            vec![("t0", well()), ("", unknown())],
            COMPLETED,
        ),
        named(
            "a text and a number",
            &json!({ "id": "v0", "task_id": 4711 }),
            vec![("4711", well()), ("", unknown())],
            Must { polls: 2, ..COMPLETED },
        ),
        named(
            "answers with the other name",
            &json!({ "id": "v0", "task_id": "t0" }),
            vec![("v0", strange("t0"))],
            COMPLETED,
        ),
        named(
            "another name that stays",
            &json!({ "id": "bW9kZWw6YmV0YQ" }),
            vec![("", strange("bW9kZWw6Ow"))],
            Must { polls: 3, shows: "bW9kZWw6YmV0YQ (also bW9kZWw6Ow)", ..COMPLETED },
        ),
        named(
            "other letters that stay",
            &json!({ "id": "AbC" }),
            vec![("", strange("abc"))],
            Must { polls: 3, ..COMPLETED },
        ),
        named(
            "a name that changes",
            &json!({ "id": "t0" }),
            (0..200).map(|number| ("", strange(["a", "b"][number % 2]))).collect(),
            Must { shows: "the response is about task", ..OPEN },
        ),
        named(
            "another's answer once",
            &json!({ "id": "t0" }),
            vec![("", strange("x")), ("", well())],
            Must { polls: 2, ..COMPLETED },
        ),
        named("slashes and blanks", &json!({ "id": "a/b c?d#e%" }), vec![("", well())], COMPLETED),
        named("letters of the world", &json!({ "id": "视频-é" }), vec![("", well())], COMPLETED),
        named("a long one", &json!({ "id": "x".repeat(500) }), vec![("", well())], COMPLETED),
    ]);
}

#[test]
fn submission_is_accepted_or_in_doubt() {
    let id = json!({ "id": "t0", "status": "queued" });
    let doubt = |name, answer, shows| posted(name, answer, Must { shows, ..IN_DOUBT });
    all_hold(vec![
        posted("201", said(201, &id), COMPLETED),
        posted("byte order mark", text(200, &[], "\u{feff}{\"id\": \"t0\"}"), COMPLETED),
        posted("a list of one", said(200, &json!([{ "id": "t0", "status": "queued" }])), COMPLETED),
        posted("gzip against identity", text(200, &[("content-encoding", "gzip")], GZIP), COMPLETED),
        posted("deflate against identity", text(200, &[("content-encoding", "deflate")], DEFLATE), COMPLETED),
        posted("NaN", text(200, &[], r#"{"id": "t0", "progress": NaN, "eta": Infinity}"#), COMPLETED),
        posted("202", said(202, &id), COMPLETED),
        posted("203", said(203, &id), COMPLETED),
        posted("207", said(207, &id), COMPLETED),
        posted(
            "completed at once",
            said(200, &json!({ "id": "t0", "status": "completed", "video_url": "$V" })),
            COMPLETED,
        ),
        posted("an unknown word", said(200, &json!({ "id": "t0", "status": "SUBMITTED" })), COMPLETED),
        posted(
            "an error beside the id",
            said(200, &json!({ "id": "t0", "error": { "message": "slow today" } })),
            COMPLETED,
        ),
        posted(
            "wrapped",
            said(200, &json!({ "code": "success", "data": { "task_id": "t0", "status": "SUBMITTED" } })),
            COMPLETED,
        ),
        posted(
            "another length",
            said(200, &json!({ "id": "t0", "status": "queued", "duration": 4 })),
            Must { shows: "4 s, requested 12 s", ..COMPLETED },
        ),
        posted(
            "another shape",
            said(200, &json!({ "id": "t0", "aspect_ratio": "9:16", "seconds": "12" })),
            Must { shows: "9:16, requested 16:9", ..COMPLETED },
        ),
        doubt("200 without an id", said(200, &json!({ "status": "queued" })), "no task ID"),
        doubt("request_id", said(200, &json!({ "request_id": "r0" })), "r0"),
        doubt("job_id", said(200, &json!({ "job_id": "j0" })), "j0"),
        doubt("data[0].id", said(200, &json!({ "data": [{ "id": "t0" }] })), "t0"),
        doubt("an id that is blank", said(200, &json!({ "id": " " })), "no task ID"),
        doubt("200 with an error", said(200, &json!({ "error": { "message": "quota" } })), "quota"),
        // Its bytes are kept in the ledger, as base64.
        doubt("gzip that does not say so", text(200, &[], GZIP), "unreadable form"),
        doubt("UTF-16", text(200, &[], [0xff, 0xfe, b'{', 0, b'"', 0]), "unreadable form"),
        doubt("204", text(204, &[], ""), "unreadable form"),
        posted(
            "HTML",
            text(200, &[], "<html>please log in</html>"),
            Must { shows: "please log in", exit: 6, ..IN_DOUBT },
        ),
        doubt("303", text(303, &[("location", "$S/v1/videos/t0")], ""), "redirect"),
        doubt("408", said(408, &json!({ "error": { "message": "litellm.Timeout" } })), "litellm.Timeout"),
        doubt("408 with a wait", text(408, &[("retry-after", "1")], ""), "408"),
        doubt("500", said(500, &json!({ "detail": "boom" })), "boom"),
        doubt("500 with an id", said(500, &id), "t0"),
        doubt("502", text(502, &[], "<h1>Bad Gateway</h1>"), "Bad Gateway"),
        doubt("503", said(503, &json!({ "error": { "message": "no available channel" } })), "no available channel"),
        doubt("504", text(504, &[], ""), "504"),
        doubt("520", text(520, &[], ""), "520"),
        doubt("530", text(530, &[], ""), "530"),
    ]);
}

#[test]
fn refused_submission_buys_nothing() {
    let rejected = |name, answer, shows| posted(name, answer, Must { shows, ..REJECTED });
    let moved = |name, status| {
        posted(
            name,
            text(status, &[("location", "https://www.example.com/v1/videos")], ""),
            Must { shows: "www.example.com", ..PENDING },
        )
    };
    all_hold(vec![
        rejected("400 error", said(400, &json!({ "error": { "message": "prompt too long" } })), "prompt too long"),
        rejected(
            "400 title and detail",
            said(400, &json!({ "title": "Bad Request", "detail": "no such model" })),
            "no such model",
        ),
        posted(
            "400 HTML",
            text(400, &[], "<html><h1>The plain HTTP request was sent to HTTPS port</h1>"),
            Must { shows: "sent to HTTPS port", exit: 6, ..PENDING },
        ),
        rejected(
            "402 errors",
            said(402, &json!({ "errors": [{ "message": "insufficient credit" }] })),
            "insufficient credit",
        ),
        posted("404", said(404, &json!({ "detail": "Not Found" })), Must { shows: "Not Found", exit: 6, ..PENDING }),
        rejected("404 model", said(404, &json!({ "error": { "message": "no such model" } })), "no such model"),
        posted("405", text(405, &[("allow", "GET")], ""), Must { shows: "405", exit: 6, ..PENDING }),
        rejected("409", said(409, &json!({ "message": "not now" })), "not now"),
        rejected("413", text(413, &[], "too large for this gateway"), "too large for this gateway"),
        rejected("415", said(415, &json!({ "error": "send JSON" })), "send JSON"),
        rejected(
            "422 detail",
            said(422, &json!({ "detail": [{ "loc": ["body", "seconds"], "msg": "field required" }] })),
            "field required",
        ),
        rejected("451", said(451, &json!({ "fail_reason": "not here" })), "not here"),
        moved("301", 301),
        moved("302", 302),
        moved("307", 307),
        moved("308", 308),
        posted(
            "401",
            said(401, &json!({ "error": { "message": "bad key" } })),
            Must { shows: "bad key", exit: 4, ..PENDING },
        ),
        posted(
            "403",
            said(403, &json!({ "error": { "message": "no quota" } })),
            Must { shows: "no quota", exit: 4, ..PENDING },
        ),
        posted(
            "403 with a page",
            text(403, &[], "<html>this request was blocked</html>"),
            Must { shows: "was blocked", ..PENDING },
        ),
        rejected(
            "429 without quota",
            said(429, &json!({ "error": { "code": "insufficient_quota", "message": "check your plan" } })),
            "check your plan",
        ),
        rejected(
            "403 without quota",
            said(403, &json!({ "code": "insufficient_user_quota", "message": "top up" })),
            "top up",
        ),
    ]);
}
