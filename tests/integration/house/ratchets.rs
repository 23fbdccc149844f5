//! Numbers that may only go down: the size of the code, the density of clumsy prose, and names that break a rule.
//!
//! `ratchets.yaml` has a limit for each. A test fails where the tree has more, and asks to lower a limit where it has
//! clearly less.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::visit::{self, Visit};
use syn::{FnArg, ItemFn, ItemMod, ReturnType, Signature};

use super::texts::{files_below, project};

/// Phrases of prose that was translated word by word. Alternatives are separated by `|`.
const CLUMSY: [&str; 17] = [
    "what",
    "say|says|said|tell|tells|told|ask|asks|asked|answer|answers|answered|look|looks|looked|seen|meant|means",
    "anew|besides|beside|behind|apart|alone",
    "at once",
    "all the same",
    "by itself",
    "of its|their own",
    "goes|go on",
    "begin|begins|began|stand|stands|hold|holds|held",
    "of|for|in|by|to|from|on|with which|whom",
    "whose",
    "that|which it|they|one|someone|nothing",
    "as it|they is|are|was|were",
    "as far as",
    "so many|much",
    "nobody|someone|somebody|anyone|anybody|whoever|whatever|whichever|wherever",
    "however many|much|long",
];
const BOUNDS: [&str; 7] = ["MOST", "LONGEST", "LARGEST", "LEAST", "SHORTEST", "SMALLEST", "DEEPEST"];
const CONSTRUCTORS: [&str; 5] = ["of", "by", "about", "and", "at"];
const PREDICATES: [&str; 6] = ["is_", "has_", "can_", "was_", "were_", "does_"];
/// Words that a test name should not have: an article at its beginning, and relative pronouns.
const ARTICLES: [&str; 3] = ["a", "an", "the"];
const RELATIVE: [&str; 7] = ["that", "which", "who", "whose", "what", "whatever", "however"];
const MAX_TEST_NAME: usize = 60;

/// The measured numbers, by the name of their limit.
type Numbers = BTreeMap<String, usize>;

#[test]
fn tree_is_within_its_ratchets() {
    let path = project("tests/integration/house/ratchets.yaml");
    let limits: Numbers = serde_yaml::from_str(&fs::read_to_string(path).expect("a file")).expect("numbers");
    let measured = measure();
    let mut wrong = Vec::new();
    for (name, limit) in &limits {
        let number = measured.get(name).copied().unwrap_or(0);
        // A limit follows within a thirtieth, so that not every change has to touch it.
        let is_clearly_less = limit - number.min(*limit) > (limit / 30).max(2);
        if number > *limit {
            wrong.push(format!("{name}: {number}, at most {limit}"));
        } else if is_clearly_less {
            wrong.push(format!("{name}: lower the limit from {limit} to {number}"));
        }
    }
    wrong
        .extend(measured.keys().filter(|name| !limits.contains_key(*name)).map(|name| format!("{name}: has no limit")));
    assert!(wrong.is_empty(), "ratchets.yaml:\n{}", wrong.join("\n"));
}

fn measure() -> Numbers {
    let mut numbers = Numbers::new();
    let sources = files_below(&project("src"), Some("rs"));
    let tests: Vec<PathBuf> =
        ["tests", "benches"].iter().flat_map(|directory| files_below(&project(directory), Some("rs"))).collect();
    let of_tests = sources.iter().flat_map(|path| test_files(path)).collect::<BTreeSet<_>>();
    let mut names = Names::default();
    let mut prose: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for path in sources.iter().chain(&tests) {
        let text = fs::read_to_string(path).expect("a file");
        names.file = path.display().to_string();
        names.visit_file(&syn::parse_file(&text).expect("Rust"));
        let (words, clumsy) = density(&text);
        *numbers.entry("prose_dense_files".to_owned()).or_default() += usize::from(1000 * clumsy > 15 * words);
        let sum = prose.entry(module(path)).or_default();
        *sum = (sum.0 + words, sum.1 + clumsy);
        if path.starts_with(project("src")) && !of_tests.contains(path) {
            *numbers.entry("code_lines".to_owned()).or_default() += code_lines(&text);
            *numbers.entry("code_files".to_owned()).or_default() += 1;
        } else if path.starts_with(project("tests")) {
            *numbers.entry("contains_in_tests".to_owned()).or_default() += text.matches("contains(\"").count();
        }
    }
    let shared = names.types.values().filter(|files| files.len() > 1).count();
    numbers.insert("shared_type_names".to_owned(), shared);
    numbers.extend(names.broken.into_iter().map(|(kind, count)| (format!("names_{kind}"), count)));
    // In hits for each thousand words.
    numbers.extend(
        prose
            .into_iter()
            .map(|(module, (words, clumsy))| (format!("prose_{module}"), (1000 * clumsy).div_ceil(words.max(1)))),
    );
    numbers
}

/// The directory of a file below `src`, or `tests` or `benches`.
fn module(path: &Path) -> String {
    let inner = path.strip_prefix(project("")).expect("a file of the project");
    let mut parts: Vec<&str> = inner.iter().filter_map(|part| part.to_str()).collect();
    parts.pop();
    parts.truncate(if parts.first() == Some(&"src") { 2 } else { 1 });
    parts.join("_")
}

/// Counts the words of comments, and the clumsy phrases among them.
fn density(text: &str) -> (usize, usize) {
    let comments = text.lines().filter_map(|line| line.split_once("//")).map(|(_, comment)| comment);
    let comments = comments.collect::<Vec<_>>().join(" ").to_lowercase();
    // A mark between two words ends a phrase.
    let mut tokens = Vec::new();
    for piece in comments.split_whitespace() {
        let word = piece.trim_matches(|c: char| !c.is_alphabetic());
        if !word.is_empty() {
            tokens.push(word);
        }
        if piece.ends_with(['.', ',', ':', ';']) {
            tokens.push("");
        }
    }
    let phrases = CLUMSY.map(|phrase| phrase.split(' ').map(|words| words.split('|').collect()).collect());
    let is_phrase = |at: usize, phrase: &Vec<Vec<&str>>| {
        let steps = phrase.iter().enumerate();
        steps.into_iter().all(|(step, words)| tokens.get(at + step).is_some_and(|token| words.contains(token)))
    };
    let clumsy = (0..tokens.len()).map(|at| phrases.iter().filter(|phrase| is_phrase(at, phrase)).count()).sum();
    (tokens.iter().filter(|token| !token.is_empty()).count(), clumsy)
}

/// Counts the lines with code, without comments and tests.
fn code_lines(text: &str) -> usize {
    let mut lines = BTreeSet::new();
    collect_lines(text.parse().expect("tokens"), &mut lines);
    lines.len()
}

fn collect_lines(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_attribute = is_mark(&token, '#');
        // `#![…]` is an attribute, too.
        let bang = if is_attribute { tokens.next_if(|next| is_mark(next, '!')) } else { None };
        let attribute = tokens.peek().filter(|_| is_attribute).map(ToString::to_string).unwrap_or_default();
        if attribute.starts_with("[doc") {
            tokens.next();
            continue;
        }
        if bang.is_none() && is_test_attribute(&attribute) {
            let is_end = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                token => is_mark(token, ';'),
            };
            tokens.by_ref().find(is_end);
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                lines.extend([group.span_open().start().line, group.span_close().end().line]);
                collect_lines(group.stream(), lines);
            }
            leaf => lines.extend(leaf.span().start().line..=leaf.span().end().line),
        }
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_test_attribute(attribute: &str) -> bool {
    let attribute: String = attribute.split_whitespace().collect();
    ["[cfg(test)", "[cfg(all(test", "[test]"].iter().any(|start| attribute.starts_with(start))
}

/// The files of modules that only tests have, such as `#[cfg(test)] mod tests;`.
fn test_files(path: &Path) -> Vec<PathBuf> {
    let file = syn::parse_file(&fs::read_to_string(path).expect("a file")).expect("Rust");
    let directory = if path.file_stem().is_some_and(|stem| stem == "mod" || stem == "lib") {
        path.parent().expect("a directory").to_owned()
    } else {
        path.with_extension("")
    };
    let mut files = Vec::new();
    for item in &file.items {
        if let syn::Item::Mod(module) = item
            && module.content.is_none()
            && is_of_tests(module)
        {
            files.push(directory.join(format!("{}.rs", module.ident)));
            files.extend(
                Some(directory.join(module.ident.to_string()))
                    .filter(|path| path.is_dir())
                    .iter()
                    .flat_map(|directory| files_below(directory, Some("rs"))),
            );
        }
    }
    files
}

fn is_of_tests(module: &ItemMod) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        attribute
            .meta
            .require_list()
            .is_ok_and(|list| list.path.is_ident("cfg") && list.tokens.to_string().contains("test"))
    };
    module.attrs.iter().any(is_test)
}

/// Names that break a rule, by its kind.
#[derive(Default)]
struct Names {
    file: String,
    /// The files of each type name.
    types: BTreeMap<String, BTreeSet<String>>,
    broken: BTreeMap<&'static str, usize>,
    is_inside_tests: bool,
}

impl Names {
    fn type_name(&mut self, name: &syn::Ident) {
        if !self.is_inside_tests {
            self.types.entry(name.to_string()).or_default().insert(self.file.clone());
        }
    }

    fn broken(&mut self, kind: &'static str, is_broken: bool) {
        *self.broken.entry(kind).or_default() += usize::from(is_broken);
    }
}

impl Visit<'_> for Names {
    fn visit_item_mod(&mut self, module: &ItemMod) {
        let outer = self.is_inside_tests;
        self.is_inside_tests |= is_of_tests(module);
        visit::visit_item_mod(self, module);
        self.is_inside_tests = outer;
    }

    fn visit_item_struct(&mut self, item: &syn::ItemStruct) {
        self.type_name(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &syn::ItemEnum) {
        self.type_name(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &syn::ItemTrait) {
        self.type_name(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &syn::ItemType) {
        self.type_name(&item.ident);
    }

    fn visit_item_const(&mut self, item: &syn::ItemConst) {
        let name = item.ident.to_string();
        self.broken("of_bounds", BOUNDS.iter().any(|bound| name.starts_with(bound)));
        visit::visit_item_const(self, item);
    }

    fn visit_item_fn(&mut self, item: &ItemFn) {
        let is_test =
            |attribute: &syn::Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "test");
        if item.attrs.iter().any(is_test) {
            let name = item.sig.ident.to_string();
            let words: Vec<&str> = name.split('_').collect();
            let has_relative = words[..words.len() - 1].iter().any(|word| RELATIVE.contains(word));
            self.broken("of_tests", ARTICLES.contains(&words[0]) || has_relative || name.len() > MAX_TEST_NAME);
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_signature(&mut self, signature: &Signature) {
        let name = signature.ident.to_string();
        let returned = match &signature.output {
            ReturnType::Default => String::new(),
            ReturnType::Type(_, returned) => returned.to_token_stream().to_string(),
        };
        let is_new = ["Self", "Option < Self", "Result < Self"].iter().any(|start| returned.starts_with(start));
        self.broken("of_constructors", CONSTRUCTORS.contains(&name.as_str()) && is_new);
        if PREDICATES.iter().any(|start| name.starts_with(start)) {
            let changes = signature.inputs.iter().any(|input| {
                matches!(input, FnArg::Receiver(receiver) if receiver.to_token_stream().to_string().contains("& mut"))
            });
            self.broken("of_predicates", changes || !returned.contains("bool"));
        }
        visit::visit_signature(self, signature);
    }
}

#[test]
fn lines_of_comments_and_tests_are_no_code() {
    let text =
        "//! Docs.\nfn a() {\n\n    // Why.\n    b(\"one\ntwo\");\n}\n\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
    assert_eq!(code_lines(text), 4);
    assert_eq!(density("/\u{2f}/ What it is, of which nobody knows.\nlet a = 1; /\u{2f} at once"), (9, 4));
}
