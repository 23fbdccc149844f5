//! A program for each video: started once it is in its place, again where it failed, and never again where it was done.
#![cfg(unix)]

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{
    Program, Service, TWO_JOBS, Workspace, has_code, kill, line_of, numbered_jobs, output_of, wait_until,
};

/// Writes the program.
fn program(here: &Workspace, script: &str) {
    here.write("after", format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(here.path("after"), PermissionsExt::from_mode(0o755)).expect("made a program");
}

fn run(here: &Workspace, service: &Service, args: &[&str]) -> Program {
    here.run(service, &[&["--exec", "./after"], args].concat())
}

fn lines(here: &Workspace, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(here.path(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn hook_gets_facts_of_the_video_and_never_the_key() {
    let here = Workspace::with_manifest(
        "version: 1
batch: b1
defaults: { model: alpha-2, labels: { client: acme } }
jobs: [{ id: \"s-{{ row.sku }}\", for_each: p.csv, prompt: \"{{ row['Nice title'] }}\", file: \"deep/{{ id }}.mp4\" }]
",
    )
    .file("p.csv", "sku,Nice title,größe,nice-title\n7,A mug,XL,other\n");
    program(
        &here,
        "env | grep SHOTLIST | sort; echo \"arg=$1\"; cat \"$1\" > copy; env > seen; echo uploaded to somewhere",
    );
    let service = Service::well();
    run(&here, &service, &[]).ends_with(0);
    let job = &here.json("shotlist-out/m/b1/report.json")["jobs"][0];
    let path = here.path("shotlist-out/m/b1/deep/s-7.mp4");
    let seen = lines(&here, "seen");
    let told: HashMap<&str, &str> =
        seen.iter().filter(|line| line.starts_with("SHOTLIST_")).filter_map(|line| line.split_once('=')).collect();
    let path_text = path.canonicalize().expect("the video").display().to_string();
    let expected = HashMap::from([
        ("SHOTLIST_ID", "s-7"),
        ("SHOTLIST_BATCH", "b1"),
        ("SHOTLIST_FILE", &*path_text),
        ("SHOTLIST_SHA256", job["sha256"].as_str().expect("a hash")),
        ("SHOTLIST_MODEL", "alpha-2"),
        ("SHOTLIST_TASK", job["task_id"].as_str().expect("a task")),
        ("SHOTLIST_PROMPT", "A mug"),
        ("SHOTLIST_ROW_SKU", "7"),
        ("SHOTLIST_ROW_NICE_TITLE", "A mug"),
        ("SHOTLIST_ROW_GR__E", "XL"),
        ("SHOTLIST_LABEL_CLIENT", "acme"),
    ]);
    let bytes = job["bytes"].to_string();
    let expected: HashMap<&str, &str> = expected.into_iter().chain([("SHOTLIST_BYTES", &*bytes)]).collect();
    assert_eq!(told, expected);
    assert_eq!(std::fs::read(here.path("copy")).expect("what it read"), std::fs::read(&path).expect("the video"));
    assert_eq!((&job["exec"]["outcome"], &job["exec"]["line"]), (&json!("done"), &json!("uploaded to somewhere")));
}

#[test]
fn failed_hook_is_repeated_and_a_done_one_is_not() {
    let here = Workspace::with_manifest(TWO_JOBS);
    program(
        &here,
        "echo $SHOTLIST_ID >> started; [ -e fixed ] || [ $SHOTLIST_ID = one ] || { echo no room >&2; exit 4; }",
    );
    let service = Service::well();
    let ended = run(&here, &service, &[]).ends_with(1);
    insta::assert_snapshot!(ended.line("warning[not-executed]"), @"warning[not-executed]: `--exec` failed for two; the next run with `--exec` starts it again: exit status: 4: no room");
    let job = here.report()["jobs"][1]["exec"].clone();
    assert_eq!(
        (&job["outcome"], &job["error"], &job["line"]),
        (&json!("failed"), &json!("exit status: 4: no room"), &json!("no room"))
    );
    // A run without it has nothing to do, and neither starts it nor fails.
    here.run(&service, &[]).ends_with(0);
    insta::assert_snapshot!(here.shotlist(&["status", "m.yaml"]).ends_with(0).line("exec failed"), @"completed  two  beta-2.0-lite  $7.50  exec failed: exit status: 4: no room");
    here.write("fixed", "");
    run(&here, &service, &[]).ends_with(0);
    run(&here, &service, &[]).ends_with(0);
    let mut started = lines(&here, "started");
    started.sort();
    assert_eq!(started, ["one", "two", "two"]);
    // No request goes to the service, so neither a key nor a URL is needed.
    program(&here, "echo again >> started");
    here.shotlist(&["run", "m.yaml", "--exec", "./after"]).ends_with(0);
    // A video that was lost and is fetched again was done before; a new one was not.
    std::fs::remove_file(here.path("shotlist-out/m/one.mp4")).expect("removed");
    run(&here, &service, &[]).ends_with(0);
    assert_eq!(lines(&here, "started").len(), 3);
    run(&here, &service, &["--retake", "one"]).ends_with(0);
    assert_eq!(lines(&here, "started").len(), 4);
    assert_eq!(service.posts().len(), 3);
    run(&here, &service, &["--no-download"]).fails_with("option-invalid", 2);
}

#[test]
fn log_of_a_failed_program_has_the_task_and_no_prompt() {
    let here = Workspace::with_manifest(&TWO_JOBS.replace("prompt: ", "prompt: secret "));
    program(&here, "echo \"can't cut: $SHOTLIST_PROMPT\" >&2; exit 4");
    let service = Service::well();
    let (log, secret) = (run(&here, &service, &["--log-format", "json"]).ends_with(1).stderr, "secret");
    assert!(!log.contains(secret), "{log}");
    let events = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let failed: Vec<_> = events.filter(|event| event["event"] == "not_executed").collect();
    let mut tasks: Vec<_> = failed.iter().map(|event| event["task"].as_str().expect("a task")).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, ["t0", "t1"]);
    insta::assert_snapshot!(failed[0]["error"].as_str().expect("a reason"), @"exit status: 4: can't cut: [the prompt]");
    // Only the last line of an output is kept, and that may be a line of the prompt.
    here.write(
        "m.yaml",
        "version: 1\njobs: [{ id: one, model: alpha-2, prompt: \"A first line\\nand a secret line\" }]\n",
    );
    let log = run(&here, &service, &["--log-format", "json", "--batch", "b"]).ends_with(1).stderr;
    assert!(!log.contains(secret), "{log}");
    line_of(&log, "exit status: 4: [the prompt]");
}

#[test]
fn later_hook_sees_existing_videos() {
    let (here, service) = (Workspace::with_manifest(TWO_JOBS), Service::well());
    here.run(&service, &[]).ends_with(0);
    program(&here, "echo $SHOTLIST_ID $SHOTLIST_PROMPT >> started");
    run(&here, &service, &["--select", "two"]).ends_with(0);
    run(&here, &service, &[]).ends_with(0);
    let started: Vec<String> =
        lines(&here, "started").iter().map(|line| line.split(' ').next().unwrap_or(line).to_owned()).collect();
    assert_eq!(started, ["two", "one"]);
}

/// Two hundred videos: one in ten fails, one hangs, and the run is killed on the way, thrice.
#[test]
fn killed_run_loses_no_hook_and_repeats_none() {
    let here = Workspace::with_manifest(&numbered_jobs(100));
    let service = Service::well();
    // Each records its start and its end. One in ten fails the first time, and the 77th hangs until it is released.
    program(
        &here,
        "number=${SHOTLIST_ID##*[!0-9]}
echo $SHOTLIST_ID >> begun
case $number in *7) [ -e failed-$number ] || { : > failed-$number; exit 1; } ;; esac
[ $number = 88 ] && [ ! -e let-go ] && sleep 60
echo $SHOTLIST_ID >> done",
    );
    // The finished hooks by the ledger, and the number of starts of each so far.
    let mut done: HashMap<String, usize> = HashMap::new();
    for many in [10, 35, 60] {
        let child = run(&here, &service, &["--concurrency", "50", "--program-timeout", "30s"]).starts();
        wait_until("some are done", || lines(&here, "done").len() >= many);
        kill(&child, "-KILL");
        output_of(child);
        for row in here.ledger("SELECT job FROM attempt WHERE executed_at IS NOT NULL AND exec_error IS NULL") {
            done.entry(row[0].clone()).or_insert_with(|| begun(&here, &row[0]));
        }
        // A kill may leave doubts, which this test ignores.
        here.shotlist(&["resolve", "m.yaml", "*", "--never-created"]).ends();
    }
    assert!(done.len() > 50, "{}", done.len());
    let ended = run(&here, &service, &["--concurrency", "50", "--program-timeout", "2s"]).ends_with(1);
    assert!(has_code(&ended.stderr, "not-executed"), "{}", ended.stderr);
    here.write("let-go", "");
    run(&here, &service, &[]).ends_with(0);
    run(&here, &service, &[]).ends_with(0);
    let report = here.report();
    let jobs = report["jobs"].as_array().expect("jobs");
    assert!(jobs.iter().all(|job| job["exec"]["outcome"] == "done"), "{report}");
    let ended: HashSet<String> = lines(&here, "done").into_iter().collect();
    assert_eq!(ended.len(), 100, "nothing is lost");
    for (id, times) in &done {
        assert_eq!(begun(&here, id), *times, "{id} was done, and began again");
    }
    // For each kill, at most as many hooks as run in parallel ended without a record in the ledger.
    let twice = lines(&here, "done").len() - ended.len();
    assert!(twice <= 3 * 4, "{twice} were done twice");
}

fn begun(here: &Workspace, id: &str) -> usize {
    lines(here, "begun").iter().filter(|line| *line == id).count()
}

#[test]
fn first_signal_lets_hooks_end_and_starts_none() {
    let here = Workspace::with_manifest(&numbered_jobs(12));
    program(&here, "echo $SHOTLIST_ID >> begun; while [ ! -e go ]; do sleep 0.05; done; echo $SHOTLIST_ID >> done");
    let service = Service::well();
    let script = "exec \"$0\" run m.yaml --yes --exec ./after 2> said";
    let child = here.script(&service, script).starts();
    wait_until("four are under way", || lines(&here, "begun").len() == 4);
    wait_until("all videos are here", || here.videos().len() == 12);
    kill(&child, "-INT");
    wait_until("the signal was heard", || {
        lines(&here, "said").iter().any(|line| line.starts_with("warning[stopping]"))
    });
    here.write("go", "");
    assert_eq!(output_of(child).status.code(), Some(130));
    assert_eq!((lines(&here, "begun").len(), lines(&here, "done").len()), (4, 4));
    run(&here, &service, &[]).ends_with(0);
    assert_eq!(lines(&here, "done").len(), 12);
}

#[test]
fn broken_hook_is_not_started_for_every_video() {
    let here = Workspace::with_manifest(&numbered_jobs(20));
    program(&here, "echo x >> begun; exit 1");
    let ended = run(&here, &Service::well(), &[]).ends_with(1);
    let ended = ended.shows("hooks-stopped");
    assert!((10..=13).contains(&lines(&here, "begun").len()), "{:?}", lines(&here, "begun").len());
    assert!(here.report()["jobs"].as_array().expect("jobs").iter().all(|job| job["state"] == "completed"));
    // Hooks that were not started are counted, too: of this run, and of a run after all downloads.
    let counted = |stdout: &str| -> Vec<usize> {
        let told = stdout.lines().filter(|line| line.contains(" `--exec` ("));
        told.filter_map(|line| line.split_once(' ')?.0.parse().ok()).collect()
    };
    assert_eq!(counted(&ended.stdout).iter().sum::<usize>(), 20, "{}", ended.stdout);
    assert_eq!(counted(&ended.stdout)[0], lines(&here, "begun").len(), "{}", ended.stdout);
    let (here, service) = (Workspace::with_manifest(&numbered_jobs(20)), Service::well());
    here.run(&service, &[]).ends_with(0);
    program(&here, "echo x >> begun; exit 1");
    let ended = run(&here, &service, &[]).ends_with(1);
    assert_eq!(counted(&ended.stdout).iter().sum::<usize>(), 20, "{}", ended.stdout);
    ended.line(" videos without their `--exec` (");
    let owed = here.report()["totals"]["exec_owed"].as_u64().expect("a number");
    assert_eq!(counted(&ended.stdout)[1..], [usize::try_from(owed).expect("few")]);
}

#[test]
fn videos_of_yesterday_are_executed_when_they_come() {
    let here = Workspace::with_manifest(&TWO_JOBS.replace("version: 1\n", "version: 1\nbatch: \"{{ today }}\"\n"));
    program(&here, "echo $SHOTLIST_BATCH $SHOTLIST_ID $SHOTLIST_FILE >> begun");
    let (service, done) = Service::slow();
    run(&here, &service, &["--batch", "mon"]).ends_by_timeout(|| {
        let polled = |task: &str| service.asked().iter().any(|it| it.method == "GET" && it.path.ends_with(task));
        polled("/t0") && polled("/t1")
    });
    done.store(true, std::sync::atomic::Ordering::SeqCst);
    run(&here, &service, &["--batch", "tue"]).ends_with(0);
    let mut begun: Vec<String> =
        lines(&here, "begun").iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    begun.sort();
    assert_eq!(begun, ["mon one", "mon two", "tue one", "tue two"]);
    let lines = lines(&here, "begun");
    assert!(lines.iter().any(|line| line.ends_with("shotlist-out/m/mon/one.mp4")), "{lines:?}");
}

#[test]
fn hook_runs_for_the_reported_video_of_a_job() {
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: hero, model: alpha-2, prompt: Before }]\n");
    let service = Service::well();
    here.run(&service, &[]).ends_with(0);
    program(&here, "echo \"$SHOTLIST_PROMPT $(sha256sum < \"$1\" | cut -c1-64) $SHOTLIST_SHA256\" >> begun");
    here.write("m.yaml", "version: 1\njobs: [{ id: hero, model: alpha-2, prompt: After }]\n");
    // Changed, and retaken in another run: each time, the old video is there, and gets no hook.
    run(&here, &service, &[]).ends_with(0);
    run(&here, &service, &["--retake", "hero"]).ends_with(0);
    run(&here, &service, &[]).ends_with(0);
    let begun = lines(&here, "begun");
    assert_eq!(begun.len(), 2, "{begun:?}");
    for line in begun {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!((words[0], words[1]), ("After", words[2]), "{line}");
    }
    // A replaced file is not the downloaded video.
    here.run(&service, &["--retake", "hero", "--exec", "false"]).ends_with(1);
    let path = here.path("shotlist-out/m/hero.mp4");
    let length = std::fs::metadata(&path).expect("the video").len();
    std::fs::write(&path, vec![0; usize::try_from(length).expect("short")]).expect("replaced");
    run(&here, &service, &[]).ends_with(0);
    assert_eq!(lines(&here, "begun").len(), 2);
}

#[test]
fn failing_hooks_do_not_delay_others() {
    let here = Workspace::with_manifest(&numbered_jobs(16));
    program(&here, "echo $SHOTLIST_ID >> begun; case $SHOTLIST_ID in j1[2-5]) ;; *) exit 1 ;; esac");
    let service = Service::well();
    here.run(&service, &[]).ends_with(0);
    run(&here, &service, &[]).ends_with(1);
    run(&here, &service, &[]).ends_with(1);
    let done = here.ledger("SELECT count(*) FROM attempt WHERE executed_at IS NOT NULL AND exec_error IS NULL");
    assert_eq!(done, [["4"]], "{:?}", lines(&here, "begun"));
}

#[test]
fn failed_hook_of_an_earlier_batch_is_repeated() {
    let text = TWO_JOBS.replace("version: 1\n", "version: 1\nbatch: \"{{ today }}\"\n");
    let (here, service) = (Workspace::with_manifest(&text), Service::well());
    program(&here, "echo $SHOTLIST_BATCH $SHOTLIST_ID >> begun; [ -e fixed ] || exit 1");
    run(&here, &service, &["--batch", "mon"]).ends_with(1);
    here.write("fixed", "");
    // Without the option, no hook runs, also for other batches.
    here.run(&service, &["--batch", "tue"]).ends_with(0);
    assert_eq!(lines(&here, "begun").len(), 2);
    run(&here, &service, &["--batch", "wed"]).ends_with(0);
    let mut begun = lines(&here, "begun").split_off(2);
    begun.sort();
    assert_eq!(begun, ["mon one", "mon two", "wed one", "wed two"]);
    assert_eq!(here.json("shotlist-out/m/mon/report.json")["jobs"][0]["exec"]["outcome"], "done");
}
