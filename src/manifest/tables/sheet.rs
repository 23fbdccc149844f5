//! The row of any table, and the rows of a sheet: of a CSV file, or of a workbook.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use calamine::{Reader as _, SheetType, SheetVisible};
use minijinja::Value;

use super::grid::{Grid, Line, MAX_CELLS, Marks, Opened, Problem, grid};
use super::parts;
use crate::domain::text::as_written;
use crate::domain::{Cells, Columns, Rule, count};
use crate::files::table::{line_of, separated, separator, unclosed};
use crate::manifest::raw::decode::RawTable;
use crate::manifest::source::diagnostic::{
    Diagnostic, Findings, Location, Pointer, RowLocation, error, help_near, warning,
};
use crate::manifest::source::syntax::MAX_JOBS;
use crate::manifest::template::row::{CellsOfRow, NO_RESULT};

/// The first lines of a table: the number of each, from 1, and its cells.
pub(super) type Beginning = Vec<(u64, Vec<String>)>;

/// The first lines of a table.
pub(super) fn beginning(csv: &str, most: usize) -> Beginning {
    let (csv, _, above) = separated(csv);
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(steadiest(csv, most))
        .flexible(true)
        .has_headers(false)
        .from_reader(csv.as_bytes());
    let records = reader.records().map_while(Result::ok).take(most);
    records
        .map(|cells| (line_of(csv, &cells) + above, cells.iter().map(|cell| cell.trim().to_owned()).collect()))
        .collect()
}

/// The rows of a table, or the reason why it has none.
pub(super) type TableRows = Result<Vec<Row>, Box<Diagnostic>>;

/// The rows below the header.
pub(super) fn parse(csv: &str, table: &RawTable, at: &Pointer, found: &mut Findings) -> TableRows {
    let (file, (csv, separator, above)) = (&table.file, below(csv, table.header_row));
    let mut reader = csv::ReaderBuilder::new().delimiter(separator).flexible(true).from_reader(csv.as_bytes());
    let header = header(&mut reader, file, &at.value())?;
    if let Some(line) = unclosed(csv, separator) {
        let row = RowLocation { file: file.as_str().into(), line: line + above };
        let open = error!(CsvOpenQuote, at.value(),
            "a quote is not closed at the end of its cell, so later rows would be a part of it";
            "close the quote; a quote inside a cell is written twice");
        return Err(open.with_job(None, Some(row)).into());
    }
    let width = header.names().len();
    // Spreadsheets keep rows of empty cells after their content is deleted. The reader fails only on invalid UTF-8.
    let records = reader.records().map_while(Result::ok);
    let records = records.filter(|cells| cells.iter().any(|cell| !cell.trim().is_empty()));
    let records = records.map(|cells| (line_of(csv, &cells) + above, cells));
    collect(file, at, found, records, |cells, row, before| {
        if cells.len() != width {
            return Err(error!(CsvRagged, at.value(),
                "a row must have {} like the header, found {}", count(width, "cell"), cells.len();
                "put cells that contain the separator or a quote into double quotes")
            .into());
        }
        Ok(Row::new(Cells::new(Arc::clone(&header), cells.iter().map(as_written)), None, Some(row), before))
    })
}

/// A row of each record, which has the number of its line. An invalid record is reported with its line.
pub(super) fn collect<R>(
    file: &str,
    at: &Pointer,
    found: &mut Findings,
    records: impl IntoIterator<Item = (u64, R)>,
    row_of: impl Fn(R, RowLocation, Option<&Row>) -> Result<Row, Box<Diagnostic>>,
) -> TableRows {
    let (mut rows, before, name) = (Vec::new(), found.len(), Arc::<str>::from(file));
    for (line, record) in records {
        let row = RowLocation { file: Arc::clone(&name), line };
        if rows.len() >= MAX_JOBS {
            let too_long = error!(CsvTooLong, at.value(), "{file} has more than {MAX_JOBS} rows"; "{SPLIT}");
            found.push(too_long.with_job(None, Some(row)));
            break;
        }
        match row_of(record, row.clone(), rows.last()) {
            Ok(row) => rows.push(row),
            Err(diagnostic) => found.push(diagnostic.with_job(None, Some(row))),
        }
    }
    if rows.is_empty() && found.len() == before {
        return Err(error!(CsvNoRows, at.value(), "{file} has no rows").into());
    }
    Ok(rows)
}

/// The help for a table that is too long.
pub(super) const SPLIT: &str = "split it, and give each part an entry or a manifest of its own";

/// The table from its header row on, the separator of its cells, and the number of lines above.
fn below(csv: &str, header_row: u64) -> (&str, u8, u64) {
    let (csv, between, above) = separated(csv);
    let skipped =
        csv.split_inclusive('\n').take(usize::try_from(header_row.saturating_sub(above + 1)).unwrap_or(usize::MAX));
    let (begin, lines) = skipped.fold((0, 0), |(begin, lines), line| (begin + line.len(), lines + 1));
    let csv = &csv[begin..];
    (csv, if lines == 0 { between } else { separator(csv) }, above + lines)
}

/// The columns of a table with these names.
pub(super) fn columns(names: Vec<String>, table: &str, place: &Location) -> Result<Arc<Columns>, Box<Diagnostic>> {
    if names.iter().all(String::is_empty) {
        return Err(Box::new(error!(CsvNoHeader, place.clone(), "{table} has no header row";
            "the first row names the columns: `{{{{ row.NAME }}}}` reads a cell")));
    }
    let columns = Columns::new(names).map_err(|name| {
        error!(CsvDuplicateColumn, place.clone(), "{table} has two columns named `{name}`"; "rename one of them")
    });
    Ok(Arc::new(columns?))
}

/// The columns of a CSV file.
fn header(reader: &mut csv::Reader<&[u8]>, file: &str, place: &Location) -> Result<Arc<Columns>, Box<Diagnostic>> {
    let names = reader.headers().map(|names| names.iter().map(|name| name.trim().to_owned()).collect());
    let header = columns(names.unwrap_or_default(), file, place)?;
    match header.names() {
        [only] if only.contains('|') => {
            Err(Box::new(error!(CsvSeparator, place.clone(), "the columns of {file} are separated by `|`";
                "separate them by commas, semicolons, or tabs")))
        }
        _ => Ok(header),
    }
}

/// The separator with the same count in most of the first lines. A title has none, and a prompt may have any number of commas.
fn steadiest(csv: &str, most: usize) -> u8 {
    let lines: Vec<&str> = csv.lines().filter(|line| !line.trim().is_empty()).take(most).collect();
    let alike = |separator: u8| {
        let counts = lines.iter().map(|line| line.bytes().filter(|byte| *byte == separator).count());
        let counts: Vec<usize> = counts.filter(|count| *count > 0).collect();
        counts.iter().map(|count| counts.iter().filter(|other| *other == count).count()).max()
    };
    [b'\t', b';', b','].into_iter().max_by_key(|separator| alike(*separator)).unwrap_or(b',')
}

/// One row, for the template engine and for messages.
pub(crate) struct Row {
    /// The value of `row` in templates.
    pub value: Value,
    /// Its cells, unrendered.
    pub cells: Arc<Cells>,
    /// The line of the file; nothing for a row that is in the manifest.
    pub place: Option<RowLocation>,
    /// The number among all rows, from 1: `row_number` in templates.
    pub number: usize,
    /// True if the user or a filter hides it in its sheet.
    pub is_hidden: bool,
}

impl Row {
    /// A row that will be numbered with the others. `before` is the previous row, which usually has the same columns.
    pub(crate) fn new(cells: Cells, values: Option<Value>, place: Option<RowLocation>, before: Option<&Self>) -> Self {
        let cells = Arc::new(cells);
        let value = CellsOfRow::value(Arc::clone(&cells), values, before.map(|row| &row.value));
        Self { value, cells, place, number: 0, is_hidden: false }
    }

    /// The same with cells of any type.
    pub(crate) fn of_values(value: Value, place: Option<RowLocation>, before: Option<&Self>) -> Self {
        let names: Vec<String> = value.try_iter().into_iter().flatten().map(|name| name.to_string()).collect();
        let texts: Vec<String> =
            names.iter().map(|name| value.get_attr(name).map(|cell| cell.to_string()).unwrap_or_default()).collect();
        let same = before.map(|row| row.cells.columns()).filter(|columns| columns.names() == names);
        // The names of a mapping are different ones.
        let columns = same.cloned().unwrap_or_else(|| Arc::new(Columns::new(names).unwrap_or_default()));
        Self::new(Cells::new(columns, texts.iter().map(String::as_str)), Some(value), place, before)
    }
}

/// The most places for cells below a header, blank or not: a header may reach far to the right.
const MAX_PLACES: usize = 10 * MAX_CELLS;

/// The name of the thread that reads a workbook.
pub(crate) const WORKBOOK_THREAD: &str = "workbook";

/// An open workbook.
struct Book<'b> {
    opened: Opened<'b>,
    marks: HashMap<String, Marks>,
}

/// Reads on a separate thread, because the library panics on some damaged files.
fn guarded<T: Send>(read: impl FnOnce() -> Result<T, Problem> + Send) -> Result<T, Problem> {
    thread::scope(|scope| {
        let reader = thread::Builder::new().name(WORKBOOK_THREAD.to_owned()).spawn_scoped(scope, read);
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
pub(super) fn beginnings_of_workbook(bytes: &[u8], most: usize) -> Vec<(String, Beginning)> {
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
pub(super) fn parse_workbook(bytes: &[u8], table: &RawTable, at: &Pointer, found: &mut Findings) -> TableRows {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(csv: &str) -> (Vec<Row>, Findings) {
        let mut found = Vec::new();
        let rows = parse(csv, &RawTable::for_file("x.csv".to_owned()), &Pointer::top(), &mut found);
        let rows = rows.map_err(|diagnostic| found.push(*diagnostic));
        (rows.unwrap_or_default(), found)
    }

    fn parsed(csv: &str) -> (Vec<Row>, Vec<&'static str>) {
        let (rows, found) = read(csv);
        (rows, found.into_iter().map(|diagnostic| diagnostic.rule.code()).collect())
    }

    fn cell(row: &Row, column: &str) -> String {
        row.value.get_attr(column).expect("a row").to_string()
    }

    #[test]
    fn sheet_reads_files_of_spreadsheets() {
        for csv in [
            "sep=;\r\na;b\r\n1;\"x, y\"\r\n",
            "\"sep=,\"\na,b\n1,\"x, y\"\n",
            "a\tb\n1\tx, y\n",
            "a,b\n1,\"x, y\"\n",
            "a;b\r\n1;\"x, y\"\r\n\r\n",
            "a,b\n1,\"x, y\"\n,\n\n",
            "a , b\n1,\"x, y\"",
        ] {
            let (rows, found) = parsed(csv);
            assert_eq!(found, [""; 0], "{csv:?}");
            assert_eq!(rows.len(), 1, "{csv:?}");
            assert_eq!((cell(&rows[0], "a"), cell(&rows[0], "b")), ("1".to_owned(), "x, y".to_owned()), "{csv:?}");
        }
    }

    #[test]
    fn row_has_the_line_of_its_start() {
        let (rows, _) = parsed("a,b\r\n1,\"two\nlines\"\r\n\r\n3,x\r\n");
        let lines: Vec<u64> = rows.iter().filter_map(|row| Some(row.place.as_ref()?.line)).collect();
        assert_eq!(lines, [2, 5]);
        let (below, _) = parsed("sep=;\na;b\n1;2\n");
        assert_eq!(below[0].place.as_ref().map(|place| place.line), Some(3));
        assert_eq!(cell(&rows[0], "b"), "two\nlines");
    }

    #[test]
    fn long_table_is_read_to_its_end() {
        let row = |number: usize| match number {
            3000 => "ragged\n".to_owned(),
            _ => format!("{number},\"two\nlines of {}\"\n", "text ".repeat(20)),
        };
        let csv: String = std::iter::once("a,b\n".to_owned()).chain((0..5000).map(row)).collect();
        let (rows, found) = read(&csv);
        let numbers: Vec<String> = rows.iter().map(|row| cell(row, "a")).collect();
        let expected: Vec<String> =
            (0..5000).filter(|number| *number != 3000).map(|number| number.to_string()).collect();
        assert_eq!(numbers, expected);
        assert_eq!(rows.last().and_then(|row| row.place.as_ref()).map(|place| place.line), Some(2 * 4998 + 3));
        let [ragged] = &found[..] else { panic!("{found:?}") };
        let line = ragged.row.as_ref().map(|row| row.line);
        assert_eq!((ragged.rule.code(), line), ("csv-ragged", Some(2 * 3000 + 2)));
    }

    #[test]
    fn byte_order_mark_inside_a_table_stays_in_its_cell() {
        let row = |number: usize| format!("\u{feff}\"row {number} {}\n", "text ".repeat(40));
        let csv: String = std::iter::once("a\n".to_owned()).chain((0..2000).map(row)).collect();
        let (rows, found) = parsed(&csv);
        assert_eq!((rows.len(), found), (2000, Vec::new()));
        assert!(
            rows.iter()
                .enumerate()
                .all(|(number, row)| cell(row, "a").starts_with(&format!("\u{feff}\"row {number} ")))
        );
    }

    #[test]
    fn of_too_many_rows_one_thing_is_reported() {
        let csv = format!("a\n{}", "1\n".repeat(MAX_JOBS + 100_000));
        let (rows, found) = parsed(&csv);
        assert_eq!((rows.len(), found), (MAX_JOBS, vec!["csv-too-long"]));
    }

    #[test]
    fn separator_of_another_program_is_named() {
        assert_eq!(parsed("a|b\n1|2\n").1, ["csv-separator"]);
    }
}
