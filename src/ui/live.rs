//! The lines at the bottom of a terminal that are drawn again and again, and everything else that goes to stderr above them.
//!
//! Lines are ended by line breaks and never padded, so a terminal that is made narrower or wider wraps each of them on its own. How
//! many rows they take is then a matter of counting with the new width, and exactly those rows are taken away before the next
//! drawing. (Terminals that cut lines instead of wrapping them are few; there a row too many may go.)

use std::io::{self, Write as _};

use parking_lot::{Mutex, MutexGuard};
use unicode_width::UnicodeWidthStr as _;

/// The drawn lines.
static DRAWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Columns and rows of the terminal that stderr is, or what is usual where it does not tell.
pub(super) fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

/// Draws lines in place of those that are drawn now; with none, takes those away.
pub(super) fn draw(lines: Vec<String>) {
    let mut drawn = drawn();
    if *drawn == lines {
        return;
    }
    let rows = rows(&drawn, size().0);
    if lines.is_empty() {
        put(&erasure(rows));
    } else {
        // Each line takes the place of an old one, and what is left of the old ones goes last: nothing flickers.
        put(&format!("{}{}\u{1b}[J", to_the_first(rows), lines.join("\u{1b}[K\n")));
    }
    *drawn = lines;
}

/// Writes something to stderr above the lines.
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

/// Writes all of it at once, so that no one sees half of it. A closed stderr can't be reported.
fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    let _nobody_looks = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// The number of rows of lines in a terminal of this width.
fn rows(lines: &[String], width: usize) -> usize {
    lines.iter().map(|line| line.width().div_ceil(width.max(1)).max(1)).sum()
}

/// Moves the cursor from the end of the last of so many rows to the start of the first.
fn to_the_first(rows: usize) -> String {
    if rows > 1 { format!("\r\u{1b}[{}A", rows - 1) } else { "\r".to_owned() }
}

/// Takes so many rows away, one by one: some terminals keep a copy of a screen that is cleared as a whole.
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
