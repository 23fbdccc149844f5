//! The rows of `for_each`: a list of mappings in the manifest, or a file. A spreadsheet is a CSV file ([`sheet`]); prompt sets come
//! as one text a line or as one JSON object a line ([`lines`]).

use minijinja::Value;
use minijinja::value::Serde;
use serde_yaml::Mapping;

use super::decode::wrong_type;
use super::diagnostic::{Diagnostic, RowPlace, unreadable};
use super::lines;
use super::place::Pointer;
use super::raw::RawForEach;
use super::sheet;
use super::text::{LARGEST, Reach};

/// One row, for the template engine and for messages.
pub struct Row {
    /// What `row` is in templates.
    pub value: Value,
    /// The line of the file; nothing for a row that stands in the manifest.
    pub place: Option<RowPlace>,
    /// Which of all rows it is, from 1: `row_number` in templates.
    pub number: usize,
}

impl Row {
    /// A row that will be numbered with the others.
    pub fn new(value: Value, place: Option<RowPlace>) -> Self {
        Self { value, place, number: 0 }
    }
}

/// The rows that a job names. What is wrong with them is told, and the sound ones are there.
pub fn read(from: &RawForEach, reach: &Reach, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    let mut rows: Vec<Row> = match from {
        RawForEach::Rows(rows) => rows
            .iter()
            .enumerate()
            .filter_map(|(index, row)| {
                if let serde_yaml::Value::Mapping(cells) = row {
                    return Some(Row::new(Value::from(Serde(with_empty_cells(cells))), None));
                }
                found.push(wrong_type("a row", "a mapping of names to values", row, at.index(index).value()));
                None
            })
            .collect(),
        RawForEach::File(file) => read_file(file, reach, at, found),
    };
    rows.iter_mut().zip(1..).for_each(|(row, number)| row.number = number);
    rows
}

fn read_file(file: &str, reach: &Reach, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    if ["http://", "https://"].iter().any(|scheme| file.starts_with(scheme)) {
        let finding = Diagnostic::error("unreadable", "a link can't be read", at.clone().value());
        found.push(
            finding.with_help("in the sheet choose File, Download, \"Comma-separated values\", and name that file"),
        );
        return Vec::new();
    }
    let text = match reach.read(file, LARGEST) {
        Ok(text) => text,
        Err(error) => {
            let finding = unreadable("the file of the rows", &reach.path_of(file), &error, at.clone().value());
            found.push(finding.with_help(error.help().unwrap_or("the path is relative to the manifest's folder")));
            return Vec::new();
        }
    };
    match file.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).as_deref() {
        Some("jsonl" | "ndjson") => lines::objects(&text, file, at, found),
        Some("txt") => lines::texts(&text, file, at, found),
        _ => sheet::parse(&text, file, at, found),
    }
}

/// A row of the manifest, in which nothing means the same as an empty cell of a spreadsheet.
fn with_empty_cells(cells: &Mapping) -> Mapping {
    let cell = |value: &serde_yaml::Value| if value.is_null() { String::new().into() } else { value.clone() };
    cells.iter().map(|(name, value)| (name.clone(), cell(value))).collect()
}
