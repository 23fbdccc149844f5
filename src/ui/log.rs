//! Log lines on stderr, above the progress bar where there is one.

use std::io::{self, Write};
use std::sync::OnceLock;

use indicatif::MultiProgress;
use tracing::Level;

/// The bars that lines must not be written through.
static BARS: OnceLock<MultiProgress> = OnceLock::new();

/// Registers the bars of this process.
pub fn set_bars(bars: MultiProgress) {
    // There is one run in a process; a second would show its bar all the same.
    let _set_before = BARS.set(bars);
}

/// Does something with stderr while no bar is in the way.
pub fn above_the_bar<T>(write: impl FnOnce() -> T) -> T {
    match BARS.get() {
        Some(bars) => bars.suspend(write),
        None => write(),
    }
}

struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        above_the_bar(|| anstream::stderr().write(bytes))
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
