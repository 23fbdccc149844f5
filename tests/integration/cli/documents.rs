//! What is written down says what the program does: help texts, schemas, examples.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Simulator, Workspace};

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
    for name in ["manifest", "plan", "report", "spend", "diagnostics"] {
        let schema = here.shotlist(&["schema", name]).ends_with(0).stdout;
        let path = format!("schemas/{name}.schema.json");
        assert_eq!(read(&path), schema, "{path} differs: write it anew with `shotlist schema {name} > {path}`");
    }
}

#[test]
fn every_example_plans_and_names_the_schema() {
    let here = Workspace::new();
    let mut seen = 0;
    for (folder, way) in [("examples", ".."), ("examples/spring", "../..")] {
        for entry in fs::read_dir(project(folder)).expect("the examples") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            seen += 1;
            let path = path.to_str().expect("UTF-8");
            here.shotlist(&["run", path, "--plan"]).ends_with(0);
            let first = format!("# yaml-language-server: $schema={way}/schemas/manifest.schema.json\n");
            assert!(fs::read_to_string(path).expect("an example").starts_with(&first), "{path}");
        }
    }
    assert!(seen >= 7, "{seen} examples");
}

#[test]
fn every_example_runs_against_the_simulator_and_a_second_run_costs_nothing() {
    let here = Workspace::new();
    copy(&project("examples"), here.root());
    let simulator = Simulator::start(&here, &["--speed", "5000"]);
    // The 946 prompts have a test of their own.
    for (example, code) in
        [("quick-start", 0), ("product-spins", 0), ("localisation", 0), ("face-campaign", 5), ("daily", 0)]
    {
        let (file, ledger) = (format!("{example}.yaml"), format!("{example}.db"));
        // A ledger each: the limit of a day counts everything in one.
        let run = ["run", &file, "--ledger", &ledger, "--first-poll", "0s", "--poll-interval", "50ms", "-q"];
        // Each has a limit of its own, which is consent.
        simulator.used_by(here.shotlist(&run)).ends_with(code);
        let charged = simulator.ledger()["count"].clone();
        simulator.used_by(here.shotlist(&run)).ends_with(code);
        assert_eq!(simulator.ledger()["count"], charged, "{example} paid twice");
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            fs::create_dir_all(&target).expect("a folder");
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}

/// Whoever reads the README's table knows every key that a manifest and a job may have.
#[test]
fn the_readme_names_every_key_of_a_manifest() {
    let schema: serde_json::Value = serde_json::from_str(&read("schemas/manifest.schema.json")).expect("JSON");
    let readme = read("README.md");
    let (_, section) = readme.split_once("## The manifest").expect("a section");
    let table = section.split_once("- **Templates**").expect("a table").0;
    for keys in ["/properties", "/$defs/RawJob/properties"] {
        let keys = schema.pointer(keys).and_then(serde_json::Value::as_object).expect("keys");
        assert!(keys.len() > 9);
        for key in keys.keys() {
            assert!(table.contains(&format!("`{key}`")), "the table of keys lacks `{key}`");
        }
    }
}
