//! Links under every name that the program uses.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Ended, Service, TWO_JOBS, Workspace, kill, sha256};

/// Every file below a directory that is no part of the program's own.
fn planted(here: &Workspace) -> Vec<(String, Vec<u8>)> {
    let read = |name: &str| (name.to_owned(), fs::read(here.path(name)).unwrap_or_default());
    let mut kept: Vec<_> =
        here.files().iter().filter(|file| file.starts_with("victims/")).map(|file| read(file)).collect();
    kept.sort();
    kept
}

/// A downloaded project may have a link under every name that this program uses. The target of a link stays unchanged, present
/// or not.
#[test]
fn link_of_a_downloaded_project_is_never_written_through() {
    let service = Service::well();
    let run = |here: &Workspace| here.run(&service, &["--buy-again", "*", "--report", "more.csv"]).ends();
    // The names come from a run without links that is killed with all of its files open, and from a complete one.
    let here = Workspace::with_manifest(TWO_JOBS);
    let (slow, _done) = Service::slow();
    let child = here.run(&slow, &["--report", "more.csv"]).starts();
    here.waits_for_active_tasks(2);
    kill(&child, "-KILL");
    drop(Ended::wait_for(child));
    let mut names = here.files();
    let here = Workspace::with_manifest(TWO_JOBS);
    run(&here);
    names.extend(here.files());
    let task = |name: &str| sha256(name.as_bytes())[..16].to_owned();
    for (job, name) in [("one", "t0"), ("two", "t1")] {
        for end in ["part", "part.json", "whole"] {
            names.push(format!("shotlist-out/m/.{job}.mp4.{}.{end}", task(name)));
        }
    }
    names.extend([".shotlist/ledger.db-journal", ".shotlist", "shotlist-out", "shotlist-out/m"].map(str::to_owned));
    names.sort();
    names.dedup();
    names.retain(|name| name != "m.yaml" && !name.contains("/.shotlist-"));
    assert!(names.len() >= 16 && names.iter().any(|name| name.contains(".lock")), "{names:?}");
    // Half of a run is waiting.
    std::thread::scope(|scope| {
        for names in names.chunks(names.len().div_ceil(4)) {
            scope.spawn(move || names.iter().for_each(|name| writes_through_no_link(name)));
        }
    });
}

fn writes_through_no_link(name: &str) {
    let targets = [("victims/precious.txt", Some("precious")), ("victims/new.txt", None)];
    // In a directory that was never used, and in one that was.
    for ((target, content), is_used) in targets.into_iter().flat_map(|target| [(target, false), (target, true)]) {
        let service = Service::well();
        let here = Workspace::with_manifest(TWO_JOBS);
        fs::create_dir_all(here.path("victims/directory")).expect("a directory");
        if let Some(content) = content {
            here.write(target, content);
        }
        let is_directory = [".shotlist", "shotlist-out", "shotlist-out/m"].contains(&name);
        let target = if is_directory { "victims/directory" } else { target };
        let at = here.path(name);
        fs::create_dir_all(at.parent().expect("a directory")).expect("directories");
        if is_used {
            here.run(&service, &["--select", "one"]).ends_with(0);
            let _was_not_there = fs::remove_file(&at).or_else(|_| fs::remove_dir_all(&at));
        }
        symlink(here.path(target), &at).expect("a link");
        let before = planted(&here);
        let ended = here.run(&service, &["--report", "more.csv"]).ends();
        assert!(!ended.stderr.contains("panicked"), "{name}: {}", ended.stderr);
        assert_eq!(planted(&here), before, "{name} was written through");
        assert_eq!(fs::read_dir(here.path("victims/directory")).expect("a directory").count(), 0, "{name}");
    }
}
