//! Videos on this machine: whole or not there, fetched once, and never at the price of a key, a file or another generation.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::Digest as _;
use shotlist::domain::{OutputPath, TaskId, hex};
use shotlist::download::{Destination, Downloader, Downloads as _, FetchError, HostPolicy, Limits, Link, Stored};
use shotlist::service::{ApiKey, Endpoint, HttpService};

use crate::support::{
    Answer, Asked, Ended, Service, Simulator, Workspace, answer_of_video, json as answer, kill, numbered_jobs, raw,
    video, wait_until,
};

const ONE_JOB: &str = "version: 1\njobs:\n  - { id: one, model: alpha-2, prompt: x }\n";

/// The head of an answer; what follows is up to the test.
fn head(headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

/// A downloader that loses its patience soon.
fn downloader(folder: &Workspace) -> Downloader {
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
    let service = HttpService::new(endpoint, ApiKey::new("k").expect("a key"), false).expect("a service");
    let hosts = HostPolicy::new(service.base_url(), false, false);
    let get = service.gets(&hosts).expect("a client");
    Downloader::new(Box::new(get), hosts, folder.path("out"), limits)
}

fn destination() -> Destination {
    Destination {
        path: OutputPath::new("one.mp4").expect("a path"),
        is_version: false,
        occupant: None,
        task: TaskId::new("t0").expect("an id"),
    }
}

/// What one server does, and what a downloader says to that.
async fn fetch_from(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> (Workspace, Result<u64, FetchError>) {
    let (service, here) = (Service::scripted_wholly(answer), Workspace::new());
    let link = Link::Video(format!("{}/videos/t0.mp4", service.url()));
    let fetched = fetch_and_place(&downloader(&here), &link).await;
    (here, fetched.map(|placed| placed.file.bytes))
}

async fn fetch_and_place(downloader: &Downloader, link: &Link) -> Result<Stored, FetchError> {
    downloader.fetch(link, &destination()).await?;
    downloader.place(&destination()).await
}

fn stream(write: impl FnOnce(&mut std::net::TcpStream) -> std::io::Result<()> + Send + 'static) -> Answer {
    Answer::Stream(Box::new(write))
}

type Script = Box<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// What a server does, and what is told of it.
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
            "longer than 1048576 bytes",
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
            "it is text/html",
        ),
        (
            "a page",
            Box::new(|_| raw(200, &[("content-type", "text/html")], "<!doctype html><title>x")),
            "it is text/html",
        ),
        ("JSON", Box::new(|_| answer(200, &json!({ "error": "expired" }))), "it is application/json"),
        ("nothing", Box::new(|_| raw(200, &[], "")), "no whole MP4"),
        (
            "more announced than allowed",
            Box::new(|_| Answer::Bytes(head("content-length: 99999999999\r\n"))),
            "longer than 1048576 bytes",
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
        (
            "a redirect to a file",
            Box::new(|_| raw(302, &[("location", "file:///etc/passwd")], "")),
            "no address of the web",
        ),
    ]
}

#[tokio::test]
async fn no_hostile_server_makes_a_video_out_of_something_else_or_holds_the_run() {
    for (what, script, expected) in servers_that_send_something_else().into_iter().chain(servers_that_send_too_little())
    {
        let (here, fetched) = fetch_from(script).await;
        let error = fetched.expect_err(what).to_string();
        assert!(error.contains(expected), "{what}: {error}");
        let left: Vec<String> = fs::read_dir(here.path("out"))
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with('.'))
            .collect();
        assert!(left.is_empty(), "{what} left {left:?}");
    }
}

/// A video of this length, in which each byte tells its place.
fn long_video(length: usize, seed: usize) -> Vec<u8> {
    let start = b"\0\0\0\x08ftyp\0\0\0\x08moov\0\0\0\0mdat";
    let rest = (start.len()..length).map(|at| u8::try_from((at / 256 + at + seed) % 251).expect("a byte"));
    start.iter().copied().chain(rest).collect()
}

/// An answer that gives the part that was asked for, if it was asked for this version, and breaks off after so many bytes.
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
async fn what_broke_off_is_gone_on_with_and_nothing_is_fetched_twice() {
    let whole = long_video(900_000, 0);
    let given = whole.clone();
    let service = Service::scripted_wholly(move |asked| resumable(asked, &given, "\"v1\"", 300_000));
    let here = Workspace::new();
    let link = Link::Video(format!("{}/videos/t0.mp4", service.url()));
    let placed = fetch_and_place(&downloader(&here), &link).await.expect("fetched");
    assert_eq!(fs::read(here.path("out/one.mp4")).expect("the video"), whole);
    let ranges: Vec<Option<String>> = service.asked().iter().map(|asked| asked.headers.get("range").cloned()).collect();
    assert_eq!(ranges, [None, Some("bytes=300000-".into()), Some("bytes=600000-".into())]);
    let digest = hex(&sha2::Sha256::digest(&whole));
    assert_eq!((placed.file.bytes, placed.file.sha256), (900_000, digest));
    let left = here.files();
    assert_eq!(left, ["out/.shotlist.lock", "out/one.mp4"], "a part was left behind");
}

#[tokio::test]
async fn a_video_that_changed_meanwhile_is_fetched_from_its_beginning() {
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
fn a_run_that_is_killed_while_it_fetches_goes_on_where_it_was() {
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
    Ended::of(child);
    assert!(!here.path("shotlist-out/m/one.mp4").exists());
    here.run(&service, &[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video"), whole);
    let ranges = service.asked().into_iter().filter_map(|asked| asked.headers.get("range").cloned());
    assert_eq!(ranges.collect::<Vec<_>>(), [format!("bytes={synced}-")], "not from what was synced");
    assert_eq!(service.posts().len(), 1, "paid twice");
}

#[test]
fn a_video_that_is_here_is_not_fetched_again_and_one_that_is_gone_is() {
    let (service, here) = (Service::well(), Workspace::with_manifest(ONE_JOB));
    here.run(&service, &[]).ends_with(0);
    let row = here.report()["jobs"][0].clone();
    let file = here.path("shotlist-out/m/one.mp4");
    let bytes = fs::read(&file).expect("the video");
    assert_eq!((row["file"].as_str(), row["bytes"].as_u64()), (Some("one.mp4"), Some(bytes.len() as u64)));
    assert_eq!(row["sha256"].as_str().map(str::len), Some(64));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.fetched().len(), 1);

    fs::remove_file(&file).expect("gone");
    let status = here.shotlist(&["status", "m.yaml", "--format", "json"]).ends_with(0);
    assert!(!status.stdout.contains("one.mp4\","), "a file that is not there is named: {}", status.stdout);
    let plan = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stdout;
    assert!(plan.contains("1 video that earlier runs paid for will be fetched, without a charge"), "{plan}");
    here.run(&service, &["--no-download"]).ends_with(0);
    assert!(!file.exists());
    here.run(&service, &[]).ends_with(0);
    // Cut short, as by a copy to a disk that was full.
    fs::write(&file, &bytes[..10]).expect("written");
    here.run(&service, &[]).ends_with(0);
    assert_eq!(fs::read(&file).expect("the video"), bytes);
    assert_eq!((service.fetched().len(), service.posts().len()), (3, 1));
    assert_eq!(fs::read(here.path("shotlist-out/m/one~1.mp4")).expect("kept"), &bytes[..10], "whatever it was");

    let elsewhere = here.run(&service, &["--out", "elsewhere"]).ends_with(0);
    assert!(here.path("elsewhere/one.mp4").exists(), "{}", elsewhere.stdout);
}

#[test]
fn the_earlier_video_of_a_job_that_was_changed_or_taken_again_is_kept() {
    let (service, here) = (Service::well(), Workspace::with_manifest(ONE_JOB));
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", ONE_JOB.replace("prompt: x", "prompt: y"));
    here.run(&service, &[]).ends_with(0);
    here.run(&service, &["--retake", "one"]).ends_with(0);
    let file = |name: &str| fs::read(here.path("shotlist-out/m").join(name)).expect(name);
    for (name, task) in [("one.mp4", "t2"), ("one~1.mp4", "t0"), ("one~2.mp4", "t1")] {
        assert_eq!(file(name), video(&format!("/videos/{task}.mp4")), "{name}");
    }
    let files = here.ledger("SELECT file FROM attempt ORDER BY id");
    assert_eq!(files.concat(), ["one~1.mp4", "one~2.mp4", "one.mp4"]);
    assert_eq!(here.report()["jobs"][0]["file"], "one.mp4");
    here.run(&service, &[]).ends_with(0);
    assert_eq!((service.posts().len(), service.fetched().len()), (3, 3));
}

#[test]
fn the_video_of_a_task_that_was_superseded_while_it_was_made_is_kept_beside() {
    let (service, done) = Service::slow();
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &["--deadline", "200ms"]).ends_with(1);
    done.store(true, Ordering::SeqCst);
    here.write("m.yaml", ONE_JOB.replace("prompt: x", "prompt: y"));
    here.run(&service, &[]).ends_with(0);
    let file = |name: &str| fs::read(here.path("shotlist-out/m").join(name)).expect(name);
    assert_eq!(file("one.mp4"), video("/videos/t1.mp4"));
    assert_eq!(file("one~1.mp4"), video("/videos/t0.mp4"), "paid work was dropped");
}

/// A service whose links are no longer good until `good` says so of an address.
fn expiring(
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

type Content = Box<dyn Fn() -> Answer + Send + Sync>;
type IsGood = fn(&str) -> bool;

#[test]
fn a_link_that_expired_is_asked_for_again_and_then_the_content_endpoint_is() {
    let refused = || raw(404, &[], "");
    let table: [(&str, Content, IsGood); 5] = [
        ("a new link of the task", Box::new(refused), |path| path == "/videos/1.mp4"),
        ("bytes", Box::new(|| Answer::Bytes(answer_of_video("t0"))), |_| false),
        ("a redirect", Box::new(|| raw(302, &[("location", "/videos/good.mp4")], "")), |path| path.contains("good")),
        ("the link that it gave first", Box::new(refused), |_| true),
        ("nothing", Box::new(refused), |_| false),
    ];
    for (what, content, is_good) in table {
        let (service, here) = (expiring(content, is_good), Workspace::with_manifest(ONE_JOB));
        if what == "nothing" {
            let ended = here.run(&service, &[]).ends_with(1);
            assert!(
                ended.stderr.contains("its link: HTTP 403; a new link: HTTP 403; the content endpoint: HTTP 404"),
                "{}",
                ended.stderr
            );
            assert_eq!(here.states(), ["completed"], "a video that can't be had is paid for all the same");
            here.run(&service, &[]).ends_with(1);
        } else {
            here.run(&service, &[]).ends_with(0);
            assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect(what), video("t0"));
        }
        assert_eq!(service.posts().len(), 1, "{what}: generated again");
        if what == "a new link of the task" {
            assert_eq!(here.report()["jobs"][0]["video_url"], format!("{}/videos/1.mp4", service.url()));
        }
    }
}

#[test]
fn the_content_endpoint_may_answer_with_a_link() {
    let host = Service::scripted_wholly(|_| Answer::Bytes(answer_of_video("t0")));
    let link = json!({ "data": { "url": format!("{}/x.mp4", host.url()) } });
    let service = expiring(move || answer(200, &link), |_| false);
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video"), video("t0"));
    assert_eq!(host.asked()[0].headers.get("authorization"), None, "the key went to a video host");
}

#[test]
fn the_key_reaches_the_services_own_origin_only() {
    let host = Service::scripted_wholly(|asked| match asked.path.as_str() {
        "/elsewhere.mp4" => Answer::Bytes(answer_of_video("t0")),
        _ => raw(403, &[], ""),
    });
    let other = host.url();
    let service = Service::scripted_wholly(move |asked| match asked.path.as_str() {
        "/v1/videos" => Answer::Well,
        // From the service to itself, and then to another port of the same machine.
        "/v1/videos/t0/content" => raw(307, &[("location", "/inner")], ""),
        "/inner" => raw(307, &[("location", &format!("{other}/elsewhere.mp4"))], ""),
        _ => answer(200, &json!({ "id": "t0", "status": "completed", "video_url": format!("{other}/expired.mp4") })),
    });
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(0);
    let keys = |service: &Service| -> Vec<(String, bool)> {
        let gets = service.asked().into_iter().filter(|asked| asked.method == "GET");
        gets.map(|asked| (asked.path, asked.headers.contains_key("authorization"))).collect()
    };
    assert_eq!(keys(&host), [("/expired.mp4".to_owned(), false), ("/elsewhere.mp4".to_owned(), false)]);
    assert!(keys(&service).contains(&("/inner".to_owned(), true)));
    assert!(keys(&service).iter().all(|(_, has_key)| *has_key), "{:?}", keys(&service));
}

#[test]
fn a_video_that_can_not_be_kept_ends_submitting_and_says_where() {
    let manifest = numbered_jobs(40) + "  - { id: last, prompt: y }\n";
    let manifest = manifest.replace("{ id: j0,", "{ id: j0, file: sub/first.mp4,");
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest));
    fs::create_dir_all(here.path("shotlist-out/m")).expect("a folder");
    here.write("shotlist-out/m/sub", "a file where a folder must be");
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(74);
    assert!(ended.stderr.contains("m/sub") && ended.stderr.contains("no more submissions"), "{}", ended.stderr);
    assert!(service.posts().len() < 40, "more was paid for that there is no room for");
    fs::remove_file(here.path("shotlist-out/m/sub")).expect("gone");
    here.run(&service, &[]).ends_with(0);
    assert_eq!((service.posts().len(), here.path("shotlist-out/m/sub/first.mp4").exists()), (41, true));
}

#[cfg(unix)]
#[test]
fn no_link_leads_a_video_out_of_the_folder() {
    let (service, here) = (Service::well(), Workspace::with_manifest(ONE_JOB));
    fs::create_dir_all(here.path("shotlist-out/m")).expect("a folder");
    here.write("precious.mp4", "precious");
    std::os::unix::fs::symlink(here.path("precious.mp4"), here.path("shotlist-out/m/one.mp4")).expect("a link");
    let ended = here.run(&service, &[]).ends_with(74);
    assert!(ended.stderr.contains("it is a link"), "{}", ended.stderr);
    assert_eq!(fs::read(here.path("precious.mp4")).expect("the file"), b"precious");
}

#[test]
fn the_simulators_links_expire_too_and_its_videos_arrive_all_the_same() {
    let here = Workspace::with_manifest(ONE_JOB);
    let simulator = Simulator::start(&here, &["--speed", "2000", "--fault", "expired-url=1"]);
    let quick = ["run", "m.yaml", "--yes", "--first-poll", "0s", "--poll-interval", "50ms", "--poll-floor", "5ms"];
    simulator.used_by(here.shotlist(&quick)).ends_with(0);
    let row = here.report()["jobs"][0].clone();
    let bytes = fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video");
    assert_eq!(row["bytes"], bytes.len());
    assert_eq!(simulator.ledger()["charges"].as_array().map_or(1, Vec::len), 1);
}

#[test]
fn an_interrupted_run_leaves_its_downloads_to_the_next() {
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
    let ended = Ended::of(child);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    release.store(true, Ordering::SeqCst);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video"), video("t0"));
    assert_eq!(service.posts().len(), 1);
}

#[test]
fn the_video_of_a_job_that_is_gone_is_fetched_all_the_same() {
    let is_good = Arc::new(AtomicBool::new(false));
    let good = Arc::clone(&is_good);
    let service = expiring(|| raw(404, &[], ""), move |_| good.load(Ordering::SeqCst));
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(1);
    here.write("m.yaml", ONE_JOB.replace("id: one", "id: other").replace("prompt: x", "prompt: y"));
    is_good.store(true, Ordering::SeqCst);
    // Nothing is bought: only what is paid for is looked after.
    here.run(&service, &["--exclude", "other"]).ends_with(2);
    here.run(&service, &[]).ends();
    assert_eq!(fs::read(here.path("shotlist-out/m/one~1.mp4")).expect("paid work"), video("t0"));
    // A job that is only left out by the selection keeps its turn.
    let two =
        "version: 1\njobs:\n  - { id: one, model: alpha-2, prompt: x }\n  - { id: two, model: alpha-2, prompt: y }\n";
    let (service, here) = (Service::well(), Workspace::with_manifest(two));
    here.run(&service, &["--no-download", "--concurrency", "1"]).ends_with(0);
    here.run(&service, &["--select", "two"]).ends_with(0);
    assert_eq!(service.fetched(), ["/videos/t1.mp4"]);
}

#[test]
fn after_a_key_was_changed_the_same_account_is_asked_for_new_links() {
    let is_good = Arc::new(AtomicBool::new(false));
    let good = Arc::clone(&is_good);
    let service = expiring(|| raw(404, &[], ""), move |path| path != "/videos/0.mp4" && good.load(Ordering::SeqCst));
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(1);
    is_good.store(true, Ordering::SeqCst);
    let other = |args: &[&str]| here.run(&service, args).env("SHOTLIST_API_KEY", "rotated");
    let refused = other(&[]).ends_with(1);
    assert!(refused.stderr.contains("--same-account"), "{}", refused.stderr);
    other(&["--same-account"]).ends_with(0);
    other(&[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video"), video("t0"));
}

#[test]
fn a_file_of_somebody_else_is_never_replaced() {
    let (service, here) = (Service::well(), Workspace::with_manifest(ONE_JOB));
    fs::create_dir_all(here.path("shotlist-out/m")).expect("a folder");
    here.write("shotlist-out/m/one.mp4", "my holiday");
    here.run(&service, &[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one~1.mp4")).expect("the holiday"), b"my holiday");
    here.write("products.csv", "sku,name\n1,mug\n");
    let ended = here.run(&service, &["--report", "products.csv"]).ends_with(2);
    assert!(ended.stderr.contains("no report of shotlist"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(here.path("products.csv")).expect("a table"), "sku,name\n1,mug\n");
    here.run(&service, &["--report", "shotlist-out/m/report.csv"]).ends_with(0);
}

#[test]
fn batches_that_share_a_folder_keep_all_their_videos_and_fetch_none_twice() {
    // Videos of different lengths: by that, and not by reading all of it, a file is known to be the right one.
    let word = |path: &str| if path.contains("t0") { "the first".to_owned() } else { "another one".to_owned() };
    let service = Service::scripted_wholly(move |asked| {
        if asked.path.starts_with("/videos/") {
            Answer::Bytes(answer_of_video(&word(&asked.path)))
        } else {
            Answer::Well
        }
    });
    let here = Workspace::with_manifest(ONE_JOB);
    for batch in ["mon", "tue", "mon", "tue"] {
        here.run(&service, &["--out", "videos", "--batch", batch]).ends_with(0);
        let report = here.json("videos/report.json");
        let row = &report["jobs"][0];
        let file = here.path("videos").join(row["file"].as_str().expect("a file"));
        let task = row["task_id"].as_str().expect("a task");
        assert_eq!(fs::read(file).expect("the video"), video(&word(task)), "{batch}");
    }
    let fetched = service.asked().iter().filter(|asked| asked.path.starts_with("/videos/")).count();
    assert_eq!((service.posts().len(), fetched), (2, 2));
}

#[test]
fn an_old_take_whose_link_is_dead_is_told_and_fails_no_later_run() {
    let service = Service::scripted_wholly(|asked| match asked.path.as_str() {
        "/videos/t0.mp4" => raw(403, &[], ""),
        path if path.ends_with("/content") => raw(404, &[], ""),
        path if path.starts_with("/videos/") => Answer::Bytes(answer_of_video(path)),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(1);
    here.write("m.yaml", ONE_JOB.replace("prompt: x", "prompt: y"));
    for _ in 0..2 {
        let ended = here.run(&service, &[]).ends_with(0);
        assert!(ended.stderr.contains("the video of one could not be fetched"), "{}", ended.stderr);
        assert!(here.path("shotlist-out/m/one.mp4").exists());
    }
}

#[test]
fn a_link_into_the_neighbourhood_is_not_followed_and_leaves_nothing_behind() {
    for link in ["http://169.254.169.254/latest/meta-data", "http://10.255.255.1/x.mp4", "http://user:pw@127.0.0.1:1/x"]
    {
        let service = Service::scripted(move |asked| match asked.method.as_str() {
            "POST" => Answer::Well,
            _ if asked.path.ends_with("/content") => raw(404, &[], ""),
            _ => answer(200, &json!({ "status": "completed", "video_url": link })),
        });
        let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n");
        let ended = here.run(&service, &[]).ends_with(1);
        let told = if link.contains('@') { "a user name or a password" } else { "--allow-private-hosts follows it" };
        assert!(ended.stderr.contains(told), "{link}: {}", ended.stderr);
        let left: Vec<String> = here.files().into_iter().filter(|file| file.contains(".part")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
