//! The places of kept videos, and files that are never replaced.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::direct::{ONE_JOB, expiring};
use crate::support::{Answer, Service, Workspace, answer_of_video, codes, has_code, numbered_jobs, raw, video};

#[test]
fn only_missing_videos_are_fetched_again() {
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
    assert!(here.status(&[])["jobs"][0]["file"].is_null(), "a file that is not there has no name");
    let plan = here.plan(&[]);
    assert!(codes(&plan).contains(&"to-fetch"));
    let of_fetch = |plan: &Value| (plan["jobs"][0]["action"].clone(), plan["totals"]["fetch"].clone());
    assert_eq!((of_fetch(&plan), &plan["totals"]["cost_usd"]), (("fetch".into(), 1.into()), &"0.00".into()));
    assert_eq!(of_fetch(&here.plan(&["--no-download"])), ("done".into(), 0.into()));
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
fn earlier_video_of_a_changed_or_retaken_job_is_kept() {
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
fn unwritable_video_stops_submitting() {
    let manifest = numbered_jobs(40) + "  - { id: last, prompt: y }\n";
    let manifest = manifest.replace("{ id: j0,", "{ id: j0, file: sub/first.mp4,");
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest));
    fs::create_dir_all(here.path("shotlist-out/m")).expect("a directory");
    here.write("shotlist-out/m/sub", "a file where a directory must be");
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(74);
    insta::assert_snapshot!(ended.line("error[stopping]"), @"error[stopping]: stopped submitting: can't write `shotlist-out/m/sub`: File exists");
    assert!(service.posts().len() < 40, "more was paid for that there is no room for");
    fs::remove_file(here.path("shotlist-out/m/sub")).expect("gone");
    here.run(&service, &[]).ends_with(0);
    assert_eq!((service.posts().len(), here.path("shotlist-out/m/sub/first.mp4").exists()), (41, true));
}

#[cfg(unix)]
#[test]
fn no_link_leads_a_video_out_of_the_directory() {
    let (service, here) = (Service::well(), Workspace::with_manifest(ONE_JOB));
    fs::create_dir_all(here.path("shotlist-out/m")).expect("a directory");
    here.write("precious.mp4", "precious");
    std::os::unix::fs::symlink(here.path("precious.mp4"), here.path("shotlist-out/m/one.mp4")).expect("a link");
    let ended = here.run(&service, &[]).ends_with(74);
    insta::assert_snapshot!(ended.stderr, @"
    1 job to submit for $0.90
    completed one
    warning[not-fetched]: can't download one; the next run tries again, free of charge: can't write `shotlist-out/m/one.mp4`: it is a link, and shotlist follows none here; remove the link
    error[stopping]: stopped submitting: can't write `shotlist-out/m/one.mp4`: it is a link, and shotlist follows none here; remove the link
      note: active tasks are polled to their end; nothing else is submitted
      help: make room for the videos, and run again
    ");
    assert_eq!(fs::read(here.path("precious.mp4")).expect("the file"), b"precious");
}

#[test]
fn video_of_a_removed_job_is_fetched() {
    let is_good = Arc::new(AtomicBool::new(false));
    let good = Arc::clone(&is_good);
    let service = expiring(|| raw(404, &[], ""), move |_| good.load(Ordering::SeqCst));
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(1);
    here.write("m.yaml", ONE_JOB.replace("id: one", "id: other").replace("prompt: x", "prompt: y"));
    is_good.store(true, Ordering::SeqCst);
    // Nothing is bought: only paid videos are downloaded.
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
fn foreign_file_is_never_replaced() {
    let (service, here) = (Service::well(), Workspace::with_manifest(ONE_JOB));
    fs::create_dir_all(here.path("shotlist-out/m")).expect("a directory");
    here.write("shotlist-out/m/one.mp4", "my holiday");
    here.run(&service, &[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one~1.mp4")).expect("the holiday"), b"my holiday");
    here.write("products.csv", "sku,name\n1,mug\n");
    let ended = here.run(&service, &["--report", "products.csv"]).ends_with(2);
    assert!(has_code(&ended.stderr, "not-a-report"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(here.path("products.csv")).expect("a table"), "sku,name\n1,mug\n");
    here.run(&service, &["--report", "shotlist-out/m/report.csv"]).ends_with(0);
}

#[test]
fn batches_in_one_directory_keep_all_their_videos() {
    // Videos of different lengths: by that, and not by reading all of it, a file is known to be the right one.
    let word = |path: &str| {
        if path.split(['/', '.']).any(|part| part == "t0") { "the first".to_owned() } else { "another one".to_owned() }
    };
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
