//! Wrong servers cost little: the harmless GET before the first submission, circuit breakers, and jobs in doubt that name a task.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use crate::support::{Answer, LEFT_AFTER, Service, Workspace, answer_of_video, has_code, numbered_jobs, raw};

const ONE_JOB: &str = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n";

/// A server with one response to each GET. Counts submissions, and closes them without a response.
fn server(get: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let posts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&posts);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            thread::spawn(move || drop(serve(&stream, get, &counted)));
        }
    });
    (url, posts)
}

fn serve(mut stream: &TcpStream, get: &str, posts: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut header) = (String::new(), String::new());
    reader.read_line(&mut line)?;
    let mut length = 0;
    while reader.read_line(&mut header)? > 2 {
        let value = header.strip_prefix("content-length: ").and_then(|value| value.trim().parse().ok());
        length = value.unwrap_or(length);
        header.clear();
    }
    if line.starts_with("POST") {
        posts.fetch_add(1, Ordering::SeqCst);
        reader.read_exact(&mut vec![0; length])?;
        return Ok(());
    }
    stream.write_all(get.as_bytes())
}

fn runs_against(get: &'static str, code: i32) -> (String, usize) {
    let (url, posts) = server(get);
    let here = Workspace::with_manifest(&numbered_jobs(20));
    let run = here.shotlist(&["run", "m.yaml", "--yes", "--no-download"]);
    let ended = run.with_service(&url).ends_with(code);
    (ended.stderr, posts.load(Ordering::SeqCst))
}

#[test]
fn wrong_server_ends_the_run_before_a_submission() {
    let servers = [
        "",
        "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 17\r\n\r\n<html>502</html>\n",
        "HTTP/1.1 503 x\r\ncontent-length: 22\r\n\r\nupstream connect error",
        "HTTP/1.1 500 x\r\ncontent-length: 16\r\n\r\n{\"error\": \"odd\"}",
        "HTTP/1.1 301 x\r\nlocation: https://elsewhere.example/\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 19\r\n\r\n<html>log in</html>",
        "HTTP/1.1 511 x\r\ncontent-length: 0\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
    ];
    let test = |get| {
        let (told, posts) = runs_against(get, 6);
        assert_eq!(posts, 0, "{get}");
        assert!(has_code(&told, "stopping"), "{get}: {told}");
    };
    // Most of the time is between two tries.
    thread::scope(|scope| servers.iter().for_each(|get| drop(scope.spawn(|| test(get)))));
}

#[test]
fn refused_key_ends_the_run_before_a_submission() {
    let (_, posts) = runs_against("HTTP/1.1 401 x\r\ncontent-length: 2\r\n\r\n{}", 4);
    assert_eq!(posts, 0);
}

#[test]
fn overload_of_the_gateway_is_a_wait() {
    let service = Service::scripted(|asked| {
        if asked.method == "POST" && asked.earlier < 2 {
            return raw(503, &[("x-envoy-overloaded", "true")], "upstream request overflow");
        }
        Answer::Well
    });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(here.report()["totals"]["at_risk_usd"], json!("0.00"));
}

/// Each task that passes its deadline frees a slot: without a circuit breaker, all 40 jobs are bought.
#[test]
fn endless_tasks_stop_submissions() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => Answer::Well,
        _ => raw(200, &[], r#"{"status": "limbo"}"#),
    });
    let here = Workspace::with_manifest(&numbered_jobs(40));
    let ended = here.run(&service, &["--concurrency", "1", "--deadline", LEFT_AFTER]).ends_with(1);
    assert_eq!(service.posts().len(), 3, "{}", ended.stderr);
    assert!(has_code(&ended.stderr, "stopping"), "{}", ended.stderr);
}

#[test]
fn job_in_doubt_offers_the_id_of_its_response() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => raw(200, &[], r#"{"request_id": "r0"}"#),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(7);
    let listed = here.shotlist(&["resolve", "m.yaml"]).ends_with(0);
    insta::assert_snapshot!(listed.line("--task r0"), @"if `r0` is the task of a: shotlist resolve m.yaml a --task r0");
}

/// Some gateways report a task as completed before its content exists.
#[test]
fn unready_content_is_requested_again() {
    for status in [202, 400, 404, 409] {
        let service = Service::scripted(move |asked| {
            if asked.path.ends_with("/content") {
                return if asked.earlier == 0 {
                    raw(status, &[], "")
                } else {
                    Answer::Bytes(answer_of_video("content"))
                };
            }
            if asked.method == "POST" { Answer::Well } else { raw(200, &[], r#"{"status": "completed"}"#) }
        });
        let here = Workspace::with_manifest(ONE_JOB);
        here.run(&service, &[]).ends_with(0);
        assert!(here.path("shotlist-out/m/a.mp4").exists(), "{status}");
    }
}

/// With an unknown status, the task may be active: a second submission could be charged.
#[test]
fn unknown_word_with_an_error_is_not_retried_by_itself() {
    for more in ["", r#", "progress": 100"#] {
        let body = format!(r#"{{"status": "nsfw", "error": {{"message": "refused"}}{more}}}"#);
        let service = Service::scripted(move |asked| match asked.method.as_str() {
            "POST" => Answer::Well,
            _ => raw(200, &[], &body),
        });
        let here = Workspace::with_manifest(ONE_JOB);
        here.run(&service, &["--retries", "2"]).ends_with(1);
        assert_eq!((service.posts().len(), here.states()), (1, vec!["failed".to_owned()]));
    }
}
