//! Help texts, schemas, examples, and the README agree with the program.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::{Simulator, Workspace};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Help texts as snapshots, so a review shows each change.
#[test]
fn help_texts_match_the_snapshot() {
    let here = Workspace::new();
    let commands = [
        "",
        "run",
        "status",
        "report",
        "resolve",
        "spend",
        "reconcile",
        "ledger",
        "doctor",
        "init",
        "sandbox",
        "schema",
        "man",
        "completions",
        "help",
    ];
    for command in commands {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        insta::assert_snapshot!(format!("help {command}").trim(), here.shotlist(&args).ends_with(0).stdout);
    }
}

/// A variable may contain a secret.
#[test]
fn help_shows_no_value_of_a_variable() {
    let (here, secret) = (Workspace::new(), "https://s3cret.example/");
    let asked: [&[&str]; 7] = [
        &["run", "-h"],
        &["run", "--help"],
        &["help", "run"],
        &["status", "-h"],
        &["reconcile", "--help"],
        &["limit", "set", "-h"],
        &["man", "."],
    ];
    for args in asked {
        let variables = ["SHOTLIST_LEDGER", "SHOTLIST_HEADER", "SHOTLIST_BASE_URL"];
        let program = variables.iter().fold(here.shotlist(args), |program, name| program.env(name, secret));
        let shown = program.ends();
        let pages = here.files().into_iter().map(|page| fs::read_to_string(here.path(&page)).expect("a page"));
        let all = pages.chain([shown.stdout, shown.stderr]).collect::<String>();
        assert!(!all.contains(secret), "{args:?}: {all}");
    }
}

#[test]
fn readme_is_short_and_its_links_lead_to_files() {
    let readme = read("README.md");
    assert!(readme.lines().count() <= 150, "{} lines", readme.lines().count());
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(project(link).exists(), "{link} is not there");
    }
}

/// The lines of each code block of a language.
fn blocks(text: &str, language: &str) -> Vec<Vec<String>> {
    let start = format!("```{language}\n");
    let starts = text.split(&start).skip(1);
    starts.map(|rest| rest.lines().take_while(|line| *line != "```").map(str::to_owned).collect()).collect()
}

/// Runs every command of the README in one directory. The gate runs the commands for installation.
#[test]
fn every_command_of_the_readme_is_run() {
    let readme = read("README.md");
    let here = Workspace::new();
    fs::create_dir(here.path("examples")).expect("a directory");
    copy(&project("examples"), &here.path("examples"));
    let sheet = blocks(&readme, "text").into_iter().next().expect("a sheet");
    here.write("products.csv", sheet.join("\n"));
    let simulator = Simulator::start(&here, &["--speed", "5000"]);
    let gate = [".ci/release", "packaging/check"].map(read).concat();
    let is_in_the_gate = |command: &str| assert!(gate.contains(command), "{command}");
    let (mut bought, mut commands) = (Vec::new(), 0);
    for command in blocks(&readme, "sh").into_iter().flatten() {
        commands += 1;
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            // The gate installs the built files by the same commands.
            ["pipx", "install", _] => is_in_the_gate("pipx\" install"),
            ["npm", "install", ..] => is_in_the_gate("npm install"),
            ["sudo", "apt", "install", _] => is_in_the_gate("manage --install"),
            ["cargo", "install", "--path", "."] => is_in_the_gate("cargo install --path . "),
            ["cargo", "test"] => {}
            ["shotlist", "doctor", ..] => drop(here.shotlist(&words[1..]).with_service(simulator.url()).ends_with(0)),
            // The simulator has another URL and key.
            ["export", ..] => assert_eq!(words.len(), 3, "{command}"),
            ["shotlist", "run", ref args @ ..] if !args.contains(&"--plan") && !args.contains(&"--sandbox") => {
                if args.contains(&"@choices.json") {
                    let report = here.json("shotlist-out/products/report.json");
                    let jobs = report["jobs"].as_array().expect("jobs");
                    let task = &jobs.iter().find(|job| job["id"] == "mug").expect("a job")["task_id"];
                    let choices = json!({ "name": "products", "retake": ["mug"], "tasks": { "mug": task } });
                    here.write("choices.json", choices.to_string());
                }
                // Without a terminal, a purchase needs a confirmation.
                here.shotlist(&[&["run"], args, &["--yes"]].concat()).with_service(simulator.url()).ends_with(0);
                bought.push(simulator.ledger()["count"].as_u64().expect("a count"));
            }
            ["cargo", "run", "--", ref args @ ..] | ["shotlist", ref args @ ..] => {
                drop(here.shotlist(args).ends_with(0));
            }
            _ => panic!("nothing runs `{command}`"),
        }
    }
    assert_eq!(commands, 16);
    // A sample, the other jobs, and a retake.
    assert_eq!(bought, [2, 4, 5]);
    for topic in readme.split("`shotlist help ").skip(1).filter_map(|rest| rest.split('`').next()) {
        here.shotlist(&["help", topic]).ends_with(0);
    }
}

#[test]
fn readme_shows_the_plan_of_its_sheet() {
    let (here, readme) = (Workspace::new(), read("README.md"));
    let mut texts = blocks(&readme, "text").into_iter();
    here.write("products.csv", texts.next().expect("a sheet").join("\n"));
    here.shotlist(&["init", "--from", "products.csv"]).ends_with(0);
    let plan = here.shotlist(&["run", "products.yaml", "--plan"]).ends_with(0).stdout;
    let shown = texts.next().expect("a plan").join("\n");
    assert!(plan.starts_with(&shown), "README.md lacks this plan:\n{plan}");
}

/// An agent follows the page to the word: each command works, and none can buy.
#[test]
fn every_command_of_the_skill_page_runs_and_buys_nothing() {
    let skill = read("packaging/skill/SKILL.md");
    assert!(skill.lines().count() <= 120);
    let here =
        Workspace::new().file("products.csv", "SKU,Prompt\nM1,A red mug turns slowly\nM2,A blue mug turns slowly\n");
    let commands: Vec<String> = blocks(&skill, "sh").concat();
    assert!(commands.len() >= 5, "{commands:?}");
    for command in &commands {
        let words = shlex::split(command).expect("a command");
        let buys = words[1] == "run" && !words.iter().any(|word| word == "--plan" || word == "--sandbox");
        assert!(words[0] == "shotlist" && !buys, "{command}");
        here.shotlist(&words[1..].iter().map(String::as_str).collect::<Vec<_>>()).ends_with(0);
    }
    assert!(here.path("shotlist-sandbox/products/report.html").exists());
    assert!(!here.path("shotlist-out").exists());
}

#[test]
fn entry_for_schemastore_has_the_address_of_the_schema() {
    let json = |path: &str| serde_json::from_str::<serde_json::Value>(&read(path)).expect("JSON");
    assert_eq!(json("schemas/schemastore.json")["url"], json("schemas/manifest.schema.json")["$id"]);
}

#[test]
fn schemas_match_the_types() {
    let here = Workspace::new();
    for name in ["manifest", "plan", "report", "spend", "diagnostics"] {
        let schema = here.shotlist(&["schema", name]).ends_with(0).stdout;
        let path = format!("schemas/{name}.schema.json");
        assert!(read(&path) == schema, "{path} differs: write it anew with `shotlist schema {name} > {path}`");
    }
}

#[test]
fn every_example_plans_and_names_the_schema() {
    let here = Workspace::new();
    let mut seen = 0;
    for (directory, way) in [("examples", ".."), ("examples/spring", "../.."), ("examples/chain", "../..")] {
        for entry in fs::read_dir(project(directory)).expect("the examples") {
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
    assert!(seen >= 8, "{seen} examples");
}

#[test]
fn every_example_runs_in_the_sandbox_and_is_then_free() {
    let here = Workspace::new();
    copy(&project("examples"), here.root());
    let simulator = Simulator::start(&here, &["--speed", "5000"]);
    // The endurance tests run the 946 prompts.
    for (example, code) in
        [("quick-start", 0), ("product-spins", 0), ("localization", 0), ("face-campaign", 5), ("daily", 0)]
    {
        let (file, ledger) = (format!("{example}.yaml"), format!("{example}.db"));
        // A ledger for each example: a daily limit counts all batches of a ledger.
        let run = ["run", &file, "--ledger", &ledger, "-q"];
        // Its `budget.run` confirms the cost.
        here.shotlist(&run).with_service(simulator.url()).ends_with(code);
        let charged = simulator.ledger()["count"].clone();
        here.shotlist(&run).with_service(simulator.url()).ends_with(code);
        assert_eq!(simulator.ledger()["count"], charged, "{example} paid twice");
    }
}

/// Copies the examples, without what a run of them left.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let target = to.join(name);
        if [".shotlist", "shotlist-sandbox", "shotlist-out"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            fs::create_dir_all(&target).expect("a directory");
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}

/// The reference's tables have every key of a manifest and of a job.
#[test]
fn reference_names_every_key_of_a_manifest() {
    let schema: serde_json::Value = serde_json::from_str(&read("schemas/manifest.schema.json")).expect("JSON");
    let page = read("src/reference/manifest.md");
    let table = page.split_once("- **Templates**").expect("a table").0;
    for keys in ["/properties", "/$defs/RawJob/properties"] {
        let keys = schema.pointer(keys).and_then(serde_json::Value::as_object).expect("keys");
        assert!(keys.len() > 9);
        for key in keys.keys() {
            assert!(table.contains(&format!("`{key}`")), "the table of keys lacks `{key}`");
        }
    }
}
