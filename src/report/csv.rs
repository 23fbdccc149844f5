//! The report for spreadsheets: opens cleanly in Excel, LibreOffice and pandas.
//!
//! UTF-8 with a byte order mark, because Excel takes a file without one for something else; pandas and LibreOffice pass
//! over it. Unknown is an empty cell. A cell that a spreadsheet would run as a formula gets an apostrophe in front;
//! the byte-exact text is in the JSON report.

use std::io::Write;
use std::path::Path;

use super::row::{Row, moment};
use super::rows::Report;
use crate::domain::spreadsheet::cell;

/// The columns, in their order; behind them, one for each label. Users script against them: they are never renamed or moved.
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
    let labels = report.label_names();
    let heads = labels.iter().map(|name| format!("label.{name}"));
    writer.write_record(COLUMNS.map(str::to_owned).into_iter().chain(heads))?;
    for row in report.rows_seen_from(folder) {
        let own = labels.iter().map(|name| row.labels.get(*name).map_or("", String::as_str));
        let cells = cells(&row);
        writer.write_record(cells.iter().map(String::as_str).chain(own).map(|text| cell(text).into_owned()))?;
    }
    writer.flush()
}

fn cells(row: &Row) -> [String; COLUMNS.len()] {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    [
        row.id.clone(),
        row.batch.clone(),
        row.model.clone(),
        row.state.name().to_owned(),
        charge_name(row),
        shown(row.cost_usd),
        text(&row.task_id),
        text(&row.video_url),
        text(&row.file),
        text(&row.sha256),
        shown(row.bytes),
        text(&row.size),
        text(&row.aspect_ratio),
        shown(row.duration_s),
        row.take.to_string(),
        row.tags.join(", "),
        text(&row.face),
        row.attempts.to_string(),
        row.polls.to_string(),
        shown(row.submitted_at.map(moment)),
        shown(row.completed_at.map(moment)),
        shown(row.generation_s),
        text(&row.error_code),
        row.error_message.clone().or_else(|| row.declared.clone()).unwrap_or_default(),
        text(&row.prompt),
        row.price_usd.to_string(),
        row.at_risk_usd.to_string(),
    ]
}

fn shown(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn charge_name(row: &Row) -> String {
    match row.charge {
        crate::domain::Charge::None => "none",
        crate::domain::Charge::Charged => "charged",
        crate::domain::Charge::Unknown => "unknown",
    }
    .to_owned()
}
