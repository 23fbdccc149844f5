//! The commands that a page offers to copy.

/// The arguments of every command about a batch, quoted for the shell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commands {
    manifest: String,
    options: String,
}

impl Commands {
    /// About this manifest, with options that lead to its batch and ledger; both as a shell reads them.
    pub fn new(manifest: String, options: String) -> Self {
        Self { manifest, options }
    }

    /// A command with what follows the manifest; ids need no quotes.
    pub(super) fn line(&self, name: &str, rest: &[&str]) -> String {
        let words = ["shotlist", name, &self.manifest].into_iter().chain(rest.iter().copied()).chain([&*self.options]);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }
}
