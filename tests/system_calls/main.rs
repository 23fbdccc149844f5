//! Runs with a failed system call, or a kill at one: at every call of a first run that changes a file, in order. A separate target, because it
//! needs strace: `cargo test --test system_calls`. By default, it tests every eleventh call, in a minute; with `SYSTEM_CALLS_STRIDE=1` all
//! of them, in ten.
#![cfg(target_os = "linux")]
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

use std::collections::HashSet;

use support::{Ended, Service, Workspace};

mod mounts;

#[expect(dead_code, unused_imports, reason = "the other tests use the rest")]
#[path = "../integration/support/mod.rs"]
mod support;

const MANIFEST: &str = "version: 1\ndefaults: { model: alpha-2 }\njobs: [{ id: a, prompt: a }, { id: b, prompt: b }, { id: c, prompt: c }]\n";

/// The action at a call, and the calls. `write` writes reports and the commit counter, and also wakes threads of the program: there is only
/// a kill.
const FAULTS: [(&str, &[&str]); 4] = [
    (
        "signal=SIGKILL",
        &["pwrite64", "fdatasync", "fsync", "openat", "write", "rename", "linkat", "ftruncate", "unlink", "mkdir"],
    ),
    ("error=ENOSPC", &["pwrite64", "mkdir", "linkat", "rename"]),
    ("error=EIO", &["fdatasync", "fsync", "ftruncate", "pread64"]),
    ("error=EACCES", &["flock", "unlink"]),
];

/// Runs into a fault at the nth call, or from the nth on; true if it was met.
fn meet(call: &str, fault: &str, when: &str) -> bool {
    let what = format!("{fault} at {call} {when}");
    let (service, here) = (Service::well(), Workspace::with_manifest(MANIFEST));
    let pace = "--first-poll 0s --poll-interval 20ms --poll-floor 5ms --concurrency 2";
    let trace = format!("timeout 20 strace -f -qq -o trace.log -e trace={call} -e inject={call}:{fault}:when={when}");
    let script = format!("{trace} \"$0\" run m.yaml --yes {pace}");
    let Ended { stdout, stderr, code } = here.script(&service, &script).ends();
    assert!(!stderr.contains("panicked") && !stderr.contains("strace:"), "{what}: {stderr}");
    let trace = std::fs::read_to_string(here.path("trace.log")).expect("a trace");
    let is_met = trace.contains("(INJECTED)") || code.is_none() || code == Some(137);

    // The next run succeeds in any case.
    let again = here.run(&service, &[]).ends();
    assert!(
        [Some(0), Some(7)].contains(&again.code),
        "{what}: exit {:?}\n{stderr}\nthen\n{}",
        again.code,
        again.stderr
    );
    let posts = service.posts();
    let distinct: HashSet<&String> = posts.iter().collect();
    assert_eq!(posts.len(), distinct.len(), "{what}: a job was paid twice");
    let report = here.report();
    let jobs = report["jobs"].as_array().expect("jobs");
    for job in jobs {
        let state = job["state"].as_str().expect("a state");
        assert!(["completed", "in_doubt"].contains(&state), "{what}: {job}");
        let bought = posts.iter().filter(|post| post.contains(&format!("\"prompt\":{}", job["prompt"]))).count();
        assert!(bought == 1 || state == "in_doubt", "{what}: {job}");
        if state == "completed" {
            let file = here.path("shotlist-out/m").join(job["file"].as_str().expect("a file"));
            let video = support::video(&format!("/videos/{}.mp4", job["task_id"].as_str().expect("a task")));
            assert_eq!(std::fs::read(file).expect("the video"), video, "{what}: {job}");
        }
    }
    // Each task that was made is known, or was reported, or its job is in doubt.
    let doubts = jobs.iter().filter(|job| job["state"] == "in_doubt").count();
    let known = |task: &str| jobs.iter().any(|job| job["task_id"] == task) || stdout.contains(&format!("is {task},"));
    let lost = (0..posts.len()).filter(|number| !known(&format!("t{number}"))).count();
    assert!(lost <= doubts, "{what}: {lost} tasks are lost, {doubts} jobs in doubt\n{stderr}");
    is_met
}

/// These system calls of a run with an option, which succeeds.
fn trace_of(calls: &str, option: &str) -> String {
    let (service, here) = (Service::well(), Workspace::with_manifest(MANIFEST));
    // A plan searches its output for the key, if one is set.
    let without_key = if option == "--plan" { "unset SHOTLIST_API_KEY; " } else { "" };
    let trace = format!("{without_key}strace -f -qq -o trace.log -e trace={calls} \"$0\" run m.yaml {option}");
    here.script(&service, &trace).ends_with(0);
    std::fs::read_to_string(here.path("trace.log")).expect("a trace")
}

/// The kernel must not deliver a submission long after its sender was stopped.
#[test]
fn submission_is_not_retransmitted_for_minutes() {
    let trace = trace_of("setsockopt", "--yes --first-poll 0s");
    assert!(trace.contains("TCP_USER_TIMEOUT, [30000]"), "{trace}");
}

/// Before the first connection, so that no other process of the user reads its environment, and no core file has the key.
#[test]
fn process_with_a_key_is_not_dumpable() {
    let trace = trace_of("prctl,connect", "--yes --first-poll 0s");
    let at = |call: &str| trace.find(call).unwrap_or_else(|| panic!("{call}: {trace}"));
    assert!(at("prctl(PR_SET_DUMPABLE, SUID_DUMP_DISABLE") < at("connect("), "{trace}");
    // Without a key, nothing is hidden from the user's own tools.
    let trace = trace_of("prctl", "--plan");
    assert!(!trace.contains("PR_SET_DUMPABLE"), "{trace}");
}

/// Without threads, a run reports that, and sends nothing.
#[test]
fn failed_start_of_a_thread_is_reported() {
    for when in ["1+", "2+"] {
        let (service, here) = (Service::well(), Workspace::with_manifest(MANIFEST));
        let trace =
            format!("strace -f -qq -o trace.log -e trace=clone3,clone -e inject=clone3,clone:error=EAGAIN:when={when}");
        let Ended { stderr, code, .. } = here.script(&service, &format!("{trace} \"$0\" run m.yaml --yes")).ends();
        assert!(
            ["ledger-unavailable", "not-writable"].iter().any(|code| support::has_code(&stderr, code)),
            "{when}: {stderr}"
        );
        assert_eq!(
            (code, service.asked().len(), stderr.contains("panicked")),
            (Some(74), 0, false),
            "{when}: {stderr}"
        );
    }
}

#[test]
fn new_directory_is_on_the_disk_before_a_submission() {
    let (service, here) = (Service::well(), Workspace::with_manifest(MANIFEST));
    let trace = "strace -f -y -qq -o trace.log -e trace=fsync,fdatasync,connect";
    here.script(&service, &format!("{trace} \"$0\" run m.yaml --yes --first-poll 0s --poll-floor 5ms")).ends_with(0);
    let log = std::fs::read_to_string(here.path("trace.log")).expect("a trace");
    let (before, _) = log.split_once("connect(").expect("it was sent");
    let root = here.root().canonicalize().expect("a directory").display().to_string();
    // The directory of the ledger, the one above it, and the log with the first intent.
    for synced in ["/.shotlist>", ">", "/.shotlist/ledger.db-wal>"] {
        assert!(before.contains(&format!("<{root}{synced}")), "{root}{synced} was not synced before: {before}");
    }
    for synced in ["/shotlist-out>", "/shotlist-out/m>"] {
        assert!(log.contains(&format!("<{root}{synced}")), "{root}{synced} was never synced: {log}");
    }
}

#[test]
fn failed_or_last_system_call_pays_nothing_twice() {
    let stride = std::env::var("SYSTEM_CALLS_STRIDE").map_or(11, |stride| stride.parse().expect("a number of calls"));
    let mut met = 0;
    // Each fault once at every nth call of each kind; failures also at all later calls.
    for (fault, calls) in FAULTS {
        for call in calls {
            for end in if fault.starts_with("error") { ["", "+"].as_slice() } else { &[""] } {
                // No run makes as many.
                for number in (1..5000).step_by(stride) {
                    if !meet(call, fault, &format!("{number}{end}")) {
                        break;
                    }
                    met += 1;
                }
            }
        }
    }
    assert!(met > 300 / stride, "only {met} faults were met");
}

#[test]
fn doctor_names_a_full_disk() {
    let (service, here) = (Service::well(), Workspace::with_manifest(MANIFEST));
    let script = "strace -f -qq -o trace.log -e trace=fsync -e inject=fsync:error=ENOSPC \"$0\" doctor m.yaml";
    let ended = here.script(&service, script).ends_with(1);
    let problems: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("problem")).collect();
    assert_eq!(problems.len(), 2, "the output directory and the ledger's: {}", ended.stdout);
    assert!(problems.iter().all(|problem| problem.contains("No space left on device")), "{problems:?}");
}

/// A backup gets its name only if the name survives a power loss.
#[test]
fn backup_without_durable_name_leaves_none() {
    let (service, here) = (Service::well(), Workspace::with_manifest(MANIFEST));
    here.run(&service, &["--no-download"]).ends_with(0);
    let mut outcomes = [0, 0];
    for number in 1..=9 {
        let trace = format!("strace -f -qq -o trace.log -e trace=fsync -e inject=fsync:error=EIO:when={number}");
        let ended = here.script(&service, &format!("{trace} \"$0\" ledger backup copy.db")).ends();
        let is_made = ended.code == Some(0);
        assert_eq!(here.path("copy.db").exists(), is_made, "at sync {number}: {}", ended.stderr);
        if is_made {
            std::fs::remove_file(here.path("copy.db")).expect("a backup");
        }
        outcomes[usize::from(is_made)] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 1), "one kind of outcome is missing: {outcomes:?}");
}

/// A disk that loses a write without an error.
#[test]
fn archive_refuses_different_copy() {
    let (service, here) = (Service::well(), Workspace::with_manifest(MANIFEST));
    here.run(&service, &[]).ends_with(0);
    let job = here.report()["jobs"][0].clone();
    let (file, sha256) = (job["file"].as_str().expect("a file"), job["sha256"].as_str().expect("a digest"));
    let part = here.path(&format!("done/.{file}.{}.part", &sha256[..8]));
    let faults = "-e inject=copy_file_range,sendfile:error=ENOSYS -e inject=write:retval={}:when=1";
    let faults = faults.replace("{}", &job["bytes"].to_string());
    let trace =
        format!("strace -f -qq -o trace.log -e trace=copy_file_range,sendfile,write {faults} -P {}", part.display());
    let command = format!("mkdir done; {trace} \"$0\" archive m.yaml {} --to done", job["id"].as_str().expect("an ID"));
    let refused = here.script(&service, &command).ends_with(74);
    assert!(refused.stderr.contains("the copy differs from the original"), "{}", refused.stderr);
    assert!(here.path(&format!("shotlist-out/m/{file}")).exists() && !here.path(&format!("done/{file}")).exists());
}
