//! Errors of templates.

use crate::domain::Rule;
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::source::location::{Location, Part, Pointer};

/// The reason why a template can't be rendered.
#[derive(Debug)]
pub(crate) struct TemplateError {
    /// The rule that is broken.
    pub rule: Rule,
    /// The error.
    pub message: String,
    /// The help.
    pub help: Option<String>,
    /// The part of the text that is at fault.
    pub part: Part,
}

impl TemplateError {
    /// An error of a whole text.
    pub(super) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { rule: Rule::Template, message: message.into(), help: Some(help.into()), part: Part::Value }
    }

    /// The same for a part of the text.
    pub(super) fn at(self, part: Part) -> Self {
        Self { part, ..self }
    }
}

/// The part of a text that an error is about.
pub(super) fn part_of(error: &minijinja::Error, source: &str) -> Part {
    let part = || {
        let range = error.range()?;
        let text = source.get(range.clone()).filter(|text| !text.is_empty())?.to_owned();
        let earlier = source.get(..range.start)?.matches(&text).count();
        Some(Part::Fragment(text, earlier))
    };
    part().unwrap_or(Part::Value)
}

/// A template that can't be read or filled in, as a diagnostic about the text that holds it.
pub(in crate::manifest) fn template_diagnostic(error: TemplateError, at: Pointer) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(error.rule, error.message, Location::Value(at, error.part));
    diagnostic.help = error.help;
    diagnostic
}
