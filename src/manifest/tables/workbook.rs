//! A sheet of a workbook as rows.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use calamine::{Reader as _, SheetType, SheetVisible};

use super::grid::{Grid, Line, MAX_CELLS, Marks, Opened, Problem, grid};
use super::parts;
use super::sheet::{Beginning, Row, SPLIT, TableRows, collect, columns};
use crate::domain::{Cells, Rule, count};
use crate::manifest::raw::decode::RawTable;
use crate::manifest::source::diagnostic::{Diagnostic, Findings, error, warning};
use crate::manifest::source::location::{Location, Pointer, help_near};
use crate::manifest::source::syntax::MAX_JOBS;
use crate::manifest::template::row::NO_RESULT;

/// The most places for cells below a header, blank or not: a header may reach far to the right.
const MAX_PLACES: usize = 10 * MAX_CELLS;

/// The name of the thread that reads a workbook.
pub(crate) const THREAD: &str = "workbook";

/// An open workbook.
struct Book<'b> {
    opened: Opened<'b>,
    marks: HashMap<String, Marks>,
}

/// Reads on a separate thread, because the library panics on some damaged files.
fn guarded<T: Send>(read: impl FnOnce() -> Result<T, Problem> + Send) -> Result<T, Problem> {
    thread::scope(|scope| {
        let reader = thread::Builder::new().name(THREAD.to_owned()).spawn_scoped(scope, read);
        reader.map_err(Problem::unreadable)?.join().unwrap_or_else(|_| Err(Problem::unreadable("it is damaged")))
    })
}

impl<'b> Book<'b> {
    fn open(bytes: &'b [u8]) -> Result<Self, Problem> {
        let (opened, marks) = guarded(|| parts::open(bytes))?;
        Ok(Self { opened, marks })
    }

    /// The name of each sheet, and whether it is visible.
    fn sheets(&self) -> Vec<(String, bool)> {
        let sheets = self.opened.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
        sheets.map(|sheet| (sheet.name.clone(), sheet.visible == SheetVisible::Visible)).collect()
    }

    fn visible(&self) -> impl Iterator<Item = String> {
        self.sheets().into_iter().filter(|(_, is_visible)| *is_visible).map(|(name, _)| name)
    }

    fn grid(&mut self, sheet: &str, most: usize) -> Result<Grid, Problem> {
        // Without them, a hidden row or a missing result would be bought.
        let missing = || Problem::Unreadable(format!("it has no part for `{sheet}`"));
        let marks = self.marks.get_mut(sheet).ok_or_else(missing)?;
        guarded(|| grid(&mut self.opened, sheet, marks, most))
    }
}

/// The names of the visible sheets, with the first lines of each. Empty if the file can't be read.
pub(super) fn beginnings(bytes: &[u8], most: usize) -> Vec<(String, Beginning)> {
    let Ok(mut book) = Book::open(bytes) else { return Vec::new() };
    let names: Vec<String> = book.visible().collect();
    let beginning = |name: String| {
        let lines = book.grid(&name, most).unwrap_or_default().lines;
        let texts = |width, texts: Vec<&str>| texts.into_iter().take(width).map(str::to_owned).collect();
        let lines = lines.iter().map(|line| (line.number, texts(line.width(), line.texts(line.width())))).collect();
        (name, lines)
    };
    names.into_iter().map(beginning).collect()
}

/// The rows below the header of a sheet.
pub(super) fn parse(bytes: &[u8], table: &RawTable, at: &Pointer, found: &mut Findings) -> TableRows {
    let problem = |problem| diagnostic(problem, &table.file, &at.value());
    let mut book = Book::open(bytes).map_err(problem)?;
    let sheet = chosen(&book, table, &at.value())?;
    let grid = book.grid(&sheet, MAX_JOBS).map_err(problem)?;
    rows(grid, table, at, found)
}

fn diagnostic(problem: Problem, file: &str, place: &Location) -> Box<Diagnostic> {
    let (rule, message, help) = match problem {
        Problem::Unreadable(why) => (
            Rule::Unreadable,
            format!("can't read workbook {file}: {why}"),
            "save it as .xlsx in the spreadsheet program, without a password, or as CSV UTF-8",
        ),
        Problem::TooLong(what) => (Rule::CsvTooLong, format!("{file} has more than {what}"), SPLIT),
    };
    Box::new(Diagnostic::error(rule, message, place.clone()).with_help(help))
}

/// The sheet with the name that the table has, or the first visible one.
fn chosen(book: &Book<'_>, table: &RawTable, place: &Location) -> Result<String, Box<Diagnostic>> {
    let file = &table.file;
    let sheets = book.sheets();
    let Some(wanted) = &table.sheet else {
        let problem = Problem::unreadable("it has no visible sheet");
        return book.visible().next().ok_or_else(|| diagnostic(problem, file, place));
    };
    if sheets.iter().any(|(name, _)| name == wanted) {
        return Ok(wanted.clone());
    }
    let known: Vec<&str> = sheets.iter().map(|(name, _)| name.as_str()).collect();
    Err(Box::new(error!(SheetUnknown, place.clone(), "{file} has no sheet `{wanted}`";
        "{}", help_near(wanted, "sheets", &known))))
}

fn rows(mut grid: Grid, table: &RawTable, at: &Pointer, found: &mut Findings) -> TableRows {
    let (file, place) = (&table.file, at.value());
    let too_long = |problem| diagnostic(problem, file, &place);
    let named = table.sheet.as_ref().map_or_else(|| file.clone(), |sheet| format!("the sheet `{sheet}` of {file}"));
    let merged = grid.fill_merged(table.header_row).map_err(too_long)?;
    if merged > 0 {
        let cells = count(merged, "merged cell");
        found.push(warning!(
            CellsMerged,
            place.clone(),
            "{named} has {cells} over several rows: each of these rows has the value"
        ));
    }
    let above = grid.lines.partition_point(|line| line.number < table.header_row);
    let mut lines = grid.lines.into_iter().skip(above);
    let is_there = |head: &Line| table.header_row == 1 || head.number == table.header_row;
    let Some(head) = lines.next().filter(is_there) else {
        return columns(Vec::new(), &named, &place).map(|_| Vec::new());
    };
    let width = head.width();
    if lines.len() * width > MAX_PLACES {
        return Err(too_long(Problem::TooLong(format!("{MAX_PLACES} cells below its header"))));
    }
    // A formula without a result names nothing.
    let name = |text: &str| if text == NO_RESULT { String::new() } else { text.to_owned() };
    let names = head.texts(width).into_iter().map(name).collect();
    let columns = columns(names, &named, &place)?;
    if lines.len() == 0 {
        return Err(error!(CsvNoRows, place, "{named} has a header and no rows").into());
    }
    let records = lines.map(|line| (line.number, line));
    collect(file, at, found, records, |line, row, before| {
        let cells = Cells::new(Arc::clone(&columns), line.texts(width));
        Ok(Row { is_hidden: line.is_hidden, ..Row::new(cells, None, Some(row), before) })
    })
}
