//! Servers that send something else, too little, or nothing that ends.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use serde_json::json;

use super::direct::{fetch_from, head, stream};
use crate::support::{Answer, Asked, json as answer, raw, video};

type Script = Box<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// The behavior of a server, and the message about it.
type Hostile = Vec<(&'static str, Script, &'static str)>;

fn servers_that_send_something_else() -> Hostile {
    let start = || video("begins well");
    vec![
        (
            "an endless video",
            Box::new(move |_| {
                stream(move |to| {
                    to.write_all(&[head(""), start()].concat())?;
                    loop {
                        to.write_all(&[0; 4096])?;
                    }
                })
            }),
            "at most 1048576 bytes",
        ),
        (
            "an endless page",
            Box::new(|_| {
                stream(|to| {
                    to.write_all(&head("content-type: text/html\r\n"))?;
                    loop {
                        to.write_all(b"<p>One moment, please.</p>")?;
                    }
                })
            }),
            "it is HTML or XML",
        ),
        (
            "a page",
            Box::new(|_| raw(200, &[("content-type", "text/html")], "<!doctype html><title>x")),
            "it is HTML or XML",
        ),
        ("JSON", Box::new(|_| answer(200, &json!({ "error": "expired" }))), "it is JSON"),
        ("nothing", Box::new(|_| raw(200, &[], "")), "complete MP4"),
        (
            "more announced than allowed",
            Box::new(|_| Answer::Bytes(head("content-length: 99999999999\r\n"))),
            "at most 1048576 bytes",
        ),
    ]
}

fn servers_that_send_too_little() -> Hostile {
    vec![
        (
            "less than announced",
            Box::new(|_| Answer::Bytes([head("content-length: 5000\r\n"), video("x")].concat())),
            "end of file before message length reached",
        ),
        (
            "less announced than there is",
            Box::new(|_| Answer::Bytes([head("content-length: 30\r\n"), video("a longer one")].concat())),
            "cut short after 30 bytes",
        ),
        (
            "a reset in the middle",
            Box::new(|_| Answer::Bytes([head("content-length: 40\r\n"), video("x")[..20].to_vec()].concat())),
            "end of file before message length reached",
        ),
        (
            "a slow drip",
            Box::new(|_| {
                stream(|to| {
                    to.write_all(&[head("content-length: 4000\r\n"), video("x")].concat())?;
                    loop {
                        std::thread::sleep(Duration::from_millis(50));
                        to.write_all(&[0])?;
                    }
                })
            }),
            "bytes came in",
        ),
        (
            "no answer at all",
            Box::new(|_| {
                stream(|_| {
                    std::thread::sleep(Duration::from_secs(20));
                    Ok(())
                })
            }),
            "said nothing",
        ),
        (
            "silence",
            Box::new(|_| {
                stream(|to| {
                    to.write_all(&head("content-length: 4000\r\n"))?;
                    std::thread::sleep(Duration::from_secs(20));
                    Ok(())
                })
            }),
            "said nothing",
        ),
        (
            "a redirect to itself",
            Box::new(|_| raw(302, &[("location", "/videos/t0.mp4")], "")),
            "more than 10 redirects",
        ),
        ("a redirect to a file", Box::new(|_| raw(302, &[("location", "file:///etc/passwd")], "")), "not a web URL"),
    ]
}

#[tokio::test]
async fn hostile_server_makes_no_video_and_blocks_no_run() {
    for (what, script, expected) in servers_that_send_something_else().into_iter().chain(servers_that_send_too_little())
    {
        let (here, fetched) = fetch_from(script).await;
        let error = fetched.expect_err(what).to_string();
        assert!(error.contains(expected), "{what}: {error}");
        let left: Vec<String> = fs::read_dir(here.path("out"))
            .expect("the directory")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with('.') && !name.ends_with(".refused"))
            .collect();
        assert!(left.is_empty(), "{what} left {left:?}");
    }
}
