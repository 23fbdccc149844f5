//! The example directory for teams: from a spreadsheet and six images to a page and a workbook, with its scripts.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use calamine::Reader as _;

use crate::support::{Program, Workspace};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/spring");

/// A copy of the directory, and programs of the names that its own call, which only note how they were called.
fn copied() -> Workspace {
    let here = Workspace::new();
    let status = std::process::Command::new("cp").args(["-R", EXAMPLE]).arg(here.path("spring")).status();
    assert!(status.expect("cp is there").success());
    for (name, script) in [
        ("ffmpeg", "for last; do :; done; echo jpg > \"$last\""),
        ("aws", "[ $2 = presign ] && echo \"https://bucket.example/${3#s3://}?signed=1\"; true"),
        ("curl", "cat"),
    ] {
        here.write(&format!("bin/{name}"), format!("#!/bin/sh\necho \"{name} $*\" >> \"$NOTES\"\n{script}\n"));
        std::fs::set_permissions(here.path(&format!("bin/{name}")), PermissionsExt::from_mode(0o755))
            .expect("a program");
    }
    here
}

fn with_programs(here: &Workspace, program: Program) -> Program {
    let path = format!("{}:{}", here.path("bin").display(), std::env::var("PATH").expect("a path"));
    program.env("PATH", &path).env("NOTES", &here.path("notes").display().to_string())
}

fn notes(here: &Workspace) -> String {
    std::fs::read_to_string(here.path("notes")).unwrap_or_default()
}

#[test]
fn from_a_spreadsheet_and_image_to_a_page_and_a_workbook() {
    let here = copied();
    let run = |args: &[&str]| {
        let usual = ["run", "spring/spring.yaml", "--sandbox", "--asset-command", "spring/hooks/address-stub"];
        with_programs(&here, here.shotlist(&[&usual, args].concat()))
    };
    let plan = run(&["--plan"]).ends_with(0).stdout;
    assert!(plan.contains("14 jobs to submit for $17.30") && plan.contains("within the limit of $20.00"), "{plan}");
    run(&["--exec", "spring/hooks/thumbnail", "--report", "spring.xlsx"]).ends_with(0);
    let out = here.path("spring/shotlist-sandbox/spring");
    for file in ["report.html", "living-room/SP-103-portrait.mp4", "living-room/SP-103-portrait.jpg", "opener.2.mp4"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    assert!(notes(&here).lines().all(|line| line.starts_with("ffmpeg -nostdin")) && notes(&here).lines().count() == 14);
    let mut book: calamine::Xlsx<_> = calamine::open_workbook(here.path("spring.xlsx")).expect("a workbook");
    let sheet = book.worksheet_range("shotlist").expect("the sheet");
    let heads: Vec<String> = sheet.rows().next().expect("heads").iter().map(ToString::to_string).collect();
    for head in ["row.Title", "row.Best seller", "matrix.shape", "label.client"] {
        assert!(heads.iter().any(|other| other == head), "{head}: {heads:?}");
    }
    assert_eq!(sheet.rows().count(), 15);
    // The choices that the page saves.
    let report = here.json("spring/shotlist-sandbox/spring/report.json");
    let task = |id: &str| {
        report["jobs"].as_array().expect("jobs").iter().find(|job| job["id"] == id).expect("a job")["task_id"].clone()
    };
    let again = ["SP-101-portrait", "SP-106-landscape"];
    let chosen = again.iter().chain(&["opener"]);
    let tasks: serde_json::Map<_, _> = chosen.map(|id| ((*id).to_owned(), task(id))).collect();
    let choices = serde_json::json!({ "name": "spring", "batch": "", "keep": ["opener"], "retake": again, "tasks": tasks, "notes": { "opener": "lovely" } });
    here.write("choices.json", choices.to_string());
    let again = run(&["--retake", "@choices.json", "--plan"]).ends_with(0).stdout;
    assert!(again.contains("2 jobs to submit for $1.80"), "{again}");
    run(&["--retake", "@choices.json"]).ends_with(0);
    let done = run(&[]).ends_with(0).stdout;
    assert!(done.contains("14 completed"), "{done}");
}

#[test]
fn scripts_of_the_example_run_as_written() {
    let here = copied();
    let call =
        |script: &str| with_programs(&here, Program::script(here.root(), script)).env("BUCKET", "ours").ends_with(0);
    let picture = here.path("spring/images/mug.png").display().to_string();
    let stub = call(&format!("spring/hooks/address-stub {picture}")).stdout;
    assert!(stub.starts_with("https://pictures.example/") && stub.ends_with("-mug.png\n"), "{stub}");
    let address = call(&format!("spring/hooks/address-s3 {picture}")).stdout;
    assert!(address.starts_with("https://bucket.example/ours/images/") && address.lines().count() == 1, "{address}");
    let video =
        "SHOTLIST_ID=hero SHOTLIST_MODEL=alpha-2 SHOTLIST_SHA256=aa SHOTLIST_TASK=t1 SHOTLIST_LABEL_CLIENT=acme";
    let published = call(&format!("{video} spring/hooks/publish hero.mp4")).stdout;
    assert_eq!(published, "s3://ours/all/acme/hero.mp4\n");
    let rehearsal = call(&format!("{video} SHOTLIST_SIMULATED=true spring/hooks/publish hero.mp4")).stdout;
    assert_eq!(rehearsal, "a rehearsal, not published\n");
    let told = call(&format!("{video} CHAT_WEBHOOK=https://chat.example/secret spring/hooks/announce hero.mp4"));
    assert!(told.stderr.contains("url = \"https://chat.example/secret\""), "{}", told.stderr);
    let notes = notes(&here);
    assert!(
        notes
            .contains("aws s3 cp --only-show-errors --metadata sha256=aa,task=t1 hero.mp4 s3://ours/all/acme/hero.mp4"),
        "{notes}"
    );
    assert!(notes.contains(r#"--data {"text": "hero is here (alpha-2)"}"#) && !notes.contains("secret"), "{notes}");
    for name in std::fs::read_dir(Path::new(EXAMPLE).join("hooks")).expect("hooks") {
        let mode = name.expect("an entry").metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "it can be started as it is");
    }
}
