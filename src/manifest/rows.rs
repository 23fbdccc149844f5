//! The rows of `for_each`: a CSV file as spreadsheets write it, or a list of mappings.

use std::collections::HashMap;
use std::sync::Arc;

use csv::StringRecord;
use minijinja::Value;
use minijinja::value::{Enumerator, Object, Serde};
use serde_yaml::Mapping;

use super::bounds::MOST_JOBS;
use super::decode::wrong_type;
use super::diagnostic::{Diagnostic, RowPlace, unreadable};
use super::place::{Place, Pointer};
use super::raw::RawForEach;
use super::text::{LARGEST, Reach, TextError};

/// One row, for the template engine and for messages.
pub struct Row {
    /// What `row` is in templates.
    pub value: Value,
    /// The line of the CSV file; nothing for a row that stands in the manifest.
    pub place: Option<RowPlace>,
}

/// The rows that a job names. What is wrong with them is told, and the sound ones are there.
pub fn read(from: &RawForEach, reach: &Reach, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    match from {
        RawForEach::Rows(rows) => rows
            .iter()
            .enumerate()
            .filter_map(|(index, row)| {
                if let serde_yaml::Value::Mapping(cells) = row {
                    return Some(Row { value: Value::from(Serde(with_empty_cells(cells))), place: None });
                }
                found.push(wrong_type("a row", "a mapping of names to values", row, at.index(index).value()));
                None
            })
            .collect(),
        RawForEach::File(file) => match reach.read(file, LARGEST) {
            Ok(csv) => parse(&csv, file, at, found),
            Err(error) => {
                let finding = unreadable("the CSV file", &reach.path_of(file), &error, at.clone().value());
                found.push(finding.with_help(match error {
                    TextError::NotUtf8 { .. } => "save the file as UTF-8; Excel calls that \"CSV UTF-8\"",
                    _ => "the path is relative to the manifest's folder",
                }));
                Vec::new()
            }
        },
    }
}

/// A row of the manifest, in which nothing means the same as an empty cell of a spreadsheet.
fn with_empty_cells(cells: &Mapping) -> Mapping {
    let cell = |value: &serde_yaml::Value| if value.is_null() { String::new().into() } else { value.clone() };
    cells.iter().map(|(name, value)| (name.clone(), cell(value))).collect()
}

/// The columns of a CSV file, shared by all of its rows.
#[derive(Debug)]
struct Header {
    names: Vec<String>,
    index: HashMap<String, usize>,
}

/// A row of a CSV file as a mapping from column to cell.
#[derive(Debug)]
struct CsvRow {
    header: Arc<Header>,
    cells: StringRecord,
}

impl Object for CsvRow {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.cells.get(*self.header.index.get(key)?).map(Value::from)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.header.names.iter().map(Value::from).collect())
    }
}

fn parse(csv: &str, file: &str, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    let file: Arc<str> = file.into();
    let before = found.len();
    let place = || at.clone().value();
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter(csv)).flexible(true).from_reader(csv.as_bytes());
    let header = match reader.headers() {
        Ok(names) if !names.iter().all(str::is_empty) => match header(names, place()) {
            Ok(header) => Arc::new(header),
            Err(finding) => {
                found.push(*finding);
                return Vec::new();
            }
        },
        _ => {
            let message = format!("{file} has no header row");
            let finding = Diagnostic::error("csv-no-header", message, place());
            found.push(finding.with_help("the first line names the columns: `{{ row.NAME }}` reads a cell"));
            return Vec::new();
        }
    };
    if let Some(line) = open_quote(csv) {
        let finding =
            Diagnostic::error("csv-open-quote", "a quote is never closed, and swallows all that follows", place());
        let row = RowPlace { file, line };
        found.push(
            finding.with_job(None, Some(row)).with_help("close the quote; a quote inside a cell is written twice"),
        );
        return Vec::new();
    }
    let mut rows = Vec::new();
    for record in reader.into_records() {
        let cells = match record {
            Ok(cells) => cells,
            Err(error) => {
                found.push(Diagnostic::error("csv-malformed", format!("{file}: {error}"), place()));
                break;
            }
        };
        // Spreadsheets leave rows of empty cells behind when content was deleted.
        if cells.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        let line = line_of(csv, &cells);
        let row = RowPlace { file: Arc::clone(&file), line };
        if cells.len() != header.names.len() {
            let message = format!("a row has {} cells, and the header has {}", cells.len(), header.names.len());
            let finding = Diagnostic::error("csv-ragged", message, place()).with_job(None, Some(row));
            found.push(finding.with_help("put cells that contain the separator or a quote into double quotes"));
            continue;
        }
        if rows.len() >= MOST_JOBS {
            let message = format!("{file} has more than {MOST_JOBS} rows");
            let finding = Diagnostic::error("csv-too-long", message, place()).with_job(None, Some(row));
            found.push(finding.with_help("split it, and give each part an entry or a manifest of its own"));
            break;
        }
        let value = Value::from_object(CsvRow { header: Arc::clone(&header), cells });
        rows.push(Row { value, place: Some(row) });
    }
    if rows.is_empty() && found.len() == before {
        found.push(Diagnostic::error("csv-no-rows", format!("{file} has a header and no rows"), place()));
    }
    rows
}

/// The line on which a record starts, from 1. The reader counts from where the last record ended, so that blank lines
/// before a record would count as part of it.
fn line_of(csv: &str, cells: &StringRecord) -> u64 {
    let Some(position) = cells.position() else { return 0 };
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let blank = csv.get(start..).unwrap_or_default().bytes().take_while(|byte| matches!(byte, b'\n' | b'\r'));
    position.line() + blank.filter(|&byte| byte == b'\n').count() as u64
}

/// The line of a quote that opens a cell and is never closed. A reader takes all that follows for that cell, and the rows
/// in it would be one long prompt.
fn open_quote(csv: &str) -> Option<u64> {
    let separator = delimiter(csv);
    let (mut line, mut opened, mut at_start) = (1, None, true);
    let mut bytes = csv.bytes().peekable();
    while let Some(byte) = bytes.next() {
        line += u64::from(byte == b'\n');
        match (opened, byte) {
            (None, b'"') if at_start => opened = Some(line),
            (Some(_), b'"') if bytes.peek() == Some(&b'"') => {
                bytes.next();
            }
            (Some(_), b'"') => opened = None,
            _ => {}
        }
        at_start = opened.is_none() && (byte == separator || byte == b'\n' || byte == b'\r');
    }
    opened
}

/// Comma or semicolon, whichever the header has more of outside quotes: a German Excel writes semicolons.
fn delimiter(csv: &str) -> u8 {
    let (mut commas, mut semicolons, mut quoted) = (0, 0, false);
    for byte in csv.bytes() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            b',' if !quoted => commas += 1,
            b';' if !quoted => semicolons += 1,
            _ => {}
        }
    }
    if semicolons > commas { b';' } else { b',' }
}

fn header(names: &StringRecord, place: Place) -> Result<Header, Box<Diagnostic>> {
    let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
    let mut index = HashMap::with_capacity(names.len());
    for (column, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        if index.insert(name.clone(), column).is_some() {
            let message = format!("the CSV file has two columns named `{name}`");
            let finding = Diagnostic::error("csv-duplicate-column", message, place).with_help("rename one of them");
            return Err(Box::new(finding));
        }
    }
    Ok(Header { names, index })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(csv: &str) -> (Vec<Row>, Vec<&'static str>) {
        let mut found = Vec::new();
        let rows = parse(csv, "x.csv", &Pointer::top(), &mut found);
        (rows, found.into_iter().map(|finding| finding.code).collect())
    }

    fn cell(row: &Row, column: &str) -> String {
        row.value.get_attr(column).expect("a row").to_string()
    }

    #[test]
    fn reads_what_spreadsheets_write() {
        assert_eq!(open_quote("a,b\n1,5\" wide\n2,\"say \"\"hi\"\"\"\n"), None);
        for csv in ["a,b\n1,\"x, y\"\n", "a;b\r\n1;\"x, y\"\r\n\r\n", "a,b\n1,\"x, y\"\n,\n\n", "a , b\n1,\"x, y\""] {
            let (rows, found) = parsed(csv);
            assert_eq!(found, [""; 0], "{csv:?}");
            assert_eq!(rows.len(), 1, "{csv:?}");
            assert_eq!((cell(&rows[0], "a"), cell(&rows[0], "b")), ("1".to_owned(), "x, y".to_owned()), "{csv:?}");
        }
    }

    #[test]
    fn names_the_line_on_which_a_row_starts() {
        let (rows, _) = parsed("a,b\r\n1,\"two\nlines\"\r\n\r\n3,x\r\n");
        let lines: Vec<u64> = rows.iter().filter_map(|row| Some(row.place.as_ref()?.line)).collect();
        assert_eq!(lines, [2, 5]);
        assert_eq!(cell(&rows[0], "b"), "two\nlines");
    }

    #[test]
    fn tells_what_is_wrong() {
        for (csv, code) in [
            ("", "csv-no-header"),
            ("\n\n", "csv-no-header"),
            ("a,b\n", "csv-no-rows"),
            ("a,a\n1,2\n", "csv-duplicate-column"),
            ("a,b\n1\n", "csv-ragged"),
            ("a,b\n1,\"x\n2,y\n", "csv-open-quote"),
        ] {
            assert_eq!(parsed(csv).1.first(), Some(&code), "{csv:?}");
        }
    }
}
