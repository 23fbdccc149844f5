//! The rows of `for_each`: a list of mappings in the manifest, or a file. A spreadsheet is a CSV file ([`sheet`]); prompt sets come
//! as one text a line or as one JSON object a line ([`lines`]).

use minijinja::Value;
use minijinja::value::Serde;
use serde_yaml::Mapping;

use super::lines;
use super::row::Row;
use super::sheet;
use crate::domain::Rule;
use crate::manifest::raw::mirror::RawForEach;
use crate::manifest::raw::table::wrong_type;
use crate::manifest::source::diagnostic::{Diagnostic, unreadable};
use crate::manifest::source::location::Pointer;
use crate::manifest::source::text::{FileAccess, LARGEST};

/// The rows that a job names. What is wrong with them is told, and the sound ones are there.
pub(crate) fn read(from: &RawForEach, access: &FileAccess, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
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
        RawForEach::File(file) => read_file(file, access, at, found),
    };
    rows.iter_mut().zip(1..).for_each(|(row, number)| row.number = number);
    rows
}

fn read_file(file: &str, access: &FileAccess, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    if ["http://", "https://"].iter().any(|scheme| file.starts_with(scheme)) {
        let finding = Diagnostic::error(Rule::Unreadable, "a link can't be read", at.clone().value());
        found.push(
            finding.with_help("in the sheet choose File, Download, \"Comma-separated values\", and name that file"),
        );
        return Vec::new();
    }
    let text = match access.read(file, LARGEST) {
        Ok(text) => text,
        Err(error) => {
            let finding = unreadable("the file of the rows", &access.path_of(file), &error, at.clone().value());
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
