//! A sheet of an Excel workbook, as people see it: whole numbers without a point, dates as ISO, formulas by their stored results.
//!
//! A workbook is a packed file, and a small one may unpack to anything: what it comes to is found out before it is read, and its cells
//! are taken one by one, because a sheet with one cell in its last corner has seventeen billion of them.

use std::io::{self, Cursor, Read as _};
use std::sync::Arc;

use calamine::{Data, ExcelDateTime, Reader as _, SheetVisible, Xlsx};
use zip::ZipArchive;

use super::row::Row;
use crate::domain::{Cells, Columns, Rule};
use crate::manifest::raw::mirror::RawTable;
use crate::manifest::source::bounds::MOST_JOBS;
use crate::manifest::source::diagnostic::{Diagnostic, RowLocation};
use crate::manifest::source::location::{Location, Pointer};
use crate::manifest::source::suggest;

/// The most that a workbook may unpack to, in bytes, and the most cells that are taken of a sheet: a hundred thousand rows of ten
/// columns take a quarter of the one and half of the other.
const MOST_UNPACKED: u64 = 192 << 20;
const MOST_CELLS: usize = 2_000_000;

type Book<'b> = Xlsx<Cursor<&'b [u8]>>;

/// The first lines of a table: the number of each, from 1, and its cells.
pub(super) type Beginning = Vec<(u64, Vec<String>)>;

/// The cells of one row that hold something, by their columns.
struct Line {
    /// Its number in the sheet, from 1.
    number: u64,
    cells: Vec<(usize, Data)>,
}

/// The rows below the header of a sheet.
pub(super) fn parse(bytes: &[u8], table: &RawTable, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    let RawTable { file, sheet, header_row } = table;
    let (sheet, place) = (sheet.as_deref(), at.clone().value());
    let lines = match open(bytes, file, &place).and_then(|mut book| lines(&mut book, file, sheet, MOST_JOBS, &place)) {
        Ok(lines) => lines,
        Err(finding) => {
            found.push(*finding);
            return Vec::new();
        }
    };
    let mut lines = lines.into_iter().skip_while(|line| line.number < *header_row);
    let Some(head) = lines.next() else {
        let finding = Diagnostic::error(Rule::CsvNoHeader, format!("{} has no header row", named(file, sheet)), place);
        found.push(finding.with_help("the first row names the columns: `{{ row.NAME }}` reads a cell"));
        return Vec::new();
    };
    let columns = match Columns::new(texts(&head.cells, usize::MAX)) {
        Ok(columns) => Arc::new(columns),
        Err(name) => {
            let message = format!("{} has two columns named `{name}`", named(file, sheet));
            found.push(Diagnostic::error(Rule::CsvDuplicateColumn, message, place).with_help("rename one of them"));
            return Vec::new();
        }
    };
    let (file, before): (Arc<str>, usize) = (file.as_str().into(), found.len());
    let mut rows = Vec::new();
    for Line { number, cells } in lines {
        let row = RowLocation { file: Arc::clone(&file), line: number };
        if let Some(finding) = error_in(&cells, &columns, &place) {
            found.push(finding.with_job(None, Some(row)));
            continue;
        }
        let texts = texts(&cells, columns.names().len());
        rows.push(Row::of_cells(Cells::new(Arc::clone(&columns), texts.iter().map(String::as_str)), Some(row)));
    }
    if rows.is_empty() && found.len() == before {
        let message = format!("{} has a header and no rows", named(&file, sheet));
        found.push(Diagnostic::error(Rule::CsvNoRows, message, place));
    }
    rows
}

/// A workbook, with the sheet that was asked for.
fn named(file: &str, sheet: Option<&str>) -> String {
    sheet.map_or_else(|| file.to_owned(), |sheet| format!("the sheet `{sheet}` of {file}"))
}

/// The texts of a row up to a column, blank where a cell holds nothing.
fn texts(cells: &[(usize, Data)], most: usize) -> Vec<String> {
    let last = cells.last().map_or(0, |(column, _)| column + 1).min(most);
    let mut texts = vec![String::new(); if most == usize::MAX { last } else { most }];
    for (column, cell) in cells.iter().filter(|(column, _)| *column < last) {
        text(cell).trim().clone_into(&mut texts[*column]);
    }
    texts
}

/// A formula error in a column with a name.
fn error_in(cells: &[(usize, Data)], columns: &Columns, place: &Location) -> Option<Diagnostic> {
    let named = |column: &usize| columns.names().get(*column).filter(|name| !name.is_empty());
    let (name, cell) = cells
        .iter()
        .filter(|(_, cell)| matches!(cell, Data::Error(_)))
        .find_map(|(column, cell)| Some((named(column)?, cell)))?;
    let message = format!("the cell under `{name}` holds the error {}", text(cell));
    let finding = Diagnostic::error(Rule::CellError, message, place.clone());
    Some(finding.with_help("fix the formula in the spreadsheet, and save the workbook"))
}

/// The names of the visible sheets, and the first lines of each. What can't be read has none.
pub(super) fn beginnings(bytes: &[u8], most: usize) -> Vec<(String, Beginning)> {
    let place = Location::File;
    let Ok(mut book) = open(bytes, "", &place) else { return Vec::new() };
    let names = visible(&book);
    let beginning = |name: String| {
        let lines = lines(&mut book, "", Some(&name), most, &place).unwrap_or_default();
        (name, lines.into_iter().map(|line| (line.number, texts(&line.cells, usize::MAX))).collect())
    };
    names.into_iter().map(beginning).collect()
}

fn visible(book: &Book<'_>) -> Vec<String> {
    let sheets = book.sheets_metadata().iter();
    sheets.filter(|sheet| sheet.visible == SheetVisible::Visible).map(|sheet| sheet.name.clone()).collect()
}

fn unreadable(file: &str, why: &str, place: &Location) -> Box<Diagnostic> {
    let message = format!("{file} can't be read as a workbook: {why}");
    let finding = Diagnostic::error(Rule::Unreadable, message, place.clone());
    Box::new(finding.with_help("save it as .xlsx in the spreadsheet program, without a password, or as CSV UTF-8"))
}

fn open<'b>(bytes: &'b [u8], file: &str, place: &Location) -> Result<Book<'b>, Box<Diagnostic>> {
    bearable(bytes).map_err(|why| unreadable(file, &why, place))?;
    Xlsx::new(Cursor::new(bytes)).map_err(|error| unreadable(file, &error.to_string(), place))
}

/// The rows of a sheet that hold something, one more than so many at most: of the one with this name, or of the first visible one.
fn lines(
    book: &mut Book<'_>,
    file: &str,
    sheet: Option<&str>,
    most: usize,
    place: &Location,
) -> Result<Vec<Line>, Box<Diagnostic>> {
    let unreadable = |why: &str| unreadable(file, why, place);
    let too_long = |what: String| {
        let finding = Diagnostic::error(Rule::CsvTooLong, format!("{file} has more than {what}"), place.clone());
        Box::new(finding.with_help("split it, and give each part an entry or a manifest of its own"))
    };
    let (names, visible) = (book.sheet_names(), visible(book));
    let name = match sheet {
        Some(wanted) => names.iter().find(|name| name.as_str() == wanted).ok_or_else(|| {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            let message = format!("{file} has no sheet `{wanted}`");
            let finding = Diagnostic::error(Rule::SheetUnknown, message, place.clone());
            Box::new(finding.with_help(suggest::help(wanted, "sheets", &known)))
        })?,
        None => visible.first().ok_or_else(|| unreadable("it has no visible sheet"))?,
    };
    let mut reader = book.worksheet_cells_reader(name).map_err(|error| unreadable(&error.to_string()))?;
    let (mut lines, mut number_of_cells): (Vec<Line>, usize) = (Vec::new(), 0);
    while let Some(cell) = reader.next_cell_with_formula().map_err(|error| unreadable(&error.to_string()))? {
        let ((row, column), data) = (cell.pos, Data::from(cell.value));
        // Blank, it would mean "as usual", and something else would be bought than the formula says.
        if data == Data::Empty && cell.formula.is_some() {
            return Err(unstored((row, column), file, name, place));
        }
        if text(&data).trim().is_empty() {
            continue;
        }
        number_of_cells += 1;
        if number_of_cells > MOST_CELLS {
            return Err(too_long(format!("{MOST_CELLS} cells")));
        }
        let (number, column) = (u64::from(row) + 1, column as usize);
        if lines.last().is_none_or(|line| line.number != number) {
            // The header is one more.
            if lines.len() > most {
                return if most == MOST_JOBS { Err(too_long(format!("{MOST_JOBS} rows"))) } else { Ok(lines) };
            }
            lines.push(Line { number, cells: Vec::new() });
        }
        if let Some(line) = lines.last_mut() {
            line.cells.push((column, data));
        }
    }
    Ok(lines)
}

/// A formula whose result nobody stored, as in a workbook that a program wrote.
fn unstored((row, column): (u32, u32), file: &str, sheet: &str, place: &Location) -> Box<Diagnostic> {
    let (mut letters, mut left) = (String::new(), column + 1);
    while left > 0 {
        letters.insert(0, char::from(b'A' + u8::try_from((left - 1) % 26).unwrap_or_default()));
        left = (left - 1) / 26;
    }
    let message =
        format!("the cell {letters}{} of the sheet `{sheet}` of {file} holds a formula without a result", row + 1);
    let finding = Diagnostic::error(Rule::CellError, message, place.clone());
    Box::new(
        finding.with_help("open the workbook in a spreadsheet program, and save it: that stores what formulas come to"),
    )
}

/// Refuses a workbook that unpacks to more than can be borne, by unpacking it: what it says of itself may be a lie.
fn bearable(bytes: &[u8]) -> Result<(), String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|error| format!("it is not a workbook, or it is truncated ({error})"))?;
    let mut left = MOST_UNPACKED;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| error.to_string())?;
        let unpacked = io::copy(&mut entry.take(left + 1), &mut io::sink()).map_err(|error| error.to_string())?;
        left =
            left.checked_sub(unpacked).ok_or_else(|| format!("it unpacks to more than {} MiB", MOST_UNPACKED >> 20))?;
    }
    Ok(())
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
fn date(moment: &ExcelDateTime) -> String {
    let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
    let day = format!("{year:04}-{month:02}-{day:02}");
    match (moment.as_f64() < 1.0, hour, minute, second, milli) {
        // A time alone, as a sheet shows it.
        (true, ..) => format!("{hour:02}:{minute:02}:{second:02}"),
        (false, 0, 0, 0, 0) => day,
        _ => format!("{day}T{hour:02}:{minute:02}:{second:02}"),
    }
}
