//! The report as a workbook: the columns of the CSV, with types.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use calamine::Reader as _;
use rust_xlsxwriter::{Color, ExcelDateTime, Format, FormatAlign, Url, Workbook, Worksheet, XlsxError};

use super::csv::{heads, of_sheet};
use super::row::{COLUMNS, Kind, Row, WIDTH};
use super::rows::Report;

/// The name of the only sheet. It identifies a report.
const SHEET: &str = "shotlist";
/// The maximum length of a link, in UTF-16 units: a limit of Excel.
const MAX_LINK: usize = 2080;
/// The maximum length of a cell, in UTF-16 units, and the maximum number of links in a sheet: limits of Excel.
const MAX_TEXT: usize = 32_767;
const MAX_LINKS: usize = 65_530;

/// Writes a report that is in a directory.
pub(super) fn write(report: &Report, directory: &Path, to: &mut impl Write) -> io::Result<()> {
    let mut book = Workbook::new();
    fill(book.add_worksheet(), report, directory).map_err(io::Error::other)?;
    to.write_all(&book.save_to_buffer().map_err(io::Error::other)?)
}

/// Returns whether the only sheet of a workbook has the name and the first column of a report.
pub(super) fn is_report(path: &Path) -> bool {
    let Ok(mut book) = calamine::open_workbook::<calamine::Xlsx<_>, _>(path) else { return false };
    let is_named = book.sheet_names() == [SHEET];
    let first = book.worksheet_range(SHEET).ok().and_then(|range| range.get((0, 0)).map(ToString::to_string));
    is_named && first.as_deref() == Some("id")
}

fn fill(sheet: &mut Worksheet, report: &Report, directory: &Path) -> Result<(), XlsxError> {
    let names = report.sheet();
    let heads = heads(&names);
    sheet.set_name(SHEET)?;
    let bold = Format::new().set_bold().set_background_color(Color::RGB(0x00EE_ECE8));
    let columns =
        || COLUMNS.iter().map(|column| (column.kind, column.width)).chain(std::iter::repeat((Kind::Text, WIDTH)));
    for ((column, head), (_, width)) in (0..).zip(&heads).zip(columns()) {
        sheet.write_string_with_format(0, column, head, &bold)?;
        sheet.set_column_width(column, width)?;
    }
    let forms = Forms {
        // With all digits of the amount: money is exact.
        money: Format::new().set_num_format("$#,##0.00####"),
        time: Format::new().set_num_format("yyyy-mm-dd hh:mm:ss"),
        text: Format::new().set_text_wrap().set_align(FormatAlign::Top),
    };
    let (mut line, mut links) = (0, 0);
    for row in report.rows_seen_from(directory) {
        line += 1;
        let own = COLUMNS.iter().map(|column| (column.text)(&row));
        let texts = own.chain(of_sheet(&row, &names).map(Cow::Borrowed));
        for ((column, (kind, _)), text) in (0..).zip(columns()).zip(texts).filter(|(_, text)| !text.is_empty()) {
            put(sheet, (line, column), kind, &text, &row, &forms, &mut links)?;
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

fn put<'s>(
    sheet: &'s mut Worksheet,
    (line, column): (u32, u16),
    kind: Kind,
    text: &str,
    row: &Row,
    forms: &Forms,
    links: &mut usize,
) -> Result<&'s mut Worksheet, XlsxError> {
    match (kind, text.parse::<f64>()) {
        // A cell has six exact decimals up to a billion dollars.
        (Kind::Money, Ok(number)) => sheet.write_number_with_format(line, column, number, &forms.money),
        (Kind::Number, Ok(number)) => sheet.write_number(line, column, number),
        (Kind::Time(at), _) => {
            let Some(at) = at(row) else { return Ok(sheet) };
            let at = ExcelDateTime::from_timestamp(at.as_second())?;
            sheet.write_datetime_with_format(line, column, &at, &forms.time)
        }
        // Excel limits the length, and `#` and `%` have a meaning in links.
        (Kind::Link, _)
            if *links < MAX_LINKS
                && text.encode_utf16().count() + "file:///".len() <= MAX_LINK
                && !text.contains(['#', '%']) =>
        {
            *links += 1;
            // A path relative to the workbook.
            sheet.write_url_with_text(line, column, Url::new(format!("file:///{text}")), text)
        }
        (Kind::Wrapped, _) => sheet.write_string_with_format(line, column, cut_off(text), &forms.text),
        _ => sheet.write_string(line, column, cut_off(text)),
    }
}

/// A text of at most the maximum length of a cell.
fn cut_off(text: &str) -> String {
    let mut units = 0;
    let too_many = |c: char| {
        units += c.len_utf16();
        units >= MAX_TEXT
    };
    let end = text.find(too_many).filter(|_| text.encode_utf16().count() > MAX_TEXT);
    end.map_or_else(|| text.to_owned(), |end| format!("{}…", &text[..end]))
}
