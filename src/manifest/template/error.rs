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
    pub fragment: Option<Fragment>,
}

/// A part of a text, after so many that are the same.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub text: String,
    pub earlier: usize,
}

impl Fragment {
    pub(super) fn of(error: &minijinja::Error, source: &str) -> Option<Self> {
        let range = error.range()?;
        let text = source.get(range.clone()).filter(|text| !text.is_empty())?.to_owned();
        let earlier = source.get(..range.start)?.matches(&text).count();
        Some(Self { text, earlier })
    }
}

impl TemplateError {
    /// The part of the string to show.
    pub(crate) fn part(&self) -> Part {
        let fragment = self.fragment.as_ref();
        fragment.map_or(Part::Value, |fragment| Part::Fragment(fragment.text.clone(), fragment.earlier))
    }
}

/// A template that can't be read or filled in, as a finding about the text that holds it.
pub(in crate::manifest) fn template_finding(error: TemplateError, at: Pointer) -> Diagnostic {
    let part = error.part();
    let mut finding = Diagnostic::error(error.rule, error.message, Location::Value(at, part));
    finding.help = error.help;
    finding
}
