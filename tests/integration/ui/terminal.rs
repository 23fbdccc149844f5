//! The confirmation and the progress on a terminal, which `script` of util-linux provides.
#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::{Answer, Service, TWO_JOBS, Workspace, json, line_of, output_of};

/// The variables for a service, and for polls without a pause.
fn submits_to(url: &str) -> [(String, String); 4] {
    let variables = [("BASE_URL", url), ("API_KEY", "k"), ("FIRST_POLL", "0s"), ("POLL_INTERVAL", "50ms")];
    variables.map(|(name, value)| (format!("SHOTLIST_{name}"), value.to_owned()))
}

/// Runs a command on a terminal of this width. Returns its output.
fn shown_in(here: &Workspace, service: &Service, columns: u16, args: &str) -> String {
    let command = format!("stty cols {columns} rows 30; {} {args}", env!("CARGO_BIN_EXE_shotlist"));
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &command, "/dev/null"]).current_dir(here.root()).env("TERM", "xterm");
    script.envs(submits_to(&service.url())).env("NO_COLOR", "1");
    let child = script.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("script is there");
    String::from_utf8_lossy(&output_of(child).stdout).replace('\r', "")
}

/// Runs `shotlist run m.yaml` on a terminal with typed input. Returns the exit code and the output.
fn on_a_terminal(here: &Workspace, service: &Service, args: &str, typed: &str) -> (Option<i32>, String) {
    let command = format!("{} run m.yaml {args}", env!("CARGO_BIN_EXE_shotlist"));
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .current_dir(here.root())
        .envs(submits_to(&service.url()))
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script is there: it belongs to util-linux");
    let mut keys = child.stdin.take().expect("a keyboard");
    keys.write_all(typed.as_bytes()).expect("typed");
    let output = output_of(child);
    drop(keys);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn plan_is_shown_and_only_a_yes_spends() {
    for answer in ["\n", "n\n", "nope\n", "yesterday\n"] {
        let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
        let (code, shown) = on_a_terminal(&here, &service, "", answer);
        assert_eq!(code, Some(3), "{answer:?}: {shown}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(line_of(&shown, "to submit for"), @"2 jobs to submit for [1m$11.25[0m: about 75 s, about 10 requests");
        }
        // A terminal also echoes what is typed.
        line_of(&shown, &format!("Spend up to $11.25 at {}? [y/N]", service.url()));
        line_of(&shown, "not confirmed");
        assert_eq!(service.asked().len(), 0, "{answer:?}");
    }
    for answer in ["y\n", "YES\n"] {
        let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
        let (code, shown) = on_a_terminal(&here, &service, "", answer);
        assert_eq!(code, Some(0), "{answer:?}: {shown}");
        assert_eq!(service.posts().len(), 2);
        insta::allow_duplicates! {
            insta::assert_snapshot!(line_of(&shown, " spent"), @"[1m$11.25[0m spent");
        }
    }
}

#[test]
fn confirmed_spending_is_not_asked_about_again() {
    for args in ["--yes", "--max-cost 20"] {
        let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
        let (code, shown) = on_a_terminal(&here, &service, args, "");
        assert_eq!(code, Some(0), "{shown}");
        let question = "[y/N]";
        assert!(!shown.contains(question), "{shown}");
    }
}

#[test]
fn bar_shows_the_progress_of_a_run() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let (_, shown) = on_a_terminal(&here, &service, "--yes --first-poll 1s", "");
    let (progress, price) = ("/2 done", "of $11.25");
    assert!(shown.lines().any(|rows| rows.contains(progress) && rows.contains(price)), "{shown}");
    // The summary replaces the progress.
    let (_, after) = shown.rsplit_once("\u{1b}[2K").expect("rows are taken away");
    let (moves, summary) = after.split_once("2 jobs: 2 \u{1b}[32mcompleted\u{1b}[0m").expect("a summary");
    assert!(!moves.contains(|c: char| c.is_alphabetic() && c != 'A'), "{moves:?}");
    assert!(!summary.contains(['█', '░']), "{summary}");
    let (_, shown) = on_a_terminal(&here, &service, "--yes --batch b --progress never", "");
    assert!(!shown.contains(progress), "{shown}");
}

#[test]
fn earlier_purchase_has_its_own_question() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    on_a_terminal(&here, &service, "--yes", "");
    here.write("m.yaml", format!("{TWO_JOBS}name: other\n"));
    let (code, shown) = on_a_terminal(&here, &service, "--yes", "n\n");
    assert_eq!(code, Some(3), "{shown}");
    line_of(&shown, "Buy these jobs again for $11.25? [y/N]");
    assert_eq!(service.posts().len(), 2);
    let (code, shown) = on_a_terminal(&here, &service, "", "y\ny\n");
    assert_eq!(code, Some(0), "{shown}");
    line_of(&shown, "Spend up to $11.25 at http://127.0.0.1:");
    assert_eq!(service.posts().len(), 4);
}

#[test]
fn words_ids_models_and_commands_are_never_split() {
    let refusal = "the prompt was refused, for reasons that take many words to tell, and then some more of them";
    let service = Service::scripted(move |asked| match asked {
        asked if asked.submits("lost") => Answer::Hangup,
        asked if asked.submits("refused") => json(400, &serde_json::json!({ "error": { "message": refusal } })),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(
        "version: 1
defaults: { model: beta-2.0-lite }
jobs:
  - { id: a-name-of-15-1, prompt: x }
  - { id: one-that-is-far-too-long-for-any-terminal-of-eighty-columns-7, prompt: x7 }
  - { id: b, prompt: refused }
  - { id: c, prompt: refused }
  - { id: d, prompt: lost }
",
    );
    for columns in [80_u16, 60, 40] {
        let batch = format!("--batch b{columns}");
        let plan = shown_in(&here, &service, columns, &format!("run m.yaml --plan {batch}"));
        // In each job's line, if the column fits, and in the line of sums.
        let models = plan.matches("beta-2.0-lite").count();
        let has_no_room = plan.lines().any(|line| line.trim_start().starts_with("(no room for: model"));
        assert!(models == 6 || (models == 1 && has_no_room), "{plan}");
        assert_eq!(plan.matches("submit  ").count(), 5, "{plan}");
        let (whole, cut) = ("a-name-of-15-1", plan.split_whitespace().find(|word| word.ends_with("-7")));
        assert!(plan.contains(whole) == (columns > 40), "an id that fits stays whole: {plan}");
        assert!(cut.is_some_and(|id| id.contains('…')), "one that does not is cut where ids are alike: {plan}");
        let run = format!("run m.yaml --yes --progress never {batch}");
        let shown = shown_in(&here, &service, columns, &run);
        // Without commands, paths, and longer words.
        for line in
            shown.lines().filter(|line| !["shotlist", "http", "one-that"].iter().any(|word| line.contains(word)))
        {
            assert!(line.chars().count() <= usize::from(columns), "{columns}: {line}");
        }
        assert!(shown.split_whitespace().any(|word| word == "connection"), "{shown}");
        let command = format!("shotlist resolve m.yaml d --never-created --batch b{columns}");
        assert!(shown.lines().any(|line| line.trim_start() == command), "{shown}");
        // Each cause has one message with its jobs.
        let told = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            told.contains(&format!(
                "2 jobs rejected (b, c): the service rejected the submission (HTTP 400): {refusal}"
            )),
            "{shown}"
        );
        assert!(shown.trim_end().lines().last().is_some_and(|line| line.ends_with("report.html")), "{shown}");
        let status = shown_in(&here, &service, columns, &format!("status m.yaml {batch}"));
        let models = status.matches("beta-2.0-lite").count();
        assert!(models == 5 || (models == 0 && columns < 80), "whole or not at all: {status}");
        assert_eq!(status.lines().filter(|line| line.starts_with("   completed ")).count(), 2, "{status}");
    }
    // One line for each amount.
    for columns in [80, 60, 40] {
        let spend = shown_in(&here, &service, columns, "spend");
        let (head, rest) = spend.split_once('\n').expect("a head");
        let lines: Vec<&str> = rest.lines().take_while(|line| line.contains('$')).collect();
        assert!(head.split_whitespace().any(|column| column == "SPENT") && lines.len() == 3, "{spend}");
        assert!(lines.iter().all(|line| line.split_whitespace().any(|amount| amount == "$7.50")), "{spend}");
        assert!(spend.lines().all(|line| line.chars().count() <= usize::from(columns)), "{spend}");
    }
    // Diagnostics wrap at spaces.
    here.write("bad.yaml", "version: 1\njobs: [{ id: a, model: alpha-2, prompt: x, duration: 7, image: photo.png }]\n");
    let diagnostics = shown_in(&here, &service, 60, "run bad.yaml --plan");
    let said = here.shotlist(&["run", "bad.yaml", "--plan"]).ends_with(2).stderr;
    // Without the source lines, which are cut to the width.
    let words = |text: &str| -> Vec<String> {
        let told = text.lines().filter(|line| !line.contains('|'));
        told.flat_map(str::split_whitespace).map(str::to_owned).collect()
    };
    assert_eq!(words(&diagnostics), words(&said), "{diagnostics}");
    assert!(diagnostics.lines().all(|line| line.chars().count() <= 60), "{diagnostics}");
}
