//! The report for spreadsheets: opens cleanly in Excel, LibreOffice and pandas.
//!
//! UTF-8 with a byte order mark, because Excel takes a file without one for something else; pandas and LibreOffice pass
//! over it. Unknown is an empty cell. A cell that a spreadsheet would run as a formula gets an apostrophe in front;
//! the byte-exact text is in the JSON report.

use std::io::Write;
use std::path::Path;

use indexmap::IndexSet;

use super::columns::COLUMNS;
use super::row::Row;
use super::rows::{Report, Sheet};
use crate::domain::spreadsheet::cell;

/// Writes a report that is in a directory.
pub(super) fn write(report: &Report, directory: &Path, to: &mut impl Write) -> std::io::Result<()> {
    to.write_all("\u{feff}".as_bytes())?;
    let mut writer = csv::Writer::from_writer(to);
    let sheet = report.sheet();
    writer.write_record(heads(&sheet).iter().map(|head| cell(head).into_owned()))?;
    for row in report.rows_seen_from(directory) {
        for column in &COLUMNS {
            writer.write_field(cell(&(column.text)(&row)).as_bytes())?;
        }
        for text in of_sheet(&row, &sheet) {
            writer.write_field(cell(text).as_bytes())?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}

/// The heads of all columns.
pub(super) fn heads(sheet: &Sheet<'_>) -> Vec<String> {
    let named = |what: &'static str, names: &IndexSet<&str>| {
        names.iter().map(|name| format!("{what}.{name}")).collect::<Vec<_>>()
    };
    let own = COLUMNS.iter().map(|column| column.name.to_owned()).collect();
    [own, named("label", &sheet.labels), named("row", &sheet.row), named("matrix", &sheet.matrix)].concat()
}

/// The cells of the sheet from which a job was made, in the order of the header.
pub(super) fn of_sheet<'r>(row: &'r Row, sheet: &'r Sheet<'r>) -> impl Iterator<Item = &'r str> {
    let labels = sheet.labels.iter().map(|name| row.labels.get(*name).map(String::as_str));
    let cells = sheet.row.iter().map(|name| row.row.as_ref().and_then(|cells| cells.get(name)));
    let matrix =
        sheet.matrix.iter().map(|name| row.matrix.as_ref().and_then(|matrix| matrix.get(*name)).map(String::as_str));
    labels.chain(cells).chain(matrix).map(Option::unwrap_or_default)
}
