//! The report for spreadsheets: opens cleanly in Excel, LibreOffice and pandas.
//!
//! UTF-8 with a byte order mark, because Excel takes a file without one for something else; pandas and LibreOffice pass
//! over it. Unknown is an empty cell. A cell that a spreadsheet would run as a formula gets an apostrophe in front;
//! the byte-exact text is in the JSON report.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use indexmap::IndexSet;

use super::row::{Row, moment};
use super::rows::{Report, Sheet};
use crate::domain::spreadsheet::cell;

/// The columns, in their order; behind them, one for each label, each column of a table that jobs were made of, and each axis of a matrix. Users script against them: they are never renamed or moved.
pub(super) const COLUMNS: [&str; 27] = [
    "id",
    "batch",
    "model",
    "state",
    "charge",
    "cost_usd",
    "task_id",
    "video_url",
    "file",
    "sha256",
    "bytes",
    "size",
    "aspect_ratio",
    "duration_s",
    "take",
    "tags",
    "face",
    "attempts",
    "polls",
    "submitted_at",
    "completed_at",
    "generation_s",
    "error_code",
    "error_message",
    "prompt",
    "price_usd",
    "at_risk_usd",
];

/// Writes a report that lies in a folder.
pub(super) fn write(report: &Report, folder: &Path, to: &mut impl Write) -> std::io::Result<()> {
    to.write_all("\u{feff}".as_bytes())?;
    let mut writer = csv::Writer::from_writer(to);
    let sheet = report.sheet();
    writer.write_record(heads(&sheet).iter().map(|head| cell(head).into_owned()))?;
    for row in report.rows_seen_from(folder) {
        let own = cells(&row);
        for text in own.iter().map(AsRef::as_ref).chain(of_sheet(&row, &sheet)) {
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
    let own = COLUMNS.map(str::to_owned).to_vec();
    [own, named("label", &sheet.labels), named("row", &sheet.row), named("matrix", &sheet.matrix)].concat()
}

/// What of the sheet a job was made of, in the order of the heads.
pub(super) fn of_sheet<'r>(row: &'r Row, sheet: &'r Sheet<'r>) -> impl Iterator<Item = &'r str> {
    let labels = sheet.labels.iter().map(|name| row.labels.get(*name).map(String::as_str));
    let cells = sheet.row.iter().map(|name| row.row.as_ref().and_then(|cells| cells.get(name)));
    let matrix =
        sheet.matrix.iter().map(|name| row.matrix.as_ref().and_then(|matrix| matrix.get(*name)).map(String::as_str));
    labels.chain(cells).chain(matrix).map(Option::unwrap_or_default)
}

/// The cells of a row under [`COLUMNS`].
pub(super) fn cells(row: &Row) -> [Cow<'_, str>; COLUMNS.len()] {
    [
        row.id.as_str().into(),
        row.batch.as_str().into(),
        row.model.as_str().into(),
        row.state.name().into(),
        charge_name(row).into(),
        shown(row.cost_usd),
        text(row.task_id.as_deref()),
        text(row.video_url.as_deref()),
        text(row.file.as_deref()),
        text(row.sha256.as_deref()),
        shown(row.bytes),
        text(row.size.as_deref()),
        text(row.aspect_ratio.as_deref()),
        shown(row.duration_s),
        row.take.to_string().into(),
        row.tags.join(", ").into(),
        text(row.face.as_deref()),
        row.attempts.to_string().into(),
        row.polls.to_string().into(),
        shown(row.submitted_at.map(moment)),
        shown(row.completed_at.map(moment)),
        shown(row.generation_s),
        text(row.error_code.as_deref()),
        row.error_message.as_deref().or(row.declared.as_deref()).unwrap_or_default().into(),
        text(row.prompt.as_deref()),
        row.price_usd.to_string().into(),
        row.at_risk_usd.to_string().into(),
    ]
}

fn text(value: Option<&str>) -> Cow<'_, str> {
    value.unwrap_or_default().into()
}

fn shown(value: Option<impl ToString>) -> Cow<'static, str> {
    value.map(|value| value.to_string().into()).unwrap_or_default()
}

fn charge_name(row: &Row) -> &'static str {
    match row.charge {
        crate::domain::Charge::None => "none",
        crate::domain::Charge::Charged => "charged",
        crate::domain::Charge::Unknown => "unknown",
    }
}
