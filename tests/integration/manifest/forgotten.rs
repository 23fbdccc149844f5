//! Forgotten values: one error each, and no consequences.

use crate::support::Workspace;

const MANIFEST: &str = r#"version: 1
name: spring
batch: week-1
timezone: UTC
ledger: shared
budget:
  run: 50
  day: 60
  labels:
    client:
      acme:
        month: 700
vars:
  look: soft
faces:
  anna:
    review: approved
    paid_on: 2026-11-02
defaults:
  model: alpha-2
  duration: 8
  labels:
    client: acme
jobs:
  - id: "{{ animal }}-{{ row.n }}"
    prompt: "A {{ animal }}, {{ look }}"
    takes:
      up_to: 4
      until: kept
    for_each:
      - n: 1
    matrix:
      animal: [dog, cat]
  - id: sheet
    model: alpha-2
    shape: "16:9"
    prompt: "{{ row.prompt }}"
    for_each:
      file: rows.csv
      header_row: 1
      exclude:
        - status: skip
  - id: face
    model: beta-2.0-lite
    face: anna
    prompt: Anna waves
  - id: still
    image_file:
      path: anna.png
      wait: true
moved:
  - from: old
    to: face
"#;

/// Each manifest without one value, with the key of that value.
fn without_one_value() -> Vec<(String, String)> {
    let lines: Vec<&str> = MANIFEST.lines().collect();
    let column = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let cut = |at: usize| {
        let (key, _) = lines[at].split_once(':')?;
        let below = lines[at + 1..].iter().take_while(|line| column(line) > column(lines[at])).count();
        let kept = [lines[..at].join("\n"), format!("{key}:"), lines[at + 1 + below..].join("\n")];
        Some((key.trim_start_matches([' ', '-']).to_owned(), kept.join("\n") + "\n"))
    };
    (0..lines.len()).filter_map(cut).collect()
}

#[test]
fn forgotten_value_is_one_error() {
    let here = Workspace::new();
    here.write("rows.csv", "prompt,status\nA dog,\nA cat,skip\n");
    here.write("anna.png", b"\x89PNG\r\n\x1a\n");
    let errors = |manifest: &str| {
        here.write("m.yaml", manifest);
        let told = here.shotlist(&["run", "m.yaml", "--plan"]).ends().stderr;
        told.lines().filter(|line| line.starts_with("error[")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(errors(MANIFEST), ["error[ledger-private]: the manifest requires a shared ledger, found a private one"]);
    let manifests = without_one_value();
    assert!(manifests.len() > 40, "{}", manifests.len());
    // A cell of a row may be empty.
    for (key, manifest) in manifests.iter().filter(|(key, _)| key != "n") {
        let errors = errors(manifest);
        let is_told = errors[0].starts_with(&format!("error[wrong-type]: `{key}` ")) || key == "status";
        assert!(is_told && errors[0].ends_with(" no value"), "{key}: {errors:#?}");
        assert_eq!(errors[1..], ["error[manifest-invalid]: `m.yaml` has 1 error"], "{key}: {errors:#?}");
    }
}

/// A warning and the error of another row hide nothing.
#[test]
fn error_without_a_cause_is_reported() {
    let here = Workspace::new();
    here.write("rows.csv", "id,length,look\na,abc,\nb,5,{{\nc,5,soft\n");
    for (jobs, selection, expected) in [
        ("{ id: \"a-{{ seconds }}\", prompt: \"{{ brnad }}\", model: alpha-2, matrix: { seconds: [5] } }", "*", 1),
        (
            "{ id: \"{{ row.id }}\", prompt: \"{% if row.id == 'b' %}{{ brnad }}{% endif %} x\", model: beta-2.0-lite, duration: \"{{ row.length }}\", for_each: rows.csv }",
            "*",
            2,
        ),
        (
            "{ id: \"{{ row.id }}\", prompt: \"{% if row.id == 'b' %}{{ brnad }}{% endif %} x\", model: beta-2.0-lite, duration: \"{{ row.length }}\", for_each: rows.csv }",
            "[bc]",
            1,
        ),
    ] {
        here.write("m.yaml", format!("version: 1\njobs:\n  - {jobs}\n"));
        let told = here.shotlist(&["run", "m.yaml", "--plan", "--select", selection]).ends_with(2).stderr;
        assert_eq!(told.lines().filter(|line| line.starts_with("error[")).count(), expected + 1, "{told}");
    }
}
