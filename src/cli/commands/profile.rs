//! `shotlist profile`: shows the settings of a profile, and what overrides them.

use crate::cli::args::{ProfileArgs, ProfileCommand};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::profile::Profile;
use crate::domain::RefusalCode;
use crate::ledger::LedgerAddress;
use crate::service::Endpoint;
use crate::ui::{Page, Terminal};

/// Shows a profile.
pub(super) fn profile(args: &ProfileArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let ProfileCommand::Show = args.command;
    let Some(name) = &args.profile else {
        let failure = Failure::plain(RefusalCode::OptionInvalid, "the profile is not set");
        return Err(failure.with_help("pass `--profile NAME`, or set `SHOTLIST_PROFILE`"));
    };
    // It was read before, for the defaults of options.
    let profile = Profile::read(name).map_err(|error| Failure::plain(RefusalCode::OptionInvalid, error.to_string()))?;
    let mut page = Page::new();
    page.line(format_args!("{} in {}", profile.name, profile.path.display()));
    for (setting, values) in &profile.settings {
        let source = match profile.overriding(setting) {
            Some(variable) => format!("overridden by {variable}"),
            None => "from the profile".to_owned(),
        };
        page.line(format_args!("{setting}: {} ({source})", shown(setting, values)));
    }
    if let Err(error) = profile.check_environment() {
        page.line(format_args!("with these variables, a run is refused: {error}"));
    }
    terminal.result(&page);
    Ok(Exit::Done)
}

/// The value of a setting without what may be secret in it.
fn shown(setting: &str, values: &[String]) -> String {
    let hidden = || "***".to_owned();
    let values = values.iter().map(|value| match setting {
        "headers" => value.split_once('=').map_or_else(hidden, |(name, _)| format!("{name}=***")),
        "ledger" => LedgerAddress::new(value.as_ref(), &|_| None).map_or_else(|_| hidden(), |it| it.to_string()),
        "base_url" => Endpoint::parse(value, true).map_or_else(|_| hidden(), |endpoint| endpoint.origin()),
        "catalog" | "max_cost" | "reports" | "retry_server_errors" => value.clone(),
        // Arguments of a program.
        _ => match value.split_once(' ') {
            Some((program, _)) => format!("{program} ***"),
            None => value.clone(),
        },
    });
    values.collect::<Vec<_>>().join(", ")
}
