//! The report for spreadsheets: opens cleanly in Excel, LibreOffice and pandas.
//!
//! UTF-8 with a byte order mark, because Excel takes a file without one for something else; pandas and LibreOffice pass
//! over it. Unknown is an empty cell. A cell that a spreadsheet would run as a formula gets an apostrophe in front;
//! the byte-exact text is in the JSON report.

use std::io::Write;
use std::path::Path;

use super::row::Row;
use super::rows::Report;

/// The columns, in their order. Users script against them: they are never renamed or moved.
pub const COLUMNS: [&str; 25] = [
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
];

/// Writes a report that lies in a folder.
pub fn write(report: &Report, folder: &Path, to: &mut impl Write) -> std::io::Result<()> {
    to.write_all("\u{feff}".as_bytes())?;
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(COLUMNS)?;
    for row in report.rows_seen_from(folder) {
        writer.write_record(cells(&row).iter().map(|cell| harmless(cell)))?;
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
        row.tags.join(" "),
        text(&row.face),
        row.attempts.to_string(),
        row.polls.to_string(),
        shown(row.submitted_at),
        shown(row.completed_at),
        shown(row.generation_s),
        text(&row.error_code),
        text(&row.error_message),
        text(&row.prompt),
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

/// A cell that no spreadsheet takes for a formula.
fn harmless(cell: &str) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{cell}") } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_run_as_a_formula() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=HYPERLINK(\"http://x\")"] {
            assert_eq!(harmless(formula), format!("'{formula}"));
        }
        for plain in ["", "a=b", "9:16", "é", " =1"] {
            assert_eq!(harmless(plain), plain);
        }
    }
}
