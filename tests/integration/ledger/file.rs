//! The ledger as a file: created, copied, restored, linked, and compared with its commit counter.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use crate::support::{
    Answer, Ended, Service, TWO_JOBS, Workspace, has_code, kill, line_of, numbered_jobs, open_ledger, raw, wait_until,
};

const LEDGER: &str = ".shotlist/ledger.db";

#[track_caller]
fn gone_back(here: &Workspace, service: &Service) {
    let posts = service.posts().len();
    for ended in [
        here.run(service, &[]).ends(),
        here.run(service, &["--plan"]).ends(),
        here.shotlist(&["status", "m.yaml"]).ends(),
    ] {
        assert_eq!(ended.code, Some(74), "{}", ended.stderr);
        assert!(has_code(&ended.stderr, "ledger-unavailable"), "{}", ended.stderr);
    }
    assert_eq!(service.posts().len(), posts, "something was bought on the word of an old ledger");
}

#[test]
fn restored_backup_is_refused_and_can_be_accepted() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(5)));
    here.run(&service, &["--select", "j0"]).ends_with(0);
    fs::copy(here.path(LEDGER), here.path("bak")).expect("a copy");
    here.run(&service, &[]).ends_with(0);
    fs::copy(here.path(LEDGER), here.path("newer")).expect("a copy");
    fs::copy(here.path("bak"), here.path(LEDGER)).expect("brought back");
    gone_back(&here, &service);
    // The newer copy is accepted, and the older one after the user removes the commit counter.
    fs::copy(here.path("newer"), here.path(LEDGER)).expect("brought back");
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 5);
    fs::copy(here.path("bak"), here.path(LEDGER)).expect("brought back");
    fs::remove_file(here.path(".shotlist/ledger.db.commits")).expect("said so");
    // The report still knows better.
    let told = here.run(&service, &["-q"]).fails_with("report-unknown", 3).stderr;
    assert!(has_code(&told, "commit-counter"), "{told}");
}

/// Otherwise, an older copy of the source could buy in parallel with the target.
#[test]
fn copy_from_before_a_freeze_is_outdated() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    for freeze in [&["limit", "set", "--freeze"][..], &["ledger", "copy", LEDGER, "b.db"]] {
        here.run(&service, &["--sample", "1"]).ends_with(0);
        fs::copy(here.path(LEDGER), here.path("bak")).expect("a copy");
        here.shotlist(freeze).ends_with(0);
        let frozen = fs::read(here.path(LEDGER)).expect("a file");
        fs::copy(here.path("bak"), here.path(LEDGER)).expect("brought back");
        gone_back(&here, &service);
        fs::write(here.path(LEDGER), frozen).expect("brought back");
        here.shotlist(&["limit", "set", "--unfreeze"]).ends_with(0);
    }
}

#[test]
fn leftover_wal_is_noticed() {
    let ((service, _done), here) = (Service::slow(), Workspace::with_manifest(&numbered_jobs(3)));
    let child = here.run(&service, &[]).starts();
    here.waits_for_active_tasks(3);
    kill(&child, "-KILL");
    drop(Ended::wait_for(child));
    assert!(here.path(".shotlist/ledger.db-wal").exists(), "the log holds what was bought");
    for name in ["-wal", "-shm"] {
        fs::remove_file(here.path(&format!("{LEDGER}{name}"))).expect("left behind");
    }
    gone_back(&here, &service);
}

#[test]
fn moved_ledger_directory_still_works() {
    let ((service, done), here) = (Service::slow(), Workspace::with_manifest(&numbered_jobs(3)));
    let child = here.run(&service, &[]).starts();
    here.waits_for_active_tasks(3);
    kill(&child, "-KILL");
    drop(Ended::wait_for(child));
    done.store(true, std::sync::atomic::Ordering::SeqCst);
    let there = Workspace::with_manifest(&numbered_jobs(3));
    fs::create_dir(there.path(".shotlist")).expect("a directory");
    for file in here.files().iter().filter(|file| file.starts_with(".shotlist/")) {
        fs::copy(here.path(file), there.path(file)).expect("a copy");
    }
    there.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
}

#[test]
fn backup_during_a_run_is_whole() {
    let ((service, done), here) = (Service::slow(), Workspace::with_manifest(&numbered_jobs(3)));
    let child = here.run(&service, &[]).starts();
    here.waits_for_active_tasks(3);
    let backup = here.shotlist(&["ledger", "backup", "copy.db"]).ends_with(0);
    insta::assert_snapshot!(backup.stdout, @".shotlist/ledger.db copied to copy.db: 1 batch, 3 attempts, $2.70 spent, at risk or unknown");
    kill(&child, "-KILL");
    drop(Ended::wait_for(child));
    done.store(true, std::sync::atomic::Ordering::SeqCst);
    let check = here.shotlist(&["ledger", "check", "--ledger", "copy.db"]).ends_with(0);
    insta::assert_snapshot!(check.stdout, @"copy.db is whole: 1 batch, 3 attempts, $2.70 spent, at risk or unknown");
    // Its content suffices to continue.
    here.run(&service, &["--ledger", "copy.db"]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
    let again = here.shotlist(&["ledger", "backup", "copy.db"]).ends_with(74);
    assert!(has_code(&again.stderr, "not-writable"), "{}", again.stderr);
    here.shotlist(&["ledger", "check", "--ledger", "none.db"]).ends_with(2);
}

#[test]
fn ledger_is_whole_at_every_moment() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(100)));
    let mut child = here.run(&service, &["-q", "--concurrency", "100"]).starts();
    wait_until("it is under way", || service.posts().len() > 3);
    let mut checks = 0;
    while child.try_wait().expect("a status").is_none() || checks == 0 {
        here.shotlist(&["ledger", "check"]).ends_with(0);
        here.shotlist(&["ledger", "backup", &format!("copy{checks}.db")]).ends_with(0);
        checks += 1;
    }
    assert_eq!(Ended::wait_for(child).code, Some(0));
    let mode = |name: &str| fs::metadata(here.path(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode("copy0.db"), mode(LEDGER), "a copy holds the same prompts and links");
}

#[test]
fn ledger_check_finds_damage() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &[]).ends_with(0);
    let fresh_copy = || {
        let _known_of_the_last_one = fs::remove_file(here.path("copy.db.commits"));
        fs::copy(here.path(LEDGER), here.path("copy.db")).expect("a copy");
    };
    let damage = |sql: &str| {
        fresh_copy();
        open_ledger(&here.path("copy.db")).execute_batch(sql).expect("SQL");
        here.shotlist(&["ledger", "copy", "copy.db", "sound.db"]).ends_with(74);
        assert!(!here.path("sound.db").exists(), "a copy would hide the damage");
        here.shotlist(&["ledger", "check", "--ledger", "copy.db"]).ends_with(74).stderr
    };
    let reported = damage("UPDATE attempt SET price_micros = price_micros + 1 WHERE id = 1");
    insta::assert_snapshot!(reported, @"
    error[ledger-damaged]: ledger `copy.db` is damaged: the columns of attempt 1 don't match its record
      help: restore a copy that `shotlist ledger check` finds whole; without its ledger, shotlist can't know what is paid for
    ");
    let reported = damage("UPDATE attempt SET state = 'lost' WHERE id = 2");
    insta::assert_snapshot!(line_of(&reported, "error[ledger-damaged]"), @"error[ledger-damaged]: ledger `copy.db` is damaged: the columns of attempt 2 don't match its record");
    let reported = damage("PRAGMA foreign_keys = off; UPDATE attempt SET batch = 9");
    assert!(has_code(&reported, "ledger-damaged"), "{reported}");
    // A program without shotlist's SQL functions does not update the checksum.
    fresh_copy();
    let foreign = rusqlite::Connection::open(here.path("copy.db")).expect("the copy");
    let flags = rusqlite::functions::FunctionFlags::SQLITE_UTF8 | rusqlite::functions::FunctionFlags::SQLITE_INNOCUOUS;
    for function in ["digest", "changed"] {
        foreign
            .create_scalar_function(function, -1, flags, |values| values.get::<i64>(0).or(Ok(0)))
            .expect("a function");
    }
    foreign.execute_batch("DELETE FROM attempt WHERE id = 1").expect("SQL");
    drop(foreign);
    here.shotlist(&["spend", "--ledger", "copy.db"]).ends_with(74);
    fresh_copy();
    let mut bytes = fs::read(here.path("copy.db")).expect("bytes");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xff);
    fs::write(here.path("copy.db"), bytes).expect("written");
    let ended = here.shotlist(&["ledger", "check", "--ledger", "copy.db"]).ends();
    assert_eq!(ended.code, Some(74), "{}", ended.stdout);
}

#[test]
fn ledger_with_two_names_is_refused() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--select", "one"]).ends_with(0);
    fs::hard_link(here.path(LEDGER), here.path("other.db")).expect("a second name");
    for args in [[].as_slice(), &["--ledger", "other.db"]] {
        let ended = here.run(&service, args).ends_with(74);
        assert!(has_code(&ended.stderr, "ledger-unavailable"), "{}", ended.stderr);
    }
    assert_eq!(service.posts().len(), 1);
}

#[test]
fn sandbox_writes_through_no_link() {
    let manifest = "version: 1\njobs: [{ id: a, model: beta-2.0-lite, prompt: a }]\n";
    let here = Workspace::with_manifest(manifest);
    here.shotlist(&["run", "m.yaml", "--sandbox"]).ends_with(0);
    let is_lock = |file: &String| file.rsplit('.').next() == Some("lock") && file.starts_with(".shotlist");
    let lock = here.files().into_iter().find(is_lock).expect("a lock");
    here.write("precious.txt", "precious");
    fs::remove_file(here.path(&lock)).expect("the lock");
    symlink("../precious.txt", here.path(&lock)).expect("a link");
    let ended = here.shotlist(&["run", "m.yaml", "--sandbox"]).ends_with(74);
    assert!(has_code(&ended.stderr, "ledger-unavailable"), "{}", ended.stderr);
    assert_eq!(fs::read(here.path("precious.txt")).expect("the file"), b"precious");
}

#[test]
fn ledger_is_created_private_and_follows_named_links() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.script(&service, "umask 022; exec \"$0\" run m.yaml --yes --select one").ends_with(0);
    let mode = fs::metadata(here.path(LEDGER)).expect("the ledger").permissions().mode() & 0o777;
    assert_eq!(mode, 0o640, "it holds prompts and signed links");
    // The owner's own link, on the command line, is the owner's word.
    symlink(here.path(LEDGER), here.path("mine.db")).expect("a link");
    here.run(&service, &["--ledger", "mine.db"]).ends_with(0);
    assert_eq!((service.posts().len(), here.states()), (2, vec!["completed".to_owned(); 2]));
    assert_eq!(fs::metadata(here.path(LEDGER)).expect("the ledger").nlink(), 1);
    // An empty file is refused if its path is a link.
    here.write("empty", "");
    symlink(here.path("empty"), here.path("link.db")).expect("a link");
    let ended = here.run(&service, &["--ledger", "link.db"]).ends_with(74);
    assert!(has_code(&ended.stderr, "ledger-unavailable"), "{}", ended.stderr);
    assert_eq!(fs::read(here.path("empty")).expect("the file"), b"");
    // Neither a pipe nor a directory is waited for.
    assert!(std::process::Command::new("mkfifo").arg(here.path("pipe.db")).status().expect("mkfifo").success());
    here.run(&service, &["--ledger", "pipe.db"]).ends_with(74);
    here.run(&service, &["--catalog", "pipe.db"]).fails_with("catalog-invalid", 2);
}

#[test]
fn four_first_starts_at_once_make_one_ledger_and_one_run() {
    for _ in 0..10 {
        let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
        let runs: Vec<_> = (0..4).map(|_| here.run(&service, &["-q"]).starts()).collect();
        let mut codes: Vec<_> = runs.into_iter().map(|run| Ended::wait_for(run).code).collect();
        codes.sort();
        assert!(codes.iter().all(|code| [Some(0), Some(75)].contains(code)) && codes[0] == Some(0), "{codes:?}");
        assert_eq!(service.posts().len(), 2);
        let temporary = "/.shotlist-";
        assert!(!here.files().iter().any(|file| file.contains(temporary)), "{:?}", here.files());
    }
}

#[test]
fn one_bottomless_answer_keeps_no_batch_from_being_read() {
    let bottomless = format!("{{\"message\":\"no\",\"x\":{}{}}}", "[".repeat(126), "]".repeat(126));
    let service = Service::scripted(
        move |asked| {
            if asked.submits("number 2") { raw(400, &[], &bottomless) } else { Answer::Well }
        },
    );
    let here = Workspace::with_manifest(&numbered_jobs(4));
    here.run(&service, &[]).ends_with(1);
    here.shotlist(&["status", "m.yaml"]).ends_with(0);
    here.shotlist(&["spend"]).ends_with(0);
    here.shotlist(&["ledger", "check"]).ends_with(0);
    assert_eq!(here.states(), ["completed", "completed", "rejected", "completed"]);
    // An error that is deeper than it can be read.
    let deep = format!("{{\"message\":\"no\",\"code\":null,\"raw\":{}{}}}", "[".repeat(127), "]".repeat(127));
    let connection = open_ledger(&here.path(LEDGER));
    connection
        .execute("UPDATE attempt SET record = json_set(record, '$.error', ?1) WHERE state = 'rejected'", [&deep])
        .expect("a row");
    drop(connection);
    let status = here.shotlist(&["status", "m.yaml"]).ends_with(0).stdout;
    insta::assert_snapshot!(status, @"
    1 job rejected (j2): the stored error can't be parsed
      nothing was charged; the next run asks again: shotlist run m.yaml
    m: 4 jobs: 3 completed, 1 rejected
    $2.70 spent, $0.90 to submit
    videos: 3 in shotlist-out/m

       STATE      JOB  MODEL     COST  DETAIL
       completed  j0   alpha-2  $0.90  j0.mp4
       completed  j1   alpha-2  $0.90  j1.mp4
       rejected   j2   alpha-2  $0.00  the stored error can't be parsed
       completed  j3   alpha-2  $0.90  j3.mp4
    ");
    here.run(&service, &[]).ends_with(1);
}

#[test]
fn responses_are_stored_within_bounds() {
    let long = "m".repeat(1_000_000);
    let service = Service::scripted(move |asked| match asked.method.as_str() {
        "POST" if asked.submits("number 0") => {
            crate::support::json(400, &serde_json::json!({ "error": { "message": long, "code": long } }))
        }
        "POST" if asked.submits("number 1") => crate::support::json(200, &serde_json::json!({ "id": long[..300_000] })),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(3));
    let ended = here.run(&service, &["-q"]).ends_with(7);
    assert_eq!(here.states(), ["rejected", "in_doubt", "completed"]);
    assert!(ended.stderr.len() < 20_000, "{} bytes", ended.stderr.len());
    for file in here.files() {
        let length = fs::metadata(here.path(&file)).expect("a file").len();
        assert!(length < 300_000, "{file}: {length} bytes");
    }
}

#[test]
fn hostile_task_ids_stay_in_their_path() {
    for (id, path) in [("a\nb", Some("/v1/videos/a%0Ab")), ("\tx", Some("/v1/videos/%09x")), ("..", None), (".", None)]
    {
        let service = Service::scripted(move |asked| match asked.method.as_str() {
            "POST" => crate::support::json(200, &serde_json::json!({ "id": id, "status": "queued" })),
            _ => crate::support::json(
                200,
                &serde_json::json!({ "status": "completed", "video_url": "https://v.example/a" }),
            ),
        });
        let here = Workspace::with_manifest(&numbered_jobs(1));
        let ended = here.run(&service, &["--no-download"]).ends();
        let asked: Vec<String> =
            service.asked().into_iter().filter(|asked| asked.method == "GET").map(|asked| asked.path).collect();
        match path {
            Some(path) => assert_eq!((ended.code, asked.first().map(String::as_str)), (Some(0), Some(path)), "{id:?}"),
            None => assert_eq!((ended.code, asked.len()), (Some(7), 0), "{id:?}: {asked:?}"),
        }
    }
}

#[test]
fn copy_needs_few_open_files_and_refuses_a_running_batch() {
    let here = Workspace::with_manifest(&numbered_jobs(1));
    let service = Service::well();
    for batch in 0..24 {
        here.run(&service, &["--batch", &format!("b{batch}"), "--no-download"]).ends_with(0);
    }
    here.script(&service, &format!("ulimit -n 20; exec \"$0\" ledger copy {LEDGER} copy.db")).ends_with(0);
    here.shotlist(&["ledger", "check", "--ledger", "copy.db"]).ends_with(0);
    here.shotlist(&["limit", "set", "--unfreeze"]).ends_with(0);

    // A run of a new batch waits for its first response.
    let (service, let_go) = Service::holding("number 0");
    let child = here.run(&service, &["--batch", "new"]).starts();
    wait_until("a submission", || !service.posts().is_empty());
    here.shotlist(&["ledger", "copy", LEDGER, "other.db"]).fails_with("batch-locked", 75);
    assert!(!here.path("other.db").exists());
    let_go.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(Ended::wait_for(child).code, Some(0));
    assert_eq!(here.ledger("SELECT frozen IS NULL FROM ledger"), [["1"]]);
}
