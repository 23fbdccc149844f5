//! Documentation in the program: topics, man pages, version, and shell completions.

use crate::support::{Program, Workspace};

#[test]
fn topics_are_listed_in_help_and_printed_as_text() {
    let here = Workspace::new();
    let help = here.shotlist(&["--help"]).ends_with(0).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let topics = help.split_once("a page of the reference: ").expect("topics").1.trim_end_matches('.');
    let topics: Vec<&str> = topics.split(", ").collect();
    let is_topic = |file: &std::path::Path| file.extension().is_some_and(|extension| extension == "md");
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/reference")).expect("the reference");
    assert_eq!(topics.len(), files.flatten().filter(|file| is_topic(&file.path())).count(), "{topics:?}");
    for topic in topics {
        let shown = here.shotlist(&["help", topic]).ends_with(0).stdout;
        assert!(shown.starts_with(char::is_uppercase) && shown.lines().count() > 10, "{topic}: {shown}");
        let is_narrow = |line: &str| line.chars().count() <= 100 || !line.trim().contains(' ');
        assert!(shown.lines().all(is_narrow), "{topic}: {shown}");
    }
    for (alias, topic) in [("confirmation", "money"), ("retake", "again"), ("proxy", "service"), ("glossary", "words")]
    {
        let shown = |name: &str| here.shotlist(&["help", name]).ends_with(0).stdout;
        assert_eq!(shown(alias), shown(topic));
    }
    // A command comes before an alias.
    here.shotlist(&["help", "limit"]).ends_with(0).line("Usage: shotlist limit");
}

#[test]
fn every_command_has_a_man_page_with_every_option() {
    let here = Workspace::new();
    here.shotlist(&["man", "pages"]).ends_with(0);
    here.shotlist(&["man", "pages"]).ends_with(0);
    let help = here.shotlist(&["--help"]).ends_with(0).stdout;
    let section = |head: &str| help.split_once(head).expect("commands").1.split_once("\n\n").expect("an end").0;
    let lines = section("Daily commands:\n").lines().chain(section("More:\n").lines());
    let commands: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        let page = std::fs::read_to_string(here.path(&format!("pages/man1/shotlist-{command}.1"))).expect("a page");
        let page = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "");
        let help = here.shotlist(&["help", command]).ends_with(0).stdout;
        assert_eq!(help, here.shotlist(&[command, "--help"]).ends_with(0).stdout);
        for option in help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 3) {
            let option =
                option.trim_end_matches([',', '.', ':', ';', ')', '`']).split(['=', '[']).next().expect("a word");
            assert!(page.contains(option), "the page of {command} lacks {option}");
        }
    }
    assert_eq!(
        here.shotlist(&["man"]).ends_with(0).stdout,
        std::fs::read_to_string(here.path("pages/man1/shotlist.1")).expect("a page")
    );
    here.shotlist(&["help", "ledger", "backup"]).ends_with(0).line("Usage: shotlist ledger backup");
}

#[test]
fn topic_has_words_or_dashes() {
    let here = Workspace::new();
    assert!(here.shotlist(&["help", "exit", "codes"]).ends_with(0).stdout.starts_with("EXIT CODES"));
    here.file("file", "").shotlist(&["man", "file"]).fails_with("not-writable", 74);
}

#[test]
fn version_has_the_day_of_the_prices() {
    let here = Workspace::new();
    let version = here.shotlist(&["--version"]).without_env("SHOTLIST_PRICES_TAKEN_ON").ends_with(0).stdout;
    assert_eq!(version, here.shotlist(&["-V"]).without_env("SHOTLIST_PRICES_TAKEN_ON").ends_with(0).stdout);
    let catalog = include_str!("../../../src/catalog/catalog.yaml");
    let taken = catalog.lines().find_map(|line| line.strip_prefix("prices_taken_on: ")).expect("a day");
    let lines: Vec<&str> = version.lines().collect();
    assert!(lines[0].starts_with(concat!("shotlist ", env!("CARGO_PKG_VERSION"), " (")), "{version}");
    assert_eq!(lines[1..], [format!("prices of {taken}")]);
    let none = Program::script(here.root(), "$0 --version >&-; echo $?; $0 help money | head -n 1").ends_with(0);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("0\nMONEY\n", ""));
}

const MANIFEST: &str = "version: 1\njobs:\n  \
    - { id: hero, model: alpha-2, prompt: A dog, tags: [launch] }\n  \
    - { id: high, model: alpha-2, prompt: A cat, tags: [later, launch] }\n  \
    - { id: 'spin-{{ row.n }}', model: beta-2.0-lite-fast, for_each: [{ n: 1 }, { n: 2 }], prompt: 'No {{ row.n }}' }\n";

/// The prices that the reference names are those of the catalog.
#[test]
fn reference_names_every_model_with_its_price() {
    let page = include_str!("../../../src/reference/manifest.md");
    let catalog = shotlist::catalog::Catalog::embedded();
    for name in catalog.model_names() {
        let rate = catalog.model(name).expect("a model").rate();
        assert!(page.contains(&format!("`{name}` | {rate}")), "manifest.md lacks {name} at {rate}");
    }
}

#[test]
fn topic_or_sheet_as_a_command_gets_help() {
    let here = Workspace::with_manifest(MANIFEST).file("my videos.csv", "id,prompt\na,A dog\n");
    let topic = here.shotlist(&["money"]).ends_with(2).stderr;
    insta::assert_snapshot!(topic, @"
    error: unrecognized subcommand 'money'

      tip: a topic of the reference is shown by `shotlist help TOPIC`

    Usage: shotlist [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    let sheet = here.shotlist(&["run", "my videos.csv", "--plan"]).ends_with(2).stderr;
    insta::assert_snapshot!(sheet, @"
    error[manifest-missing]: `my videos.csv` is a spreadsheet, not a manifest
      note: nothing was submitted; nothing was spent
      help: write a manifest for it: `shotlist init --from 'my videos.csv'`
    ");
}

#[test]
fn status_shows_the_jobs_of_a_state_alone() {
    let here = Workspace::with_manifest(MANIFEST);
    here.shotlist(&["run", "m.yaml", "--sandbox", "--select", "spin-*", "--yes", "-q"]).ends_with(0);
    let status = |states: &str| here.shotlist(&["status", "m.yaml", "--sandbox", "--state", states]).ends_with(0);
    status("completed").lacks(&["hero"]).line("spin-1 ");
    let both = status("completed,pending").stdout;
    insta::assert_snapshot!(both, @"
    m: 4 jobs: 2 completed, 2 pending
    $6.50 spent (simulated: nothing was paid), $1.80 to submit
    videos: 2 in shotlist-sandbox/m

       STATE      JOB     MODEL                COST  DETAIL
       pending    hero    alpha-2             $0.00
       pending    high    alpha-2             $0.00
       completed  spin-1  beta-2.0-lite-fast  $3.25  spin-1.mp4
       completed  spin-2  beta-2.0-lite-fast  $3.25  spin-2.mp4
    ");
    let none = status("failed");
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("none of 4 jobs is failed\n", ""));
    let json = here.shotlist(&["status", "m.yaml", "--sandbox", "--state", "pending", "--format", "json"]).ends_with(0);
    let report: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(report["jobs"].as_array().map(Vec::len), Some(2));
    here.shotlist(&["status", "m.yaml", "--state", "done"]).ends_with(2);
}

#[test]
fn every_shell_has_a_script_with_the_commands() {
    let here = Workspace::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = here.shotlist(&["completions", shell]).ends_with(0).stdout;
        for word in ["never-created", "reconcile"] {
            assert!(script.contains(word), "{shell}: {script}");
        }
    }
}
