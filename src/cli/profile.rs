//! Profiles: settings of the user for one account, in the user's own configuration directory and never in a project.
//!
//! A profile says what the environment would say, each setting under the name of the variable without its prefix. The command line and the
//! environment have more say.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Command;
use clap::error::ErrorKind;
use serde::Deserialize;

use super::environment;
use crate::files::read_text;

/// The settings that a profile may have.
const SETTINGS: [&str; 8] =
    ["api_key_command", "asset_command", "base_url", "exec", "header", "ledger", "max_cost", "report"];
/// The beginning of each variable's name.
const PREFIX: &str = "SHOTLIST_";
/// The largest file of profiles, in bytes.
const LARGEST: u64 = 1 << 20;

/// A profile that can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProfileError {
    /// The system names no place for it.
    #[error("found no configuration directory; set `HOME`")]
    NoDirectory,
    /// The file can't be read.
    #[error("can't read profiles in `{}`: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    /// Other users may change what is started and where the key is sent.
    #[error("other users can write `{}`; run `chmod go-w` on it", .0.display())]
    OpenToOthers(PathBuf),
    /// The file has no such profile.
    #[error("found no profile `{name}` in `{}`{}", path.display(), others(known))]
    Unknown { name: String, path: PathBuf, known: Vec<String> },
    /// A setting that no profile has.
    #[error("profile `{name}` has the unknown setting `{setting}`; a profile may have: {}", SETTINGS.join(", "))]
    UnknownSetting { name: String, setting: String },
}

fn others(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; found: {}", known.join(", ")) }
}

/// A value of a setting, as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Whole(i64),
    Amount(f64),
    List(Vec<String>),
}

impl Written {
    fn texts(self) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text],
            Self::Whole(number) => vec![number.to_string()],
            Self::Amount(number) => vec![number.to_string()],
            Self::List(texts) => texts,
        }
    }
}

/// A profile.
#[derive(Debug)]
pub(super) struct Profile {
    /// Its name.
    pub name: String,
    /// The file that it is in.
    pub path: PathBuf,
    /// Its settings.
    pub settings: BTreeMap<String, Vec<String>>,
}

impl Profile {
    /// Reads the profile of this name.
    pub(super) fn read(name: &str) -> Result<Self, ProfileError> {
        let path = path().ok_or(ProfileError::NoDirectory)?;
        let unreadable = |why: String| ProfileError::Unreadable { path: path.clone(), why };
        let text = read_text(&path, LARGEST).map_err(|error| unreadable(error.to_string()))?;
        check_writers(&path)?;
        let mut profiles: BTreeMap<String, BTreeMap<String, Written>> =
            toml::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        let Some(settings) = profiles.remove(name) else {
            let known = profiles.into_keys().collect();
            return Err(ProfileError::Unknown { name: name.to_owned(), path, known });
        };
        if let Some(setting) = settings.keys().find(|setting| !SETTINGS.contains(&setting.as_str())) {
            return Err(ProfileError::UnknownSetting { name: name.to_owned(), setting: setting.clone() });
        }
        let settings = settings.into_iter().map(|(setting, value)| (setting, value.texts())).collect();
        Ok(Self { name: name.to_owned(), path, settings })
    }

    /// Returns the variable that overrides a setting, if it is set.
    pub(super) fn overriding(setting: &str) -> Option<String> {
        let variable = format!("{PREFIX}{}", setting.to_ascii_uppercase());
        environment::variable(&variable).map(|_| variable)
    }
}

/// Gives options the settings of the profile that these words or the environment name, as their defaults.
pub(super) fn applied(mut command: Command, words: &[OsString]) -> Result<Command, clap::Error> {
    let Some(name) = named(words) else { return Ok(command) };
    match Profile::read(&name) {
        Ok(profile) => Ok(with_defaults(command, &profile.settings)),
        Err(error) => Err(command.error(ErrorKind::ValueValidation, error)),
    }
}

/// The name of the profile on the command line or in the environment.
fn named(words: &[OsString]) -> Option<String> {
    let mut words = words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        if word == "--profile" {
            return words.next().map(str::to_owned);
        }
        if let Some(name) = word.strip_prefix("--profile=") {
            return Some(name.to_owned());
        }
    }
    environment::variable("SHOTLIST_PROFILE").map(|name| name.to_string_lossy().into_owned())
}

fn with_defaults(command: Command, settings: &BTreeMap<String, Vec<String>>) -> Command {
    let command = command.mut_args(|arg| {
        let variable = arg.get_env().and_then(|name| name.to_str()?.strip_prefix(PREFIX));
        match variable.and_then(|name| settings.get(&name.to_ascii_lowercase())) {
            // They are needed to the end of the process.
            Some(values) => arg.default_values(values.iter().map(|value| &*value.clone().leak())),
            None => arg,
        }
    });
    command.mut_subcommands(|command| with_defaults(command, settings))
}

/// The file of profiles, where this system has the settings of users.
fn path() -> Option<PathBuf> {
    let variable = |name| environment::variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = match std::env::consts::OS {
        "windows" => variable("APPDATA"),
        "macos" => variable("HOME").map(|home| home.join("Library/Application Support")),
        _ => variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config"))),
    };
    Some(directory?.join("shotlist").join("profiles.toml"))
}

/// Refuses a file that others may write.
fn check_writers(path: &Path) -> Result<(), ProfileError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o022 != 0) {
            return Err(ProfileError::OpenToOthers(path.to_owned()));
        }
    }
    #[cfg(not(unix))]
    let _only_its_owner_by_default = path;
    Ok(())
}
