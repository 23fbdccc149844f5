//! Arrows run one way: which room may import which is a table, and the code is held against it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What each room may import. Nobody imports `cli` but the program itself.
const ALLOWED: [(&str, &[&str]); 14] = [
    ("domain", &[]),
    ("files", &[]),
    ("catalog", &["domain"]),
    // Expansion asks the catalogue which fields a family takes, to pass over soft defaults and to check each job.
    ("manifest", &["domain", "files", "catalog"]),
    ("plan", &["domain"]),
    ("service", &["domain"]),
    ("ledger", &["domain", "files"]),
    ("download", &["domain", "files"]),
    // A report names the file of a video only while it is there, whole.
    ("report", &["domain", "files", "download"]),
    // The simulator refuses what the catalogue refuses: one definition of every limit.
    ("sandbox", &["domain", "catalog"]),
    ("engine", &["domain", "plan", "service", "ledger", "download"]),
    // The one safe order: nobody else puts a ledger and an engine together.
    (
        "session",
        &[
            "domain", "files", "catalog", "manifest", "plan", "service", "ledger", "download", "report", "sandbox",
            "engine",
        ],
    ),
    ("ui", &["domain", "manifest", "plan", "engine", "report"]),
    (
        "cli",
        &["domain", "files", "catalog", "manifest", "plan", "service", "ledger", "report", "sandbox", "session", "ui"],
    ),
];

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The rooms that a file names after `crate::`, outside comments: in `use` lines and in paths alike.
fn imports(text: &str) -> BTreeSet<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    code.match_indices("crate::")
        .map(|(at, marker)| {
            let rest = &code[at + marker.len()..];
            assert!(!rest.starts_with('{'), "write one `use crate::room` a line: {}", &rest[..rest.len().min(60)]);
            rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect::<String>()
        })
        .filter(|room| !room.is_empty())
        .collect()
}

fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let inside = file.strip_prefix(&src).expect("inside src");
        let mut parts = inside.iter().filter_map(|part| part.to_str());
        // A room inside a room keeps to the same line of the table; what lies in no room is the front door.
        let (Some(room), Some(_)) = (parts.next(), parts.next()) else { continue };
        let text = fs::read_to_string(&file).expect("a source file");
        let imported = imports(&text).into_iter().filter(|other| other != room);
        edges.entry(room.to_owned()).or_default().extend(imported);
    }
    edges
}

#[test]
fn every_import_is_in_the_table() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    let edges = edges();
    assert_eq!(
        edges.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        allowed.keys().copied().collect::<BTreeSet<_>>(),
        "a room without a line in the table, or a line without a room"
    );
    for (room, imported) in &edges {
        for other in imported {
            assert!(allowed[room.as_str()].contains(&other.as_str()), "{room} imports {other}");
        }
    }
}

#[test]
fn the_table_has_no_circle() {
    // In a table without circles, rooms can be taken away one by one, each when all that it imports are gone.
    let mut left: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    while !left.is_empty() {
        let free = left.iter().find(|(_, imports)| imports.iter().all(|other| !left.contains_key(other)));
        let (&free, _) = free.unwrap_or_else(|| panic!("a circle among {:?}", left.keys()));
        left.remove(free);
    }
}

#[test]
fn no_file_holds_more_than_one_idea() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        let production = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code = production.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count();
        assert!(code <= 330, "{} has {code} lines of code", file.display());
    }
}
