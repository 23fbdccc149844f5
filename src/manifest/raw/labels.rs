//! `labels`: whom a job is for, in the manifest's own words.

use super::table::Table;
use crate::domain::Rule;
use crate::manifest::raw::job_field::JobField as F;
use crate::manifest::source::diagnostic::Diagnostic;

/// The longest name of a label, in bytes: it is the head of a column in reports.
const MAX_NAME: usize = 64;
/// Names with another meaning for `spend --by`.
const RESERVED: [&str; 3] = ["day", "batch", "model"];

/// Labels as they were written: names, and values that may be templates.
pub(crate) type RawLabels = Vec<(String, String)>;

/// Takes the labels of an entry apart. What is wrong is reported, and left out.
pub(super) fn decode(table: &mut Table<'_>) -> Option<RawLabels> {
    let name = F::Labels.name();
    let (value, at) = (table.take(name)?, table.at(name));
    let mut labels = Table::open(value, at, "`labels`", table.found())?;
    let names = labels.text_keys();
    let mut decoded = RawLabels::new();
    for name in &names {
        if let Some(wrong) = what_is_wrong_with(name) {
            let place = labels.at(name).named();
            let message = format!("the label name `{name}` is invalid: {wrong}");
            labels.tell(Diagnostic::error(Rule::LabelInvalid, message, place).with_help("rename the label"));
        }
        let value = labels.text(name);
        decoded.extend(value.map(|value| (name.clone(), value)));
    }
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    labels.close(&known);
    Some(decoded)
}

fn what_is_wrong_with(name: &str) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if RESERVED.contains(&name) {
        Some("it is a word of `spend --by`")
    } else if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
        Some("it must be 1 to 64 of A-Z a-z 0-9 . _ -")
    } else {
        None
    }
}
