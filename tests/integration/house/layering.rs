//! Dependencies run one way. Tables list the imports of each module and submodule. Further rules: contents of `mod.rs`, length of a file, and files
//! with code for one operating system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::imports::{Import, imports};
use super::texts::project;

/// A module, and its allowed imports.
type Line = (&'static str, &'static [&'static str]);

/// The allowed imports of each module. Only the program imports `cli`.
const ROOMS: [Line; 17] = [
    ("domain", &[]),
    ("files", &[]),
    ("reference", &[]),
    ("catalog", &["domain"]),
    // Expansion needs the fields of each family in the catalog, for soft defaults and for checks.
    ("manifest", &["domain", "files", "catalog"]),
    ("plan", &["domain"]),
    ("bill", &["domain", "files"]),
    ("service", &["domain"]),
    ("hooks", &["domain", "files"]),
    ("ledger", &["domain", "files"]),
    ("download", &["domain", "files"]),
    // A report names the file of a video only if it exists and is complete.
    ("report", &["domain", "files", "download"]),
    // The simulator uses the limits of the catalog.
    ("sandbox", &["domain", "catalog"]),
    ("engine", &["domain", "plan", "service", "ledger", "download", "hooks"]),
    // The safe order: only `session` combines a ledger and an engine.
    (
        "session",
        &[
            "domain", "files", "catalog", "manifest", "plan", "bill", "service", "ledger", "download", "report",
            "sandbox", "hooks", "engine",
        ],
    ),
    ("ui", &["domain", "manifest", "plan", "bill", "ledger", "engine", "report"]),
    (
        "cli",
        &[
            "domain",
            "files",
            "catalog",
            "manifest",
            "plan",
            "bill",
            "service",
            "ledger",
            "report",
            "sandbox",
            "session",
            "reference",
            "ui",
        ],
    ),
];

/// The allowed imports of submodules. `.` is the rest of the module.
const INNER: [(&str, &[Line]); 4] = [
    (
        "manifest",
        &[
            ("source", &[]),
            ("template", &["source"]),
            ("raw", &["source", "template"]),
            ("tables", &["source", "template", "raw"]),
            ("expand", &["source", "template", "raw", "tables", "draft"]),
            ("draft", &["source", "template", "raw", "tables"]),
            (".", &["source", "template", "raw", "tables", "expand", "draft"]),
        ],
    ),
    // Rules and shared files import no store.
    (
        "ledger",
        &[
            (".", &["rules"]),
            ("suite", &["."]),
            ("rules", &[".", "suite"]),
            ("sqlite", &[".", "rules", "suite"]),
            ("postgres", &[".", "rules"]),
        ],
    ),
    ("report", &[("html", &["."]), (".", &["html"])]),
    ("cli", &[("args", &[]), ("commands", &[".", "args"]), (".", &["args", "commands"])]),
];

/// Files with code for one operating system, each with its purpose.
const OF_THE_SYSTEM: [(&str, &str); 10] = [
    ("cli/program.rs", "signals"),
    ("cli/service.rs", "the mode of the key's file, and core dumps"),
    ("files/disk.rs", "flags for opening, synced directories, free space, and the mode of a replaced file"),
    ("files/zone.rs", "the time zone"),
    ("hooks.rs", "groups of processes"),
    ("ledger/postgres/address.rs", "sockets of this machine, and the mode of the password file"),
    ("ledger/locked.rs", "what this machine is called"),
    ("ledger/sqlite/open.rs", "the mode of a ledger, and its names"),
    ("service/http.rs", "the time limit for data that nobody acknowledges"),
    ("domain/request.rs", "a clock that counts the sleep of the machine"),
];

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every source file in a directory, by its relative path.
fn sources(directory: &Path) -> BTreeMap<String, String> {
    let (mut directories, mut found) = (vec![directory.to_owned()], BTreeMap::new());
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inside = path.strip_prefix(directory).expect("inside").to_string_lossy().replace('\\', "/");
                found.insert(inside, fs::read_to_string(&path).expect("a source file"));
            }
        }
    }
    found
}

/// A file without its tests.
fn production(text: &str) -> &str {
    text.split("\nmod tests {").next().unwrap_or(text)
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Compares imports with a table.
fn assert_held(edges: &BTreeMap<String, BTreeSet<String>>, table: &[Line], what: &str) {
    let allowed: BTreeMap<&str, &[&str]> = table.iter().copied().collect();
    let (rooms, lines): (BTreeSet<&str>, BTreeSet<&str>) =
        (edges.keys().map(String::as_str).collect(), allowed.keys().copied().collect());
    assert_eq!(rooms, lines, "{what}: a room without a line in the table, or a line without a room");
    for (room, imported) in edges {
        for other in imported.iter().filter(|other| *other != room) {
            assert!(allowed[room.as_str()].contains(&other.as_str()), "{what}: {room} imports {other}");
        }
    }
}

fn assert_no_circle(table: &[Line]) {
    let mut left: BTreeMap<&str, &[&str]> = table.iter().copied().collect();
    while !left.is_empty() {
        let free = left.iter().find(|(_, imports)| imports.iter().all(|other| !left.contains_key(other)));
        let (&free, _) = free.unwrap_or_else(|| panic!("a circle among {:?}", left.keys()));
        left.remove(free);
    }
}

#[test]
fn every_import_is_in_the_table() {
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in sources(&src()) {
        let room = file.split(['/', '.']).next().unwrap_or_default();
        if ["lib", "main"].contains(&room) {
            continue;
        }
        let imported = imports(&file, &text).into_iter().filter_map(|import| import.path.into_iter().next());
        edges.entry(room.to_owned()).or_default().extend(imported);
    }
    assert_held(&edges, &ROOMS, "src");
    assert_no_circle(&ROOMS);
}

/// Types that write to a ledger.
const WRITES: [&str; 5] = ["Event", "Intent", "LockedBatch", "Sharing", "SharingCommand"];

#[test]
fn only_engine_and_session_write_to_a_ledger() {
    let mut writers = BTreeSet::new();
    for (file, text) in sources(&src()) {
        let is_write = |import: &Import| match import.path.as_slice() {
            [room, name, ..] => room == "ledger" && WRITES.contains(&name.as_str()),
            _ => false,
        };
        let module = file.split('/').next().unwrap_or_default().to_owned();
        if imports(&file, &text).iter().any(is_write) {
            writers.insert(module);
        }
    }
    assert_eq!(writers.into_iter().collect::<Vec<_>>(), ["engine", "ledger", "session"]);
}

/// Only a `mod.rs` may import all of its module.
#[test]
fn inner_modules_keep_to_their_tables() {
    for (room, table) in INNER {
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let inner: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
        for (file, text) in sources(&src().join(room)).into_iter().filter(|(file, _)| file != "mod.rs") {
            let from = file.split_once('/').map_or(".", |(inner, _)| inner).to_owned();
            let within = imports(&format!("{room}/{file}"), &text).into_iter().filter(|import| import.path[0] == room);
            let to_inner = |import: Import| match import.path.get(1) {
                Some(name) if inner.contains(&name.as_str()) => name.clone(),
                _ => ".".to_owned(),
            };
            edges.entry(from).or_default().extend(within.map(to_inner));
        }
        let listed: BTreeSet<String> = fs::read_dir(src().join(room))
            .expect("a room")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.is_dir() && !path.ends_with("snapshots"))
            .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
            .collect();
        let named: BTreeSet<String> = inner.iter().filter(|name| **name != ".").map(ToString::to_string).collect();
        assert_eq!(listed, named, "the inner rooms of {room}");
        assert_held(&edges, table, room);
    }
    let with_inner: BTreeSet<String> = sources(&src())
        .into_keys()
        .filter_map(|file| {
            let mut parts = file.split('/');
            let (room, inner, rest) = (parts.next()?, parts.next()?, parts.next());
            rest.map(|_| format!("{room} {inner}")).map(|both| both.split(' ').next().unwrap_or_default().to_owned())
        })
        .collect();
    assert_eq!(with_inner, INNER.iter().map(|(room, _)| (*room).to_owned()).collect(), "rooms with rooms inside");
}

/// The files that a file imports by their path, without its tests.
fn files_named(file: &str, text: &str, all: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for import in imports(file, text).into_iter().filter(|import| !import.is_of_tests) {
        let ways = (1..=import.path.len()).map(|steps| format!("{}.rs", import.path[..steps].join("/")));
        named.extend(ways.filter(|way| all.contains_key(way)));
    }
    named.remove(file);
    named
}

/// The files of circles and their importers: those that remain after removing files without remaining imports.
fn circle(all: &BTreeMap<String, String>) -> Option<BTreeMap<&str, BTreeSet<String>>> {
    let mut left: BTreeMap<&str, BTreeSet<String>> =
        all.iter().map(|(file, text)| (file.as_str(), files_named(file, text, all))).collect();
    while !left.is_empty() {
        let free = left.iter().find(|(_, named)| named.iter().all(|other| !left.contains_key(other.as_str())));
        let Some((&free, _)) = free else { return Some(left) };
        left.remove(free);
    }
    None
}

/// Without circles, each file can be read after its imports.
#[test]
fn no_files_name_each_other_in_a_circle() {
    let all = sources(&src());
    let run = files_named("session/run.rs", &all["session/run.rs"], &all);
    assert!(run.contains("session/locked.rs"), "nothing is read: {run:?}");
    assert_eq!(circle(&all), None);
}

#[test]
fn circle_between_two_files_is_found_in_every_form_of_import() {
    let both = |first: &str, second: &str| {
        let of = |text: &str| text.to_owned();
        BTreeMap::from([(of("room/a.rs"), of(first)), (of("room/b.rs"), of(second)), (of("room/c.rs"), of(""))])
    };
    for forth in [
        "use super::{b::B, c};",
        "use super::b as other;",
        "fn f() -> crate::room::b::B { loop {} }",
        "const S: &str = concat!(super::b::NAME);",
    ] {
        assert_eq!(circle(&both(forth, "use super::c;")), None, "{forth}");
        assert!(circle(&both(forth, "use super::{a, c};")).is_some(), "{forth}");
        assert!(circle(&both(forth, "use crate::{room::{a::{self, A}, c}, other};")).is_some(), "{forth}");
        assert_eq!(circle(&both(forth, "#[cfg(test)] mod tests { use super::super::a; }")), None, "{forth}");
    }
}

/// A `mod.rs` has docs, modules, and exports only.
#[test]
fn module_files_have_docs_and_names_only() {
    for (file, text) in sources(&src()).into_iter().filter(|(file, _)| file.ends_with("mod.rs")) {
        assert!(text.starts_with("//! "), "{file} does not say what it is for");
        let mut is_list = false;
        for line in without_comments(&text).lines().filter(|line| !line.trim().is_empty()) {
            let is_name = ["mod ", "pub mod ", "pub use ", "pub(", "use ", "#[cfg", "#[path = "]
                .iter()
                .any(|start| line.starts_with(start));
            assert!(is_name || is_list, "{file}: {line}");
            is_list = if is_list { !line.starts_with('}') } else { line.ends_with('{') };
        }
    }
}

#[test]
fn no_file_holds_more_than_one_idea() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (directory, most) in [("src", 400), ("tests", 400), ("benches", 300), ("examples", 60)] {
        for (file, text) in sources(&root.join(directory)) {
            let code = if directory == "src" { production(&text) } else { &text }.lines().map(str::trim);
            let code = code.filter(|line| !line.is_empty() && !line.starts_with("//")).count();
            assert!(code <= most, "{directory}/{file} has {code} lines of code");
        }
    }
}

/// The argument in `ledger/mod.rs` names a test for each line.
#[test]
fn tests_in_the_argument_of_the_ledger_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all: String =
        ["src", "tests"].iter().flat_map(|directory| sources(&root.join(directory)).into_values()).collect();
    let text = fs::read_to_string(src().join("ledger/mod.rs")).expect("a file");
    let docs = text.lines().filter(|line| line.starts_with("//!")).flat_map(|line| line.split('`').skip(1).step_by(2));
    let named: Vec<&str> = docs.filter(|word| word.matches('_').count() >= 4).collect();
    assert!(named.len() >= 12, "{named:?}");
    for test in named {
        assert!(all.contains(&format!("fn {test}")), "there is no test {test}");
    }
}

/// Code for one operating system is in the listed files only.
#[test]
fn code_for_one_system_is_in_one_place() {
    let knows = |text: &str| {
        ["cfg(unix)", "cfg!(unix)", "cfg(not(unix))", "cfg(windows)", "target_os", "std::os::"]
            .map(|what| without_comments(text).contains(what))
            .contains(&true)
    };
    let found: BTreeSet<String> =
        sources(&src()).into_iter().filter(|(_, text)| knows(production(text))).map(|(file, _)| file).collect();
    assert_eq!(found, OF_THE_SYSTEM.iter().map(|(file, _)| (*file).to_owned()).collect());
}

/// A path that no file has checks nothing.
#[test]
fn paths_in_lists_and_documents_exist() {
    for list in [".cargo/mutants.toml", ".ci/release", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(project(list)).expect("a list");
        let words = text.split(|c: char| c.is_whitespace() || "\"'`(),".contains(c));
        let paths: Vec<&str> = words.filter(|word| word.starts_with("src/")).collect();
        assert!(paths.len() > 3, "{list}: {paths:?}");
        for path in paths {
            assert!(project(path.trim_end_matches("*.rs")).exists(), "{list}: {path}");
        }
    }
}
