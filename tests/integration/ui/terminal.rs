//! On a terminal: the question before money is spent, and the bar. `script` of util-linux gives the program one.
#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::TWO_JOBS;
use crate::support::{Service, Workspace, output_of};

/// Runs `shotlist run m.yaml` on a terminal, with an answer typed in; the exit code and all that was shown.
fn on_a_terminal(here: &Workspace, service: &Service, args: &str, typed: &str) -> (Option<i32>, String) {
    let command = format!("{} run m.yaml --poll-interval 50ms --poll-floor 5ms {args}", env!("CARGO_BIN_EXE_shotlist"));
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .current_dir(here.root())
        .env("SHOTLIST_BASE_URL", service.url())
        .env("SHOTLIST_API_KEY", "k")
        .env("SHOTLIST_FIRST_POLL", "0s")
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
fn the_plan_is_shown_and_only_a_yes_spends() {
    for answer in ["\n", "n\n", "nope\n", "yesterday\n"] {
        let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
        let (code, shown) = on_a_terminal(&here, &service, "", answer);
        assert_eq!(code, Some(3), "{answer:?}: {shown}");
        assert!(
            shown.contains("2 jobs to submit for $11.25")
                && shown.contains(&format!("Spend up to $11.25 at {}? [y/N]", service.url())),
            "{shown}"
        );
        assert!(shown.contains("not confirmed"), "{shown}");
        assert_eq!(service.asked().len(), 0, "{answer:?}");
    }
    for answer in ["y\n", "YES\n"] {
        let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
        let (code, shown) = on_a_terminal(&here, &service, "", answer);
        assert_eq!(code, Some(0), "{answer:?}: {shown}");
        assert_eq!(service.posts().len(), 2);
        assert!(shown.contains("spent: $11.25"), "{shown}");
    }
}

#[test]
fn what_was_agreed_on_the_command_line_is_not_asked_again() {
    for args in ["--yes", "--max-cost 20"] {
        let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
        let (code, shown) = on_a_terminal(&here, &service, args, "");
        assert_eq!(code, Some(0), "{shown}");
        assert!(!shown.contains("[y/N]"), "{shown}");
    }
}

#[test]
fn a_bar_shows_how_far_the_run_is() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let (_, shown) = on_a_terminal(&here, &service, "--yes --first-poll 1s", "");
    assert!(shown.contains("/2 done") && shown.contains("of $11.25"), "{shown}");
    // What was drawn is taken away, and the summary begins where it stood.
    let (_, after) = shown.rsplit_once("\u{1b}[2K").expect("rows are taken away");
    let (moves, summary) = after.split_once("2 jobs: 2 completed").expect("a summary");
    assert!(!moves.contains(|c: char| c.is_alphabetic() && c != 'A') && moves.contains('\r'), "{moves:?}");
    assert!(!summary.contains(['█', '░']) && !summary.contains('\u{1b}'), "{summary}");
    let (_, shown) = on_a_terminal(&here, &service, "--yes --batch b --progress never", "");
    assert!(!shown.contains("/2 done"), "{shown}");
}

#[test]
fn what_was_bought_before_is_a_question_of_its_own_whatever_was_agreed_to() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    on_a_terminal(&here, &service, "--yes", "");
    here.write("m.yaml", format!("{TWO_JOBS}name: other\n"));
    let (code, shown) = on_a_terminal(&here, &service, "--yes", "n\n");
    assert_eq!(code, Some(3), "{shown}");
    assert!(shown.contains("Buy again for $11.25 what was bought before? [y/N]"), "{shown}");
    assert_eq!(service.posts().len(), 2);
    let (code, shown) = on_a_terminal(&here, &service, "", "y\ny\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Spend up to $11.25 at http://127.0.0.1:"), "{shown}");
    assert_eq!(service.posts().len(), 4);
}
