//! The options that were given, to give them again in a printed command.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

/// The headings of options that are repeated from the environment: which jobs, which ledger, how much, and where to.
const REPEATED: [&str; 5] = ["Manifest", "Jobs", "Money", "Buying again", "Files"];

/// The values of the given options of a command, by ID, each with its source.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenOptions(BTreeMap<String, (ValueSource, Vec<String>)>);

impl Args for GivenOptions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for GivenOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |id: &str| {
            let is_off = matches.try_get_one::<bool>(id).is_ok_and(|switch| switch == Some(&false));
            let source = matches.value_source(id).filter(|source| *source != ValueSource::DefaultValue && !is_off)?;
            let values = matches.get_raw(id)?.map(|value| value.to_string_lossy().into_owned());
            Some((id.to_owned(), (source, values.collect())))
        };
        Ok(Self(matches.ids().filter_map(|id| given(id.as_str())).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl GivenOptions {
    /// Adds an option.
    #[must_use]
    pub(crate) fn with(mut self, id: &str, value: &str) -> Self {
        self.0.insert(id.to_owned(), (ValueSource::CommandLine, vec![value.to_owned()]));
        self
    }

    /// The words that give an option again, without the secret of a header. What the environment says is repeated where a mistake would buy
    /// something else, but for the URL of a ledger, which may contain a password.
    pub(crate) fn words(&self, arg: &Arg) -> Vec<String> {
        let (Some(long), Some((source, values))) = (arg.get_long(), self.0.get(arg.get_id().as_str())) else {
            return Vec::new();
        };
        let is_said = match source {
            ValueSource::CommandLine => arg.get_id() != "header",
            _ if arg.get_id() == "ledger" => !values.iter().any(|value| value.contains("://")),
            _ => REPEATED.contains(&arg.get_help_heading().unwrap_or_default()),
        };
        let words = |value: &String| match arg.get_action().takes_values() {
            false => vec![format!("--{long}")],
            // After a space, it would be an option.
            true if value.starts_with('-') => vec![format!("--{long}={value}")],
            true => vec![format!("--{long}"), value.clone()],
        };
        if is_said { values.iter().flat_map(words).collect() } else { Vec::new() }
    }
}
