//! One row of a table.

use minijinja::Value;

use crate::manifest::source::diagnostic::RowLocation;

/// One row, for the template engine and for messages.
pub(crate) struct Row {
    /// What `row` is in templates.
    pub value: Value,
    /// The line of the file; nothing for a row that stands in the manifest.
    pub place: Option<RowLocation>,
    /// Which of all rows it is, from 1: `row_number` in templates.
    pub number: usize,
}

impl Row {
    /// A row that will be numbered with the others.
    pub(crate) fn new(value: Value, place: Option<RowLocation>) -> Self {
        Self { value, place, number: 0 }
    }
}
