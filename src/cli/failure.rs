//! Why a command ended before its work: what happened, how to mend it, what it means for the money, and the exit code.
//! Four different things, never one text.

use super::exit::Exit;
use crate::domain::RefusalCode;
use crate::ui::Terminal;

/// Said of the money where nothing has left this machine.
pub(super) const NOTHING_SENT: &str = "nothing was sent, and nothing was spent";

/// A command that could not do its work.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The code of a refusal.
    pub code: Option<RefusalCode>,
    /// What happened, with its causes.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
    /// What it means for the money.
    pub money: Option<&'static str>,
}

impl Failure {
    /// A failure before anything was sent.
    pub(super) fn before_sending(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, code: None, message: message.into(), help: None, money: Some(NOTHING_SENT) }
    }

    /// A failure of a command that has nothing to do with money.
    pub(super) fn plain(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, code: None, message: message.into(), help: None, money: None }
    }

    /// Shows it.
    pub(super) fn show(self, terminal: &Terminal) {
        terminal.error(self.code, &self.message, self.help.as_deref(), self.money);
    }

    /// Adds the code of a refusal.
    #[must_use]
    pub(super) fn with_code(self, code: RefusalCode) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Adds how to mend it.
    #[must_use]
    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
