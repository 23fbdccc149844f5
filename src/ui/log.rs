//! Log lines on stderr, above the progress where there is one. What is in them may come from anywhere, so it passes through
//! the same rule as every other text; colours would not survive that, and a log has none.

use std::io::{self, Write};

use tracing::Level;

use super::live;
use crate::domain::printable;

struct Stderr {
    is_json: bool,
}

impl Write for Stderr {
    /// Takes a whole line, as a logger hands it over.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim_end_matches('\n');
        let line = if self.is_json { printable::json(line) } else { printable::one_line(line) };
        live::above(|| writeln!(anstream::stderr().lock(), "{line}"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        anstream::stderr().flush()
    }
}

/// Starts the log: warnings always, more with `-v`; with JSON, the events of a run too.
pub(crate) fn start_log(terminal: &super::Terminal) {
    let level = match (terminal.verbosity, terminal.logs_json, terminal.is_quiet) {
        (_, _, true) => Level::ERROR,
        (0, false, _) => Level::WARN,
        (0 | 1, _, _) => Level::INFO,
        _ => Level::DEBUG,
    };
    let log = tracing_subscriber::fmt().with_max_level(level).with_target(false).with_ansi(false);
    let is_json = terminal.logs_json;
    let log = log.with_writer(move || Stderr { is_json });
    if terminal.logs_json {
        log.json().flatten_event(true).init();
    } else {
        log.without_time().init();
    }
}
