//! Text of several lines for a terminal: the only form in which a result or a question reaches one.
//!
//! Each line is put in on its own, and nothing in it can bring another one along or steer the terminal. So a name, a
//! batch or a message of the service can't write a line that looks like ours, the question about money among them,
//! wherever a view forgot that it came from outside.

use std::fmt::Display;

use serde::Serialize;

use super::table::table;
use crate::domain::printable;
use crate::domain::spreadsheet::cell;

/// Lines for a terminal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page(String);

impl Page {
    /// No line yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Text of this program's own, as it is: a schema, a script of completions.
    #[must_use]
    pub fn own(text: String) -> Self {
        Self(text)
    }

    /// A value as JSON.
    pub fn json(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self(printable::json(&serde_json::to_string_pretty(value)?) + "\n"))
    }

    /// Rows as a spreadsheet reads them, whatever is in a cell; the first one is the head.
    pub fn csv(rows: impl IntoIterator<Item = Vec<String>>) -> std::io::Result<Self> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in rows {
            writer.write_record(row.iter().map(|text| cell(&printable::one_line(text)).into_owned()))?;
        }
        let written = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        String::from_utf8(written).map(Self).map_err(std::io::Error::other)
    }

    /// Adds one line.
    pub fn line(&mut self, line: impl Display) {
        self.0.push_str(&printable::one_line(&line.to_string()));
        self.0.push('\n');
    }

    /// Adds a table of this width; `right` are the columns whose cells are numbers.
    pub fn table(&mut self, header: &[&str], right: &[usize], rows: impl IntoIterator<Item = Vec<String>>, width: u16) {
        let plain = rows.into_iter().map(|row| row.iter().map(|cell| printable::one_line(cell)).collect());
        self.0.push_str(&table(header, right, plain, width));
    }

    /// Adds another page below.
    pub fn add(&mut self, page: &Self) {
        self.0.push_str(&page.0);
    }

    /// Whether there is nothing on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
        let mut page = Page::new();
        page.line("x: 1 job, $0.90\n\nSpend up to $0.90? [y/N] \u{1b}[8m");
        page.table(&["a"], &[], [vec!["b\nc\u{1b}]0;owned\u{7}".to_owned()]], 80);
        assert_eq!(page.as_str().lines().count(), 3, "{page:?}");
        assert!(!page.as_str().contains(|c: char| printable::steers(c) && c != '\n'), "{page:?}");
    }
}
