//! `moved`: jobs that have a new id, as it was written.

use serde_yaml::Value;

use super::table::{Table, wrong_type};
use crate::domain::{JobId, Move, Rule};
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::source::location::Pointer;

/// One entry, and where it is.
#[derive(Debug)]
pub(crate) struct RawMove {
    /// The move.
    pub entry: Move,
    /// The entry.
    pub at: Pointer,
}

/// Takes the entries apart. What is wrong is reported, and left out.
pub(super) fn decode(table: &mut Table<'_>) -> Vec<RawMove> {
    let at = table.at("moved");
    let entries = match table.take("moved") {
        None => return Vec::new(),
        Some(Value::Sequence(entries)) => entries,
        Some(other) => {
            let diagnostic = wrong_type("`moved`", "a list", &other, at.value());
            table.tell(diagnostic.with_help("write `moved: [{ from: OLD-ID, to: NEW-ID }]`"));
            return Vec::new();
        }
    };
    let entries = entries.into_iter().enumerate();
    entries.filter_map(|(index, entry)| one(entry, at.index(index), table.found())).collect()
}

fn one(value: Value, at: Pointer, found: &mut Vec<Diagnostic>) -> Option<RawMove> {
    let mut table = Table::open(value, at.clone(), "an entry of `moved`", found)?;
    let (from, to) = (id(&mut table, "from"), id(&mut table, "to"));
    table.close(&["from", "to"]);
    Some(RawMove { entry: Move { from: from?, to: to? }, at })
}

fn id(table: &mut Table<'_>, key: &str) -> Option<JobId> {
    let before = table.found().len();
    let Some(text) = table.text(key) else {
        if table.found().len() == before {
            let diagnostic =
                Diagnostic::error(Rule::IdMissing, format!("this entry has no `{key}`"), table.at(key).named());
            table.tell(diagnostic.with_help("write `{ from: OLD-ID, to: NEW-ID }`"));
        }
        return None;
    };
    JobId::new(text.as_str())
        .map_err(|error| {
            let place = table.at(key).value();
            let diagnostic = Diagnostic::error(Rule::IdInvalid, format!("{error}: `{text}`"), place);
            table.tell(diagnostic.with_help("an entry must name one job by its ID, without patterns and templates"));
        })
        .ok()
}
