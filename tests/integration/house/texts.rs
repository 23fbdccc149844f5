//! The texts that users read: no term that has a new one, and short sentences.

use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, ExprMethodCall, ItemMod, LitStr};

/// Terms that the program had before, with those that took their place.
const OLD_TERMS: [(&str, &str); 17] = [
    ("consent", "confirmation"),
    ("repurchase", "buy again"),
    ("repurchases", "jobs that are already paid for"),
    ("adopt", "import"),
    ("adopts", "imports"),
    ("adopted", "imported"),
    ("claims.csv", "mismatches.csv"),
    ("accept-differing", "accept-mismatch"),
    ("no-collect", "skip-other-batches"),
    ("first look", "preflight"),
    ("cadence", "poll schedule"),
    ("final word", "terminal state"),
    ("final words", "terminal states"),
    ("final_words", "terminal_states"),
    ("idempotency", "one POST for an attempt"),
    ("profile", "--api-key-command"),
    ("sidecar", "report.json"),
];
/// The maximum number of words of a sentence in a document.
const MAX_SENTENCE_WORDS: usize = 25;

/// The text in lower case, with one space around each word.
fn words(text: &str) -> String {
    let mut words = String::from(" ");
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric() && !"'-_.".contains(c)) {
        if !word.is_empty() {
            words.push_str(word.trim_end_matches('.'));
            words.push(' ');
        }
    }
    words
}

/// The old terms in a text.
fn old_terms(text: &str) -> Vec<(&'static str, &'static str)> {
    let text = words(text);
    OLD_TERMS.into_iter().filter(|(old, _)| text.contains(&format!(" {old} "))).collect()
}

/// The strings of a source file that users may see: not those of tests, of documentation, or of panics.
#[derive(Default)]
pub(super) struct Strings(pub(super) Vec<String>);

impl Visit<'_> for Strings {
    fn visit_lit_str(&mut self, literal: &LitStr) {
        self.0.push(literal.value());
    }

    fn visit_attribute(&mut self, attribute: &Attribute) {
        // The messages of errors are attributes.
        if attribute.path().is_ident("error")
            && let Ok(list) = attribute.meta.require_list()
        {
            self.take(&list.tokens.to_string());
        }
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        if call.method != "expect" {
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_item_mod(&mut self, module: &ItemMod) {
        if module.ident != "tests" && module.ident != "suite" {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_macro(&mut self, called: &syn::Macro) {
        if !["panic", "unreachable", "assert", "debug_assert"].iter().any(|name| called.path.is_ident(name)) {
            self.take(&called.tokens.to_string());
        }
    }
}

impl Strings {
    /// Takes the string literals of some code.
    pub(super) fn take(&mut self, code: &str) {
        let mut rest = code;
        while let Some(start) = rest.find('"') {
            let is_end = |at: &usize| {
                let before = &rest[start + 1..*at];
                (before.len() - before.trim_end_matches('\\').len()).is_multiple_of(2)
            };
            let ends = rest.match_indices('"').map(|(at, _)| at).skip(1);
            let Some(end) = ends.skip_while(|at| *at <= start).find(is_end) else { return };
            self.0.extend(syn::parse_str::<LitStr>(&rest[start..=end]).ok().map(|text| text.value()));
            rest = &rest[end + 1..];
        }
    }
}

pub(super) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The files below a folder, sorted: all, or those with an extension.
pub(super) fn files_below(folder: &Path, extension: Option<&str>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if extension.is_none_or(|wanted| path.extension().is_some_and(|found| found == wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn messages_have_no_old_term() {
    let mut found = Vec::new();
    for path in files_below(&project("src"), Some("rs")) {
        let mut strings = Strings::default();
        strings.visit_file(&syn::parse_file(&fs::read_to_string(&path).expect("a file")).expect("Rust"));
        let old = strings.0.iter().filter(|text| !old_terms(text).is_empty());
        found.extend(old.map(|text| format!("{}: {:?}: {text}", path.display(), old_terms(text))));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Folders with other texts that users read: the page and its script, models, examples, schemas, and packages.
const FOLDERS: [&str; 8] = [
    "src/report/html",
    "src/catalog",
    "examples",
    "schemas",
    "packaging/npm",
    "packaging/debian",
    "packaging/skill",
    "packaging/wheel",
];

/// The documents that users read: without code blocks, and of a table without its lines.
fn documents() -> Vec<(PathBuf, String)> {
    let reference = files_below(&project("src/reference"), Some("md"));
    let paths = reference.into_iter().chain(["README.md", "CHANGELOG.md", "packaging/about.md"].map(project));
    let read = paths.map(|path| {
        let text = fs::read_to_string(&path).expect("a document");
        let prose: Vec<&str> = text.split("```").step_by(2).collect();
        (path, prose.join("\n"))
    });
    read.collect()
}

#[test]
fn documents_help_and_other_texts_have_no_old_term() {
    let help = files_below(&project("tests/integration/cli/snapshots"), Some("snap"));
    let others = FOLDERS.iter().flat_map(|folder| files_below(&project(folder), None));
    // Pictures and workbooks are no texts, and prompts may have any word.
    let others = others.filter(|path| !path.ends_with("vbench.csv"));
    let read = |path: PathBuf| fs::read_to_string(&path).ok().map(|text| (path, text));
    let others: Vec<(PathBuf, String)> = help.into_iter().chain(others).filter_map(read).collect();
    assert!(FOLDERS.iter().all(|folder| others.iter().any(|(path, _)| path.starts_with(project(folder)))));
    let mut found = Vec::new();
    for (path, text) in documents().into_iter().chain(others) {
        let lines = text.lines().filter(|line| !old_terms(line).is_empty());
        found.extend(lines.map(|line| format!("{}: {:?}: {line}", path.display(), old_terms(line))));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn sentences_of_documents_are_short() {
    let mut found = Vec::new();
    for (path, text) in documents() {
        let is_prose = |line: &&str| line.split(" | ").count() == 1 && !line.starts_with('[') && !line.starts_with('!');
        for line in text.lines().filter(is_prose) {
            for sentence in line.split(". ").flat_map(|part| part.split(": ")) {
                let count = sentence.split_whitespace().count();
                if count > MAX_SENTENCE_WORDS {
                    found.push(format!("{}: {count} words: {sentence}", path.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
