//! The two streams, and what they can show.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};

use super::page::Page;
use crate::domain::printable::one_line;

/// How the user wants things shown, and where they go.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    /// Nothing but results and errors.
    pub is_quiet: bool,
    /// How much more to say: 0, 1 or 2.
    pub verbosity: u8,
    /// Whether to show a progress bar.
    pub shows_bar: bool,
    /// Whether log lines are JSON.
    pub logs_json: bool,
    /// Whether a result could not be written.
    pub has_lost_results: Arc<AtomicBool>,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default();

impl Terminal {
    /// Whether a question can be asked: somebody sees it, and somebody can answer.
    #[must_use]
    pub(crate) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// The columns to fit results into: the terminal's, or 80 where there is none.
    #[must_use]
    pub(crate) fn width(&self) -> u16 {
        terminal_size::terminal_size().map_or(80, |(width, _)| width.0.max(40))
    }

    /// A result, to stdout. A reader that is gone needs none; a result that can't be written is remembered.
    pub(crate) fn result(&self, page: &Page) {
        // Both streams may go to the same terminal.
        let written = super::live::above(|| {
            let mut stdout = anstream::stdout().lock();
            stdout.write_all(page.as_str().as_bytes()).and_then(|()| stdout.flush())
        });
        if written.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            self.has_lost_results.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a result could not be written, to a full disk for example.
    #[must_use]
    pub(crate) fn has_lost_results(&self) -> bool {
        self.has_lost_results.load(Ordering::Relaxed)
    }

    /// A line for whoever looks, to stderr; not when quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_quiet {
            line(&one_line(text));
        }
    }

    /// A warning, to stderr; not when quiet.
    pub(crate) fn warning(&self, text: &str) {
        if !self.is_quiet {
            line(&format!("{WARNING}warning{WARNING:#}: {}", one_line(text)));
        }
    }

    /// Something that keeps a job from being done, to stderr, also when quiet: that is what a person has to know.
    pub(crate) fn failure(&self, text: &str) {
        line(&format!("{WARNING}warning{WARNING:#}: {}", one_line(text)));
    }

    /// An error, to stderr: what happened, how to mend it, what it means for the money.
    pub(crate) fn error(&self, message: &str, help: Option<&str>, money: Option<&str>) {
        line(&format!("{ERROR}error{ERROR:#}: {}", one_line(message)));
        for (name, text) in [("help", help), ("money", money)] {
            if let Some(text) = text {
                line(&format!("  {HELP}{name}{HELP:#}: {}", one_line(text)));
            }
        }
    }

    /// A rendered finding, to stderr, with an empty line behind it. Its renderer makes harmless what it shows, and adds the
    /// colours, which a [`Page`] has none of.
    pub(super) fn problem(rendered: &str) {
        line(&format!("{rendered}\n"));
    }

    /// What a question is about, to stderr, also when quiet: nobody can agree to what was not shown.
    pub(crate) fn question(&self, page: &Page) {
        line(page.as_str());
    }

    /// Asks a question that wants a yes; everything but `y` and `yes` is a no, and so is the end of input.
    #[must_use]
    pub(crate) fn ask(&self, question: &str) -> bool {
        let mut stderr = anstream::stderr().lock();
        if write!(stderr, "{} [y/N] ", one_line(question)).and_then(|()| stderr.flush()).is_err() {
            return false;
        }
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).is_ok()
            && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }
}

/// A line to stderr, whatever was asked for. Nobody can be told that stderr is gone.
fn line(text: &str) {
    super::live::above(|| {
        let _nobody_listens = writeln!(anstream::stderr().lock(), "{text}");
    });
}
