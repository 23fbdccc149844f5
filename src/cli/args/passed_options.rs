//! The options that the user passed, for printed commands.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

/// The headings of options whose variables are repeated: without one, the command would be about other jobs, money, or files.
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
