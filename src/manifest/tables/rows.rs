//! The rows of `for_each`: a list of mappings in the manifest, or a file. A spreadsheet is a CSV file ([`sheet`]) or a workbook ([`workbook`]); prompt sets come
//! as one text a line or as one JSON object a line ([`lines`]).

use minijinja::Value;
use minijinja::value::Serde;
use serde_yaml::Mapping;

use super::lines;
use super::row::Row;
use super::sheet;
use super::workbook;
use crate::domain::Rule;
use crate::manifest::raw::mirror::RawForEach;
use crate::manifest::raw::table::wrong_type;
use crate::manifest::source::diagnostic::{Diagnostic, unreadable};
use crate::manifest::source::location::Pointer;
use crate::manifest::source::text::{FileAccess, LARGEST, TextError};

/// The rows that a job names. What is wrong with them is told, and the sound ones are there.
pub(crate) fn read(from: &RawForEach, access: &FileAccess, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    let mut rows: Vec<Row> = match from {
        RawForEach::Rows(rows) => {
            let mut made: Vec<Row> = Vec::with_capacity(rows.len());
            for (index, row) in rows.iter().enumerate() {
                if let serde_yaml::Value::Mapping(cells) = row {
                    made.push(Row::of_values(Value::from(Serde(with_empty_cells(cells))), None, made.last()));
                } else {
                    found.push(wrong_type("a row", "a mapping of names to values", row, at.index(index).value()));
                }
            }
            made
        }
        RawForEach::File { file, sheet } => read_file(file, sheet.as_deref(), access, at, found),
    };
    rows.iter_mut().zip(1..).for_each(|(row, number)| row.number = number);
    rows
}

fn read_file(
    file: &str,
    sheet: Option<&str>,
    access: &FileAccess,
    at: &Pointer,
    found: &mut Vec<Diagnostic>,
) -> Vec<Row> {
    let ending = file.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    // A synchronised directory shows an online sheet as a link to it, too.
    let is_link = ["http://", "https://"].iter().any(|scheme| file.starts_with(scheme));
    if is_link || ending.as_deref() == Some("gsheet") {
        let finding = Diagnostic::error(Rule::Unreadable, "a link can't be read", at.clone().value());
        found.push(
            finding.with_help("in the sheet choose File, Download, \"Comma-separated values\", and name that file"),
        );
        return Vec::new();
    }
    let refused = |error: &TextError| {
        let finding = unreadable("the file of the rows", &access.path_of(file), error, at.clone().value());
        finding.with_help(error.help().unwrap_or("check the path, which is relative to the manifest's directory"))
    };
    if matches!(ending.as_deref(), Some("xlsx" | "xlsm")) {
        return match access.read_bytes(file, LARGEST) {
            Ok((_, bytes)) => workbook::parse(&bytes, file, sheet, at, found),
            Err(error) => {
                found.push(refused(&error));
                Vec::new()
            }
        };
    }
    let text = match access.read(file, LARGEST) {
        Ok(text) => text,
        Err(error) => {
            found.push(refused(&error));
            return Vec::new();
        }
    };
    if sheet.is_some() {
        let finding = Diagnostic::error(
            Rule::SheetUnknown,
            format!("{file} is not a workbook, and has no sheets"),
            at.clone().value(),
        );
        found.push(finding.with_help("leave `sheet` out"));
    }
    match ending.as_deref() {
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
