//! Profiles: settings of the user for one account, in the user's own configuration directory and never in a project.
//!
//! A profile says what the environment would say. The command line and the environment have more say. Its limit on a run is consent only where no
//! one can be asked, as that of the manifest is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use toml::Value;

use super::environment;
use crate::domain::Usd;
use crate::files::read_text;
use crate::ledger::PostgresAddress;

/// The settings that a profile may have, and the variable of each that has one.
const SETTINGS: [(&str, Option<&str>); 10] = [
    ("api_key_command", Some("SHOTLIST_API_KEY_COMMAND")),
    ("asset_command", Some("SHOTLIST_ASSET_COMMAND")),
    ("base_url", Some("SHOTLIST_BASE_URL")),
    ("catalog", Some("SHOTLIST_CATALOG")),
    ("exec", Some("SHOTLIST_EXEC")),
    ("headers", Some("SHOTLIST_HEADER")),
    ("ledger", Some("SHOTLIST_LEDGER")),
    (MAX_COST, Some("SHOTLIST_MAX_COST")),
    ("reports", Some("SHOTLIST_REPORT")),
    (RETRY_SERVER_ERRORS, None),
];
const MAX_COST: &str = "max_cost";
const RETRY_SERVER_ERRORS: &str = "retry_server_errors";
/// The settings that may be lists.
const LISTS: [&str; 2] = ["headers", "reports"];
/// The settings that are files, or a database.
const PATHS: [&str; 3] = ["catalog", "ledger", "reports"];
/// The settings that the simulator has for itself.
const OF_REAL_RUNS: [&str; 2] = ["ledger", "reports"];
/// The settings that describe the service at the profile's base URL: a secret of its gateway, or what makes it safe to send a request again.
const OF_THE_SERVICE: [&str; 3] = ["catalog", "headers", RETRY_SERVER_ERRORS];
/// The variables that set the key.
const KEYS: [&str; 3] = ["SHOTLIST_API_KEY", "SHOTLIST_API_KEY_FILE", "SHOTLIST_API_KEY_COMMAND"];
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
    #[error("profile `{name}` has the unknown setting `{setting}`; a profile may have: {}", SETTINGS.map(|(setting, _)| setting).join(", "))]
    UnknownSetting { name: String, setting: String },
    /// A value of another type.
    #[error("`{setting}` of profile `{name}` must be {}", must_be(setting))]
    Mistyped { name: String, setting: String },
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

fn must_be(setting: &str) -> &'static str {
    match setting {
        MAX_COST => "an amount in USD, such as \"40.00\"",
        RETRY_SERVER_ERRORS => "true or false",
        _ if LISTS.contains(&setting) => "a string, or a list of strings",
        _ => "a string",
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
            if !SETTINGS.iter().any(|(known, _)| *known == setting) {
                return Err(ProfileError::UnknownSetting { name, setting });
            }
            let values = match value {
                Value::Array(values) if LISTS.contains(&setting.as_str()) => values,
                value => vec![value],
            };
            let Some(texts) = values.into_iter().map(|value| as_text(&setting, value)).collect() else {
                return Err(ProfileError::Mistyped { name, setting });
            };
            settings.insert(setting, texts);
        }
        let profile = Self { name: name.to_owned(), path, settings };
        profile.check_paths()?;
        Ok(profile)
    }

    fn check_paths(&self) -> Result<(), ProfileError> {
        for setting in PATHS {
            let mut paths = self.settings.get(setting).into_iter().flatten();
            if paths.any(|path| !PostgresAddress::is_one(path) && !Path::new(path).is_absolute()) {
                return Err(ProfileError::Relative { name: self.name.clone(), setting });
            }
        }
        Ok(())
    }

    /// Returns the variable that overrides a setting, if it is set.
    pub(super) fn overriding(&self, setting: &str) -> Option<&'static str> {
        let of_setting = SETTINGS.iter().find(|(known, _)| *known == setting).and_then(|(_, variable)| *variable);
        let of_key = KEYS.into_iter().filter(|_| setting == "api_key_command");
        let of_service =
            Some("SHOTLIST_BASE_URL").filter(|_| OF_THE_SERVICE.contains(&setting) && self.has("base_url"));
        of_key.chain(of_setting).chain(of_service).find(|variable| environment::variable(variable).is_some())
    }

    /// Removes the settings that do not hold for a command line, which was read without the profile. Refuses the base URL of the profile with a key
    /// that the command line or the environment sets, and the other way round.
    pub(super) fn for_command_line(mut self, matches: &ArgMatches) -> Result<Self, ProfileError> {
        let matches = innermost(matches);
        if matches.try_get_one::<bool>("sandbox").ok().flatten() == Some(&true) {
            self.settings.retain(|setting, _| !OF_REAL_RUNS.contains(&setting.as_str()));
        } else if matches.try_contains_id("base_url").is_ok() {
            let is_given = |id| matches.value_source(id).is_some();
            let has_key =
                is_given("api_key_file") || is_given("api_key_command") || environment::variable(KEYS[0]).is_some();
            let has_other_url = is_given("base_url") && self.has("base_url");
            let is_whole = self.has("base_url") && self.has("api_key_command");
            match (has_other_url, has_key) {
                (true, false) if is_whole => return Err(self.two_accounts("the base URL")),
                (false, true) if is_whole => return Err(self.two_accounts("the API key")),
                _ => {}
            }
            self.settings.retain(|setting, _| {
                !(has_other_url && OF_THE_SERVICE.contains(&setting.as_str())
                    || has_key && setting == "api_key_command")
            });
        }
        Ok(self)
    }

    /// Gives the options of a command its settings as their defaults.
    pub(super) fn as_defaults(&self, command: Command) -> Command {
        let command = command.mut_args(|arg| {
            let variable = arg.get_env().and_then(|name| name.to_str());
            let setting = variable.and_then(|name| SETTINGS.iter().find(|(_, variable)| *variable == Some(name)));
            // The limit on a run is not one that was said on the command line.
            match setting.and_then(|(setting, _)| self.settings.get(*setting)).filter(|_| arg.get_id() != MAX_COST) {
                // They are needed to the end of the process, and some are secret.
                Some(values) => {
                    arg.default_values(values.iter().map(|value| &*value.clone().leak())).hide_default_value(true)
                }
                None => arg,
            }
        });
        command.mut_subcommands(|command| self.as_defaults(command))
    }

    /// The maximum new spending of a run.
    pub(super) fn max_cost(&self) -> Option<Usd> {
        self.first(MAX_COST)?.parse().ok()
    }

    /// Returns whether a server error of its service means that nothing was bought.
    pub(super) fn retries_server_errors(&self) -> bool {
        self.first(RETRY_SERVER_ERRORS).is_some_and(|text| text == "true")
    }

    fn has(&self, setting: &str) -> bool {
        self.settings.contains_key(setting)
    }

    fn first(&self, setting: &str) -> Option<&String> {
        self.settings.get(setting)?.first()
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

/// The text of a value; none if it has another type than its setting.
fn as_text(setting: &str, value: Value) -> Option<String> {
    let text = match (setting, value) {
        (RETRY_SERVER_ERRORS, Value::Boolean(is_so)) => is_so.to_string(),
        // The shortest decimal that is this number: as it was written.
        (MAX_COST, Value::Float(usd)) => usd.to_string(),
        (MAX_COST, Value::Integer(usd)) => usd.to_string(),
        (RETRY_SERVER_ERRORS, _) => return None,
        (_, Value::String(text)) => text,
        _ => return None,
    };
    (setting != MAX_COST || text.parse::<Usd>().is_ok()).then_some(text)
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
