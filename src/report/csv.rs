//! The report for spreadsheets: opens cleanly in Excel, LibreOffice and pandas.
//!
//! UTF-8 with a byte order mark, because Excel takes a file without one for something else; pandas and LibreOffice pass
//! over it. Unknown is an empty cell. A cell that a spreadsheet would run as a formula gets an apostrophe in front;
//! the byte-exact text is in the JSON report.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use super::row::{Row, moment};
use super::rows::Report;
use crate::domain::printable;

/// The columns, in their order. Users script against them: they are never renamed or moved.
pub(super) const COLUMNS: [&str; 25] = [
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
pub(super) fn write(report: &Report, folder: &Path, to: &mut impl Write) -> std::io::Result<()> {
    to.write_all("\u{feff}".as_bytes())?;
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(COLUMNS)?;
    for row in report.rows_seen_from(folder) {
        writer.write_record(cells(&row).iter().map(|cell| harmless(cell).into_owned()))?;
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

/// What a spreadsheet takes for the beginning of a formula, in the letters of either width.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
/// What ends a cell for some reader: a quote in the middle of a line protects nothing from one with another separator.
const ENDS: [char; 4] = [';', '\t', '\n', '\r'];

/// A cell of which no spreadsheet takes any part for a formula, whatever it separates cells by, and that holds nothing that
/// steers: some readers drop such a character, and with it what stood before a formula.
fn harmless(cell: &str) -> Cow<'_, str> {
    let is_risky = |c: char| FORMULA.contains(&c) || ENDS.contains(&c) || printable::steers(c);
    if !cell.contains(is_risky) {
        return cell.into();
    }
    let mut safe = String::with_capacity(cell.len() + 2);
    let mut begins = true;
    for (at, c) in cell.char_indices() {
        if begins && (FORMULA.contains(&c) || (at == 0 && ENDS[1..].contains(&c))) {
            safe.push('\'');
        }
        begins = ENDS.contains(&c);
        safe.push(if printable::steers(c) && !begins { '\u{fffd}' } else { c });
    }
    safe.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_run_as_a_formula() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", "=HYPERLINK(\"http://x\")", "＝1+1"] {
            assert_eq!(harmless(formula), format!("'{formula}"));
        }
        for plain in ["", "a=b", "9:16", "é", " =1", "a; b", "two\nlines", "1-2"] {
            assert_eq!(harmless(plain), plain);
        }
        // Behind what another reader takes for the end of a cell, and behind what some readers drop.
        for (cell, safe) in [
            ("a;=1+2;b", "a;'=1+2;b"),
            ("a\n-1\t@x", "a\n'-1\t'@x"),
            ("\t=1", "'\t'=1"),
            ("\u{0}=1+1", "\u{fffd}=1+1"),
            ("a\u{1b}[31m\u{202e}b", "a\u{fffd}[31m\u{fffd}b"),
        ] {
            assert_eq!(harmless(cell), safe);
        }
    }
}
