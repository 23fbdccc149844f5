//! Continued downloads.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use shotlist::download::Link;

use super::direct::{ONE_JOB, downloader, fetch_and_place, stream};
use crate::support::{Answer, Asked, Ended, Service, Workspace, answer_of_video, kill, sha256, video, wait_until};

/// A video of this length, with bytes that depend on their place.
fn long_video(length: usize, seed: usize) -> Vec<u8> {
    let mut start = video("");
    // The frames continue to the end of the file.
    let size = start.len() - 8;
    start[size..size + 4].fill(0);
    let rest = (start.len()..length).map(|at| u8::try_from((at / 256 + at + seed) % 251).expect("a byte"));
    start.iter().copied().chain(rest).collect()
}

/// A response with the requested part of this version, cut off after a number of bytes.
fn resumable(asked: &Asked, whole: &[u8], tag: &str, most: usize) -> Answer {
    let is_this = asked.headers.get("if-range").is_some_and(|wanted| wanted == tag);
    let from = asked.headers.get("range").filter(|_| is_this).and_then(|range| range.strip_prefix("bytes="));
    let from: usize = from.map_or(0, |from| from.trim_end_matches('-').parse().expect("a number"));
    let part = &whole[from..];
    let (status, length, last) = (if from == 0 { 200 } else { 206 }, part.len(), whole.len() - 1);
    let head = format!(
        "HTTP/1.1 {status} x\r\nconnection: close\r\netag: {tag}\r\ncontent-length: {length}\r\ncontent-range: bytes \
         {from}-{last}/{}\r\n\r\n",
        whole.len()
    );
    Answer::Bytes([head.as_bytes(), &part[..most.min(length)]].concat())
}

#[tokio::test]
async fn interrupted_download_continues_at_its_last_byte() {
    let whole = long_video(900_000, 0);
    let given = whole.clone();
    let service = Service::scripted_wholly(move |asked| resumable(asked, &given, "\"v1\"", 300_000));
    let here = Workspace::new();
    let link = Link::Video(format!("{}/videos/t0.mp4", service.url()));
    let placed = fetch_and_place(&downloader(&here), &link).await.expect("fetched");
    assert_eq!(fs::read(here.path("out/one.mp4")).expect("the video"), whole);
    let ranges: Vec<Option<String>> = service.asked().iter().map(|asked| asked.headers.get("range").cloned()).collect();
    assert_eq!(ranges, [None, Some("bytes=300000-".into()), Some("bytes=600000-".into())]);
    let digest = sha256(&whole);
    assert_eq!((placed.file.bytes, placed.file.sha256), (900_000, digest));
    let left = here.files();
    assert_eq!(left, ["out/.shotlist.lock", "out/one.mp4"], "a part was left behind");
}

#[tokio::test]
async fn changed_video_is_fetched_from_its_start() {
    let (old, new) = (long_video(600_000, 0), long_video(500_000, 7));
    let expected = new.clone();
    let service = Service::scripted_wholly(move |asked| {
        if asked.earlier == 0 {
            resumable(asked, &old, "\"v1\"", 300_000)
        } else {
            resumable(asked, &new, "\"v2\"", 900_000)
        }
    });
    let here = Workspace::new();
    let link = Link::Video(format!("{}/videos/t0.mp4", service.url()));
    fetch_and_place(&downloader(&here), &link).await.expect("fetched");
    assert_eq!(fs::read(here.path("out/one.mp4")).expect("the video"), expected);
    assert_eq!(service.asked()[1].headers["if-range"], "\"v1\"");
}

#[test]
fn killed_download_continues_in_the_next_run() {
    const PART: usize = 9 << 20;
    let whole = long_video(12 << 20, 0);
    let (given, cut) = (whole.clone(), Arc::new(AtomicBool::new(false)));
    let arrived = Arc::clone(&cut);
    let service = Service::scripted_wholly(move |asked| {
        if !asked.path.starts_with("/videos/") {
            return Answer::Well;
        }
        let Answer::Bytes(bytes) =
            resumable(asked, &given, "\"v1\"", if asked.earlier == 0 { PART } else { usize::MAX })
        else {
            return Answer::Hangup;
        };
        if asked.earlier > 0 {
            return Answer::Bytes(bytes);
        }
        let arrived = Arc::clone(&arrived);
        stream(move |to| {
            to.write_all(&bytes)?;
            arrived.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_mins(1));
            Ok(())
        })
    });
    let here = Workspace::with_manifest(ONE_JOB);
    let child = here.run(&service, &[]).starts();
    let mut synced = 0;
    wait_until("most of it is synced", || {
        let parts = fs::read_dir(here.path("shotlist-out/m")).into_iter().flatten().flatten();
        let notes = parts.filter(|entry| entry.file_name().to_string_lossy().ends_with(".part.json"));
        let notes = notes.filter_map(|entry| serde_json::from_slice::<Value>(&fs::read(entry.path()).ok()?).ok());
        synced = notes.filter_map(|note| note["synced"].as_u64()).max().unwrap_or(0);
        cut.load(Ordering::SeqCst) && synced >= 8 << 20
    });
    kill(&child, "-KILL");
    Ended::wait_for(child);
    assert!(!here.path("shotlist-out/m/one.mp4").exists());
    here.run(&service, &[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video"), whole);
    let ranges = service.asked().into_iter().filter_map(|asked| asked.headers.get("range").cloned());
    assert_eq!(ranges.collect::<Vec<_>>(), [format!("bytes={synced}-")], "not from what was synced");
    assert_eq!(service.posts().len(), 1, "paid twice");
}

#[test]
fn interrupted_run_leaves_its_downloads_to_the_next() {
    let (release, waits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (held, waiting) = (Arc::clone(&release), Arc::clone(&waits));
    let service = Service::scripted_wholly(move |asked| {
        if !asked.path.starts_with("/videos/") {
            return Answer::Well;
        }
        waiting.store(true, Ordering::SeqCst);
        wait_until("the test lets go", || held.load(Ordering::SeqCst));
        Answer::Bytes(answer_of_video("t0"))
    });
    let here = Workspace::with_manifest(ONE_JOB);
    let child = here.run(&service, &[]).starts();
    wait_until("the video is asked for", || waits.load(Ordering::SeqCst));
    kill(&child, "-INT");
    let ended = Ended::wait_for(child);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    release.store(true, Ordering::SeqCst);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video"), video("t0"));
    assert_eq!(service.posts().len(), 1);
}
