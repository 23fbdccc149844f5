//! Headers for a gateway, and proxies of the environment.

use serde_json::json;

use crate::support::{Answer, Service, Workspace, answer_of_video, json as answer};

const ONE_JOB: &str = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n";

/// A service with a video at this URL, or else at its content endpoint.
fn with_video_at(url: Option<String>) -> Service {
    Service::scripted(move |asked| match (asked.method.as_str(), asked.path.ends_with("/content")) {
        ("POST", _) => Answer::Well,
        (_, true) => Answer::Bytes(answer_of_video("content")),
        _ => answer(200, &json!({ "status": "completed", "progress": 100, "video_url": url })),
    })
}

#[test]
fn gateway_header_is_sent_to_its_origin_only() {
    let elsewhere = Service::scripted_wholly(|_| Answer::Bytes(answer_of_video("elsewhere")));
    let service = with_video_at(Some(format!("{}/videos/x.mp4", elsewhere.url())));
    let here = Workspace::with_manifest(ONE_JOB);
    let headers = ["--header", "X-LiteLLM-Num-Retries=0", "--header", "CF-Access-Client-Secret=very-secret=x", "-vv"];
    here.run(&service, &headers).ends_with(0).lacks(&["very-secret"]);
    for asked in service.asked() {
        assert_eq!(asked.headers.get("x-litellm-num-retries").map(String::as_str), Some("0"), "{}", asked.path);
        assert_eq!(asked.headers.get("cf-access-client-secret").map(String::as_str), Some("very-secret=x"));
        assert_eq!(asked.headers.get("authorization").map(String::as_str), Some("Bearer k"));
    }
    for asked in elsewhere.asked() {
        let is_theirs = asked.headers.keys().any(|name| name.starts_with("x-") || name.starts_with("cf-"));
        assert!(!is_theirs && !asked.headers.contains_key("authorization"), "{:?}", asked.headers);
    }
    assert_eq!((elsewhere.asked().len(), service.posts().len()), (1, 1));

    // From the environment, one per line, also for the content endpoint.
    let service = with_video_at(None);
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).env("SHOTLIST_HEADER", "x-one=1\nx-two=2\n").ends_with(0);
    let content: Vec<_> = service.asked().into_iter().filter(|asked| asked.path.ends_with("/content")).collect();
    assert_eq!(content.len(), 1);
    assert_eq!((content[0].headers["x-one"].as_str(), content[0].headers["x-two"].as_str()), ("1", "2"));
}

#[test]
fn invalid_header_is_refused_without_its_value() {
    let service = Service::well();
    let here = Workspace::with_manifest(ONE_JOB);
    for (header, told) in [
        ("very-secret", "`NAME=VALUE`"),
        ("a b=very-secret", "`a b`"),
        ("Authorization=Bearer very-secret", "SHOTLIST_API_KEY"),
        ("x=very-secret\u{7f}", "`x`"),
    ] {
        let ended = here.run(&service, &["--header", header]).ends_with(2).lacks(&["very-secret"]);
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
    here.run(&service, &["--header", "x=1", "--header", "X=2"]).fails_with("option-invalid", 2);
    assert_eq!(service.asked().len(), 0);
}

#[test]
fn echoed_gateway_secret_is_written_nowhere() {
    let service = Service::scripted(|asked| {
        let secret = asked.headers.get("x-gateway-token").cloned().unwrap_or_default();
        answer(400, &json!({ "error": { "message": format!("no such tenant: {secret}"), "code": secret } }))
    });
    let here = Workspace::with_manifest(ONE_JOB);
    let ended =
        here.run(&service, &["--header", "x-gateway-token=very-secret", "--exec", "true very-secret"]).ends_with(1);
    insta::assert_snapshot!(ended.stderr, @"
    1 job to submit for $0.90
    warning[rejected]: a was rejected, and costs nothing: the service rejected the submission (HTTP 400): no such tenant: ***
    ");
    for file in here.files() {
        let bytes = std::fs::read(here.path(&file)).expect("a file");
        assert!(!bytes.windows(11).any(|text| text == b"very-secret"), "{file}");
    }
}

/// Requests to this machine are direct, and a video on another host comes through the proxy.
#[test]
fn only_loopback_bypasses_the_proxy() {
    let proxy = Service::scripted_wholly(|_| Answer::Bytes(answer_of_video("through the proxy")));
    let service = with_video_at(Some("http://video.invalid/x.mp4".to_owned()));
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).env("HTTP_PROXY", &proxy.url()).env("http_proxy", &proxy.url()).ends_with(0);
    let through: Vec<String> = proxy.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(through, ["http://video.invalid/x.mp4"]);

    let local = Service::scripted_wholly(|_| Answer::Bytes(answer_of_video("near")));
    let service = with_video_at(Some(format!("{}/x.mp4", local.url())));
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).env("HTTP_PROXY", &proxy.url()).env("http_proxy", &proxy.url()).ends_with(0);
    assert_eq!((proxy.asked().len(), local.asked().len()), (1, 1));
}
