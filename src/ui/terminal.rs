//! Stdout and stderr, and the progress below the lines of stderr.
//!
//! Lines end with line breaks and are not padded, so a resized terminal wraps each line separately. The rows to clear are counted with the new width. A
//! terminal that truncates lines may lose a row.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use parking_lot::{Mutex, MutexGuard};
use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::UnicodeWidthStr as _;

use super::page::{Page, wrapped};
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
            self.error(
                Some(RefusalCode::NotWritable.code()),
                "can't write the result to stdout",
                Some("check the free space where it goes"),
                None,
            );
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

    /// A warning about an unfinished job on stderr, also when quiet.
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

    /// A rendered diagnostic on stderr, with an empty line after it. Its renderer escapes text and adds colors, which a [`Page`] lacks.
    pub(super) fn problem(rendered: &str) {
        line(&format!("{rendered}\n"));
    }

    /// The subject of a question on stderr, also when quiet: a confirmation covers only shown text.
    pub(crate) fn question(&self, page: &Page) {
        if self.logs_json {
            return page.as_str().lines().for_each(|line| tracing::warn!(event = "question", message = line));
        }
        let fitted = columns(terminal_size_of(io::stderr())).map(|columns| page.fitted(columns.into()));
        line(fitted.as_deref().unwrap_or(page.as_str()));
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
fn line(text: &str) {
    above(|| {
        let _nobody_listens = writeln!(anstream::stderr().lock(), "{text}");
    });
}

/// The drawn lines.
static DRAWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Columns and rows of stderr, or defaults.
pub(super) fn size() -> (usize, usize) {
    let size = terminal_size_of(io::stderr());
    size.map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

/// Replaces the drawn lines; without new lines, removes them.
pub(super) fn draw(lines: Vec<String>) {
    let mut drawn = drawn();
    if *drawn == lines {
        return;
    }
    let rows = rows(&drawn, size().0);
    if lines.is_empty() {
        put(&erasure(rows));
    } else {
        // Each line replaces an old one, and the remaining old ones are cleared last: no flicker.
        put(&format!("{}{}\u{1b}[J", to_the_first(rows), lines.join("\u{1b}[K\n")));
    }
    *drawn = lines;
}

/// Writes to stderr above the drawn lines.
pub(super) fn above<T>(write: impl FnOnce() -> T) -> T {
    let drawn = drawn();
    if drawn.is_empty() {
        return write();
    }
    put(&erasure(rows(&drawn, size().0)));
    let written = write();
    put(&drawn.join("\n"));
    written
}

fn drawn() -> MutexGuard<'static, Vec<String>> {
    DRAWN.lock()
}

/// Writes all in one call, so no part is visible alone. A closed stderr can't be reported.
fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    let _nobody_looks = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// The number of rows of lines in a terminal of this width.
fn rows(lines: &[String], width: usize) -> usize {
    lines.iter().map(|line| line.width().div_ceil(width.max(1)).max(1)).sum()
}

/// Moves the cursor from the end of the last row to the start of the first.
fn to_the_first(rows: usize) -> String {
    if rows > 1 { format!("\r\u{1b}[{}A", rows - 1) } else { "\r".to_owned() }
}

/// Clears rows one by one: some terminals save a screen that is cleared as a whole.
fn erasure(rows: usize) -> String {
    if rows == 0 {
        return String::new();
    }
    to_the_first(rows) + &vec!["\u{1b}[2K"; rows].join("\u{1b}[1B") + &to_the_first(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_as_many_rows_as_it_is_wrapped_into() {
        let lines = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let two = lines(&["twelve chars", "three"]);
        for (lines, width, expected) in [(&[][..], 80, 0), (&two, 80, 2), (&two, 12, 2), (&two, 5, 4), (&two, 0, 17)] {
            assert_eq!(rows(lines, width), expected, "{lines:?} at {width}");
        }
        assert_eq!(rows(&lines(&["日本語", ""]), 4), 3, "these letters are two columns wide");
    }

    #[test]
    fn rows_are_taken_away_one_by_one() {
        assert_eq!(erasure(0), "");
        assert_eq!(erasure(1), "\r\u{1b}[2K\r");
        assert_eq!(erasure(3), "\r\u{1b}[2A\u{1b}[2K\u{1b}[1B\u{1b}[2K\u{1b}[1B\u{1b}[2K\r\u{1b}[2A");
    }
}
