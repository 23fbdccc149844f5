//! Names, paths, texts, and commands as Windows has them.

use crate::desk::{quick, windows, with_a_drive};
use crate::support::{Simulator, Workspace, numbered_jobs};

/// A plan and a sandbox run, with commands that a shell of Windows takes.
#[test]
fn sandbox_run_makes_videos_and_prints_commands_for_windows() {
    let here = Workspace::with_manifest(
        "version: 1\r\ndefaults: { model: alpha-2 }\r\njobs:\r\n  - { id: one, prompt: a cat }\r\n  - id: two\r\n    prompt: |\r\n      first line\r\n      second line\r\n",
    );
    let plan = windows(&here, &["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["jobs"][1]["request"]["prompt"], "first line\nsecond line\n", "{plan}");
    let ended = windows(&here, &["run", "m.yaml", "--sandbox"]).ends_with(0);
    assert!(!ended.stderr.contains('\u{1b}') && !ended.stdout.contains('\u{1b}'), "no color without a console");
    let open = r"to look at it: explorer shotlist-sandbox\m\report.html";
    assert!((ended.stdout + &ended.stderr).contains(open));
    for video in ["one.mp4", "two.mp4"] {
        assert!(here.path("shotlist-sandbox/m").join(video).exists(), "{video}");
    }
    let page = std::fs::read_to_string(here.path("shotlist-sandbox/m/report.html")).expect("a page");
    assert!(page.contains("href=\"one.mp4\"") && !page.contains("\\one.mp4"), "a link for a browser");
    let again = windows(&here, &["run", "m.yaml", "--sandbox", "--plan"]).ends_with(0).stdout;
    assert!(again.contains("nothing to buy"), "{again}");
}

/// Commands to copy are quoted as cmd and PowerShell read them.
#[test]
fn printed_command_has_double_quotes() {
    let here = Workspace::new().file("my list.yaml", numbered_jobs(1));
    let plan = windows(&here, &["run", "my list.yaml", "--plan"]).ends_with(0).stdout;
    assert!(plan.contains("shotlist run \"my list.yaml\""), "{plan}");
}

/// Names of devices, and names that Windows would change, are never a file's.
#[test]
fn reserved_names_are_never_a_file() {
    let here = Workspace::with_manifest(
        "version: 1\ndefaults: { model: alpha-2 }\njobs: [{ id: con, prompt: x }, { id: aux.1, prompt: y }, { id: plain, prompt: z }]\n",
    );
    windows(&here, &["run", "m.yaml", "--sandbox", "--quiet"]).ends_with(0);
    for video in ["_con.mp4", "_aux.1.mp4", "plain.mp4"] {
        assert!(here.path("shotlist-sandbox/m").join(video).exists(), "{video}: {:?}", here.files());
    }
    for file in ["nul.mp4", "a/aux.mp4", "dot./a.mp4", "C:x.mp4", "a\\b.mp4", "a:b.mp4"] {
        let job = format!("version: 1\njobs: [{{ id: a, model: alpha-2, prompt: x, file: '{file}' }}]\n");
        here.write("bad.yaml", job);
        windows(&here, &["run", "bad.yaml", "--plan"]).fails_with("file-invalid", 2);
    }
}

/// Drives, both slashes, and paths longer than 260 characters lead to the same files as elsewhere.
#[test]
fn drives_backslashes_and_long_paths_work() {
    let here = Workspace::with_manifest(
        "version: 1\njobs: [{ id: a, model: alpha-2, prompt_file: texts/teaser.txt, file: clips/a.mp4 }]\n",
    );
    here.write("texts/teaser.txt", "A dog\r\n");
    let simulator = Simulator::start(&here, &["--speed", "400"]);
    let long = (0..6).map(|_| "a-directory-with-a-name-of-fifty-characters-and-more").collect::<Vec<_>>().join("/");
    let out = with_a_drive(&here.path(&long));
    assert!(out.len() > 300);
    let manifest = with_a_drive(&here.path("m.yaml"));
    let ledger = with_a_drive(&here.path("books\\ledger.db"));
    let mut args = quick(&["--out", &out, "--ledger", &ledger]);
    args[1] = &manifest;
    windows(&here, &args).with_service(simulator.url()).ends_with(0);
    assert!(here.path(&long).join("clips/a.mp4").exists(), "{:?}", here.files());
    assert!(here.path("books/ledger.db").exists());
    assert_eq!(simulator.ledger()["charges"].as_array().expect("charges").len(), 1);
    // Another spelling of the same ledger is the same ledger.
    let ledger = ledger.replace('\\', "/");
    let mut args = quick(&["--out", &out, "--ledger", &ledger]);
    args[1] = &manifest;
    windows(&here, &args).with_service(simulator.url()).ends_with(0);
    assert_eq!(simulator.ledger()["charges"].as_array().expect("charges").len(), 1, "nothing is bought again");
}
