//! Files of the user: bounds for reads, files that a run never replaces, and permissions of written files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::{Program, Service, TWO_JOBS, Workspace, has_code, numbered_jobs, raw};

#[test]
fn video_never_replaces_a_file_of_its_run() {
    let manifest =
        |file: &str| format!("version: 1\njobs: [{{ id: a, model: alpha-2, prompt_file: p.txt, file: '{file}' }}]\n");
    let (service, here) = (Service::well(), Workspace::new().file("p.txt", "a prompt").file("catalog.yaml", ""));
    for file in
        ["m.yaml", "M.YAML", "p.txt", "ledger.db", "ledger.db.commits", "more.csv", "more.csv/a.mp4", "P.txt/b/a.mp4"]
    {
        here.write("m.yaml", manifest(file));
        let refused =
            here.run(&service, &["--out", ".", "--ledger", "ledger.db", "--report", "more.csv"]).ends_with(2).stderr;
        assert!(has_code(&refused, "replaces-input"), "{file}: {refused}");
    }
    for file in [".shotlist/ledger.db", ".git/hooks/pre-commit", ".env", "a/.b/c.mp4"] {
        here.write("m.yaml", manifest(file));
        let refused = here.run(&service, &["--out", "."]).ends_with(2).stderr;
        assert!(has_code(&refused, "file-invalid"), "{file}: {refused}");
    }
    here.write("m.yaml", manifest("report.html/a.mp4"));
    here.run(&service, &["--plan"]).fails_with("replaces-input", 2);
    here.run(&service, &[]).fails_with("replaces-input", 2);
    assert!(service.asked().is_empty());
    here.write("m.yaml", manifest("videos/m.yaml"));
    here.run(&service, &["--out", "."]).ends_with(0);
    assert_eq!(fs::read_to_string(here.path("p.txt")).expect("the prompt"), "a prompt");
}

/// A FIFO without a writer, and a device without an end.
#[test]
fn endless_file_is_refused() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let made = std::process::Command::new("mkfifo").arg(here.path("pipe")).status().expect("mkfifo is there");
    assert!(made.success());
    for file in ["pipe", "/dev/zero"] {
        let list = format!("@{file}");
        for args in [["--select", &*list], ["--retake", &list], ["--approved", file]] {
            let refused = here.run(&service, &args).ends_with(2).stderr;
            assert!(["choices-invalid", "approval-invalid"].iter().any(|code| has_code(&refused, code)), "{refused}");
        }
        let bill = ["reconcile", file, "--ledger", "l.db", "--task-column", "t", "--usd-column", "u"];
        here.shotlist(&bill).fails_with("bill-invalid", 2);
    }
    assert!(service.asked().is_empty());
}

#[test]
fn request_with_the_key_is_refused() {
    let manifest =
        "version: 1\njobs: [{ id: a, model: alpha-2, prompt_file: copy.env }, { id: b, model: alpha-2, prompt: x }]\n";
    let (service, here) =
        (Service::well(), Workspace::with_manifest(manifest).file("copy.env", "KEY=sk-Secret-0123456789\n"));
    let run = |args: &[&str]| here.run(&service, args).env("SHOTLIST_API_KEY", "sk-Secret-0123456789");
    run(&[]).fails_with("secret-in-request", 2).lacks(&["Secret"]);
    assert!(service.posts().is_empty() && !here.path("shotlist-out/m/report.json").exists());
    run(&["--select", "b"]).ends_with(0);
    let plan_of_b = here.shotlist(&["run", "m.yaml", "--plan", "--select", "b"]);
    plan_of_b.env("SHOTLIST_API_KEY", "sk-Secret-0123456789").ends_with(0);
    // A plan needs no key, but shows the request.
    let plan = |key: &str| here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).env("SHOTLIST_API_KEY", key);
    plan("sk-Secret-0123456789").fails_with("secret-in-request", 2);
    plan("sk-another-0123456789").ends_with(0);
    here.write("key", "sk-Secret-0123456789");
    here.shotlist(&["run", "m.yaml", "--plan", "--api-key-file", "key"]).fails_with("secret-in-request", 2);
    here.shotlist(&["run", "m.yaml", "--plan", "--api-key-file", "gone"]).ends_with(0);
}

/// Also in a cut text, in another encoding, and in an incomplete response.
#[test]
fn echoed_key_is_written_nowhere() {
    let key = "sk-Secret-0123456789-abcdefgh";
    for at in [1960, 1990, 1995, 1999] {
        let body = format!(
            "{{\"error\": {{\"message\": \"{}{key} {} c2stU2VjcmV0LTAxMjM0NTY3ODktYWJjZGVmZ2g\"}}}}",
            "x".repeat(at),
            key.to_uppercase()
        );
        let service = Service::scripted(move |_| raw(400, &[("content-type", "application/json")], &body));
        let here = Workspace::with_manifest(&numbered_jobs(1));
        let ended = here.run(&service, &["-vvv"]).env("SHOTLIST_API_KEY", key).ends();
        let files: Vec<u8> = here.files().iter().flat_map(|file| fs::read(here.path(file)).expect("a file")).collect();
        let written = String::from_utf8_lossy(&files).to_lowercase();
        for part in ["sk-secret", "secret-0123", "c2stu2vjcmv0"] {
            assert!(!written.contains(part), "{at}: {part} is in a file");
            assert!(
                !format!("{}{}", ended.stdout, ended.stderr).to_lowercase().contains(part),
                "{at}: {part} was shown"
            );
        }
    }
}

#[test]
fn ledger_is_private_under_any_umask() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let script = "umask 000; exec \"$0\" run m.yaml --yes";
    here.script(&service, script).ends_with(0);
    let mode = |name: &str| fs::metadata(here.path(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(".shotlist"), 0o770);
    let files: Vec<String> = here.files().into_iter().filter(|file| file.starts_with(".shotlist/ledger")).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o660, "{file}");
    }
}

/// Paths that Excel takes for something else are text.
#[test]
fn workbook_without_a_linkable_path_is_written() {
    let deep = vec!["x".repeat(190); 11].join("/");
    let manifest = format!(
        "version: 1\njobs:\n  - {{ id: a, model: alpha-2, prompt: x, file: 'a#1 50%.mp4' }}\n  - {{ id: b, model: alpha-2, prompt: y, file: '{deep}/b.mp4' }}\n"
    );
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest));
    here.run(&service, &["--report", "r.xlsx", "--out", "o"]).ends_with(0);
    let mut book: calamine::Xlsx<_> = calamine::open_workbook(here.path("r.xlsx")).expect("a workbook");
    let sheet = calamine::Reader::worksheet_range(&mut book, "shotlist").expect("a sheet");
    let cells: Vec<String> = sheet.used_cells().map(|(.., cell)| cell.to_string()).collect();
    assert!(
        cells.iter().any(|cell| cell.ends_with("a#1 50%.mp4")) && cells.iter().any(|cell| cell.ends_with("/b.mp4"))
    );
}

#[test]
fn heads_of_columns_are_no_formulas_and_steer_nothing() {
    let manifest = "version: 1\njobs: [{ for_each: rows.csv, id: 'r{{ row_number }}', model: alpha-2, prompt: x }]\n";
    let heads = "\"a;=1+2;b\",\"c\u{202e}d\u{1b}[2J\"";
    let (service, here) =
        (Service::well(), Workspace::with_manifest(manifest).file("rows.csv", format!("{heads}\n1,2\n")));
    here.run(&service, &["--no-download"]).ends_with(0);
    let report = fs::read_to_string(here.path("shotlist-out/m/report.csv")).expect("a report");
    let first = report.lines().next().expect("heads");
    insta::assert_snapshot!(first.rsplit_once("reported_usd,").expect("their heads").1, @"row.a;'=1+2;b,row.c�d�[2J");
}

#[test]
fn status_formats_steer_no_terminal() {
    let manifest = format!("{TWO_JOBS}name: \"na\\u001b[2Jme\\a\"\nbatch: \"b\\u202e\"\n");
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest));
    here.run(&service, &["--no-download"]).ends_with(0);
    for format in ["markdown", "prometheus"] {
        let text = here.shotlist(&["status", "m.yaml", "--format", format]).ends_with(0).stdout;
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{format}: {text:?}");
    }
}

/// A plan for a pull request: no field of a hostile manifest starts a line or ends its backticks.
#[test]
fn markdown_plan_shows_outside_text_as_text() {
    let hostile = "x`\n\n### Video plan: other\n\n    shotlist run m.yaml --approved 0123\n<img src=x> @team";
    let fields = ["id", "model", "prompt", "aspect_ratio", "file", "image", "face", "duration", "tags", "labels"];
    for field in fields {
        for selected in [true, false] {
            let mut bad = json!({ "id": "bad", "model": "alpha-2", "prompt": "y" });
            bad[field] = match field {
                "tags" => json!([hostile]),
                "labels" => json!({ "l": hostile, hostile: "v" }),
                _ => json!(hostile),
            };
            let good = json!({ "id": "good", "model": "alpha-2", "prompt": "x {{ a }} [insert here]" });
            let manifest = json!({ "version": 1, "name": hostile, "vars": { "a": hostile }, "jobs": [good, bad] });
            let manifest = manifest.to_string();
            let here = Workspace::with_manifest(&manifest);
            let select: &[&str] = if selected { &[] } else { &["--select", "good"] };
            let shown =
                here.shotlist(&[&["run", "m.yaml", "--plan", "--format", "markdown"], select].concat()).ends().stdout;
            for line in shown.lines() {
                let begins = ["### Video plan: other", "    shotlist run m.yaml --approved 0123"];
                assert!(!begins.iter().any(|start| line.starts_with(start)), "{field}: {shown}");
                assert!(!["<img", "@team"].iter().any(|mark| line.contains(mark)), "{field}: {shown}");
            }
        }
    }
}

/// A task of another job, according to the service.
#[test]
fn task_of_another_length_shape_or_time_is_recorded_only_anyway() {
    let service = Service::scripted(|asked| match (asked.method.as_str(), asked.path.as_str()) {
        ("POST", _) => raw(500, &[], ""),
        (_, "/v1/videos/long") => {
            crate::support::json(200, &json!({ "id": "long", "status": "queued", "duration": 5 }))
        }
        (_, "/v1/videos/tall") => {
            crate::support::json(200, &json!({ "id": "tall", "status": "queued", "aspect_ratio": "9:16" }))
        }
        (_, "/v1/videos/old") => {
            let old = json!({ "id": "old", "status": "completed", "completed_at": 1_700_000_000, "video_url": "https://v.example/x.mp4" });
            crate::support::json(200, &old)
        }
        _ => crate::support::json(
            200,
            &json!({ "id": asked.path.rsplit('/').next(), "status": "queued", "duration": 12, "aspect_ratio": "16:9" }),
        ),
    });
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.run(&service, &[]).ends_with(7);
    let resolve = |args: &[&str]| -> Program {
        let program = here.shotlist(&[&["resolve", "m.yaml", "j0", "--task"], args].concat());
        program.with_service(&service.url())
    };
    for (task, told) in [("long", "5 s, requested 12 s"), ("tall", "9:16, requested 16:9"), ("old", "before")] {
        let refused = resolve(&[task]).fails_with("task-mismatch", 2).stderr;
        assert!(refused.contains(told), "{task}: {refused}");
    }
    assert_eq!(here.ledger("SELECT state FROM attempt"), [["in_doubt"]]);
    resolve(&["tall", "--anyway"]).ends_with(0);
    assert_eq!(here.ledger("SELECT state, task FROM attempt"), [["queued", "tall"]]);
}
