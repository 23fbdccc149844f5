//! Sources of jobs: the plan names each row, image, or combination without a job.

use serde_json::{Value, json};

use crate::support::Workspace;

const IMAGES: &str = "  - { id: '{{ row.stem }}', model: alpha-2, image_file: '{{ row.file }}', for_each: '*.png' }\n";

#[track_caller]
fn assert_has_line(text: &str, line: &str) {
    assert!(text.lines().any(|it| it == line), "{text}");
}

/// No entry loses a job silently.
#[test]
fn warning_or_odd_source_drops_no_job() {
    let jobs = |entries: &str, expected: &[&str]| {
        let here = Workspace::with_manifest(&format!("version: 1\nname: m\njobs:\n{entries}"));
        for image in ["w1.png", "w2.PNG", ".hidden.png", "notes.md"] {
            here.write(image, b"\x89PNG\r\n\x1a\n");
        }
        let ended = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0);
        let plan: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        let ids: Vec<&str> =
            plan["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["id"].as_str()).collect();
        assert_eq!(ids, expected, "{entries}");
        here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0)
    };
    // As on GitHub, an entry without a match excludes nothing.
    let matrix =
        "  - { id: \"a-{{ n }}\", model: alpha-2, prompt: x, matrix: { n: [1, 2], exclude: [{ n: 1 }, { n: 3 }] } }\n";
    assert!(jobs(matrix, &["a-2"]).stderr.starts_with("warning[axis-unknown]: `exclude` has `3`"));
    jobs("  - { id: a, model: alpha-2, prompt: x, image_file: '' }\n", &["a"]);
    // The path of the manifest has no directory.
    jobs(IMAGES, &["w1", "w2"]);
    // A row of the manifest is left out as one of a file.
    let rows = "  - { id: \"{{ row.n }}\", model: alpha-2, prompt: x, for_each: [{ n: a, status: Skip }, { n: b }] }\n";
    assert_has_line(&jobs(rows, &["b"]).stdout, "jobs[0].for_each: 2 rows, 1 used; left out: row 1 (status: skip)");
}

#[cfg(unix)]
#[test]
fn link_out_of_a_directory_is_named() {
    let here = Workspace::with_manifest(&format!("version: 1\nname: m\njobs:\n{IMAGES}"));
    here.write("a.png", b"\x89PNG\r\n\x1a\n");
    for link in ["b.png", "c.PNG", "notes.md"] {
        std::os::unix::fs::symlink("/nowhere.png", here.path(link)).expect("a link");
    }
    let plan = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stdout;
    assert_has_line(&plan, "*.png: left out: 2 links to a file outside, or to none");
}

#[test]
fn invalid_source_and_file_as_directory_are_errors() {
    for (entries, code) in [
        ("  - { id: a, model: alpha-2, prompt: x, for_each: m.yaml }\n", "unreadable"),
        ("  - { id: a, model: alpha-2, prompt: x, for_each: { flie: a.csv } }\n", "unknown-key"),
        (
            "  - { id: a, model: alpha-2, prompt: x, file: v.mp4 }\n  - { id: b, model: alpha-2, prompt: y, file: v.mp4/b.mp4 }\n",
            "file-duplicate",
        ),
        (
            "  - { id: b, model: alpha-2, prompt: y, file: v.mp4/b.mp4 }\n  - { id: a, model: alpha-2, prompt: x, file: v.mp4 }\n",
            "file-duplicate",
        ),
    ] {
        let here = Workspace::with_manifest(&format!("version: 1\nname: m\njobs:\n{entries}"));
        let refused = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2).stderr;
        assert!(refused.contains(&format!("error[{code}]")), "{entries}: {refused}");
    }
}

#[test]
fn left_out_rows_are_counted_by_reason() {
    let row = "  - { id: \"{{ row_number }}\", model: alpha-2, prompt: x, for_each: rows.csv }\n";
    let here = Workspace::with_manifest(&format!("version: 1\nname: m\njobs:\n{row}"));
    here.write("rows.csv", format!("n,Status\n{}", "1,skip\n2,new\n".repeat(10)));
    let markdown = here.shotlist(&["run", "m.yaml", "--plan", "--format", "markdown"]).ends_with(0).stdout;
    assert_has_line(&markdown, "rows.csv: 20 rows, 10 used; left out: 10 rows (Status: skip).");
}

/// A blank at the end of a cell, and a number in an ID, are the same as without and as text. The bytes of UTF-8 are no other encoding: each accented
/// letter of a prompt would become two.
#[test]
fn cells_are_read_as_meant_and_utf8_is_no_other_encoding() {
    let manifest = |table: &str| {
        format!(
            "version: 1\nname: m\njobs:\n  - {{ for_each: {table}, id: '{{{{ row_number | slug }}}}-{{{{ row.id }}}}', model: '{{{{ row.model }}}}', \
             shape: '{{{{ row.shape }}}}', prompt: '{{{{ row.prompt }}}}' }}\n"
        )
    };
    let here = Workspace::with_manifest(&manifest("rows.csv"));
    here.write("rows.csv", "id,model,shape,prompt\na ,alpha-2 ,\u{a0}9:16,Un caf\u{e9}\n");
    let ended = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0);
    let plan: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(
        (&plan["jobs"][0]["id"], &plan["jobs"][0]["request"]),
        (
            &json!("1-a"),
            &json!({ "aspect_ratio": "9:16", "duration": 12, "model": "alpha-2", "prompt": "Un caf\u{e9}" })
        )
    );
    here.write("m.yaml", manifest("{ file: rows.csv, encoding: windows-1252 }"));
    let refused = here.shotlist(&["run", "m.yaml", "--plan"]).fails_with("encoding-unnamed", 2).stderr;
    assert_has_line(&refused, "error[encoding-unnamed]: can't read rows.csv: it is UTF-8, and not `windows-1252`");
    assert_has_line(&refused, "  = help: remove `encoding`");
}
