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
    let shown = plan(&[]).ends_with(0).stdout;
    assert!(shown.contains("reads 2 files: p.txt, sub/rows.csv\n"), "{shown}");
    let comment = plan(&["--format", "markdown"]).ends_with(0).stdout;
    assert!(comment.contains("Reads 2 files: p.txt, sub/rows.csv.\n"), "{comment}");
    let json: Value = serde_json::from_str(&plan(&["--format", "json"]).ends_with(0).stdout).expect("JSON");
    assert_eq!(json["inputs"], json!(["p.txt", "sub/rows.csv"]));

    here.write("in/m.yaml", manifest.replace("p.txt", "https://texts.example/p.txt"));
    assert!(plan(&[]).ends_with(2).stderr.contains("must be a file, found a URL"));
    let refused = here.shotlist(&["run", "https://texts.example/m.yaml"]).ends_with(2).stderr;
    assert!(refused.contains("must be a path, found a URL"), "{refused}");

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
