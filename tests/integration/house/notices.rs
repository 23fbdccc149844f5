//! The wording of notices that are logged where something happens.
//!
//! Events of a run, notes of a plan, and texts of commands have snapshots with real values. Notices from deep inside the program, some of which need a
//! broken disk, are listed here from the source.

use std::collections::BTreeSet;
use std::fs;

use shotlist::domain::{AttemptState, Charge, JobChoice};
use shotlist::plan::Action;
use shotlist::report::JobState;
use syn::visit::{self, Visit};

use super::texts::{Strings, files_below, project};

/// The notices that macros log.
#[derive(Default)]
struct Logged(BTreeSet<String>);

impl Visit<'_> for Logged {
    fn visit_macro(&mut self, called: &syn::Macro) {
        let code = called.tokens.to_string();
        let variant = code.split("NoticeCode :: ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let logger = called.path.segments.first().filter(|first| first.ident == "tracing");
        if let (Some(variant), Some(_), Some(level)) = (variant, logger, called.path.segments.last()) {
            let mut texts = Strings::default();
            texts.take(&code);
            let texts: Vec<String> = texts.0.iter().map(|text| format!("{text:?}")).collect();
            self.0.insert(format!("{variant} {}: {}", level.ident, texts.join(" ")));
        }
        visit::visit_macro(self, called);
    }
}

#[test]
fn logged_notices_match_the_snapshot() {
    let mut logged = Logged::default();
    for path in files_below(&project("src"), Some("rs")) {
        logged.visit_file(&syn::parse_file(&fs::read_to_string(&path).expect("a file")).expect("Rust"));
    }
    insta::assert_snapshot!(logged.0.into_iter().collect::<Vec<_>>().join("\n"));
}

/// The codes of a list in `src/domain/codes.rs`.
fn codes_of(list: &str) -> Vec<String> {
    let text = fs::read_to_string(project("src/domain/codes.rs")).expect("a file");
    let start = text.find(&format!("    {list}:\n")).expect("the list");
    let lines = text[start..].lines().skip(1).take_while(|line| !line.starts_with('}'));
    lines.map(|line| line.split('"').nth(1).expect("a code").to_owned()).collect()
}

#[test]
fn every_refusal_and_every_rule_has_its_text_in_a_snapshot() {
    // A confirmation on a terminal, with colors in the text.
    const OTHERS: [&str; 1] = ["not-confirmed"];
    let tests = ["tests", "src"].map(project);
    let snapshots = tests.iter().flat_map(|directory| {
        files_below(directory, Some("snap")).into_iter().chain(files_below(directory, Some("rs")))
    });
    let texts: String = snapshots.map(|path| fs::read_to_string(path).expect("a file")).collect();
    let codes: Vec<String> = ["RefusalCode", "Rule"].into_iter().flat_map(codes_of).collect();
    assert!(codes.len() > 130, "{}", codes.len());
    let missing: Vec<&String> = codes
        .iter()
        .filter(|code| ["error", "warning"].iter().all(|level| !texts.contains(&format!("{level}[{code}]: "))))
        .collect();
    assert_eq!(missing, OTHERS);
}

/// Each failure in the snapshots has a help, each cause once, and no command in parentheses. A count of errors needs no help.
#[test]
fn failures_in_snapshots_have_one_shape() {
    let mut wrong = Vec::new();
    for path in ["tests", "src"].into_iter().flat_map(|directory| files_below(&project(directory), Some("snap"))) {
        let text = fs::read_to_string(&path).expect("a snapshot");
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        let is_failure = |line: &&str| line.starts_with("error[") || line.starts_with("warning[");
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_failure(line)) {
            let (code, message) = line.split_once("]: ").expect("a code");
            let mut rest = lines[at + 1..].iter().take_while(|line| !line.is_empty() && !is_failure(line));
            let is_count = code == "error[manifest-invalid"
                && message.split(' ').next_back().is_some_and(|it| it.starts_with("error"));
            let has_help = rest.any(|line| line.trim_start_matches("= ").starts_with("help: "))
                || is_count
                || code.starts_with("warning");
            let causes: Vec<&str> = message.split(": ").collect();
            let is_doubled = causes.iter().enumerate().any(|(at, cause)| causes[..at].contains(cause));
            let has_aside =
                message.split('(').skip(1).any(|aside| aside.split(')').any(|it| it.starts_with("`shotlist ")));
            if !has_help || is_doubled || has_aside {
                wrong.push(format!("{}: {line}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A state, an action, or a choice has the same name in JSON, in the ledger, on the page, and in text.
#[test]
fn names_in_json_are_those_of_the_values() {
    fn differing<T: Copy + serde::Serialize>(all: &[T], name: impl Fn(T) -> &'static str) -> Vec<&'static str> {
        let is_same = |value: &T| serde_json::to_value(value).expect("JSON") == name(*value);
        all.iter().filter(|value| !is_same(value)).map(|value| name(*value)).collect()
    }
    let differing = [
        differing(&Action::ALL, Action::name),
        differing(&AttemptState::ALL, AttemptState::name),
        differing(&Charge::ALL, Charge::name),
        differing(&JobChoice::ALL, JobChoice::name),
        differing(&JobState::ALL, JobState::name),
    ];
    assert_eq!(differing.concat(), Vec::<&str>::new());
}
