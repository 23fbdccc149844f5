//! The paths of this crate in a source file, by the compiler's syntax.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, Macro, UseTree};

/// A path from the top of the crate, such as `ledger`, `sqlite`, `open`.
#[derive(Clone)]
pub struct Import {
    pub path: Vec<String>,
    /// True if only tests name it.
    pub is_of_tests: bool,
}

/// Every path with `crate` or `super` at its start: in `use` lines, in code, and in the arguments of macros.
pub fn imports(file: &str, text: &str) -> Vec<Import> {
    // Several tests read the same files.
    type Read = HashMap<(String, String), Vec<Import>>;
    static READ: LazyLock<Mutex<Read>> = LazyLock::new(Mutex::default);
    let mut read = READ.lock().expect("no panic");
    read.entry((file.to_owned(), text.to_owned())).or_insert_with(|| parsed(file, text)).clone()
}

fn parsed(file: &str, text: &str) -> Vec<Import> {
    let module = file.trim_end_matches(".rs").trim_end_matches("mod").trim_end_matches('/');
    let at = module.split('/').filter(|name| !["", "lib", "main"].contains(name)).map(str::to_owned).collect();
    let mut reader = Reader { at, is_of_tests: false, found: Vec::new() };
    reader.visit_file(&syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}")));
    reader.found
}

struct Reader {
    /// The module that is read.
    at: Vec<String>,
    is_of_tests: bool,
    found: Vec<Import>,
}

impl Reader {
    fn name<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) {
        let mut steps = path.into_iter().peekable();
        let mut from = match steps.next() {
            Some("crate") => Vec::new(),
            Some("self") => self.at.clone(),
            Some("super") => self.at[..self.at.len().saturating_sub(1)].to_vec(),
            _ => return,
        };
        while steps.next_if_eq(&"super").is_some() {
            from.pop();
        }
        from.extend(steps.filter(|step| *step != "self").map(str::to_owned));
        if !from.is_empty() {
            self.found.push(Import { path: from, is_of_tests: self.is_of_tests });
        }
    }

    fn use_tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.use_tree(&with(path.ident.to_string()), &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.use_tree(before, tree)),
            UseTree::Name(name) => self.name(with(name.ident.to_string()).iter().map(String::as_str)),
            UseTree::Rename(rename) => self.name(with(rename.ident.to_string()).iter().map(String::as_str)),
            UseTree::Glob(_) => self.name(before.iter().map(String::as_str)),
        }
    }
}

impl Visit<'_> for Reader {
    fn visit_item_use(&mut self, item: &ItemUse) {
        self.use_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let steps: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.name(steps.iter().map(String::as_str));
        visit::visit_path(self, path);
    }

    /// `pub(in crate::manifest)` is a visibility, not a use.
    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    fn visit_macro(&mut self, code: &Macro) {
        let tokens = code.tokens.to_string().replace(" :: ", "::").replace(":: ", "::").replace(" ::", "::");
        for path in tokens.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            self.name(path.split("::").filter(|step| !step.is_empty()));
        }
        visit::visit_macro(self, code);
    }

    fn visit_item_mod(&mut self, item: &ItemMod) {
        if item.content.is_none() {
            return;
        }
        let outside = self.is_of_tests;
        self.is_of_tests |= item.attrs.iter().any(is_for_tests);
        self.at.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.at.pop();
        self.is_of_tests = outside;
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|what| what == "test")
}
