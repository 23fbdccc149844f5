//! The report for spreadsheets: opens cleanly in Excel, LibreOffice and pandas.
//!
//! UTF-8 with a byte order mark: Excel misreads a file without one, and pandas and LibreOffice skip it. An unknown value is an empty cell. A cell that a
//! spreadsheet would execute as a formula gets an apostrophe; the JSON report has the exact text.

use std::io::Write;
use std::path::Path;

use indexmap::IndexSet;

use super::row::{COLUMNS, Row, moment};
use super::rows::{Report, Sheet};
use crate::domain::Footage;
use crate::domain::text::cell;

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

/// The cells of a job's sheet, in the order of the header.
pub(super) fn of_sheet<'r>(row: &'r Row, sheet: &'r Sheet<'r>) -> impl Iterator<Item = &'r str> {
    let labels = sheet.labels.iter().map(|name| row.labels.get(*name).map(String::as_str));
    let cells = sheet.row.iter().map(|name| row.row.as_ref().and_then(|cells| cells.get(name)));
    let matrix =
        sheet.matrix.iter().map(|name| row.matrix.as_ref().and_then(|matrix| matrix.get(*name)).map(String::as_str));
    labels.chain(cells).chain(matrix).map(Option::unwrap_or_default)
}

/// The columns. Scripts depend on them: they are never renamed or moved.
const MISMATCH_COLUMNS: &str =
    "task_id,id,model,mismatch,delivered_s,width,height,price_usd,charge,submitted_at,completed_at,sha256,video_url";

/// The first columns, which identify such a table.
pub(super) const MARK: &str = "task_id,id,model,mismatch";

/// Writes the videos of a batch that do not match their requests, the oldest first.
pub(super) fn write_mismatches(report: &Report, to: &mut impl Write) -> std::io::Result<()> {
    to.write_all("\u{feff}".as_bytes())?;
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(MISMATCH_COLUMNS.split(','))?;
    for (attempt, mismatch) in report.mismatches() {
        let file = attempt.file.as_deref();
        let footage = file.and_then(|file| file.footage.as_ref());
        let size = footage.and_then(|footage| footage.size);
        let text = |value: Option<String>| value.unwrap_or_default();
        let cells = [
            text(attempt.task.as_ref().map(|task| task.id.to_string())),
            attempt.job().to_string(),
            attempt.purchase.model.clone(),
            mismatch,
            text(footage.and_then(Footage::duration_s).map(|s| s.to_string())),
            text(size.map(|(width, _)| width.to_string())),
            text(size.map(|(_, height)| height.to_string())),
            attempt.purchase.price.to_string(),
            attempt.charge().name().to_owned(),
            text(attempt.answered_at.map(moment)),
            text(attempt.ended_at.map(moment)),
            text(file.map(|file| file.sha256.clone())),
            text(attempt.video_url.clone()),
        ];
        writer.write_record(cells.iter().map(|text| cell(text).into_owned()))?;
    }
    writer.flush()
}
