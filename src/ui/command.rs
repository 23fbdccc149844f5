//! Printed commands, quoted for the shell, with the options for the same manifest, batch, and ledger.

use std::path::Path;

use crate::domain::quoted;
use crate::report::Commands;

/// The common words of all commands for a manifest's batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct NextCommand {
    words: Vec<String>,
}

impl NextCommand {
    /// The commands for this manifest.
    pub(crate) fn about(manifest: &Path) -> Self {
        Self { words: vec![manifest.to_string_lossy().into_owned()] }
    }

    /// Adds an option.
    #[must_use]
    pub(crate) fn with(mut self, option: &str, value: &str) -> Self {
        // After a space, it would be an option.
        if value.starts_with('-') {
            self.words.push(format!("{option}={value}"));
        } else {
            self.words.extend([option.to_owned(), value.to_owned()]);
        }
        self
    }

    /// Adds a switch.
    #[must_use]
    pub(crate) fn with_switch(mut self, switch: &str) -> Self {
        self.words.push(switch.to_owned());
        self
    }

    /// The commands for a page.
    pub(crate) fn commands(&self) -> Commands {
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        let (manifest, options) = words.split_first().map_or((String::new(), &[][..]), |(m, o)| (m.clone(), o));
        Commands::new(manifest, options.join(" "))
    }

    /// A command with further words, ready to paste.
    pub(crate) fn command(&self, name: &str, rest: &[&str]) -> String {
        let (manifest, options) =
            self.words.split_first().map_or(("MANIFEST", [].as_slice()), |(m, o)| (m.as_str(), o));
        let words = [manifest].into_iter().chain(rest.iter().copied()).chain(options.iter().map(String::as_str));
        words.fold(format!("shotlist {name}"), |mut command, word| {
            command.push(' ');
            command.push_str(&quoted(word));
            command
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_finds_the_same_batch_again() {
        let again =
            NextCommand::about(Path::new("my list.yaml")).with("--batch", "2026-11-21").with("--ledger", "x.db");
        let command = again.command("resolve", &["hero", "--task", "t1"]);
        let odd = NextCommand::about(Path::new("m.yaml")).with("--batch", "--yes").command("run", &[]);
        assert_eq!(odd, "shotlist run m.yaml --batch=--yes");
        let manifest = quoted("my list.yaml");
        assert_eq!(command, format!("shotlist resolve {manifest} hero --task t1 --batch 2026-11-21 --ledger x.db"));
    }
}
