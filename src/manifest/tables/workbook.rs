//! A sheet of an Excel workbook, as people see it: whole numbers without a point, dates as ISO, formulas by their stored results.

use std::io::Cursor;
use std::sync::Arc;

use calamine::{Data, Range, Reader as _, Xlsx};

use super::row::Row;
use crate::domain::{Cells, Columns, Rule};
use crate::manifest::source::bounds::MOST_JOBS;
use crate::manifest::source::diagnostic::{Diagnostic, RowLocation};
use crate::manifest::source::location::{Location, Pointer};
use crate::manifest::source::suggest;

/// The rows of a sheet: of the one with this name, or of the first.
pub(super) fn parse(
    bytes: &[u8],
    file: &str,
    sheet: Option<&str>,
    at: &Pointer,
    found: &mut Vec<Diagnostic>,
) -> Vec<Row> {
    let (place, before) = (at.clone().value(), found.len());
    let range = match range(bytes, file, sheet, &place) {
        Ok(range) => range,
        Err(finding) => {
            found.push(*finding);
            return Vec::new();
        }
    };
    let first_line = range.start().map_or(1, |(row, _)| u64::from(row) + 1);
    let mut lines =
        (first_line..).zip(range.rows()).filter(|(_, cells)| cells.iter().any(|cell| !text(cell).trim().is_empty()));
    let Some((_, head)) = lines.next() else {
        let finding = Diagnostic::error(Rule::CsvNoHeader, format!("{file} has no header row"), place);
        found.push(finding.with_help("the first row names the columns: `{{ row.NAME }}` reads a cell"));
        return Vec::new();
    };
    let names = head.iter().map(|cell| text(cell).trim().to_owned()).collect();
    let columns = match Columns::new(names) {
        Ok(columns) => Arc::new(columns),
        Err(name) => {
            let message = format!("{file} has two columns named `{name}`");
            found.push(Diagnostic::error(Rule::CsvDuplicateColumn, message, place).with_help("rename one of them"));
            return Vec::new();
        }
    };
    let file: Arc<str> = file.into();
    let mut rows = Vec::new();
    for (line, cells) in lines {
        let row = RowLocation { file: Arc::clone(&file), line };
        if rows.len() >= MOST_JOBS {
            let message = format!("{file} has more than {MOST_JOBS} rows");
            let finding = Diagnostic::error(Rule::CsvTooLong, message, place.clone()).with_job(None, Some(row));
            found.push(finding.with_help("split it, and give each part an entry or a manifest of its own"));
            break;
        }
        let named =
            cells.iter().zip(columns.names()).find(|(cell, name)| matches!(cell, Data::Error(_)) && !name.is_empty());
        if let Some((cell, name)) = named {
            let message = format!("the cell under `{name}` holds the error {}", text(cell));
            let finding = Diagnostic::error(Rule::CellError, message, place.clone()).with_job(None, Some(row));
            found.push(finding.with_help("mend its formula in the spreadsheet, and save the workbook"));
            continue;
        }
        let texts: Vec<String> = cells.iter().map(text).collect();
        rows.push(Row::of_cells(Cells::new(Arc::clone(&columns), texts.iter().map(String::as_str)), Some(row)));
    }
    if rows.is_empty() && found.len() == before {
        found.push(Diagnostic::error(Rule::CsvNoRows, format!("{file} has a header and no rows"), place));
    }
    rows
}

fn range(bytes: &[u8], file: &str, sheet: Option<&str>, place: &Location) -> Result<Range<Data>, Box<Diagnostic>> {
    let unreadable = |why: String| {
        let finding =
            Diagnostic::error(Rule::Unreadable, format!("{file} can't be read as a workbook: {why}"), place.clone());
        Box::new(finding.with_help("save it as .xlsx in the spreadsheet program, without a password, or as CSV UTF-8"))
    };
    let mut book: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(|error| unreadable(error.to_string()))?;
    let names = book.sheet_names();
    let name = match sheet {
        Some(wanted) => names.iter().find(|name| name.as_str() == wanted).ok_or_else(|| {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            let finding =
                Diagnostic::error(Rule::SheetUnknown, format!("{file} has no sheet `{wanted}`"), place.clone());
            Box::new(finding.with_help(suggest::help(wanted, "sheets", &known)))
        })?,
        None => names.first().ok_or_else(|| unreadable("it has no sheet".to_owned()))?,
    };
    book.worksheet_range(name).map_err(|error| unreadable(error.to_string()))
}

/// A cell as the sheet shows it.
fn text(cell: &Data) -> String {
    match cell {
        Data::Empty => String::new(),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Bool(is_so) => if *is_so { "TRUE" } else { "FALSE" }.to_owned(),
        Data::Int(number) => number.to_string(),
        // The shortest decimal that means this number: a whole one has no point.
        Data::Float(number) => number.to_string(),
        Data::DateTime(moment) => date(moment),
        Data::Error(error) => error.to_string(),
    }
}

/// A date as ISO, with its time of day if it has one.
fn date(moment: &calamine::ExcelDateTime) -> String {
    let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
    let day = format!("{year:04}-{month:02}-{day:02}");
    match (moment.as_f64() < 1.0, hour, minute, second, milli) {
        // A time alone, as a sheet shows it.
        (true, ..) => format!("{hour:02}:{minute:02}:{second:02}"),
        (false, 0, 0, 0, 0) => day,
        _ => format!("{day}T{hour:02}:{minute:02}:{second:02}"),
    }
}
