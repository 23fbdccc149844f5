//! The words of messages, help, and documentation.
//!
//! Each list entry has a better word: nobody → you or the actor, told → reported, mend → fix, stands → is, outstanding → active, folder → directory,
//! picture → image, rehearsal → sandbox run, catalogue → catalog, "is no" → "is not", "there is no" → "found no".

use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, ExprMethodCall, ItemMod, LitStr};

/// Words and phrases that no text may have. `…` stands for the rest of a word.
const AVOIDED: [&str; 30] = [
    "nobody",
    "somebody",
    "whoever",
    "a person",
    "mend",
    "mends",
    "told",
    "stands",
    "lies",
    "look after",
    "looks after",
    "go on with",
    "goes on with",
    "gone on with",
    "rehears…",
    "outstanding",
    "the books",
    "folder",
    "folders",
    "picture",
    "pictures",
    "besides",
    "all the same",
    "catalogue",
    "colour",
    "there is no",
    "be had",
    "and this is",
    "and this says",
    "and this gives",
];
/// Words that no comment may have, beside which a better one is easy to find.
const AVOIDED_IN_COMMENTS: [&str; 13] = [
    "nobody",
    "somebody",
    "a person",
    "mend",
    "mends",
    "told",
    "lies",
    "outstanding",
    "the books",
    "folder",
    "folders",
    "catalogue",
    "colour",
];
/// The most words of a sentence in a document.
const LONGEST_SENTENCE: usize = 25;

/// The text in lower case, with one space around each word.
fn words(text: &str) -> String {
    let mut words = String::from(" ");
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric() && !"'-_".contains(c)) {
        if !word.is_empty() {
            words.push_str(word);
            words.push(' ');
        }
    }
    words
}

/// The avoided words in a text.
fn avoided(text: &str) -> Vec<&'static str> {
    let text = words(text);
    let has = |phrase: &&str| match phrase.strip_suffix('…') {
        Some(beginning) => text.contains(&format!(" {beginning}")),
        None => text.contains(&format!(" {phrase} ")),
    };
    let is_no = text.replace(" is no longer ", " ").contains(" is no ").then_some("is no");
    AVOIDED.into_iter().filter(has).chain(is_no).collect()
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

pub(super) fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn messages_avoid_words_that_have_a_better_one() {
    let mut found = Vec::new();
    for path in files_below(&project("src"), "rs") {
        if path.components().any(|part| part.as_os_str() == "suite") {
            continue;
        }
        let mut strings = Strings::default();
        strings.visit_file(&syn::parse_file(&fs::read_to_string(&path).expect("a file")).expect("Rust"));
        // A string without a space is a name, and SQL has names of columns.
        let is_sql = |text: &str| ["CREATE", "INSERT"].iter().any(|verb| text.trim_start().starts_with(verb));
        let is_message = |text: &&String| text.trim().contains(' ') && !is_sql(text);
        for text in strings.0.iter().filter(is_message) {
            // What stands in braces is a name of the code.
            let mut shown = String::new();
            let mut depth = 0_u32;
            for c in text.chars() {
                match c {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    c if depth == 0 => shown.push(c),
                    _ => {}
                }
            }
            let avoided = avoided(&shown);
            if !avoided.is_empty() {
                found.push(format!("{}: {avoided:?}: {text}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The documents that users read: without code blocks, and of a table without its lines.
fn documents() -> Vec<(PathBuf, String)> {
    let reference = files_below(&project("src/reference"), "md");
    let paths = reference.into_iter().chain([project("README.md")]);
    let read = paths.map(|path| {
        let text = fs::read_to_string(&path).expect("a document");
        let prose: Vec<&str> = text.split("```").step_by(2).collect();
        (path, prose.join("\n"))
    });
    read.collect()
}

#[test]
fn documents_and_help_avoid_words_that_have_a_better_one() {
    let help = files_below(&project("tests/integration/cli/snapshots"), "snap");
    let help = help.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a snapshot")));
    let mut found = Vec::new();
    for (path, text) in documents().into_iter().chain(help) {
        let lines = text.lines().filter(|line| !avoided(line).is_empty());
        found.extend(lines.map(|line| format!("{}: {:?}: {line}", path.display(), avoided(line))));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn sentences_of_documents_are_short() {
    let mut found = Vec::new();
    for (path, text) in documents() {
        let is_prose = |line: &&str| !line.contains(" | ") && !line.starts_with('[') && !line.starts_with('!');
        for line in text.lines().filter(is_prose) {
            for sentence in line.split(". ").flat_map(|part| part.split(": ")) {
                let count = sentence.split_whitespace().count();
                if count > LONGEST_SENTENCE {
                    found.push(format!("{}: {count} words: {sentence}", path.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A comment begins with a noun or a verb. Comments of arguments are help texts, with rules of their own.
#[test]
fn comments_begin_with_a_noun_or_a_verb_in_plain_words() {
    let words =
        ["What", "How", "Who", "Whom", "Whose", "Which", "Whether", "Where", "When", "Why", "Whatever", "Whoever"];
    let sources = files_below(&project("src"), "rs");
    assert!(sources.len() > 300, "{}", sources.len());
    for path in sources.iter().filter(|path| !path.starts_with(project("src/cli/args"))) {
        let text = fs::read_to_string(path).expect("a file");
        let mut is_inside = false;
        for line in text.lines().map(str::trim_start) {
            let comment = line.strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).trim_start());
            let first = comment.and_then(|comment| comment.split([' ', ',', '.', ':']).next()).unwrap_or_default();
            assert!(is_inside || !words.contains(&first), "{}: {line}", path.display());
            let comment_words = self::words(comment.unwrap_or_default());
            let avoided = AVOIDED_IN_COMMENTS.iter().find(|word| comment_words.contains(&format!(" {word} ")));
            assert!(avoided.is_none(), "{}: {avoided:?}: {line}", path.display());
            is_inside = comment.is_some();
        }
    }
}
