//! The result of `shotlist doctor`: a line for each check.

use schemars::JsonSchema;
use serde::Serialize;

use super::page::Page;

/// The result of all checks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChecksView {
    /// True if a run can begin.
    pub is_ok: bool,
    /// The checks, in their order.
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Check {
    /// The subject.
    pub name: &'static str,
    /// True if nothing is wrong.
    pub is_ok: bool,
    /// The diagnostic.
    pub message: String,
    /// The help, if something is wrong.
    pub help: Option<String>,
}

impl ChecksView {
    /// Sums up checks.
    pub(crate) fn of(checks: Vec<Check>) -> Self {
        Self { is_ok: checks.iter().all(|check| check.is_ok), checks }
    }

    /// One line for each check.
    pub(crate) fn text(&self) -> Page {
        let mut page = Page::new();
        for Check { name, is_ok, message, help } in &self.checks {
            let mark = if *is_ok { "ok" } else { "problem" };
            let help = help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
            page.line(format_args!("{mark:<9}{name}: {message}{help}"));
        }
        page
    }
}
