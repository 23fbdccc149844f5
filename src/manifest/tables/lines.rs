//! Prompt sets as the world ships them: a text a line, or a JSON object a line.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::Serde;

use super::row::Row;
use crate::domain::Rule;
use crate::manifest::source::bounds::MAX_JOBS;
use crate::manifest::source::diagnostic::{Diagnostic, RowLocation};
use crate::manifest::source::location::Pointer;

/// The only column of a file of texts.
const TEXT: &str = "text";

/// Each line that is not blank, as a row with the one column `text`.
pub(super) fn texts(file_text: &str, file: &str, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    each(file_text, file, at, found, |line| Ok(Value::from_pairs([(TEXT, line)])))
}

/// Each line that is not blank, a JSON object, as a row with a column for each name.
pub(super) fn objects(file_text: &str, file: &str, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    each(file_text, file, at, found, |line| {
        let cells: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).map_err(|error| format!("a line must be a JSON object: {error}"))?;
        // A null is an empty cell of a spreadsheet.
        let cell = |value: serde_json::Value| if value.is_null() { Value::from("") } else { Value::from(Serde(value)) };
        Ok(Value::from_pairs(cells.into_iter().map(|(name, value)| (name, cell(value)))))
    })
}

fn each(
    text: &str,
    file: &str,
    at: &Pointer,
    found: &mut Vec<Diagnostic>,
    row_of: impl Fn(&str) -> Result<Value, String>,
) -> Vec<Row> {
    let (file, before): (Arc<str>, usize) = (file.into(), found.len());
    let mut rows = Vec::new();
    for (line, written) in (1..).zip(text.lines()).filter(|(_, written)| !written.trim().is_empty()) {
        let place = RowLocation { file: Arc::clone(&file), line };
        if rows.len() >= MAX_JOBS {
            let diagnostic = Diagnostic::error(
                Rule::CsvTooLong,
                format!("{file} has more than {MAX_JOBS} rows"),
                at.clone().value(),
            );
            let diagnostic = diagnostic.with_job(None, Some(place));
            found.push(diagnostic.with_help("split it, and give each part an entry or a manifest of its own"));
            break;
        }
        match row_of(written.trim()) {
            Ok(value) => rows.push(Row::of_values(value, Some(place), rows.last())),
            Err(message) => {
                let diagnostic =
                    Diagnostic::error(Rule::JsonlMalformed, message, at.clone().value()).with_job(None, Some(place));
                found.push(diagnostic.with_help("write one object a line: {\"id\": \"a\", \"prompt\": \"…\"}"));
            }
        }
    }
    if rows.is_empty() && found.len() == before {
        found.push(Diagnostic::error(Rule::CsvNoRows, format!("{file} has no rows"), at.clone().value()));
    }
    rows
}
