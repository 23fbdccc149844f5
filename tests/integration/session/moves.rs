//! Moved jobs: a new ID buys nothing again, in any state of the job and after a kill at any step.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::support::{Answer, Ended, LEFT_AFTER, Service, Workspace, json as answer, kill, wait_until};

/// A service with a response for each prompt, for one job in each state.
fn every_state() -> Service {
    Service::scripted(|asked| {
        let says = |word: &str| asked.body.contains(word) || asked.path.contains(word);
        match asked.method.as_str() {
            "POST" if says("doubt") => Answer::Hangup,
            "POST" if says("refused") => answer(400, &json!({ "error": { "message": "no" } })),
            "POST" if says("open") => answer(200, &json!({ "id": "open" })),
            "POST" if says("failed") => answer(200, &json!({ "id": "failed" })),
            "GET" if asked.path.ends_with("/open") => answer(200, &json!({ "id": "open", "status": "in_progress" })),
            "GET" if asked.path.ends_with("/failed") => {
                answer(200, &json!({ "id": "failed", "status": "failed", "error": { "message": "broke" } }))
            }
            _ => Answer::Well,
        }
    })
}

fn manifest(ids: &[&str], moved: &str) -> String {
    let prompts = ["done", "twice", "doubt", "refused", "open", "failed"];
    let entry = |(id, prompt): (&&str, &str)| match prompt {
        "twice" => format!("  - {{ id: \"{id}-{{{{ row.n }}}}\", prompt: twice, takes: 2, for_each: [{{ n: 7 }}] }}\n"),
        prompt => format!("  - {{ id: {id}, prompt: {prompt} }}\n"),
    };
    let jobs: String = ids.iter().zip(prompts).map(entry).collect();
    format!("version: 1\ndefaults: {{ model: alpha-2 }}\njobs:\n{jobs}moved: {moved}\n")
}

const OLD: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const NEW: [&str; 6] = ["a2", "b2", "c2", "d2", "e2", "f2"];
const ALL: &str = "[{ from: a, to: a2 }, { from: b-7, to: b2-7 }, { from: b-7.2, to: b2-7.2 }, { from: c, to: c2 }, \
                   { from: d, to: d2 }, { from: e, to: e2 }, { from: f, to: f2 }]";

#[test]
fn moved_job_keeps_its_purchases_in_any_state() {
    let (service, here) = (every_state(), Workspace::with_manifest(&manifest(&OLD, "[]")));
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(7);
    let states = ["completed", "completed", "completed", "in_doubt", "rejected", "in_progress", "failed"];
    assert_eq!(here.states(), states);
    let (bought, videos) = (service.posts().len(), service.fetched().len());

    // Without `moved`, the plan suspects a rename, and its `moved` line works when pasted.
    here.write("m.yaml", manifest(&NEW, "[]"));
    let refused = here.run(&service, &[]).ends_with(3);
    refused.line("`- { from: a, to: a2 }`");
    refused.line("`- { from: b-7.2, to: b2-7.2 }`");
    assert_eq!(service.posts().len(), bought);

    here.write("m.yaml", manifest(&NEW, ALL));
    // A rejected job was free, so it is submitted under the new ID.
    assert_eq!(here.planned(&[]), (1, "0.90".to_owned()));
    assert_eq!(
        here.ledger("SELECT count(*) FROM attempt WHERE bought_as IS NOT NULL"),
        [["0"]],
        "a plan writes nothing"
    );
    here.shotlist(&["resolve", "m.yaml"]).ends_with(0).line("  c2  ");
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(7);
    assert_eq!(here.states(), states);
    assert_eq!((service.posts().len(), service.fetched().len()), (bought + 1, videos));
    assert_eq!(here.report()["jobs"][0]["file"], "a.mp4", "the video keeps the file that it has");
    assert_eq!(
        here.ledger("SELECT job, bought_as FROM attempt WHERE state = 'in_doubt'"),
        [["c2", "c"]],
        "a doubt is known by its new id"
    );
    // The entry may be removed, and the doubt is resolved under the new ID.
    here.write("m.yaml", manifest(&NEW, "[]"));
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(7);
    assert_eq!((here.states(), service.posts().len()), (states.map(str::to_owned).to_vec(), bought + 2));
    here.shotlist(&["resolve", "m.yaml", "c2", "--never-created"]).ends_with(0);

    // A file that is gone is fetched to where it belongs now.
    std::fs::remove_file(here.path("shotlist-out/m/a.mp4")).expect("removed");
    here.run(&service, &["--deadline", LEFT_AFTER, "--select", "a2"]).ends_with(0);
    assert_eq!(here.report()["jobs"][0]["file"], "a2.mp4");
}

#[test]
fn move_follows_a_chain_and_can_be_undone() {
    let (service, here) = (Service::well(), Workspace::new());
    let list = |id: &str, moved: &str| {
        format!("version: 1\njobs: [{{ id: {id}, model: alpha-2, prompt: x }}]\nmoved: [{moved}]\n")
    };
    for (id, moved) in [
        ("a", ""),
        // The entries of a chain may have any order, and IDs without purchases.
        ("c", "{ from: b, to: c }, { from: a, to: b }"),
        ("d", "{ from: b, to: c }, { from: c, to: d }, { from: a, to: b }"),
        ("a", "{ from: d, to: a }"),
        ("a", ""),
    ] {
        here.write("m.yaml", list(id, moved));
        here.run(&service, &[]).ends_with(0);
        assert_eq!(here.ledger("SELECT job FROM attempt"), [[id]]);
        assert_eq!(service.posts().len(), 1, "{id}: {moved}");
    }
    assert_eq!(here.ledger("SELECT bought_as FROM attempt"), [["NULL"]], "as if it had never been moved");
}

#[test]
fn nothing_is_moved_onto_another_purchase() {
    let (service, here) = (
        Service::well(),
        Workspace::with_manifest(
            "version: 1
jobs: [{ id: a, model: alpha-2, prompt: x }, { id: b, model: alpha-2, prompt: y }]
",
        ),
    );
    here.run(&service, &[]).ends_with(0);
    here.write(
        "m.yaml",
        "version: 1
jobs: [{ id: b, model: alpha-2, prompt: y }]
moved: [{ from: a, to: b }]
",
    );
    for arguments in [&["--plan"][..], &[]] {
        here.run(&service, arguments).fails_with("moved-onto", 2);
    }
    here.shotlist(&["status", "m.yaml"]).ends_with(2);
    assert_eq!(
        (here.ledger("SELECT job FROM attempt"), service.posts().len()),
        (vec![vec!["a".to_owned()], vec!["b".to_owned()]], 2)
    );
}

/// Killed before the move is durable, after it, and during the following steps.
#[test]
fn killed_move_buys_nothing_twice() {
    let halts = ["before-commit:1", "after-commit:1", "before-commit:2", "after-commit:2", "before-commit:3"];
    std::thread::scope(|scope| {
        for halt in halts {
            scope.spawn(move || move_survives_a_kill_at(halt));
        }
    });
}

fn move_survives_a_kill_at(halt: &str) {
    let (service, done) = Service::slow();
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: x }]\n");
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
    here.write(
        "m.yaml",
        "version: 1
jobs: [{ id: b, model: alpha-2, prompt: x }, { id: c, model: alpha-2, prompt: y }]
moved: [{ from: a, to: b }]
",
    );
    let flag = here.path("halted");
    let run = here.run(&service, &[]).env("SHOTLIST_HALT_AT", halt);
    let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until(halt, || flag.exists());
    kill(&child, "-KILL");
    drop(Ended::wait_for(child));
    done.store(true, Ordering::SeqCst);
    let ended = here.run(&service, &[]).ends();
    // The intent of `c` may have no response. In each case, `b` has the purchase of `a`.
    assert!(matches!(ended.code, Some(0 | 7)), "{halt}: {}", ended.stderr);
    assert_eq!(service.asked().iter().filter(|asked| asked.submits("x")).count(), 1, "{halt}");
    assert_eq!(here.states()[0], "completed", "{halt}");
}

/// The old report has a doubt under its old ID. A later job with that ID was never bought.
#[test]
fn old_id_is_free_after_its_doubt_was_moved() {
    let service = Service::losing("old");
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: old, model: alpha-2, prompt: old }]\n");
    here.run(&service, &[]).ends_with(7);
    here.write(
        "m.yaml",
        "version: 1\njobs: [{ id: new, model: alpha-2, prompt: old }]\nmoved: [{ from: old, to: new }]\n",
    );
    here.run(&service, &[]).ends_with(7);
    here.write(
        "m.yaml",
        "version: 1\njobs: [{ id: new, model: alpha-2, prompt: old }, { id: old, model: alpha-2, prompt: other }]\n",
    );
    here.run(&service, &[]).ends_with(7).hides("already-paid");
    assert_eq!(here.states(), ["in_doubt", "completed"]);
}

/// The reported `moved` lines of all takes work when pasted.
#[test]
fn renamed_takes_are_reported_separately() {
    let list = |id: &str, moved: &str| {
        format!("version: 1\njobs: [{{ id: {id}, model: alpha-2, prompt: x, takes: 3 }}]\nmoved: [{moved}]\n")
    };
    let (service, here) = (Service::well(), Workspace::with_manifest(&list("old", "")));
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", list("new", ""));
    let told = here.run(&service, &[]).ends_with(3).stderr;
    let lines = told.lines().filter_map(|line| Some(line.split_once("write `- ")?.1.split_once('`')?.0));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines, ["{ from: old, to: new }", "{ from: old.2, to: new.2 }", "{ from: old.3, to: new.3 }"]);
    here.write("m.yaml", list("new", &lines.join(", ")));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
}
