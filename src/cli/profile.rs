//! Profiles: settings of the user for one account, in the user's own configuration directory and never in a project.
//!
//! A profile says what the environment would say, each setting under the name of the variable without its prefix. The command line and the
//! environment have more say. None of it is consent: a profile has no limit on the run, because that is consent to spend up to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use toml::Value;

use super::environment;
use crate::files::read_text;
use crate::ledger::PostgresAddress;

/// The settings that a profile may have.
const SETTINGS: [&str; 7] = ["api_key_command", "asset_command", "base_url", "exec", "header", "ledger", "report"];
/// The settings that may be lists.
const LISTS: [&str; 2] = ["header", "report"];
/// The settings that the simulator has for itself.
const OF_REAL_RUNS: [&str; 2] = ["ledger", "report"];
/// The variables that set the key.
const KEYS: [&str; 3] = ["SHOTLIST_API_KEY", "SHOTLIST_API_KEY_FILE", "SHOTLIST_API_KEY_COMMAND"];
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
    /// Other users may read a password, or change what is started and where the key is sent.
    #[error("other users can read or write `{}`; run `chmod 600` on it", .0.display())]
    #[cfg_attr(not(unix), expect(dead_code, reason = "only there has a file a mode"))]
    OpenToOthers(PathBuf),
    /// The file has no such profile.
    #[error("found no profile `{name}` in `{}`{}", path.display(), others(known))]
    Unknown { name: String, path: PathBuf, known: Vec<String> },
    /// A setting that no profile has.
    #[error("profile `{name}` has the unknown setting `{setting}`; a profile may have: {}", SETTINGS.join(", "))]
    UnknownSetting { name: String, setting: String },
    /// A value of another type.
    #[error("`{setting}` of profile `{name}` must be {}", if LISTS.contains(&&**setting) { "a string, or a list of strings" } else { "a string" })]
    NotText { name: String, setting: String },
    /// A path that means another file in each directory: with another ledger, everything would be due again.
    #[error("`{setting}` of profile `{name}` must be an absolute path{}", if *setting == "ledger" { " or a database" } else { "" })]
    Relative { name: String, setting: &'static str },
    /// The URL is of one account, and the key of another.
    #[error("the base URL and the API key must be of one account: {set} is set, but profile `{name}` has the other")]
    TwoAccounts { name: String, set: &'static str },
}

fn others(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; found: {}", known.join(", ")) }
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
        check_mode(&path)?;
        // Without the line itself, which may have a password.
        let parsed = toml::from_str::<BTreeMap<String, BTreeMap<String, Value>>>(&text);
        let mut profiles = parsed.map_err(|error| {
            let before = error.span().map_or("", |span| &text[..span.start]);
            unreadable(format!("line {}: {}", before.matches('\n').count() + 1, error.message()))
        })?;
        let Some(written) = profiles.remove(name) else {
            let known = profiles.into_keys().collect();
            return Err(ProfileError::Unknown { name: name.to_owned(), path, known });
        };
        let mut settings = BTreeMap::new();
        for (setting, value) in written {
            let name = name.to_owned();
            if !SETTINGS.contains(&setting.as_str()) {
                return Err(ProfileError::UnknownSetting { name, setting });
            }
            let texts = match value {
                Value::Array(texts) if LISTS.contains(&setting.as_str()) => texts,
                value => vec![value],
            };
            let texts = texts.into_iter().map(|text| if let Value::String(text) = text { Some(text) } else { None });
            let Some(texts) = texts.collect() else { return Err(ProfileError::NotText { name, setting }) };
            settings.insert(setting, texts);
        }
        let profile = Self { name: name.to_owned(), path, settings };
        profile.check_paths()?;
        Ok(profile)
    }

    fn check_paths(&self) -> Result<(), ProfileError> {
        for setting in OF_REAL_RUNS {
            let mut paths = self.settings.get(setting).into_iter().flatten();
            if paths.any(|path| !PostgresAddress::is_one(path) && !Path::new(path).is_absolute()) {
                return Err(ProfileError::Relative { name: self.name.clone(), setting });
            }
        }
        Ok(())
    }

    /// Returns the variable that overrides a setting, if it is set.
    pub(super) fn overriding(setting: &str) -> Option<String> {
        let variable = format!("{PREFIX}{}", setting.to_ascii_uppercase());
        let of_key = KEYS.iter().filter(|_| setting == "api_key_command").map(|name| (*name).to_owned());
        of_key.chain([variable]).find(|variable| environment::variable(variable).is_some())
    }

    /// Gives the options of a command, which was read without the profile, its settings as their defaults. Refuses the base URL of the profile with
    /// a key that the command line or the environment sets, and the other way round.
    pub(super) fn applied(&self, command: Command, matches: &ArgMatches) -> Result<Command, ProfileError> {
        let matches = innermost(matches);
        let mut settings = self.settings.clone();
        if matches.try_get_one::<bool>("sandbox").ok().flatten() == Some(&true) {
            settings.retain(|setting, _| !OF_REAL_RUNS.contains(&setting.as_str()));
        } else if matches.try_contains_id("base_url").is_ok() {
            let is_given = |id| matches.value_source(id).is_some();
            let has_key =
                is_given("api_key_file") || is_given("api_key_command") || environment::variable(KEYS[0]).is_some();
            let is_whole = ["base_url", "api_key_command"].iter().all(|setting| settings.contains_key(*setting));
            match (is_given("base_url"), has_key) {
                (true, false) if is_whole => return Err(self.two_accounts("the base URL")),
                (false, true) if is_whole => return Err(self.two_accounts("the API key")),
                // A header may be as secret as a key.
                (true, _) => drop(settings.remove("header")),
                (false, _) => {}
            }
            if has_key {
                settings.remove("api_key_command");
            }
        }
        Ok(with_defaults(command, &settings))
    }

    fn two_accounts(&self, set: &'static str) -> ProfileError {
        ProfileError::TwoAccounts { name: self.name.clone(), set }
    }
}

/// The name of the profile that a command line or the environment chooses.
pub(super) fn chosen(matches: &ArgMatches) -> Option<String> {
    innermost(matches).try_get_one::<String>("profile").ok().flatten().cloned()
}

fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, matches)| innermost(matches))
}

fn with_defaults(command: Command, settings: &BTreeMap<String, Vec<String>>) -> Command {
    let command = command.mut_args(|arg| {
        let variable = arg.get_env().and_then(|name| name.to_str()?.strip_prefix(PREFIX));
        match variable.and_then(|name| settings.get(&name.to_ascii_lowercase())) {
            // They are needed to the end of the process, and some are secret.
            Some(values) => {
                arg.default_values(values.iter().map(|value| &*value.clone().leak())).hide_default_value(true)
            }
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

/// Refuses a file that others may read or write.
fn check_mode(path: &Path) -> Result<(), ProfileError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0) {
            return Err(ProfileError::OpenToOthers(path.to_owned()));
        }
    }
    #[cfg(not(unix))]
    let _only_its_owner_by_default = path;
    Ok(())
}
