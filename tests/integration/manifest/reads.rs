//! The files and variables that a manifest may read.
#![cfg(unix)]

use std::fs;

use serde_json::{Value, json};

use crate::support::{Workspace, has_code};

#[test]
fn manifest_reads_and_lists_files_of_its_own_directory() {
    let manifest = "version: 1\ndefaults: { model: alpha-2 }\njobs:\n  - { id: \"{{ row.n }}\", for_each: sub/rows.csv, prompt_file: p.txt }\n";
    let here = Workspace::new().file("p.txt", "Ulm {{ row.n }}");
    fs::create_dir_all(here.path("in/sub")).expect("a directory");
    for (name, content) in [("in/m.yaml", manifest), ("in/sub/rows.csv", "n\n1\n"), ("in/p.txt", "Ulm")] {
        here.write(name, content);
    }
    let plan = |args: &[&str]| here.shotlist(&[&["run", "in/m.yaml", "--plan"], args].concat());
    insta::assert_snapshot!(plan(&[]).ends_with(0).line("reads"), @"reads 2 files: p.txt, sub/rows.csv");
    insta::assert_snapshot!(plan(&["--format", "markdown"]).ends_with(0).line("Reads"), @"Reads 2 files: p.txt, sub/rows.csv.");
    let json: Value = serde_json::from_str(&plan(&["--format", "json"]).ends_with(0).stdout).expect("JSON");
    assert_eq!(json["inputs"], json!(["p.txt", "sub/rows.csv"]));

    here.write("in/m.yaml", manifest.replace("p.txt", "https://texts.example/p.txt"));
    insta::assert_snapshot!(plan(&[]).ends_with(2).line("URL"), @"error[unreadable]: can't read prompt file `https://texts.example/p.txt`: must be a file, found a URL");
    insta::assert_snapshot!(here.shotlist(&["run", "https://texts.example/m.yaml"]).ends_with(2).line("error"), @"error: `https://texts.example/m.yaml` for `<MANIFEST>`: must be a path, found a URL");

    // Neither a path nor a link leads out, unless the command line allows it.
    std::os::unix::fs::symlink(here.path("p.txt"), here.path("in/link.txt")).expect("a link");
    here.write("rows.csv", "n\n1\n");
    let outside = [
        manifest.replace("sub/rows.csv", "../rows.csv"),
        manifest.replace("sub/rows.csv", here.path("rows.csv").to_str().expect("UTF-8")),
        manifest.replace("p.txt", "../p.txt"),
        manifest.replace("p.txt", "link.txt"),
        manifest.replace("p.txt", "\"{{ '../p' }}.txt\""),
    ];
    for manifest in &outside {
        here.write("in/m.yaml", manifest);
        let stderr = plan(&[]).ends_with(2).stderr;
        assert!(has_code(&stderr, "unreadable"), "{stderr}");
        plan(&["--root", "."]).ends_with(0);
        plan(&["--root", "in/sub"]).ends_with(2);
    }
}
