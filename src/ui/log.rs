//! Log lines on stderr, above the progress where there is one.

use std::io::{self, Write};

use tracing::Level;

use super::live;

struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        live::above(|| anstream::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        anstream::stderr().flush()
    }
}

/// Starts the log: warnings always, more with `-v`; with JSON, the events of a run too.
pub fn start_log(terminal: &super::Terminal) {
    let level = match (terminal.verbosity, terminal.logs_json, terminal.is_quiet) {
        (_, _, true) => Level::ERROR,
        (0, false, _) => Level::WARN,
        (0 | 1, _, _) => Level::INFO,
        _ => Level::DEBUG,
    };
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(|| Stderr).with_target(false);
    if terminal.logs_json {
        log.json().flatten_event(true).init();
    } else {
        log.without_time().init();
    }
}
