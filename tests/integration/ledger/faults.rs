//! A ledger that breaks: before the run, before a submission, or after it. The disk is a real file and the store
//! a real SQLite; a trigger in it plays the full disk at exactly one write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Answer, Ended, Service, TWO_JOBS, Workspace, line_of, open_ledger};

const LEDGER: &str = ".shotlist/ledger.db";

/// A service that, before its first response to `method`, adds a trigger to the ledger that fails writes of attempts in `state`. The ledger can't
/// have it before the run, because a run refuses a ledger with another schema.
fn breaking(method: &'static str, state: &'static str) -> (Service, Arc<Workspace>) {
    let here = Arc::new(Workspace::with_manifest(TWO_JOBS));
    let (ledger, armed) = (here.path(LEDGER), Arc::new(AtomicBool::new(false)));
    let is_armed = Arc::clone(&armed);
    let service = Service::scripted(move |asked| {
        if asked.method == method && is_armed.swap(false, Ordering::SeqCst) {
            for event in ["INSERT", "UPDATE"] {
                let trigger = format!(
                    "CREATE TRIGGER full_{event} BEFORE {event} ON attempt WHEN NEW.state = '{state}'
                     BEGIN SELECT RAISE(ROLLBACK, 'database or disk is full'); END"
                );
                open_ledger(&ledger).execute_batch(&trigger).expect("a trigger");
            }
        }
        Answer::Well
    });
    here.write("before.yaml", "version: 1\njobs: [{ id: other, model: beta-2.0-lite, prompt: something else }]\n");
    here.shotlist(&["run", "before.yaml", "--yes"]).with_service(&service.url()).ends_with(0);
    armed.store(true, Ordering::SeqCst);
    (service, here)
}

/// There is room again.
fn make_room(here: &Workspace) {
    open_ledger(&here.path(LEDGER)).execute_batch("DROP TRIGGER full_INSERT; DROP TRIGGER full_UPDATE").expect("room");
}

#[test]
fn full_disk_before_a_submission_sends_nothing() {
    let (service, here) = breaking("POST", "intended");
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(74);
    insta::assert_snapshot!(ended.line("disk is full"), @"error[stopping]: stopped submitting: can't write the ledger: database or disk is full");
    assert_eq!(service.posts().len(), 2, "something was sent without an intent");
}

#[test]
fn full_disk_after_a_submission_prints_the_task_id() {
    let (service, here) = breaking("POST", "queued");
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(74);
    assert_eq!(service.posts().len(), 2, "it went on submitting");
    for stream in [&ended.stdout, &ended.stderr] {
        line_of(stream, "RESCUE: the task of one is t1");
    }
    line_of(&ended.stderr, "resolve m.yaml one --task t1");
    insta::assert_snapshot!(ended.line(" spent, "), @"$0.00 spent, $3.75 at risk, $7.50 to submit");
    // The line is enough to continue once the disk has space.
    make_room(&here);
    let resolve = here.shotlist(&["resolve", "m.yaml", "one", "--task", "t1"]);
    resolve.with_service(&service.url()).ends_with(0);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
    assert_eq!(here.states(), ["completed", "completed"]);
}

#[test]
fn unrecorded_terminal_state_is_polled_again() {
    let (service, here) = breaking("GET", "completed");
    here.run(&service, &[]).ends_with(74);
    make_room(&here);
    let posts = service.posts().len();
    here.run(&service, &[]).ends_with(0);
    assert_eq!(here.states(), ["completed", "completed"]);
    assert!(service.posts().len() <= 3, "{posts} then {}", service.posts().len());
}

#[test]
fn file_size_limit_loses_nothing() {
    // A limit on the size of files acts like a full disk, without special rights. It is reached before the ledger is made,
    // in the middle of the run, or never.
    for blocks in [0, 8, 24, 48, 64, 96, 160, 400, 100_000] {
        let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
        let script = format!("ulimit -f {blocks}; exec \"$0\" run m.yaml --yes");
        let Ended { code, stdout, stderr } = here.script(&service, &script).ends().lacks(&["panicked"]);
        assert!([Some(0), Some(74)].contains(&code), "{blocks} blocks: exit {code:?}\n{stderr}");
        // Every task that the service made is in the ledger or was reported on stdout.
        let known: Vec<String> = here.ledger_if_any("SELECT task FROM attempt WHERE task IS NOT NULL");
        for number in 0..service.posts().len() {
            let task = format!("t{number}");
            assert!(
                known.contains(&task) || stdout.contains(&format!("is {task},")),
                "{blocks}: {task} is lost\n{stderr}"
            );
        }
        // With room again, the next run pays for nothing twice.
        let again = here.run(&service, &[]).ends();
        assert!([Some(0), Some(7)].contains(&again.code), "{blocks}: {}", again.stderr);
        assert!(service.posts().len() <= 2, "{blocks} blocks: {} submissions", service.posts().len());
    }
}

#[test]
fn foreign_ledger_file_is_refused_before_a_request() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let make = |name: &str, sql: &str| {
        let connection = rusqlite::Connection::open(here.path(name)).expect("a database");
        connection.execute_batch(sql).expect("SQL");
    };
    make("foreign.db", "CREATE TABLE bookmarks (url TEXT)");
    make("newer.db", "PRAGMA application_id = 0x73686f74; PRAGMA user_version = 99; CREATE TABLE x (y)");
    here.write("damaged.db", [b"SQLite format 3\0".as_slice(), &[0xff; 4096]].concat());
    for (name, told) in [("foreign.db", "another program"), ("newer.db", "found 99"), ("damaged.db", "damaged")] {
        let before = std::fs::read(here.path(name)).expect("a file");
        for command in [["run", "m.yaml", "--yes"].as_slice(), &["run", "m.yaml", "--plan"], &["status", "m.yaml"]] {
            let program = here.shotlist(&[command, &["--ledger", name]].concat());
            let ended = program.with_service(&service.url()).ends_with(74);
            assert!(ended.stderr.contains(told), "{command:?}: {}", ended.stderr);
        }
        assert_eq!(before, std::fs::read(here.path(name)).expect("a file"), "{name} was changed");
    }
    assert_eq!(service.asked().len(), 0);
}
