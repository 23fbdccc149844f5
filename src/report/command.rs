//! Printed commands, quoted for the shell, with the options for the same manifest, batch, and ledger.

use std::collections::BTreeMap;
use std::path::Path;

use crate::domain::quoted;

/// The common words of the commands for a manifest's batch.
#[derive(Clone, Debug)]
pub(crate) struct NextCommand {
    manifest: String,
    /// The options of each command that has some.
    options: BTreeMap<String, Vec<String>>,
}

impl NextCommand {
    /// The commands for this manifest, with the options of each.
    pub(crate) fn new(manifest: &Path, options: BTreeMap<String, Vec<String>>) -> Self {
        Self { manifest: manifest.to_string_lossy().into_owned(), options }
    }

    /// The commands for this manifest, without options.
    pub(crate) fn about(manifest: &Path) -> Self {
        Self::new(manifest, BTreeMap::new())
    }

    /// A command with further words, ready to paste.
    pub(crate) fn command(&self, name: &str, rest: &[&str]) -> String {
        let options = self.options.get(name).into_iter().flatten().map(String::as_str);
        let words = [&*self.manifest].into_iter().chain(rest.iter().copied()).chain(options);
        words.fold(format!("shotlist {name}"), |command, word| command + " " + &quoted(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_has_its_own_options_and_quotes() {
        let options = ["--batch", "2026-11-21"].map(str::to_owned).to_vec();
        let again = NextCommand::new(Path::new("my list.yaml"), [("resolve".to_owned(), options)].into());
        let manifest = quoted("my list.yaml");
        let resolve = again.command("resolve", &["hero", "--task", "t1"]);
        assert_eq!(resolve, format!("shotlist resolve {manifest} hero --task t1 --batch 2026-11-21"));
        assert_eq!(again.command("run", &[]), format!("shotlist run {manifest}"));
    }
}
