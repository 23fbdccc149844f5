//! Options of other tools, with their names here.

use crate::reference::Topic;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A usage error, with a suggestion.
pub(super) fn with_tip(mut usage: clap::Error) -> clap::Error {
    if let Some(tip) = tip(&usage) {
        usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        // Words that are only spelled alike.
        usage.remove(ContextKind::SuggestedSubcommand);
    } else if usage.kind() == ErrorKind::UnknownArgument {
        // That an option could be given as a value helps no one here: no value begins with a dash.
        usage.remove(ContextKind::Suggested);
    }
    usage
}

fn tip(usage: &clap::Error) -> Option<&'static str> {
    let said = |kind| match usage.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (usage.kind(), said(ContextKind::InvalidSubcommand), said(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some("plan" | "price" | "cost" | "estimate"), _) => {
            Some("`shotlist run MANIFEST --plan` prices a manifest and sends nothing")
        }
        (ErrorKind::InvalidSubcommand, Some("validate" | "check" | "lint"), _) => {
            Some("`shotlist run MANIFEST --plan` checks a manifest and sends nothing")
        }
        (ErrorKind::InvalidSubcommand, Some("open" | "view" | "show"), _) => {
            Some("`shotlist report MANIFEST` writes the contact sheet, and shows how to open it")
        }
        (ErrorKind::InvalidSubcommand, Some(topic), _) if Topic::named(topic).is_some() => {
            Some("a topic of the reference is shown by `shotlist help TOPIC`")
        }
        (ErrorKind::InvalidSubcommand, Some(file), _) if is_manifest(file) => {
            Some("a command comes first: `shotlist run MANIFEST`")
        }
        (ErrorKind::UnknownArgument, _, Some("-n" | "--dry" | "--check" | "--validate")) => {
            Some("`--plan` prices a manifest and sends nothing")
        }
        _ => None,
    }
}

fn is_manifest(word: &str) -> bool {
    [".yaml", ".yml"].iter().any(|ending| word.to_lowercase().ends_with(ending))
}
