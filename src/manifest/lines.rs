//! Prompt sets as the world ships them: a text a line, or a JSON object a line.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::Serde;

use super::bounds::MOST_JOBS;
use super::diagnostic::{Diagnostic, RowPlace};
use super::place::Pointer;
use super::rows::Row;

/// The only column of a file of texts.
const TEXT: &str = "text";

/// Each line that is not blank, as a row with the one column `text`.
pub fn texts(file_text: &str, file: &str, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    each(file_text, file, at, found, |line| Ok(Value::from_pairs([(TEXT, line)])))
}

/// Each line that is not blank, a JSON object, as a row with a column for each name.
pub fn objects(file_text: &str, file: &str, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Row> {
    each(file_text, file, at, found, |line| {
        let cells: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).map_err(|error| format!("a line is no JSON object: {error}"))?;
        // What is null means the same as an empty cell of a spreadsheet.
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
        let place = RowPlace { file: Arc::clone(&file), line };
        if rows.len() >= MOST_JOBS {
            let finding =
                Diagnostic::error("csv-too-long", format!("{file} has more than {MOST_JOBS} rows"), at.clone().value());
            let finding = finding.with_job(None, Some(place));
            found.push(finding.with_help("split it, and give each part an entry or a manifest of its own"));
            break;
        }
        match row_of(written.trim()) {
            Ok(value) => rows.push(Row::new(value, Some(place))),
            Err(message) => {
                let finding =
                    Diagnostic::error("jsonl-malformed", message, at.clone().value()).with_job(None, Some(place));
                found.push(finding.with_help("write one object a line: {\"id\": \"a\", \"prompt\": \"…\"}"));
            }
        }
    }
    if rows.is_empty() && found.len() == before {
        found.push(Diagnostic::error("csv-no-rows", format!("{file} has no rows"), at.clone().value()));
    }
    rows
}
