//! Defaults for rows without a value.

use serde_json::json;

use crate::support::{Service, Workspace};

/// A label that is lost escapes its budget, and a lost `image_key` buys the job again tomorrow.
#[test]
fn empty_cell_leaves_each_default() {
    let manifest = "
version: 1
defaults:
  model: alpha-2
  labels: { client: acme }
  tags: [spring]
  takes: 2
  file: \"clips/{{ id }}.mp4\"
  image: \"https://pictures.example/a.png?day=1\"
  image_key: hero
jobs:
  - id: a
    for_each: [{ empty: \"\" }]
    prompt: x
    labels: { client: \"{{ row.empty }}\" }
    tags: [\"{{ row.empty }}\"]
    takes: \"{{ row.empty }}\"
    file: \"{{ row.empty }}\"
    image_key: \"{{ row.empty }}\"
";
    let here = Workspace::with_manifest(manifest);
    let service = Service::well();
    here.run(&service, &["--tag", "spring"]).ends_with(0);
    assert_eq!(service.posts().len(), 2);
    let job = &here.report()["jobs"][0];
    assert_eq!((&job["labels"]["client"], &job["file"]), (&json!("acme"), &json!("clips/a.mp4")));
    here.write("m.yaml", manifest.replace("day=1", "day=2"));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 2, "the URL is not part of the request");
}

/// A blank that is written by hand is no empty cell.
#[test]
fn blank_string_removes_a_default() {
    let manifest = "version: 1\ndefaults: { model: alpha-2, labels: { client: acme }, file: \"clips/{{ id }}.mp4\" }\n\
                    jobs: [{ id: a, prompt: x, labels: { client: '' }, file: '', tags: [] }]\n";
    let (here, service) = (Workspace::with_manifest(manifest), Service::well());
    here.run(&service, &[]).ends_with(0);
    let job = &here.report()["jobs"][0];
    assert_eq!((&job["labels"], &job["file"]), (&json!({}), &json!("a.mp4")));
}

#[test]
fn default_of_no_job_is_reported() {
    let manifest =
        "version: 1\ndefaults: { aspect_ratio: '9:16' }\njobs: [{ id: a, model: beta-2.0-lite, prompt: x }]\n";
    let here = Workspace::with_manifest(manifest);
    let ended = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0);
    insta::assert_snapshot!(ended.line("warning"), @"warning[field-not-of-family]: the default `aspect_ratio` applies to no job, because no model of the jobs has this field");
    // Also of two models, and with `-q`: a video of another shape would be bought.
    here.write("m.yaml", manifest.replace("jobs: [", "jobs: [{ id: b, model: beta-2.0-lite-fast, prompt: y }, "));
    let quiet = here.shotlist(&["run", "m.yaml", "--plan", "-q"]).ends_with(0);
    insta::assert_snapshot!(quiet.line("warning"), @"warning[field-not-of-family]: the default `aspect_ratio` applies to no job, because no model of the jobs has this field");
    here.write("m.yaml", manifest.replace("jobs: [", "jobs: [{ id: b, model: alpha-2, prompt: y }, "));
    here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).lacks(&["applies to no job"]);
}
