//! Videos that have left the output directory: neither downloaded again nor missing.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Answer, Service, Workspace, json as answer, numbered_jobs};

fn out(here: &Workspace, file: &str) -> std::path::PathBuf {
    here.path(&format!("shotlist-out/m/{file}"))
}

#[test]
fn archived_video_is_neither_fetched_nor_missing() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(3)));
    here.run(&service, &[]).ends_with(0);
    let before = here.report();
    fs::remove_file(out(&here, "j0.mp4")).expect("moved by hand");
    let told = here.shotlist(&["archive", "m.yaml", "j0"]).ends_with(0).stdout;
    assert_eq!(told, "archived 1 video; runs neither download nor miss them\n");
    // Its link may be dead, and no request uses it.
    let requests = service.fetched().len();
    here.run(&service, &[]).ends_with(0);
    here.shotlist(&["fetch", "m.yaml"]).ends_with(0);
    assert_eq!((service.fetched().len(), service.posts().len()), (requests, 3));
    let (old, new) = (&before["jobs"][0], &here.report()["jobs"][0]);
    assert_eq!((&new["file"], new["archived_at"].is_string()), (&Value::Null, true));
    for kept in ["state", "cost_usd", "sha256", "bytes", "task_id", "completed_at"] {
        assert_eq!(old[kept], new[kept], "{kept}");
    }
    insta::assert_snapshot!(here.shotlist(&["status", "m.yaml"]).ends_with(0).line("videos: "), @"videos: 2 in shotlist-out/m, 1 archived");
    // What is missing without a archive is fetched as ever.
    fs::remove_file(out(&here, "j1.mp4")).expect("removed");
    here.run(&service, &[]).ends_with(0);
    assert!(out(&here, "j1.mp4").exists() && !out(&here, "j0.mp4").exists());
    // A new take has another file.
    here.run(&service, &["--retake", "j0"]).ends_with(0);
    assert!(out(&here, "j0.mp4").exists());
}

#[test]
fn unfetched_video_can_be_archived() {
    let service = Service::scripted(|asked| match asked.path.rsplit('/').next() {
        Some("content" | "gone.mp4") => answer(404, &json!({ "error": { "message": "gone" } })),
        Some(task) if asked.method == "GET" => {
            let url = format!("http://{}/gone.mp4", asked.headers["host"]);
            answer(200, &json!({ "id": task, "status": "completed", "progress": 100, "video_url": url }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.run(&service, &[]).ends_with(1);
    here.run(&service, &[]).ends_with(1);
    here.shotlist(&["archive", "m.yaml", "j0"]).ends_with(0);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 1);
}

#[test]
fn archive_moves_and_verifies_kept_videos() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(3)));
    here.run(&service, &[]).ends_with(0);
    let task = |job: usize| here.report()["jobs"][job]["task_id"].clone();
    let choices = json!({ "name": "m", "keep": ["j0", "j2"], "tasks": { "j0": task(0), "j2": task(2) } });
    here.write("choices.json", choices.to_string());
    here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0);
    let video = fs::read(out(&here, "j0.mp4")).expect("a video");
    fs::create_dir(here.path("done")).expect("a directory");
    here.write("done/j2.mp4", "somebody else's");
    let archive = ["archive", "m.yaml", "--kept", "--to", "done"];
    let refused = here.shotlist(&archive).fails_with("not-writable", 74).line("error[not-writable]");
    insta::assert_snapshot!(refused.replace(&*here.root().to_string_lossy(), ""), @"error[not-writable]: `/done/j2.mp4` exists");
    assert_eq!(fs::read(here.path("done/j2.mp4")).expect("a file"), b"somebody else's");
    assert!(out(&here, "j2.mp4").exists());
    assert_eq!(fs::read(here.path("done/j0.mp4")).expect("moved"), video);
    assert!(!out(&here, "j0.mp4").exists() && out(&here, "j1.mp4").exists());
    fs::remove_file(here.path("done/j2.mp4")).expect("removed");
    here.shotlist(&archive).ends_with(0);
    here.shotlist(&archive).ends_with(0);
    here.run(&service, &[]).ends_with(0);
    assert_eq!((service.posts().len(), service.fetched().len()), (3, 3));
    // The directory itself is no other place, and a missing video can't be moved.
    let own = out(&here, "");
    here.shotlist(&["archive", "m.yaml", "j1", "--to", &own.to_string_lossy()]).fails_with("not-writable", 74);
    assert!(out(&here, "j1.mp4").exists());
    fs::remove_file(out(&here, "j1.mp4")).expect("removed");
    let refused = here.shotlist(&["archive", "m.yaml", "j1", "--to", "done"]).fails_with("not-archivable", 2).stderr;
    insta::assert_snapshot!(refused, @"
    error[not-archivable]: the video of `j1` is not in this directory
      note: nothing was spent; videos that were not archived stay where they are
      help: name its directory with `--out`, or leave out `--to` if it was moved already
    ");
    here.shotlist(&["archive", "m.yaml", "j9"]).fails_with("no-match", 2);
    here.shotlist(&["archive", "m.yaml"]).ends_with(2);
}

/// Whenever the process dies, each video is in one of the two directories at least, and the same command finishes.
#[test]
fn killed_archive_loses_no_video() {
    for halt in ["before-commit:2", "after-commit:2", "before-commit:3", "after-commit:3"] {
        let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
        here.run(&service, &[]).ends_with(0);
        here.shotlist(&["archive", "m.yaml", "*", "--to", "done"]).dies_at(halt);
        for video in ["j0.mp4", "j1.mp4"] {
            assert!(out(&here, video).exists() || here.path(&format!("done/{video}")).exists(), "{halt}: {video}");
        }
        here.shotlist(&["archive", "m.yaml", "*", "--to", "done"]).ends_with(0);
        here.run(&service, &[]).ends_with(0);
        for video in ["j0.mp4", "j1.mp4"] {
            assert!(!out(&here, video).exists() && here.path(&format!("done/{video}")).exists(), "{halt}: {video}");
        }
        assert_eq!((service.posts().len(), service.fetched().len()), (2, 2), "{halt}");
    }
}
