//! A manifest from a stream, and its files.
#![cfg(unix)]

use crate::support::{Service, Workspace, has_code};

const NAMED: &str = "version: 1\nname: piped\nvars: { a: 1 }\njobs: [{ id: \"{{ row.id }}\", for_each: rows.csv, model: alpha-2, prompt: x }]\n";
const QUICK: &str = "--yes --accept-warnings";

/// Every kind of stream: files are read from and kept in the working directory, and nothing is paid for twice between the
/// kinds.
#[test]
fn manifest_from_a_stream_uses_the_working_directory() {
    let service = Service::well();
    let here = Workspace::with_manifest(NAMED).file("rows.csv", "id\na\nb\n");
    for (way, script) in [
        ("-", format!("cat m.yaml | \"$0\" run - {QUICK}")),
        ("/dev/stdin", format!("cat m.yaml | \"$0\" run /dev/stdin {QUICK}")),
        ("/dev/stdin from a file", format!("\"$0\" run /dev/stdin {QUICK} < m.yaml")),
        ("/dev/fd/3", format!("\"$0\" run /dev/fd/3 {QUICK} 3< m.yaml")),
        ("a pipe", format!("mkfifo pipe; cat m.yaml > pipe & \"$0\" run pipe {QUICK}")),
        ("a file", format!("\"$0\" run m.yaml {QUICK}")),
    ] {
        here.script(&service, &script).ends_with(0);
        assert_eq!(service.posts().len(), 2, "{way}");
        assert!(here.path(".shotlist/ledger.db").exists() && here.path("shotlist-out/piped/a.mp4").exists(), "{way}");
    }
    assert!(!std::path::Path::new("/dev/.shotlist").exists() && !std::path::Path::new("/dev/shotlist-out").exists());
    let status = here.script(&service, "cat m.yaml | \"$0\" status - --format json").ends_with(0).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["totals"]["states"]["completed"], 2);
}

#[test]
fn stream_without_a_name_is_refused() {
    let service = Service::well();
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: x }]\n");
    let refused =
        here.script(&service, &format!("cat m.yaml | \"$0\" run - {QUICK}")).ends_with(2).shows("name-missing");
    insta::assert_snapshot!(refused.stderr, @"
    error[name-missing]: a manifest from stdin requires a `name`
    --> -
     = help: write `name: …` at its top

    error[manifest-invalid]: `-` has 1 error
      note: nothing was submitted; nothing was spent
    ");
    // A pipe can't confirm.
    let here = Workspace::with_manifest("version: 1\nname: n\njobs: [{ id: a, model: alpha-2, prompt: x }]\n");
    here.script(&service, "cat m.yaml | \"$0\" run -").fails_with("confirmation-needed", 3);
    let endless = here.script(&service, "\"$0\" run /dev/zero --yes").ends_with(2);
    assert!(has_code(&endless.stderr, "unreadable"), "{}", endless.stderr);
    assert_eq!(service.asked().len(), 0);
}

#[test]
fn directory_of_the_ledger_stays_out_of_version_control() {
    let service = Service::well();
    let manifest = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: x }]\n";
    let here = Workspace::with_manifest(manifest);
    here.run(&service, &[]).ends_with(0);
    let ignored = || std::fs::read_to_string(here.path(".shotlist/.gitignore")).ok();
    assert_eq!(ignored().as_deref(), Some("*\n"));
    // A user may remove it on purpose.
    std::fs::remove_file(here.path(".shotlist/.gitignore")).expect("removed");
    here.run(&service, &[]).ends_with(0);
    assert_eq!(ignored(), None);

    let own = Workspace::with_manifest(manifest).file(".shotlist/.gitignore", "mine\n");
    own.run(&service, &[]).ends_with(0);
    assert_eq!(std::fs::read_to_string(own.path(".shotlist/.gitignore")).expect("the file"), "mine\n");
    let elsewhere = Workspace::with_manifest(manifest);
    elsewhere.run(&service, &["--ledger", "books/l.db"]).ends_with(0);
    assert!(!elsewhere.path("books/.gitignore").exists(), "a directory that the user chose");
}
