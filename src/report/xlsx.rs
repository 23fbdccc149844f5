//! The report as a workbook: the columns of the CSV with types, so that nothing has to be guessed when it is opened.

use std::io::{self, Write};
use std::path::Path;

use rust_xlsxwriter::{Color, ExcelDateTime, Format, FormatAlign, Url, Workbook, Worksheet, XlsxError};

use super::csv::{cells, heads, of_sheet};
use super::row::Row;
use super::rows::Report;

/// The name of the only sheet, by which a workbook of ours is known.
pub(super) const SHEET: &str = "shotlist";
/// The longest link, in characters: a limit of Excel.
const LONGEST_LINK: usize = 2083;
/// The longest text of a cell, in characters, and the most links of a sheet: limits of Excel.
const LONGEST_TEXT: usize = 32_767;
const MOST_LINKS: usize = 65_530;
/// The widths of columns, in characters; of every other, the second.
const WIDTHS: [(&str, f64); 7] = [
    ("id", 24.0),
    ("prompt", 60.0),
    ("error_message", 40.0),
    ("task_id", 24.0),
    ("model", 20.0),
    ("submitted_at", 20.0),
    ("completed_at", 20.0),
];
const WIDTH: f64 = 12.0;

/// What a column holds.
enum Kind {
    Text,
    Number,
    Money,
    Time,
    Link,
}

fn kind(head: &str) -> Kind {
    match head {
        "cost_usd" | "price_usd" | "at_risk_usd" => Kind::Money,
        "bytes" | "duration_s" | "take" | "attempts" | "polls" | "generation_s" => Kind::Number,
        "submitted_at" | "completed_at" => Kind::Time,
        "file" => Kind::Link,
        _ => Kind::Text,
    }
}

/// Writes a report that lies in a folder.
pub(super) fn write(report: &Report, folder: &Path, to: &mut impl Write) -> io::Result<()> {
    let mut book = Workbook::new();
    fill(book.add_worksheet(), report, folder).map_err(io::Error::other)?;
    to.write_all(&book.save_to_buffer().map_err(io::Error::other)?)
}

fn fill(sheet: &mut Worksheet, report: &Report, folder: &Path) -> Result<(), XlsxError> {
    let names = report.sheet();
    let heads = heads(&names);
    sheet.set_name(SHEET)?;
    let bold = Format::new().set_bold().set_background_color(Color::RGB(0x00EE_ECE8));
    for (column, head) in (0..).zip(&heads) {
        sheet.write_string_with_format(0, column, head, &bold)?;
        let width = WIDTHS.iter().find(|(name, _)| name == head).map_or(WIDTH, |(_, width)| *width);
        sheet.set_column_width(column, width)?;
    }
    let forms = Forms::new();
    let (mut line, mut links) = (0, 0);
    for row in report.rows_seen_from(folder) {
        line += 1;
        let own = cells(&row);
        let texts = own.iter().map(AsRef::as_ref).chain(of_sheet(&row, &names));
        for ((column, head), text) in (0..).zip(&heads).zip(texts).filter(|(_, text)| !text.is_empty()) {
            put(sheet, line, column, head, text, &row, &forms, &mut links)?;
        }
    }
    sheet.set_freeze_panes(1, 1)?;
    let last = u16::try_from(heads.len().saturating_sub(1)).unwrap_or(u16::MAX);
    sheet.autofilter(0, 0, line, last)?;
    Ok(())
}

struct Forms {
    money: Format,
    time: Format,
    text: Format,
}

impl Forms {
    fn new() -> Self {
        Self {
            // As many digits as the amount has: money is exact.
            money: Format::new().set_num_format("$#,##0.00####"),
            time: Format::new().set_num_format("yyyy-mm-dd hh:mm:ss"),
            text: Format::new().set_text_wrap().set_align(FormatAlign::Top),
        }
    }
}

/// Returns whether a path can be a link: Excel takes 2,083 characters, and `#` and `%` mean something else in one.
fn can_be_linked(path: &str) -> bool {
    path.chars().count() + "file:///".len() <= LONGEST_LINK && !path.contains(['#', '%'])
}

#[expect(clippy::too_many_arguments, reason = "the place of a cell, what is in it, and how it looks")]
fn put(
    sheet: &mut Worksheet,
    line: u32,
    column: u16,
    head: &str,
    text: &str,
    row: &Row,
    forms: &Forms,
    links: &mut usize,
) -> Result<(), XlsxError> {
    match kind(head) {
        kind @ (Kind::Money | Kind::Number) => match (kind, text.parse::<f64>()) {
            // Six decimals of dollars are exact in what a cell holds, up to a billion of them.
            (Kind::Money, Ok(number)) => {
                sheet.write_number_with_format(line, column, number, &forms.money)?;
            }
            (_, Ok(number)) => {
                sheet.write_number(line, column, number)?;
            }
            (_, Err(_)) => {
                sheet.write_string(line, column, text)?;
            }
        },
        Kind::Time => {
            let at = if head == "submitted_at" { row.submitted_at } else { row.completed_at };
            if let Some(at) = at {
                let at = ExcelDateTime::from_timestamp(at.as_second())?;
                sheet.write_datetime_with_format(line, column, &at, &forms.time)?;
            }
        }
        Kind::Link if *links < MOST_LINKS && can_be_linked(text) => {
            *links += 1;
            // A path beside the workbook.
            let link = Url::new(format!("file:///{text}"));
            sheet.write_url_with_text(line, column, link, text)?;
        }
        Kind::Link | Kind::Text => {
            let most = text.char_indices().nth(LONGEST_TEXT - 1).map(|(at, _)| at);
            let cut = most.map_or_else(|| text.to_owned(), |at| format!("{}…", &text[..at]));
            if head == "prompt" {
                sheet.write_string_with_format(line, column, cut, &forms.text)?;
            } else {
                sheet.write_string(line, column, cut)?;
            }
        }
    }
    Ok(())
}
