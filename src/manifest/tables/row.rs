//! One row of a table.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object};
use minijinja::{Error, ErrorKind, Value};

use crate::domain::{Cells, Columns};
use crate::manifest::source::diagnostic::{BrokenCell, RowLocation};
use crate::manifest::source::lints::OF_SPREADSHEETS;

/// The text in place of a formula whose result no one stored, as in a workbook that a program wrote.
pub(super) const NO_RESULT: &str = "#NO-RESULT!";
/// The text in place of a cell to which a text box is pinned.
pub(super) const TEXT_BOX: &str = "#TEXT-BOX!";

/// One row, for the template engine and for messages.
pub(crate) struct Row {
    /// The value of `row` in templates.
    pub value: Value,
    /// Its cells, as they were written.
    pub cells: Arc<Cells>,
    /// The line of the file; nothing for a row that is in the manifest.
    pub place: Option<RowLocation>,
    /// The number among all rows, from 1: `row_number` in templates.
    pub number: usize,
    /// True if the user or a filter hides it in its sheet.
    pub is_hidden: bool,
}

/// Cells, for the template engine.
#[derive(Debug)]
struct InTemplates(Arc<Cells>);

impl Object for InTemplates {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let cell = self.0.get(key)?;
        Some(broken(key, cell).map_or_else(|| Value::from(cell), Value::from))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.columns().names().iter().map(Value::from).collect())
    }
}

/// The error of whoever uses a cell that holds an error of the spreadsheet: nothing else in its row is at fault.
fn broken(column: &str, cell: &str) -> Option<Error> {
    let held = match cell {
        NO_RESULT => "a formula without a result",
        TEXT_BOX => "a text box beside its text",
        _ => cell,
    };
    let is_error = held != cell
        || cell.starts_with('#') && OF_SPREADSHEETS.contains(&cell)
        || cell
            .strip_prefix("Err:")
            .is_some_and(|code| !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit()));
    is_error.then(|| {
        Error::new(ErrorKind::InvalidOperation, format!("the cell under `{column}` contains {held}"))
            .with_source(BrokenCell)
    })
}

impl Row {
    /// A row of texts that will be numbered with the others.
    pub(crate) fn of_cells(cells: Cells, place: Option<RowLocation>) -> Self {
        let cells = Arc::new(cells);
        Self { value: Value::from_object(InTemplates(Arc::clone(&cells))), cells, place, number: 0, is_hidden: false }
    }

    /// A row whose cells are values of any type. `before` is the row before it, which usually has the same columns.
    pub(crate) fn of_values(value: Value, place: Option<RowLocation>, before: Option<&Self>) -> Self {
        let names: Vec<String> = value.try_iter().into_iter().flatten().map(|name| name.to_string()).collect();
        let texts: Vec<String> =
            names.iter().map(|name| value.get_attr(name).map(|cell| cell.to_string()).unwrap_or_default()).collect();
        let same = before.map(|row| row.cells.columns()).filter(|columns| columns.names() == names);
        // The names of a mapping are different ones.
        let columns = same.cloned().unwrap_or_else(|| Arc::new(Columns::new(names).unwrap_or_default()));
        let cells = Arc::new(Cells::new(columns, texts.iter().map(String::as_str)));
        Self { value, cells, place, number: 0, is_hidden: false }
    }
}
