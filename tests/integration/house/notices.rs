//! The wording of notices that are logged where something happens.
//!
//! Events of a run and notes of a plan have snapshots with real values, and so has everything that a command prints itself. What is logged
//! deep inside the program, some of it only on a broken disk, is listed here from the source.

use std::collections::BTreeSet;
use std::fs;

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
    for path in files_below(&project("src"), "rs") {
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
    // A confirmation on a terminal, with colors in the text; and a disk failure during the read of a sheet.
    const OTHERS: [&str; 2] = ["not-confirmed", "csv-malformed"];
    let tests = ["tests", "src"].map(project);
    let snapshots = tests
        .iter()
        .flat_map(|directory| files_below(directory, "snap").into_iter().chain(files_below(directory, "rs")));
    let texts: String = snapshots.map(|path| fs::read_to_string(path).expect("a file")).collect();
    let codes: Vec<String> = ["RefusalCode", "Rule"].into_iter().flat_map(codes_of).collect();
    assert!(codes.len() > 130, "{}", codes.len());
    let missing: Vec<&String> = codes
        .iter()
        .filter(|code| ["error", "warning"].iter().all(|level| !texts.contains(&format!("{level}[{code}]: "))))
        .collect();
    assert_eq!(missing, OTHERS);
}
