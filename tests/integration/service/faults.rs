//! `run` with a failing service: repeated and unrepeatable requests, and the messages.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::support::{
    Answer, Asked, Ended, Service, TWO_JOBS, Workspace, answer_of_video, has_code, json as answer, line_of,
    numbered_jobs, raw,
};

/// The action of a service instead of a response.
type Fault = Box<dyn Fn() -> Answer + Send + Sync>;

const ONE_JOB: &str = "version: 1\njobs: [{ id: one, model: alpha-2, prompt: a cat }]\n";

/// Runs one job against a script; the service, the workspace and how it ended.
fn one_job(code: i32, script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> (Service, Workspace, Ended) {
    let (service, here) = (Service::scripted(script), Workspace::with_manifest(ONE_JOB));
    let ended = here.run(&service, &[]).ends_with(code);
    (service, here, ended)
}

fn is_post(asked: &Asked) -> bool {
    asked.method == "POST"
}

#[test]
fn without_a_key_or_an_address_nothing_is_made_or_sent() {
    let (service, here) = (Service::well(), Workspace::with_manifest(ONE_JOB));
    let ended = here.run(&service, &[]).without_env("SHOTLIST_API_KEY").ends_with(2);
    assert!(has_code(&ended.stderr, "key-missing"), "{}", ended.stderr);
    let ended = here.run(&service, &[]).without_env("SHOTLIST_BASE_URL").ends_with(2);
    assert!(has_code(&ended.stderr, "url-missing"), "{}", ended.stderr);
    let ended = here.run(&service, &["--base-url", "http://api.example.com"]).ends_with(2);
    assert!(has_code(&ended.stderr, "url-invalid"), "{}", ended.stderr);
    here.write("key", " \n");
    here.run(&service, &["--api-key-file", "key"]).ends_with(2);
    here.run(&service, &["--api-key-file", "no-such-file"]).ends_with(2);
    assert_eq!(here.files(), ["key", "m.yaml"]);
    here.write("key", "from-file\n");
    here.run(&service, &["--api-key-file", "key"]).ends_with(0);
    // It may come through a pipe, which can be read once.
    #[cfg(unix)]
    here.script(
        &service,
        "mkfifo pipe && (printf from-file >pipe &) && \"$0\" run m.yaml --api-key-file pipe --yes --batch new",
    )
    .without_env("SHOTLIST_API_KEY")
    .ends_with(0);
    assert!(service.asked().iter().all(|asked| asked.headers["authorization"] == "Bearer from-file"));
}

#[test]
fn refused_key_stops_the_run_and_loses_nothing() {
    for status in [401, 403] {
        let service = Service::scripted(move |asked| {
            let refused = asked.headers["authorization"] == "Bearer bad";
            if refused { answer(status, &json!({ "error": { "message": "not for you" } })) } else { Answer::Well }
        });
        let here = Workspace::with_manifest(TWO_JOBS);
        let ended = here.run(&service, &["--concurrency", "1"]).env("SHOTLIST_API_KEY", "bad").ends_with(4);
        line_of(&ended.shows("stopping").stderr, "not for you");
        assert_eq!(here.states(), ["pending", "pending"]);
        assert_eq!(service.posts().len(), 1, "it went on submitting");
        here.run(&service, &[]).ends_with(0);
        assert_eq!(here.states(), ["completed", "completed"]);
    }
}

#[test]
fn expired_key_leaves_paid_tasks_for_the_next_run() {
    let (service, here, ended) =
        one_job(4, |asked| if is_post(asked) || asked.earlier >= 3 { Answer::Well } else { answer(401, &json!({})) });
    assert!(has_code(&ended.stderr, "task-left"), "{}", ended.stderr);
    assert_eq!(here.states(), ["queued"]);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 1);
    assert_eq!(here.states(), ["completed"]);
}

#[test]
fn unreachable_service_costs_nothing() {
    let here = Workspace::with_manifest(TWO_JOBS);
    // The near end of a connection: nobody listens there, and no service of another test can take it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = std::net::TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let port = taken.local_addr().expect("an address").port();
    let program = here.shotlist(&["run", "m.yaml", "--yes", "--quiet"]).env("SHOTLIST_API_KEY", "k");
    let ended = program.env("SHOTLIST_BASE_URL", &format!("http://127.0.0.1:{port}")).ends_with(6);
    insta::assert_snapshot!(ended.line("error[stopping]").replace(&port.to_string(), "PORT"), @"error[stopping]: stopped submitting: can't connect to http://127.0.0.1:PORT: tcp connect error: Connection refused");
    assert_eq!(here.states(), ["pending", "pending"]);
    assert_eq!(here.report()["totals"]["at_risk_usd"], "0.00");
}

#[test]
fn lost_response_puts_the_job_in_doubt_for_good() {
    let truncated = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"id\": \"t1\"".to_vec();
    let faults: Vec<(&str, Fault)> = vec![
        ("connection lost", Box::new(|| Answer::Hangup)),
        ("body cut short", Box::new(move || Answer::Bytes(truncated.clone()))),
        ("no task id", Box::new(|| answer(200, &json!({ "status": "queued" })))),
        ("a page", Box::new(|| raw(200, &[], "<html>welcome</html>"))),
        ("not HTTP", Box::new(|| Answer::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()))),
        ("500", Box::new(|| answer(500, &json!({ "error": { "message": "oops" } })))),
        ("502", Box::new(|| raw(502, &[], "bad gateway"))),
        ("503 without Retry-After", Box::new(|| raw(503, &[], ""))),
        ("504", Box::new(|| raw(504, &[], ""))),
        ("408 of a gateway", Box::new(|| raw(408, &[("retry-after", "0")], "upstream request timeout"))),
    ];
    for (what, fault) in faults {
        // A page on the first submission is of another server, too.
        let code = if what == "a page" { 6 } else { 7 };
        let (service, here, ended) = one_job(code, move |asked| if is_post(asked) { fault() } else { Answer::Well });
        assert!(has_code(&ended.stderr, "in-doubt"), "{what}: {}", ended.stderr);
        let report = here.report();
        assert_eq!(report["jobs"][0]["state"], "in_doubt", "{what}");
        assert_eq!(report["jobs"][0]["charge"], "unknown", "{what}");
        assert!(report["jobs"][0]["cost_usd"].is_null(), "{what}");
        assert_eq!(report["totals"]["at_risk_usd"], "0.90", "{what}");
        here.run(&service, &[]).ends_with(7);
        assert_eq!(service.posts().len(), 1, "{what}: it was sent again");
    }
}

#[test]
fn redirect_of_a_submission_is_not_followed() {
    let elsewhere = Service::well();
    let target = format!("{}/v1/videos", elsewhere.url());
    for status in [301, 302, 307, 308] {
        let to = target.clone();
        let (service, here, ended) = one_job(6, move |_| raw(status, &[("location", &to)], ""));
        assert_eq!(here.states(), ["pending"], "{status}");
        assert!(ended.stderr.contains(&format!("leads elsewhere, to {target}")), "{status}: {}", ended.stderr);
        assert_eq!((service.posts().len(), &here.report()["totals"]["at_risk_usd"]), (1, &json!("0.00")), "{status}");
    }
    // "It is done, poll elsewhere" may have bought something.
    let to = target.clone();
    let (_, here, _) = one_job(7, move |_| raw(303, &[("location", &to)], ""));
    assert_eq!(here.states(), ["in_doubt"]);
    assert_eq!(elsewhere.asked().len(), 0, "a redirect was followed");
}

#[test]
fn requested_wait_is_obeyed_and_costs_no_attempt() {
    for (status, retry_after) in [(429, Some("0")), (429, None), (503, Some("0")), (425, Some("0"))] {
        // Without a header the pause is some seconds, so only one of these is waited for.
        let headers: Vec<(&str, &str)> = retry_after.map(|wait| ("retry-after", wait)).into_iter().collect();
        let headers: Vec<(String, String)> =
            headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let (service, here, _) = one_job(0, move |asked| {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            if is_post(asked) && asked.earlier == 0 { raw(status, &headers, "") } else { Answer::Well }
        });
        assert_eq!(service.posts().len(), 2, "{status}");
        assert_eq!(here.report()["jobs"][0]["attempts"], 1, "{status}");
        assert_eq!(here.report()["totals"]["spent_usd"], "0.90", "{status}");
    }
}

#[test]
fn no_trouble_with_polls_fails_a_job() {
    let turn = AtomicUsize::new(0);
    let (service, here, _) = one_job(0, move |asked| {
        if is_post(asked) {
            return Answer::Well;
        }
        match turn.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::Hangup,
            1 => raw(500, &[], ""),
            2 => raw(200, &[], "{\"id\": \"t0\", \"status\": \"comp"),
            3 => raw(404, &[], ""),
            4 => raw(429, &[("retry-after", "0")], ""),
            5 => answer(200, &json!({ "id": "t0", "status": "in_progress", "progress": 40 })),
            6 => answer(200, &json!({ "id": "t0", "status": "in_progress", "progress": 20 })),
            7 => answer(200, &json!({ "id": "t0", "status": null })),
            _ => Answer::Well,
        }
    });
    assert_eq!(here.states(), ["completed"]);
    assert!(service.polls() >= 9, "{}", service.polls());
    assert_eq!(here.report()["jobs"][0]["polls"], service.polls());
}

#[test]
fn unknown_status_is_polled_and_reported_once() {
    let (_, here, ended) = one_job(0, |asked| {
        let odd = !is_post(asked) && asked.earlier < 4;
        if odd { answer(200, &json!({ "id": "t0", "status": "moderating" })) } else { Answer::Well }
    });
    assert_eq!(here.states(), ["completed"]);
    assert_eq!(ended.stderr.matches("`moderating`").count(), 1, "{}", ended.stderr);
}

#[test]
fn completion_without_a_url_leads_to_the_content_endpoint() {
    let (service, here, _) = one_job(0, |asked| match asked.path.as_str() {
        "/v1/videos/t0/content" => Answer::Bytes(answer_of_video("t0")),
        "/v1/videos/t0" => answer(200, &json!({ "id": "t0", "status": "completed" })),
        _ => Answer::Well,
    });
    let url = here.report()["jobs"][0]["video_url"].as_str().expect("a URL").to_owned();
    assert_eq!(url, format!("{}/v1/videos/t0/content", service.url()));
    assert_eq!(here.report()["jobs"][0]["file"], "one.mp4");
}

#[test]
fn no_submission_goes_over_a_connection_of_polls() {
    // The service keeps every connection open, and offers it for more.
    let manifest = numbered_jobs(12);
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest));
    here.run(&service, &["--concurrency", "2"]).ends_with(0);
    let of = |of_posts: bool| -> HashSet<usize> {
        service.asked().iter().filter(|asked| is_post(asked) == of_posts).map(|asked| asked.connection).collect()
    };
    // Those may have been silent for longer, unnoticed.
    assert_eq!(of(true).intersection(&of(false)).count(), 0);
    assert!(of(false).len() < 12, "polls share theirs");
}

#[test]
fn failed_tls_handshake_sends_nothing() {
    // TLS to a service that speaks none: the hand-shake fails before a byte of the request is written.
    let (service, here) = (Service::well(), Workspace::with_manifest(ONE_JOB));
    let url = service.url().replace("http://", "https://");
    let ended = here.run(&service, &["--base-url", &url]).ends_with(6);
    assert!(has_code(&ended.stderr, "stopping"), "{}", ended.stderr);
    assert_eq!(here.states(), ["pending"]);
    assert_eq!(here.report()["totals"]["at_risk_usd"], "0.00");
}

#[test]
fn start_of_a_broken_response_is_kept() {
    let broken = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"id\": \"precious\", \"status\": \"que".to_vec();
    let (_, here, ended) = one_job(7, move |_| Answer::Bytes(broken.clone()));
    insta::assert_snapshot!(ended.stderr, @r#"
    1 job to submit for $0.90
    error[in-doubt]: one is in doubt: the connection broke before the response came; received: {"id": "precious", "status": "que
      note: $0.90 at risk; shotlist never sends the job again by itself
      help: look for its task on the service's website or bill; if there is one: `shotlist resolve m.yaml one --task ID`; if there is certainly none: `shotlist resolve m.yaml one --never-created`
    "#);
    insta::assert_snapshot!(here.report()["jobs"][0]["error"].as_str().expect("the start of it"), @r#"{"id": "precious", "status": "que"#);
}

#[test]
fn submission_after_its_timeout_is_in_doubt() {
    use shotlist::domain::{Request, Spec};
    use shotlist::service::{ApiKey, Credentials, Endpoint, HttpService, Submission, VideoService as _};

    let (service, release) = Service::holding("");
    let endpoint = Endpoint::parse(&service.url(), false).expect("an address");
    let client =
        HttpService::new(endpoint, Credentials::new(ApiKey::new("k").expect("a key"), Vec::new())).expect("a client");
    let client = client.with_submit_timeout(std::time::Duration::from_millis(200));
    let spec = Spec { model: "alpha-2".into(), prompt: Some("a cat".into()), ..Spec::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let submission = runtime.block_on(client.submit(&Request::new(&spec), None));
    let Ok(Submission::InDoubt(error)) = submission else { panic!("{submission:?}") };
    assert!(error.message.starts_with("no response in time"), "{}", error.message);
    assert_eq!(service.posts().len(), 1);
    release.store(true, Ordering::SeqCst);
}

#[test]
fn requests_allow_no_unreadable_encoding() {
    let (service, ..) = one_job(0, |_| Answer::Well);
    for asked in service.asked() {
        assert_eq!(asked.headers.get("accept-encoding").map(String::as_str), Some("identity"), "{}", asked.path);
    }
}
