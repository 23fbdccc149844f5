//! Commands to copy: quoted for the shell, with all that it takes to find the same manifest, batch and ledger again.

use std::path::Path;

use crate::domain::quoted;
use crate::report::Commands;

/// The beginning of every command about a manifest's batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct NextCommand {
    words: Vec<String>,
}

impl NextCommand {
    /// About this manifest.
    pub(crate) fn about(manifest: &Path) -> Self {
        Self { words: vec![manifest.to_string_lossy().into_owned()] }
    }

    /// Adds an option.
    #[must_use]
    pub(crate) fn with(mut self, option: &str, value: &str) -> Self {
        // Behind a space, it would be taken for an option.
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

    /// The source of a page's commands.
    pub(crate) fn commands(&self) -> Commands {
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        let (manifest, options) = words.split_first().map_or((String::new(), &[][..]), |(m, o)| (m.clone(), o));
        Commands::new(manifest, options.join(" "))
    }

    /// A command with what follows it, to be pasted as it is.
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
