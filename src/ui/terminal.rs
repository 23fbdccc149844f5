//! Stdout and stderr, and the progress below the lines of stderr.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use terminal_size::{Height, Width, terminal_size_of};

use super::page::{Page, painted, wrapped};
use crate::domain::text::one_line;
use crate::domain::{NoticeCode, RefusalCode};

/// The user's settings for output.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    /// True to show only results, errors, and warnings about purchases.
    pub is_quiet: bool,
    /// The level of detail: 0, 1, or 2.
    pub verbosity: u8,
    /// True if a progress bar is shown.
    pub shows_bar: bool,
    /// True if log lines are JSON.
    pub logs_json: bool,
    /// True if a result could not be written.
    pub has_lost_results: Arc<AtomicBool>,
}

/// The minimum width, and the width without a limit.
const NARROWEST: u16 = 40;
const ANY_WIDTH: u16 = u16::MAX;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default();

impl Terminal {
    /// Returns whether a prompt can be shown and answered.
    pub(crate) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Returns whether results go to the terminal.
    pub(crate) fn shows_results(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// The width of results: of the terminal, or unlimited elsewhere.
    pub(crate) fn width(&self) -> u16 {
        columns(terminal_size_of(io::stdout())).unwrap_or(ANY_WIDTH)
    }

    /// The width of stderr, if it is a terminal.
    pub(super) fn columns_for_problems(&self) -> Option<usize> {
        columns(terminal_size_of(io::stderr())).map(usize::from)
    }

    /// Prints a result to stdout. A closed pipe is ignored; any other write error is recorded.
    pub(crate) fn result(&self, page: &Page) {
        // Both streams may be the same terminal.
        let written = above(|| {
            let mut stdout = anstream::stdout().lock();
            let fitted = columns(terminal_size_of(io::stdout())).map(|columns| page.fitted(columns.into()));
            let text = fitted.as_deref().unwrap_or(page.as_str());
            let text = if page.is_data() { text.into() } else { painted(text) };
            stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        });
        if written.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            self.has_lost_results.store(true, Ordering::Relaxed);
        }
    }

    /// Reports once that a result could not be written, for example to a full disk. Returns whether that is so.
    pub(crate) fn tell_lost_results(&self) -> bool {
        let has_lost = self.has_lost_results.swap(false, Ordering::Relaxed);
        if has_lost {
            let (code, help) = (RefusalCode::NotWritable.code(), "check the free space where it goes");
            self.error(Some(code), "can't write the result to stdout", Some(help), None);
        }
        has_lost
    }

    /// A line on stderr, unless quiet.
    pub(crate) fn note(&self, code: NoticeCode, text: &str) {
        match (self.is_quiet, self.logs_json) {
            (true, _) => {}
            (false, true) => tracing::info!(event = "note", code = code.code(), message = text),
            (false, false) => say("", Style::new(), text, 0),
        }
    }

    /// A warning on stderr, unless quiet.
    pub(crate) fn warning(&self, code: NoticeCode, text: &str) {
        if !self.is_quiet {
            self.failure(code, text);
        }
    }

    /// A warning about a purchase or an unfinished job on stderr, also when quiet.
    pub(crate) fn failure(&self, code: NoticeCode, text: &str) {
        let code = code.code();
        if self.logs_json {
            return tracing::warn!(event = "warning", code, message = text);
        }
        say(&format!("warning[{code}]"), WARNING, text, 0);
    }

    /// An error on stderr: message, help, and the consequence for the money.
    pub(crate) fn error(&self, code: Option<&str>, message: &str, help: Option<&str>, note: Option<&str>) {
        if self.logs_json {
            return tracing::error!(event = "error", code, message, help, note);
        }
        say(&code.map_or_else(|| "error".to_owned(), |code| format!("error[{code}]")), ERROR, message, 0);
        for (name, text) in [("note", note), ("help", help)] {
            if let Some(text) = text {
                say(name, HELP, text, 2);
            }
        }
    }

    /// The subject of a question on stderr, also when quiet: a confirmation covers only shown text.
    pub(crate) fn question(&self, page: &Page) {
        if self.logs_json {
            return page.as_str().lines().for_each(|line| tracing::warn!(event = "question", message = line));
        }
        let fitted = columns(terminal_size_of(io::stderr())).map(|columns| page.fitted(columns.into()));
        line(&painted(fitted.as_deref().unwrap_or(page.as_str())));
    }

    /// Asks for a yes. Everything but `y` and `yes` is a no, also the end of input.
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

/// The width of a stream, if it is a terminal, less two columns: a line of the full width would wrap with typed text.
fn columns(of_stream: Option<(Width, Height)>) -> Option<u16> {
    of_stream.map(|(width, _)| width.0.max(NARROWEST).saturating_sub(2))
}

/// A labeled text on stderr, wrapped at words on a terminal.
fn say(name: &str, style: Style, text: &str, margin: usize) {
    let (blank, text) = (" ".repeat(margin), one_line(text));
    let named = if name.is_empty() { text } else { format!("{name}: {text}") };
    let shown = columns(terminal_size_of(io::stderr()))
        .map_or(named.clone(), |columns| wrapped(&named, columns.into(), margin + 2));
    let rest = shown.strip_prefix(name).unwrap_or(&shown);
    line(&format!("{blank}{style}{name}{style:#}{rest}"));
}

/// A line on stderr, always. A closed stderr can't be reported.
pub(super) fn line(text: &str) {
    above(|| {
        let _nobody_listens = writeln!(anstream::stderr().lock(), "{text}");
    });
}

/// The progress below the lines of stderr.
static DRAWN: LazyLock<ProgressBar> = LazyLock::new(|| {
    let message = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(message)
});

/// Columns and rows of stderr, or defaults.
pub(super) fn size() -> (usize, usize) {
    terminal_size_of(io::stderr()).map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

/// Replaces the drawn lines; without new lines, removes them.
pub(super) fn draw(lines: &[String]) {
    if lines.is_empty() {
        DRAWN.finish_and_clear();
    } else {
        DRAWN.set_message(lines.join("\n"));
    }
}

/// Writes to stderr above the drawn lines.
pub(super) fn above<T>(write: impl FnOnce() -> T) -> T {
    DRAWN.suspend(write)
}
