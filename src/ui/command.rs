//! Commands to copy: quoted for the shell, with all that it takes to find the same manifest, batch and ledger again.

use std::path::Path;

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

/// A word as the shell of this system takes it for one, whatever is in it.
pub(crate) fn quoted(word: &str) -> String {
    // Git Bash and its kin name their shell on Windows, too.
    if cfg!(windows) && std::env::var_os("SHELL").is_none() { quoted_for_windows(word) } else { quoted_for_posix(word) }
}

/// A word for `cmd` and PowerShell, which agree on double quotes. In these, one of the two expands or ends at few characters; for a word with one of
/// them, this is text that both refuse: a command that is read differently could buy something else.
fn quoted_for_windows(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./\\:=+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let is_special = |c: char| "\"$`%!\u{201c}\u{201d}\u{201e}".contains(c) || crate::domain::text::steers(c);
    if word.contains(is_special) {
        return "<quote this value>".to_owned();
    }
    // A program takes the last backslash for an escape of the quote.
    let backslashes = word.len() - word.trim_end_matches('\\').len();
    format!("\"{word}{}\"", "\\".repeat(backslashes))
}

/// A word for a POSIX shell. Control characters are written by their numbers, as bash, zsh, and ksh read them: a terminal would not show them,
/// and would not take them back.
fn quoted_for_posix(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    // zsh replaces a word that begins with `=` by a path.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.chars().any(crate::domain::text::steers) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let escaped = word.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
        text
    });
    format!("$'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_every_word_as_it_was() {
        let words = [
            "a.yaml",
            "my list.yaml",
            "it's",
            "",
            "$(touch x)",
            "t1; touch y #",
            "ü",
            "a\nb",
            "\u{1b}[2J\\'",
            "*",
            "=ls",
        ];
        for word in words {
            let shown = quoted_for_posix(word);
            assert!(!shown.contains(|c: char| c.is_control()), "{shown:?}");
            // `$'…'` is of bash; the others are of every shell.
            let shell = if shown.starts_with('$') { "bash" } else { "sh" };
            let script = format!("printf '%s|' {shown}");
            let output = std::process::Command::new(shell).args(["-c", &script]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{word}|"), "{shown}");
        }
    }

    #[test]
    fn odd_word_has_double_quotes_on_windows() {
        for (word, expected) in [
            ("a.yaml", "a.yaml"),
            ("C:\\videos\\a.yaml", "C:\\videos\\a.yaml"),
            ("my list.yaml", "\"my list.yaml\""),
            ("a&b", "\"a&b\""),
            ("a,b", "\"a,b\""),
            ("@choices.json", "\"@choices.json\""),
            ("", "\"\""),
            ("it's", "\"it's\""),
            (r"C:\my dir\", r#""C:\my dir\\""#),
            ("it's $5", "<quote this value>"),
            ("50%", "<quote this value>"),
            ("a\nb", "<quote this value>"),
        ] {
            assert_eq!(quoted_for_windows(word), expected);
        }
    }

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
