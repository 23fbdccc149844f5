//! Profiles: settings of the user for one account, in the user's own configuration directory and never in a project.
//!
//! A profile sets options, below the environment and the command line. Its limit on runs is no consent. What it says about the service at its base URL
//! is used for no other service.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use toml::Value;

use super::environment;
use crate::domain::Usd;
use crate::files::read_text;
use crate::ledger::PostgresAddress;
use crate::service::Endpoint;

/// The settings that a profile may have, and the variable of each that has one.
const SETTINGS: [(&str, Option<&str>); 10] = [
    ("api_key_command", Some("SHOTLIST_API_KEY_COMMAND")),
    ("asset_command", Some("SHOTLIST_ASSET_COMMAND")),
    ("base_url", Some(BASE_URL)),
    ("catalog", Some("SHOTLIST_CATALOG")),
    ("exec", Some("SHOTLIST_EXEC")),
    ("headers", Some("SHOTLIST_HEADER")),
    ("ledger", Some("SHOTLIST_LEDGER")),
    (MAX_COST, Some("SHOTLIST_MAX_COST")),
    ("reports", Some("SHOTLIST_REPORT")),
    (RETRY_SERVER_ERRORS, None),
];
const BASE_URL: &str = "SHOTLIST_BASE_URL";
const MAX_COST: &str = "max_cost";
const RETRY_SERVER_ERRORS: &str = "retry_server_errors";
/// The settings that may be lists.
const LISTS: [&str; 2] = ["headers", "reports"];
/// The settings that are files, or a database.
const PATHS: [&str; 3] = ["catalog", "ledger", "reports"];
/// The settings that the simulator has for itself.
const OF_REAL_RUNS: [&str; 2] = ["ledger", "reports"];
/// The settings that require a base URL beside them: secrets of its gateway, and the statement that makes it safe to send a request again.
const OF_THE_SERVICE: [&str; 2] = ["headers", RETRY_SERVER_ERRORS];
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
    /// The setting is about a service that the profile does not name.
    #[error("`{setting}` of profile `{name}` requires `base_url` beside it")]
    WithoutUrl { name: String, setting: &'static str },
    /// The URL is of one account, and the key of another.
    #[error("the base URL and the API key must be of one account, found {set} beside that of profile `{name}`")]
    TwoAccounts { name: String, set: &'static str },
    /// With the prices and statements of one service, another would be paid too much, or twice.
    #[error("`{setting}` of profile `{name}` is about its own base URL, found another base URL")]
    OtherService { name: String, setting: &'static str },
}

fn others(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; found: {}", known.join(", ")) }
}

fn must_be(setting: &str) -> &'static str {
    match setting {
        MAX_COST => "an amount in USD, such as `40.00`",
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
        profile.check()?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), ProfileError> {
        for setting in PATHS {
            let is_usable =
                |path: &String| Path::new(path).is_absolute() || setting == "ledger" && PostgresAddress::is_one(path);
            if !self.settings.get(setting).into_iter().flatten().all(is_usable) {
                return Err(ProfileError::Relative { name: self.name.clone(), setting });
            }
        }
        match OF_THE_SERVICE.into_iter().find(|setting| self.has(setting) && !self.has("base_url")) {
            Some(setting) => Err(ProfileError::WithoutUrl { name: self.name.clone(), setting }),
            None => Ok(()),
        }
    }

    /// Returns the variable that overrides a setting, if it is set.
    pub(super) fn overriding(&self, setting: &str) -> Option<&'static str> {
        let of_setting = SETTINGS.iter().find(|(known, _)| *known == setting).and_then(|(_, variable)| *variable);
        let of_key = KEYS.into_iter().filter(|_| setting == "api_key_command");
        let of_service =
            Some(BASE_URL).filter(|_| setting == "headers" && self.has_other_url(text_of(BASE_URL).as_deref()));
        of_key.chain(of_setting).chain(of_service).find(|variable| environment::variable(variable).is_some())
    }

    /// Refuses to be used with the variables of the environment, as a run would.
    pub(super) fn check_environment(&self) -> Result<(), ProfileError> {
        let has_key = KEYS.into_iter().any(|name| environment::variable(name).is_some());
        self.check_service(text_of(BASE_URL).as_deref(), has_key, text_of("SHOTLIST_CATALOG").as_deref())
    }

    /// Removes the settings that do not hold for a command line, which was read without the profile.
    pub(super) fn for_command_line(mut self, matches: &ArgMatches) -> Result<Self, ProfileError> {
        let matches = innermost(matches);
        if matches.try_get_one::<bool>("sandbox").ok().flatten() == Some(&true) {
            self.settings.retain(|setting, _| !OF_REAL_RUNS.contains(&setting.as_str()));
        } else if let Ok(url) = matches.try_get_one::<String>("base_url") {
            let is_given = |id| matches.value_source(id).is_some();
            let has_key =
                is_given("api_key_file") || is_given("api_key_command") || environment::variable(KEYS[0]).is_some();
            let catalog = matches.try_get_one::<PathBuf>("catalog").ok().flatten();
            let url = url.map(String::as_str);
            self.check_service(url, has_key, catalog.map(|path| path.to_string_lossy()).as_deref())?;
            if self.has_other_url(url) {
                self.settings.remove("headers");
            }
            if has_key {
                self.settings.remove("api_key_command");
            }
        }
        Ok(self)
    }

    /// Refuses the URL of the profile with a key from elsewhere, a key of the profile for another URL, and another URL with what the profile says about
    /// its own: also with its catalog under another option.
    fn check_service(&self, url: Option<&str>, has_key: bool, catalog: Option<&str>) -> Result<(), ProfileError> {
        let name = || self.name.clone();
        let (has_other_url, is_whole) = (self.has_other_url(url), self.has("base_url") && self.has("api_key_command"));
        let mixed = match (has_other_url, has_key) {
            (true, false) => Some("another base URL"),
            (false, true) if url.is_none() => Some("another API key"),
            _ => None,
        };
        if let Some(set) = mixed.filter(|_| is_whole) {
            return Err(ProfileError::TwoAccounts { name: name(), set });
        }
        let has_catalog = catalog.is_none() || catalog == self.first("catalog").map(String::as_str);
        let described =
            [("catalog", has_catalog && self.has("catalog")), (RETRY_SERVER_ERRORS, self.retries_server_errors())];
        match described.into_iter().find(|(_, is_described)| has_other_url && *is_described) {
            Some((setting, _)) => Err(ProfileError::OtherService { name: name(), setting }),
            None => Ok(()),
        }
    }

    /// Returns whether a URL is of another service than the profile's.
    fn has_other_url(&self, url: Option<&str>) -> bool {
        let normal = |url: &str| Endpoint::parse(url, true).map_or_else(|_| url.to_owned(), |url| url.to_string());
        let (Some(own), Some(url)) = (self.first("base_url"), url) else { return false };
        normal(own) != normal(url)
    }

    /// Gives the options of a command its settings as their defaults.
    pub(super) fn as_defaults(&self, command: Command) -> Command {
        let command = command.mut_args(|arg| {
            let variable = arg.get_env().and_then(|name| name.to_str());
            let setting = variable.and_then(|name| SETTINGS.iter().find(|(_, variable)| *variable == Some(name)));
            // As an option, the limit on runs would be consent.
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
        // The shortest decimal that is this number.
        (MAX_COST, Value::Float(usd)) => usd.to_string(),
        (MAX_COST, Value::Integer(usd)) => usd.to_string(),
        (RETRY_SERVER_ERRORS, _) => return None,
        (_, Value::String(text)) => text,
        _ => return None,
    };
    (setting != MAX_COST || text.parse::<Usd>().is_ok()).then_some(text)
}

fn text_of(variable: &str) -> Option<String> {
    environment::variable(variable).map(|value| value.to_string_lossy().into_owned())
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
