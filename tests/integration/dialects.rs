//! How gateways and services of the same shape say it: each shape with what has to come of it (money, state, file, polls and
//! words), by the whole program. One table; a test for each of its parts.

use serde_json::{Value, json};

use crate::support::{Answer, Service, Workspace, answer_of_video, raw};

const ONE_JOB: &str = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n";

/// One answer: a status, headers and a body, with `$V` for the address of a video, `$C` for that of the content, and `$S` for
/// the service's own.
#[derive(Clone)]
struct Said {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
}

fn said(status: u16, body: &Value) -> Said {
    Said { status, headers: vec![("content-type", "application/json")], body: body.to_string() }
}

fn text(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Said {
    Said { status, headers: headers.to_vec(), body: body.to_owned() }
}

/// A service's way to answer, and what must come of one job on alpha-2.
struct Dialect {
    name: &'static str,
    /// To the submission.
    post: Said,
    /// To the polls, one after the other; the last one again and again. By the name that is asked by, where it starts so.
    polls: Vec<(&'static str, Said)>,
    /// To a request for the content; a video if none is said.
    content: Option<Said>,
    must: Must,
}

/// What must come of it.
struct Must {
    state: &'static str,
    charge: &'static str,
    /// How many polls the report counts; at least so many if the task never ends.
    polls: u32,
    has_file: bool,
    told: &'static str,
    exit: i32,
}

const COMPLETED: Must = Must { state: "completed", charge: "charged", polls: 1, has_file: true, told: "", exit: 0 };
const FAILED: Must = Must { state: "failed", charge: "charged", polls: 1, has_file: false, told: "", exit: 1 };
const OPEN: Must = Must { state: "queued", charge: "charged", polls: 2, has_file: false, told: "deadline", exit: 1 };
const RUNNING: Must = Must { state: "in_progress", ..OPEN };
const IN_DOUBT: Must =
    Must { state: "in_doubt", charge: "unknown", polls: 0, has_file: false, told: "in doubt", exit: 7 };
const REJECTED: Must = Must { state: "rejected", charge: "none", polls: 0, has_file: false, told: "", exit: 1 };
const PENDING: Must = Must { state: "pending", charge: "none", polls: 0, has_file: false, told: "", exit: 6 };

/// A service that takes the submission as the interface has it.
fn seen(name: &'static str, poll: &Value, must: Must) -> Dialect {
    let post = said(200, &json!({ "id": "t0", "task_id": "t0", "status": "queued", "progress": 0 }));
    Dialect { name, post, polls: vec![("", said(200, poll))], content: None, must }
}

/// A service whose polls are answered so, one after the other.
fn looked(name: &'static str, polls: Vec<Said>, must: Must) -> Dialect {
    Dialect { polls: polls.into_iter().map(|poll| ("", poll)).collect(), ..seen(name, &json!({}), must) }
}

/// A service that answers a submission so, and is well else.
fn posted(name: &'static str, post: Said, must: Must) -> Dialect {
    let well = json!({ "status": "completed", "progress": 100, "video_url": "$V" });
    Dialect { post, ..seen(name, &well, must) }
}

impl Dialect {
    fn with_content(mut self, content: Said) -> Self {
        self.content = Some(content);
        self
    }

    fn holds(self) {
        let Self { name, post, polls, content, must } = self;
        let service = Service::scripted(move |asked| {
            let host = format!("http://{}", asked.headers.get("host").expect("a host"));
            let answer = if asked.method == "POST" {
                &post
            } else if asked.path.ends_with("/content") {
                match &content {
                    Some(content) => content,
                    None => return Answer::Bytes(answer_of_video("content")),
                }
            } else {
                let task = asked.path.rsplit('/').next().expect("a name");
                let own: Vec<&Said> =
                    polls.iter().filter(|(by, _)| task.starts_with(by)).map(|(_, poll)| poll).collect();
                own[asked.earlier.min(own.len() - 1)]
            };
            let replaced = |text: &str| {
                text.replace("$V", &format!("{host}/videos/t0.mp4"))
                    .replace("$C", &format!("{host}/v1/videos/t0/content"))
                    .replace("$S", &host)
            };
            let headers: Vec<(&str, String)> =
                answer.headers.iter().map(|(name, value)| (*name, replaced(value))).collect();
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            raw(answer.status, &headers, &replaced(&answer.body))
        });
        let here = Workspace::with_manifest(ONE_JOB);
        let is_open = ["queued", "in_progress"].contains(&must.state);
        let deadline = if is_open { "400ms" } else { "60s" };
        let ended = here.run(&service, &["--deadline", deadline]).ends_with(must.exit);
        let job = here.report()["jobs"][0].clone();
        let money = match must.charge {
            "charged" => json!("0.90"),
            "none" => json!("0.00"),
            _ => Value::Null,
        };
        assert_eq!(
            (&job["state"], &job["charge"], &job["cost_usd"]),
            (&json!(must.state), &json!(must.charge), &money),
            "{name}"
        );
        let polls = job["polls"].as_u64().expect("a number");
        let is_right = if is_open { polls >= must.polls.into() } else { polls == u64::from(must.polls) };
        assert!(is_right, "{name}: {polls} polls");
        assert_eq!(here.path("shotlist-out/m/a.mp4").exists(), must.has_file, "{name}");
        assert!(ended.stderr.contains(must.told), "{name}: {}", ended.stderr);
        assert_eq!(service.posts().len(), 1, "{name}: sent twice");
        for asked in service.asked() {
            assert_eq!(asked.headers.get("accept-encoding").map(String::as_str), Some("identity"), "{name}");
        }
        // Whatever it was: the next run neither buys nor changes it, unless nothing was bought.
        if matches!(must.state, "completed" | "failed" | "in_doubt") {
            let again = here.run(&service, &[]).ends_with(if must.state == "completed" { 0 } else { must.exit });
            assert_eq!(service.posts().len(), 1, "{name}: {}", again.stderr);
        }
    }
}

fn all_hold(dialects: Vec<Dialect>) {
    dialects.into_iter().for_each(Dialect::holds);
}

#[test]
fn the_end_is_understood_by_its_word_or_by_its_video() {
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
fn the_video_is_found_where_it_is_put() {
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
        // No such field at all: the content is asked for at once.
        content(
            "OpenAI",
            &json!({ "id": "t0", "object": "video", "status": "completed", "progress": 100, "model": "sora-2", "seconds": "12", "size": "1280x720" }),
        ),
        content("only a status", &json!({ "status": "completed" })),
        content("a list of texts", &json!({ "status": "completed", "data": ["$V"] })),
        // An address that is none is never opened: the content stands in for it.
        content("data:", &json!({ "status": "completed", "video_url": "data:video/mp4;base64,AAAA" })),
        content("file:", &json!({ "status": "completed", "video_url": "file:///etc/passwd" })),
        content("javascript:", &json!({ "status": "completed", "video_url": "javascript:alert(1)" })),
        content("relative", &json!({ "status": "completed", "video_url": "/videos/t0.mp4" })),
        content("no host", &json!({ "status": "completed", "video_url": "https://" })),
        // A field that is there and empty may be filled in: it is asked for twice more.
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
fn a_failure_is_understood_with_its_reason() {
    let failed = |name, poll, told| seen(name, poll, Must { told, ..FAILED });
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
fn what_is_no_end_is_asked_about_again_and_told() {
    let running = |name, poll| seen(name, poll, RUNNING);
    let open = |name, poll, told| seen(name, poll, Must { told, ..OPEN });
    let trouble = |name, answer, told| looked(name, vec![answer], Must { told, ..OPEN });
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
        open("processing", &json!({ "status": "processing", "progress": 10 }), "`processing`"),
        open("PENDING", &json!({ "status": "PENDING" }), "`PENDING`"),
        open("NOT_START", &json!({ "status": "NOT_START" }), "`NOT_START`"),
        open("its own address", &json!({ "status": "rendering", "url": "$S/v1/videos/t0" }), "`rendering`"),
        open("cancelled without a reason", &json!({ "status": "cancelled" }), "`cancelled`"),
        open("cancelled with a video", &json!({ "status": "cancelled", "video_url": "$V" }), "`cancelled`"),
        open(
            "deleted with a reason",
            &json!({ "status": "deleted", "error": { "message": "by the janitor" } }),
            "by the janitor",
        ),
        open("limbo", &json!({ "status": "limbo", "progress": 100 }), "resolve m.yaml a --lost"),
        open("success alone", &json!({ "status": "SUCCEEDED" }), "`SUCCEEDED`, and gives no video"),
        open("success in the middle", &json!({ "status": "success", "progress": 40 }), "`success`"),
        open("empty", &json!({}), "(none)"),
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
        trouble("a list", said(200, &json!([])), "can't be read as a task"),
        trouble("HTML with 200", text(200, &[], "<html>please log in</html>"), "can't be read as a task"),
        trouble("cut off", text(200, &[], "{\"id\": \"t0\", \"status\": \"comp"), "can't be read as a task"),
        trouble("nothing", text(204, &[], ""), "can't be read as a task"),
        trouble("redirect", text(307, &[("location", "$S/v1/videos/t0/")], ""), "HTTP 307"),
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
fn a_task_is_known_by_all_of_its_names() {
    let well = || said(200, &json!({ "status": "completed", "video_url": "$V" }));
    let unknown = || said(404, &json!({ "error": { "message": "unknown" } }));
    let named = |name, post: &Value, polls, must| Dialect { name, post: said(200, post), polls, content: None, must };
    let strange = |id: &str| said(200, &json!({ "id": id, "status": "completed", "video_url": "$V" }));
    all_hold(vec![
        named("only id", &json!({ "id": "t0" }), vec![("t0", well()), ("", unknown())], COMPLETED),
        named("only task_id", &json!({ "task_id": "t0" }), vec![("t0", well()), ("", unknown())], COMPLETED),
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
            Must { polls: 3, told: "bW9kZWw6YmV0YQ (also bW9kZWw6Ow)", ..COMPLETED },
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
            Must { told: "answered about the task", ..OPEN },
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
fn a_submission_is_taken_or_in_doubt() {
    let id = json!({ "id": "t0", "status": "queued" });
    let doubt = |name, answer, told| posted(name, answer, Must { told, ..IN_DOUBT });
    all_hold(vec![
        posted("201", said(201, &id), COMPLETED),
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
            Must { told: "makes 4 s where 12 s", ..COMPLETED },
        ),
        posted(
            "another shape",
            said(200, &json!({ "id": "t0", "aspect_ratio": "9:16", "seconds": "12" })),
            Must { told: "9:16 where 16:9", ..COMPLETED },
        ),
        doubt("200 without an id", said(200, &json!({ "status": "queued" })), "without a task id"),
        doubt("request_id", said(200, &json!({ "request_id": "r0" })), "r0"),
        doubt("job_id", said(200, &json!({ "job_id": "j0" })), "j0"),
        doubt("data[0].id", said(200, &json!({ "data": [{ "id": "t0" }] })), "t0"),
        doubt("an id that is blank", said(200, &json!({ "id": " " })), "without a task id"),
        doubt("200 with an error", said(200, &json!({ "error": { "message": "quota" } })), "quota"),
        doubt("204", text(204, &[], ""), "can't be read"),
        doubt("HTML", text(200, &[], "<html>please log in</html>"), "please log in"),
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
fn a_submission_is_refused_and_nothing_is_bought() {
    let rejected = |name, answer, told| posted(name, answer, Must { told, ..REJECTED });
    let moved = |name, status| {
        posted(
            name,
            text(status, &[("location", "https://www.example.com/v1/videos")], ""),
            Must { told: "www.example.com", ..PENDING },
        )
    };
    all_hold(vec![
        rejected("400 error", said(400, &json!({ "error": { "message": "prompt too long" } })), "prompt too long"),
        rejected(
            "400 title and detail",
            said(400, &json!({ "title": "Bad Request", "detail": "no such model" })),
            "no such model",
        ),
        rejected(
            "400 HTML",
            text(400, &[], "<html><h1>The plain HTTP request was sent to HTTPS port</h1>"),
            "sent to HTTPS port",
        ),
        rejected(
            "402 errors",
            said(402, &json!({ "errors": [{ "message": "insufficient credit" }] })),
            "insufficient credit",
        ),
        rejected("404", said(404, &json!({ "detail": "Not Found" })), "Not Found"),
        rejected("405", text(405, &[("allow", "GET")], ""), "405"),
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
            Must { told: "bad key", exit: 4, ..PENDING },
        ),
        posted(
            "403",
            said(403, &json!({ "error": { "message": "no quota" } })),
            Must { told: "no quota", exit: 4, ..PENDING },
        ),
    ]);
}
