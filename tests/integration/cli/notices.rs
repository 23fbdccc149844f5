//! The text of each notice of a command. Events of a run and notes of a plan have snapshots in their modules.

use std::fs;
use std::io::BufRead as _;

use serde_json::Value;

use crate::support::{Ended, LEFT_AFTER, Service, TWO_JOBS, Workspace, kill, numbered_jobs, wait_until};

/// The code and the text of each notice on stderr, without the events of a run, and without paths and ports of this machine.
fn notices(here: &Workspace, service: &Service, ended: &Ended) -> String {
    const EVENTS: [&str; 8] =
        ["started", "submitted", "progressed", "completed", "fetched", "in-doubt", "active-tasks", "progress"];
    let root = fs::canonicalize(here.root()).expect("a directory");
    let lines = ended.stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let shown = lines.filter_map(|line| {
        let code = line["code"].as_str()?.replace('_', "-");
        let text = line["message"].as_str()?.replace(&*root.to_string_lossy(), "DIR").replace(&service.url(), "URL");
        (!EVENTS.contains(&&*code)).then(|| format!("{code}: {text}\n"))
    });
    shown.collect()
}

#[test]
fn notices_of_commands_match_the_snapshot() {
    let service = Service::losing("a dog");
    let here = Workspace::with_manifest(TWO_JOBS)
        .file("shots.csv", "Shots for spring,,\nSKU,Prompt,Approved by\nmug,a blue mug,Ann\nlamp,a lamp,Bo\n");
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json", "--base-url", "https://other.example"]);
    here.write("plan.json", plan.ends_with(0).stdout);
    let commands: [&[&str]; 7] = [
        &["init", "--from", "shots.csv", "shots.yaml"],
        &["limit", "set", "--day", "5", "--ledger", "new.db"],
        &["run", "m.yaml", "--approved", "plan.json"],
        &["run", "m.yaml"],
        &["resolve", "m.yaml", "two", "--never-created"],
        &["limit", "set", "--freeze"],
        &["run", "m.yaml", "--yes"],
    ];
    let mut texts = String::new();
    for args in commands {
        let program = here.shotlist(&[args, &["--log-format", "json"]].concat());
        let ended = program.with_service(&service.url()).ends();
        texts += &format!("$ shotlist {}\n{}\n", args.join(" "), notices(&here, &service, &ended));
    }
    insta::with_settings!({ filters => vec![(r" \(os error \d+\)", "")] }, { insta::assert_snapshot!(texts); });
}

#[test]
fn notices_of_a_lock_and_of_a_killed_run_match_the_snapshot() {
    let (service, release) = Service::holding("");
    let here = Workspace::with_manifest(&numbered_jobs(1));
    let mut first = here.run(&service, &[]).starts();
    wait_until("it has submitted", || !service.posts().is_empty());
    let busy = here.run(&service, &["--lock-wait", LEFT_AFTER, "--log-format", "json"]).ends_with(75);
    kill(&first, "-KILL");
    first.wait().expect("it ended");
    release.store(true, std::sync::atomic::Ordering::SeqCst);
    let again = here.run(&service, &["--log-format", "json"]).ends();
    let texts = [busy, again].map(|ended| notices(&here, &service, &ended));
    insta::with_settings!({ filters => vec![(r"process \d+, since .* UTC", "PROCESS")] }, {
        insta::assert_snapshot!(texts.join("\n"));
    });
}

#[test]
fn findings_beyond_the_shown_ones_are_counted() {
    let jobs: Vec<String> =
        (0..120).map(|n| format!("  - {{ id: j{n}, model: alpha-2, prompt: x, key{n}: y }}")).collect();
    let jobs = jobs.join("\n");
    let here = Workspace::with_manifest(&format!("version: 1\njobs:\n{jobs}"));
    let ended = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2);
    insta::assert_snapshot!(ended.line("more diagnostics"), @"warning[more-diagnostics]: … and 20 more diagnostics, which are not shown");
}

#[test]
fn served_simulator_names_itself() {
    let here = Workspace::new();
    let mut child = here.shotlist(&["sandbox", "--port", "0"]).starts();
    let line = |pipe: &mut dyn std::io::Read| {
        let mut line = String::new();
        std::io::BufReader::new(pipe).read_line(&mut line).expect("a line");
        line.trim().to_owned()
    };
    let url = line(child.stdout.as_mut().expect("stdout"));
    let note = line(child.stderr.as_mut().expect("stderr")).replace(&url, "URL");
    kill(&child, "-KILL");
    drop(Ended::wait_for(child));
    insta::assert_snapshot!(note, @"the simulator accepts any key, makes no real video, and charges nothing; what it would have charged: URL/_sandbox/ledger");
}
