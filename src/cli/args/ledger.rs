//! The values of options that name a path or a ledger.
//!
//! Where no shell expands `~/`, as in a unit of systemd or behind `--out=`, it is expanded here. Other names that only a shell expands are refused: the
//! name itself would become a directory, and a ledger in it would be empty.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{TypedValueParser, ValueParserFactory};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, Command, Error};

use crate::ledger::LedgerAddress;

/// The ledger that a user named.
#[derive(Clone, Debug)]
pub(crate) struct NamedLedger {
    pub address: LedgerAddress,
    /// True if the address is from the environment.
    pub is_from_environment: bool,
}

impl ValueParserFactory for NamedLedger {
    type Parser = LedgerParser;

    fn value_parser() -> LedgerParser {
        LedgerParser
    }
}

/// Reads a path.
#[derive(Clone, Debug)]
pub(crate) struct PathParser;

impl TypedValueParser for PathParser {
    type Value = PathBuf;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, text: &OsStr) -> Result<PathBuf, Error> {
        expanded(text).map_err(|message| {
            let (option, shown) = (arg.map(ToString::to_string).unwrap_or_default(), text.to_string_lossy());
            command.clone().error(ErrorKind::ValueValidation, format!("`{shown}` for `{option}`: {message}"))
        })
    }
}

/// The path that a text names: below the home directory with `~/` in front, as a shell has it.
fn expanded(text: &OsStr) -> Result<PathBuf, String> {
    let shown = text.to_string_lossy();
    let as_it_is = || unexpanded(&shown).map_or_else(|| Ok(text.into()), Err);
    below_home(&shown).map_or_else(as_it_is, Ok)
}

/// The path that `~/` begins. Only then is the home directory looked up, for which a C library may connect to a service of the system.
pub(crate) fn below_home(text: &str) -> Option<PathBuf> {
    let rest = text.strip_prefix("~/").filter(|rest| !rest.starts_with('/'))?;
    Some(std::env::home_dir()?.join(rest))
}

/// Returns why a text is no path, although every text is the name of some file.
fn unexpanded(text: &str) -> Option<String> {
    let refused = |found: &str, help: &str| Some(format!("must be a path, found {found}\n  help: {help}"));
    let by_shell =
        "write the whole path, or `./NAME` for a file of that name; only a shell expands it, outside of quotes";
    if text.starts_with("./") {
        return None;
    }
    if text == "~" || text.starts_with('~') && text.contains(['/', '\\']) {
        return refused("`~`", by_shell);
    }
    if text.starts_with("file:") {
        return refused("a `file:` URL", "leave out `file://`");
    }
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    if scheme.is_some_and(|scheme| scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+')) {
        return refused("a URL", "download the file, and name it");
    }
    let begins_name = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{'));
    if text.split('$').skip(1).any(begins_name) {
        return refused("a variable", by_shell);
    }
    // Unlike the escapes of a URL, which downloaded files may have.
    let is_name = |part: &str| part.len() > 2 && part.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let parts: Vec<&str> = text.split('%').collect();
    let is_percent = parts.len() > 2 && parts[1..parts.len() - 1].iter().any(|part| is_name(part));
    if is_percent { refused("a variable", by_shell) } else { None }
}

/// Reads the address of a ledger. Its errors never quote the text, which may contain a password.
#[derive(Clone, Debug)]
pub(crate) struct LedgerParser;

impl TypedValueParser for LedgerParser {
    type Value = NamedLedger;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, text: &OsStr) -> Result<NamedLedger, Error> {
        self.parse_ref_(command, arg, text, ValueSource::CommandLine)
    }

    fn parse_ref_(
        &self,
        command: &Command,
        _: Option<&Arg>,
        text: &OsStr,
        source: ValueSource,
    ) -> Result<NamedLedger, Error> {
        let refuse = |message: String| command.clone().error(ErrorKind::ValueValidation, message);
        let address = LedgerAddress::new(text, &|name| std::env::var_os(name))
            .map_err(|error| refuse(format!("{error}\n  help: {}", error.help())))?;
        let address = match address {
            LedgerAddress::File(_) => LedgerAddress::File(expanded(text).map_err(refuse)?),
            #[cfg(feature = "postgres")]
            database @ LedgerAddress::Database(_) => database,
        };
        let is_from_environment = source != ValueSource::CommandLine;
        match &address {
            #[cfg(feature = "postgres")]
            LedgerAddress::Database(database) if database.has_password() && !is_from_environment => {
                let help = "set the password in `PGPASSWORD` or `PGPASSFILE`, or the whole URL in `SHOTLIST_LEDGER`";
                let message = "`--ledger` contains a password, which every user of this machine can read";
                Err(refuse(format!("{message}\n  help: {help}")))
            }
            _ => Ok(NamedLedger { address, is_from_environment }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_written_out_paths_are_paths() {
        for path in [
            "m.yaml",
            "-",
            "/home/ann/m.yaml",
            "C:\\videos\\m.yaml",
            "./~",
            "./$x",
            "a~1.csv",
            "100% cotton, 50% off.csv",
            "My%20File%20v2.csv",
            "a%C3%A4%C3%BC.csv",
            "5$ per video.csv",
            "a:b.csv",
            "naïve/файл.csv",
        ] {
            assert_eq!(unexpanded(path), None, "{path}");
        }
        for other in [
            "~",
            "~/m.yaml",
            "~\\m.yaml",
            "$HOME/m.yaml",
            "out/$DAY",
            "${HOME}/x",
            "%USERPROFILE%\\x",
            "file:///m.yaml",
            "file:m.yaml",
            "https://x/m.yaml",
            "s3://bucket/out",
            "sftp://x/y",
        ] {
            assert!(unexpanded(other).is_some(), "{other}");
        }
    }
}
