//! Options of several commands, the values that name a path or a ledger, and the options that the user passed, for printed commands.
//!
//! Where no shell expands `~/`, as in a unit of systemd or behind `--out=`, it is expanded here. Other names that only a shell expands are refused: the
//! name itself would become a directory, and a ledger in it would be empty.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{BoolishValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueEnum};
use jiff::SpanRelativeTo;

use crate::ledger::LedgerAddress;

/// The manifest, and additions to it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Manifest")]
pub(crate) struct ManifestArgs {
    // The first field: each later one removes its value from the matches.
    #[command(flatten)]
    pub passed: PassedOptions,
    /// Manifest to read, or - for stdin
    #[arg(value_parser = PathParser, help_heading = "Arguments", index = 1, display_order = 1)]
    pub manifest: PathBuf,
    /// Override a variable under `vars`; repeatable
    #[arg(long, hide_short_help = true, env = "SHOTLIST_SET", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub set: Vec<(String, String)>,
    /// Allow the manifest to read files below DIR
    #[arg(value_parser = PathParser, long, hide_short_help = true, env = "SHOTLIST_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Use this batch instead of the manifest's; `''` is the unnamed batch
    #[arg(long, env = "SHOTLIST_BATCH", value_name = "KEY")]
    pub batch: Option<String>,
    /// Catalog that adds models or changes prices
    #[arg(value_parser = PathParser, long, hide_short_help = true, env = "SHOTLIST_CATALOG", value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// Ledger, a file or a PostgreSQL database [default: .shotlist/ledger.db beside the manifest]
    #[arg(value_parser = LedgerParser, long, hide_short_help = true, env = "SHOTLIST_LEDGER", value_name = "PATH|postgres://…")]
    pub ledger: Option<NamedLedger>,
    /// Use the built-in simulator and its own ledger: nothing is paid, and no question is necessary
    #[arg(long, env = "SHOTLIST_SANDBOX", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub sandbox: bool,
}

/// The selection of jobs.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Jobs")]
pub(crate) struct SelectArgs {
    /// Select jobs by ID, or by `@FILE` with IDs or kept choices; repeatable
    #[arg(long, env = "SHOTLIST_SELECT", value_name = "GLOB|@FILE")]
    pub select: Vec<String>,
    /// Exclude jobs by ID; repeatable
    #[arg(long, env = "SHOTLIST_EXCLUDE", value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Select jobs with this tag; repeatable
    #[arg(long, env = "SHOTLIST_TAG", value_name = "TAG")]
    pub tag: Vec<String>,
}

/// The paths of reports and videos.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct ReportArgs {
    /// Directory for reports and videos [default: shotlist-out/NAME[/BATCH]]
    ///
    /// It is beside the manifest. With `--sandbox`, it is `shotlist-sandbox/NAME[/BATCH]`, or `sandbox` in DIR
    #[arg(value_parser = PathParser, long, env = "SHOTLIST_OUT", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write another report: csv, xlsx, json, html, or otio; repeatable
    #[arg(value_parser = PathParser, long, hide_short_help = true, env = "SHOTLIST_REPORT", value_name = "PATH")]
    pub report: Vec<PathBuf>,
    /// Give an otio report a track for each value of a label
    #[arg(value_parser = label, long, hide_short_help = true, env = "SHOTLIST_TRACK", value_name = "label.NAME")]
    pub track: Option<String>,
}

/// The service. Its address and key never come from a manifest.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceArgs {
    /// Base URL of the service
    #[arg(long, env = "SHOTLIST_BASE_URL", value_name = "URL")]
    pub base_url: Option<String>,
    /// File with the API key [default: the key in `SHOTLIST_API_KEY`]
    #[arg(value_parser = PathParser, long, hide_short_help = true, env = "SHOTLIST_API_KEY_FILE", value_name = "PATH")]
    pub api_key_file: Option<PathBuf>,
    /// Program that prints the API key
    ///
    /// It runs without a shell. Its first line is the key
    #[arg(long, hide_short_help = true, env = "SHOTLIST_API_KEY_COMMAND", value_name = "CMD")]
    pub api_key_command: Option<String>,
    /// Header for a gateway; repeatable
    ///
    /// shotlist sends it with each request to the service. In the environment, write one per line
    #[arg(long, hide_short_help = true, env = "SHOTLIST_HEADER", value_name = "NAME=VALUE", value_delimiter = '\n')]
    pub header: Vec<String>,
    /// Allow plain HTTP to other machines, also for the key
    #[arg(long, hide_short_help = true, env = "SHOTLIST_ALLOW_HTTP", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub allow_http: bool,
    /// Allow downloads from private network addresses
    #[arg(long, hide_short_help = true, env = "SHOTLIST_ALLOW_PRIVATE_HOSTS", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub allow_private_hosts: bool,
    /// Reassign active tasks to the current URL and API key
    #[arg(long, hide_short_help = true, env = "SHOTLIST_SAME_ACCOUNT", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub same_account: bool,
}

/// The form of log lines, or of limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The form of a status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StatusFormat {
    Text,
    Json,
    Markdown,
    Prometheus,
}

pub(super) fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    if name.is_empty() {
        return Err("the name before the = is empty".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// The name of the label in `label.NAME`.
fn label(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("label.").filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| "write `label.NAME` with the name of a label".to_owned())
}

/// A decimal number in a range.
pub(super) fn decimal(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("write a number from {} to {}", range.start(), range.end()))
    }
}

/// A count that is not nothing.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&count| count > 0).ok_or_else(|| "write a whole number from 1".to_owned())
}

/// `10s`, `500ms`, `1m30s`, `1d`; a day has 24 hours.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.trim().parse().and_then(|span: jiff::Span| span.to_duration(SpanRelativeTo::days_are_24_hours()));
    let duration = parsed.ok().and_then(|parsed| Duration::try_from(parsed).ok());
    let duration = duration.ok_or("write a duration with its unit, such as 500ms, 10s, 2m, 1h30m or 1d")?;
    if duration > Duration::from_hours(24 * 30) {
        return Err("that is more than thirty days".to_owned());
    }
    Ok(duration)
}

/// The ledger that a user named.
#[derive(Clone, Debug)]
pub(crate) struct NamedLedger {
    pub address: LedgerAddress,
    /// True if the address is from the environment.
    pub is_from_environment: bool,
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

/// The path of a text with `~/`. The home directory is read only for these, because a C library may connect to a system service for it.
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
            database @ LedgerAddress::Database(_) => database,
        };
        let is_from_environment = source != ValueSource::CommandLine;
        match &address {
            LedgerAddress::Database(database) if database.has_password() && !is_from_environment => {
                let help = "set the password in `PGPASSWORD` or `PGPASSFILE`, or the whole URL in `SHOTLIST_LEDGER`";
                let message = "`--ledger` contains a password, which every user of this machine can read";
                Err(refuse(format!("{message}\n  help: {help}")))
            }
            _ => Ok(NamedLedger { address, is_from_environment }),
        }
    }
}

/// The headings of options with repeated variables. Without them, the printed command would have other jobs, money, or files.
const WITH_VARIABLES: [&str; 5] = ["Manifest", "Jobs", "Money", "Buying again", "Files"];

/// The source and the values of each passed option, by its ID.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassedOptions(BTreeMap<String, (ValueSource, Vec<String>)>);

impl Args for PassedOptions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for PassedOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let passed = |id: &str| {
            let is_off = matches.try_get_one::<bool>(id).is_ok_and(|switch| switch == Some(&false));
            let source = matches.value_source(id).filter(|source| *source != ValueSource::DefaultValue && !is_off)?;
            let values = matches.get_raw(id)?.map(|value| value.to_string_lossy().into_owned());
            Some((id.to_owned(), (source, values.collect())))
        };
        Ok(Self(matches.ids().filter_map(|id| passed(id.as_str())).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl PassedOptions {
    /// Replaces an option.
    pub(crate) fn with(mut self, id: &str, value: &str) -> Self {
        self.0.insert(id.to_owned(), (ValueSource::CommandLine, vec![value.to_owned()]));
        self
    }

    /// The words of an option, if it was passed. Leaves out a header, which may be a secret, and the variable of a ledger's URL, which may contain
    /// a password.
    pub(crate) fn words(&self, arg: &Arg) -> Vec<String> {
        let (Some(long), Some((source, values))) = (arg.get_long(), self.0.get(arg.get_id().as_str())) else {
            return Vec::new();
        };
        let is_repeated = match source {
            ValueSource::CommandLine => arg.get_id() != "header",
            _ if arg.get_id() == "ledger" => !values.iter().any(|value| value.contains("://")),
            _ => WITH_VARIABLES.contains(&arg.get_help_heading().unwrap_or_default()),
        };
        let words = |value: &String| match arg.get_action().takes_values() {
            false => vec![format!("--{long}")],
            // After a space, it would be an option.
            true if value.starts_with('-') => vec![format!("--{long}={value}")],
            true => vec![format!("--{long}"), value.clone()],
        };
        if is_repeated { values.iter().flat_map(words).collect() } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_do() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("1d12h"), Ok(Duration::from_hours(36)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));

        for bad in ["", "5", "1.5", "-1s", "-1", "ten", "1 fortnight", "NaN", "inf", "1000d", "1mo"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
    }

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
