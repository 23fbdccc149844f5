//! What is written down says what the program does: help texts, schemas, examples.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Workspace;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_readme_holds_the_help_texts_as_they_are() {
    let (here, readme) = (Workspace::new(), read("README.md"));
    for args in [["--help"].as_slice(), &["run", "--help"]] {
        let help = here.shotlist(args).ends_with(0).stdout;
        let block = format!("```text\n{}\n```", help.trim_end());
        assert!(readme.contains(&block), "README.md lacks the help of {args:?} as it is now:\n{block}");
    }
}

#[test]
fn the_readmes_first_example_is_the_quick_start_and_plans_as_shown() {
    let (here, readme) = (Workspace::new(), read("README.md"));
    let manifest = read("examples/quick-start.yaml");
    let comments: usize = manifest.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum();
    let body = &manifest[comments..];
    assert!(readme.contains(&format!("```yaml\n{body}```")), "README.md lacks examples/quick-start.yaml as it is");
    let here = here.file("quick-start.yaml", &manifest);
    let plan = here.shotlist(&["run", "quick-start.yaml", "--plan"]).ends_with(0).stdout;
    assert!(readme.contains(&format!("```text\n{}\n```", plan.trim_end())), "README.md lacks this plan:\n{plan}");
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let here = Workspace::new();
    for name in ["manifest", "plan", "report"] {
        let schema = here.shotlist(&["schema", name]).ends_with(0).stdout;
        let path = format!("schemas/{name}.schema.json");
        assert_eq!(read(&path), schema, "{path} differs: write it anew with `shotlist schema {name} > {path}`");
    }
}

#[test]
fn every_example_plans_and_names_the_schema() {
    let here = Workspace::new();
    let mut seen = 0;
    for entry in fs::read_dir(project("examples")).expect("the examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        seen += 1;
        let path = path.to_str().expect("UTF-8");
        here.shotlist(&["run", path, "--plan"]).ends_with(0);
        let text = fs::read_to_string(path).expect("an example");
        assert!(text.starts_with("# yaml-language-server: $schema=../schemas/manifest.schema.json\n"), "{path}");
    }
    assert!(seen >= 2, "{seen} examples");
}
