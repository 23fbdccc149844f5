//! The text of each rule of a manifest that no other snapshot shows.

use std::fs;
use std::path::Path;

use crate::support::{Workspace, has_code};

/// A rule, a manifest that breaks it, and more arguments.
const CASES: &[(&str, &str, &[&str])] = &[
    ("axis-repeats", "jobs: [{ id: \"a-{{ c }}\", prompt: x, matrix: { c: [red, blue, red] } }]", &[]),
    (
        "axis-unknown",
        "jobs: [{ id: \"a-{{ c }}\", prompt: x, matrix: { c: [red, blue], exclude: [{ colr: red }] } }]",
        &[],
    ),
    (
        "column-unknown",
        "jobs: [{ id: \"{{ row.id }}\", prompt: x, for_each: { file: rows.csv, exclude: [{ Stats: skip }] } }]",
        &[],
    ),
    (
        "column-unread",
        "jobs: [{ id: \"{{ row.id }}\", model: beta-2.0-lite, prompt: x, for_each: [{ id: a, Dauer: 8 Sek., Format: Reel }] }]",
        &[],
    ),
    (
        "csv-too-long",
        "jobs: [{ id: \"{{ row.id }}\", prompt: x, for_each: { file: long.csv, exclude: [{ id: a }] } }]",
        &[],
    ),
    ("extra-not-json", "jobs: [{ id: a, prompt: x, extra: { strength: .nan } }]", &[]),
    ("image-file-no-picture", "jobs: [{ id: a, prompt: x, image_file: rows.csv }]", &[]),
    ("image-conflict", "jobs: [{ id: a, prompt: x, image: \"https://cdn.example/a.png\", image_file: a.png }]", &[]),
    ("model-missing", "defaults: {}\njobs: [{ id: a, prompt: x }]", &[]),
    ("prompt-too-long", "jobs: [{ id: a, model: beta-2.0-lite, prompt: \"{{ 'x' * 1501 }}\" }]", &[]),
    (
        "review-paid-on",
        "faces: { anna: { review: approved, paid_on: 2999-01-01 } }\njobs: [{ id: a, model: beta-2.0-lite, prompt: x, face: anna }]",
        &[],
    ),
    ("review-missing", "faces: { anna: {} }\njobs: [{ id: a, model: beta-2.0-lite, prompt: x, face: anna }]", &[]),
    (
        "rows-hidden",
        "jobs: [{ id: \"{{ row.SKU }}-{{ row_number }}\", prompt: x, shape: \"{{ row['Aspect ratio'] }}\", for_each: filtered.xlsx }]",
        &["--strict"],
    ),
    (
        "encoding-unknown",
        "jobs: [{ id: \"{{ row.id }}\", prompt: x, for_each: { file: rows.csv, encoding: ansi } }]",
        &[],
    ),
    ("set-unknown", "vars: { brand: x }\njobs: [{ id: a, prompt: \"{{ brand }}\" }]", &["--set", "brnad=y"]),
    (
        "sheet-unknown",
        "jobs: [{ id: \"{{ row.SKU }}\", prompt: x, for_each: { file: filtered.xlsx, sheet: Shoots } }]",
        &[],
    ),
    ("size-malformed", "jobs: [{ id: a, model: beta-2.0-lite, prompt: x, size: large }]", &[]),
    ("size-not-720p", "jobs: [{ id: a, model: beta-2.0-lite, prompt: x, size: 1920x1080 }]", &[]),
    (
        "too-many-jobs",
        "jobs: [{ id: \"a-{{ a }}-{{ b }}\", prompt: x, takes: 1000, matrix: { a: ROW, b: [1, 2, 3, 4] } }]",
        &[],
    ),
    ("too-many-jobs", "jobs: [{ id: a, prompt: x, matrix: { a: ROW, b: ROW, c: ROW } }]", &[]),
    (
        "too-much-text",
        "vars: { t: TEXT }\njobs: [{ id: \"a-{{ a }}-{{ b }}\", prompt: \"{{ t }}\", matrix: { a: ROW, b: ROW } }]",
        &[],
    ),
    ("yaml-limit", "vars: { deep: DEEP }\njobs: [{ id: a, prompt: x }]", &[]),
];

#[test]
fn rule_texts_match_the_snapshot() {
    let row = format!("[{}]", (0..60).map(|number| number.to_string()).collect::<Vec<_>>().join(", "));
    let deep = "[".repeat(100_000);
    let text = "A crane unfolds. ".repeat(1200);
    let long = format!("id\n{}", "a\n".repeat(200_001));
    let filtered = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sheets/filtered.xlsx");
    let filtered = fs::read(filtered).expect("a sheet");
    let mut texts = Vec::new();
    for (rule, manifest, args) in CASES {
        let manifest = manifest.replace("ROW", &row).replace("DEEP", &deep).replace("TEXT", &text);
        let defaults = if manifest.starts_with("defaults") { "" } else { "defaults: { model: alpha-2 }\n" };
        let here = Workspace::with_manifest(&format!("version: 1\n{defaults}{manifest}\n"))
            .file("rows.csv", "id,Status\na,ready\nb,skip\n")
            .file("long.csv", if manifest.contains("long.csv") { &*long } else { "" })
            .file("filtered.xlsx", &filtered)
            .file("a.png", "no picture");
        let ended = here.shotlist(&[&["run", "m.yaml", "--plan"], *args].concat()).ends();
        assert!(has_code(&ended.stderr, rule), "no {rule}: {}", ended.stderr);
        texts.push(format!("# {rule}\n{}", ended.stderr));
    }
    insta::assert_snapshot!(texts.join("\n"));
}
