//! Failure of a command before its work: the error, its help, the money, and the exit code. Four different things,
//! never one text.

use std::path::Path;

use super::exit::Exit;
use crate::domain::RefusalCode;
use crate::ui::{Terminal, quoted};

/// Said of the money where nothing has left this machine.
pub(super) const NOTHING_SENT: &str = "nothing was submitted; nothing was spent";

/// A command that could not do its work.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The code, for scripts; none if a signal ended the command.
    pub code: Option<RefusalCode>,
    /// The error, with its causes.
    pub message: String,
    /// The help.
    pub help: Option<String>,
    /// The consequence for the money.
    pub money: Option<&'static str>,
}

impl Failure {
    /// A failure before anything was sent.
    pub(super) fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { exit: Exit::of(code), code: Some(code), message: message.into(), help: None, money: Some(NOTHING_SENT) }
    }

    /// A failure of a command that has nothing to do with money.
    pub(super) fn plain(code: RefusalCode, message: impl Into<String>) -> Self {
        Self::new(code, message).without_money()
    }

    /// A signal that ended a command before anything was sent.
    pub(super) fn interrupted(signal: i32, message: impl Into<String>) -> Self {
        Self { exit: Exit::Signal(signal), code: None, message: message.into(), help: None, money: Some(NOTHING_SENT) }
    }

    /// The same of a command that has nothing to do with money.
    pub(crate) fn without_money(self) -> Self {
        Self { money: None, ..self }
    }

    /// Shows it.
    pub(super) fn show(self, terminal: &Terminal) {
        terminal.error(self.code.map(RefusalCode::code), &self.message, self.help.as_deref(), self.money);
    }

    /// Names the manifest in the commands of its help.
    pub(super) fn of_manifest(self, manifest: &Path) -> Self {
        let name = quoted(&manifest.to_string_lossy());
        let named = |help: String| {
            [" ", "`"]
                .into_iter()
                .fold(help, |help, end| help.replace(&format!(" MANIFEST{end}"), &format!(" {name}{end}")))
        };
        Self { help: self.help.map(named), ..self }
    }

    /// Adds how to fix it.
    #[must_use]
    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
