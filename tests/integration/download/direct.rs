//! A download without the rest of the program.

use std::time::Duration;

use serde_json::json;
use shotlist::domain::{OutputPath, TaskId};
use shotlist::download::{Destination, Downloader, Downloads as _, FetchError, HostPolicy, Limits, Link, Stored};
use shotlist::service::{ApiKey, Credentials, Endpoint, HttpService};

use crate::support::{Answer, Asked, Service, Workspace, answer_of_video, json as answer, raw};

pub const ONE_JOB: &str = "version: 1\njobs:\n  - { id: one, model: alpha-2, prompt: x }\n";

/// The head of a response; the test sends the rest.
pub fn head(headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

/// A downloader that loses its patience soon.
pub fn downloader(directory: &Workspace) -> Downloader {
    let limits = Limits {
        longest: 1 << 20,
        // Far longer than the pauses of the slow drip below, also on a machine that is busy.
        silence: Duration::from_millis(1500),
        window: Duration::from_millis(200),
        least: 1 << 10,
        whole: Duration::from_secs(20),
        tries: 2,
        first_pause: Duration::from_millis(1),
    };
    let endpoint = Endpoint::parse("http://127.0.0.1:9", false).expect("an address");
    let service =
        HttpService::new(endpoint, Credentials::new(ApiKey::new("k").expect("a key"), Vec::new())).expect("a service");
    let hosts = HostPolicy::new(service.base_url(), false, false);
    let get = service.gets(&hosts).expect("a client");
    Downloader::new(Box::new(get), hosts, directory.path("out"), limits)
}

pub fn destination() -> Destination {
    Destination {
        directory: None,
        path: OutputPath::new("one.mp4").expect("a path"),
        is_version: false,
        occupant: None,
        task: TaskId::new("t0").expect("an id"),
    }
}

/// The response of a server, and the result of the download.
pub async fn fetch_from(
    answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (Workspace, Result<u64, FetchError>) {
    let (service, here) = (Service::scripted_wholly(answer), Workspace::new());
    let link = Link::Video(format!("{}/videos/t0.mp4", service.url()));
    let fetched = fetch_and_place(&downloader(&here), &link).await;
    (here, fetched.map(|placed| placed.file.bytes))
}

pub async fn fetch_and_place(downloader: &Downloader, link: &Link) -> Result<Stored, FetchError> {
    downloader.fetch(link, &destination()).await?;
    downloader.store(&destination()).await
}

pub fn stream(write: impl FnOnce(&mut std::net::TcpStream) -> std::io::Result<()> + Send + 'static) -> Answer {
    Answer::Stream(Box::new(write))
}

/// A service with expired links, except those that `good` accepts.
pub fn expiring(
    content: impl Fn() -> Answer + Send + Sync + 'static,
    is_good: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> Service {
    Service::scripted_wholly(move |asked| match asked.path.as_str() {
        "/v1/videos" => Answer::Well,
        "/v1/videos/t0/content" => content(),
        "/v1/videos/t0" => {
            let url = format!("http://{}/videos/{}.mp4", asked.headers["host"], asked.earlier);
            answer(200, &json!({ "id": "t0", "status": "completed", "video_url": url }))
        }
        path if path.starts_with("/videos/") && is_good(path) => Answer::Bytes(answer_of_video("t0")),
        _ => raw(403, &[], "expired"),
    })
}
