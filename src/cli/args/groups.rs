//! Groups of options that several commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{ArgAction, Args};

/// Which manifest, and what is added to it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Manifest")]
pub(crate) struct ManifestArgs {
    /// The YAML file that lists the jobs, or - for the standard input
    #[arg(help_heading = "Arguments", index = 1, display_order = 1)]
    pub manifest: PathBuf,
    /// Override a var of the manifest; repeatable
    #[arg(long, env = "SHOTLIST_SET", hide_env_values = true, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub set: Vec<(String, String)>,
    /// Let the manifest read files in this folder and below, and not only in its own
    #[arg(long, env = "SHOTLIST_ROOT", hide_env_values = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Use this batch value instead of the manifest's
    #[arg(long, env = "SHOTLIST_BATCH", hide_env_values = true, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub batch: Option<String>,
    /// The batch that has no name: what a manifest without `batch` makes
    #[arg(long, conflicts_with = "batch")]
    pub no_batch: bool,
    /// A catalogue that adds models or changes prices
    #[arg(long, env = "SHOTLIST_CATALOG", hide_env_values = true, value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// The ledger, in a file or on PostgreSQL [default: .shotlist/ledger.db beside the manifest]
    #[arg(long, env = "SHOTLIST_LEDGER", hide_env_values = true, value_name = "PATH|postgres://…")]
    pub ledger: Option<PathBuf>,
    /// Use the built-in simulator on loopback: no key, no money, a ledger and a folder of its own
    #[arg(long, env = "SHOTLIST_SANDBOX", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub sandbox: bool,
}

impl ManifestArgs {
    /// The batch, where it is not the manifest's own; empty for the one without a name.
    pub(crate) fn batch(&self) -> Option<&str> {
        if self.no_batch { Some("") } else { self.batch.as_deref() }
    }
}

/// Which jobs.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which jobs")]
pub(crate) struct SelectArgs {
    /// Only jobs whose id matches, or @FILE for the ids that a file names or that were kept on the page; repeatable
    #[arg(long, env = "SHOTLIST_SELECT", hide_env_values = true, value_name = "GLOB|@FILE")]
    pub select: Vec<String>,
    /// No jobs whose id matches; repeatable
    #[arg(long, env = "SHOTLIST_EXCLUDE", hide_env_values = true, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Only jobs with this tag; repeatable
    #[arg(long, env = "SHOTLIST_TAG", hide_env_values = true, value_name = "TAG")]
    pub tag: Vec<String>,
}

/// Where reports and videos go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct ReportArgs {
    /// The folder for reports and videos [default: shotlist-out/NAME[/BATCH] beside the manifest, with --sandbox
    /// shotlist-sandbox/NAME[/BATCH]; with both, a folder `sandbox` in DIR]
    #[arg(long, env = "SHOTLIST_OUT", hide_env_values = true, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// One more report, its form by extension (csv, xlsx, json, html); repeatable
    #[arg(long, env = "SHOTLIST_REPORT", hide_env_values = true, value_name = "PATH")]
    pub report: Vec<PathBuf>,
}

/// The service. Its address and key never come from a manifest.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceArgs {
    /// The service's base address
    #[arg(long, env = "SHOTLIST_BASE_URL", hide_env_values = true, value_name = "URL")]
    pub base_url: Option<String>,
    /// A file with the API key [default: the key in `SHOTLIST_API_KEY`]
    #[arg(long, env = "SHOTLIST_API_KEY_FILE", hide_env_values = true, value_name = "PATH")]
    pub api_key_file: Option<PathBuf>,
    /// A header for a gateway in front of the service, with every request to it; repeatable, in the environment one a line
    #[arg(long, env = "SHOTLIST_HEADER", hide_env_values = true, value_name = "NAME=VALUE", value_delimiter = '\n')]
    pub header: Vec<String>,
    /// Let the key travel over plain http to other machines, and take videos over it
    #[arg(long, env = "SHOTLIST_ALLOW_HTTP", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub allow_http: bool,
    /// Follow links of videos into this machine's own network, also when the service is elsewhere
    #[arg(long, env = "SHOTLIST_ALLOW_PRIVATE_HOSTS", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub allow_private_hosts: bool,
    /// Outstanding tasks belong to this address and key, though they were submitted with others
    #[arg(long, env = "SHOTLIST_SAME_ACCOUNT", hide_env_values = true, value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub same_account: bool,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    if name.is_empty() {
        return Err("the name before the = is empty".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// A count that is not nothing.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&count| count > 0).ok_or_else(|| "write a whole number from 1".to_owned())
}

/// `10s`, `500ms`, `1m30s`, `1d`; a plain number is seconds, and a day has 24 hours.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write a duration such as 500ms, 10s, 2m, 1h30m or 1d".to_owned();
    let duration = if let Ok(seconds) = text.trim().parse::<f64>() {
        Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?
    } else {
        let parsed: jiff::Span = text.trim().parse().map_err(|_| wrong())?;
        let parsed = parsed.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
        Duration::try_from(parsed).map_err(|_| wrong())?
    };
    if duration > Duration::from_hours(24 * 30) {
        return Err("that is more than thirty days".to_owned());
    }
    Ok(duration)
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
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        for bad in ["", "-1s", "-1", "ten", "1 fortnight", "NaN", "inf", "1000d", "1mo"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
    }
}
