//! The row of a job in templates: its cells, and the use of them.
//!
//! A cell with an error of a spreadsheet fails only the templates that read it. An empty cell among the words of a prompt is a gap, which is reported.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object};
use minijinja::{Error, ErrorKind, Value};

use super::bounds::{MAX_TEXT_BYTES, TemplateError, code_of, tags};
use crate::domain::Cells;
use crate::manifest::source::diagnostic::Part;
use crate::manifest::source::lints::OF_SPREADSHEETS;

/// The text for a formula without a stored result, as in generated workbooks.
pub(in crate::manifest) const NO_RESULT: &str = "#NO-RESULT!";
/// The text for a cell with an anchored text box.
pub(in crate::manifest) const TEXT_BOX: &str = "#TEXT-BOX!";

/// The cells of a row, for the engine.
#[derive(Debug)]
pub(in crate::manifest) struct CellsOfRow {
    cells: Arc<Cells>,
    /// Its values, if they are more than texts.
    values: Option<Value>,
    /// For each column, whether a template has read it, in any row with these columns.
    is_read: Arc<[AtomicBool]>,
}

impl CellsOfRow {
    /// The value of a row. `before` is that of the previous row, which usually has the same columns.
    pub(in crate::manifest) fn value(cells: Arc<Cells>, values: Option<Value>, before: Option<&Value>) -> Value {
        let before = before.and_then(Value::downcast_object_ref::<Self>);
        let same = before.filter(|before| Arc::ptr_eq(before.cells.columns(), cells.columns()));
        let unread = || cells.columns().names().iter().map(|_| AtomicBool::new(false)).collect();
        let is_read = same.map_or_else(unread, |same| Arc::clone(&same.is_read));
        Value::from_object(Self { cells, values, is_read })
    }

    /// The columns that no template has read, of any row.
    pub(in crate::manifest) fn unread<'r>(rows: impl IntoIterator<Item = &'r Value>) -> Vec<&'r str> {
        let (mut seen, mut columns): (Option<&Arc<[AtomicBool]>>, IndexMap<&str, bool>) = (None, IndexMap::new());
        for row in rows.into_iter().filter_map(Value::downcast_object_ref::<Self>) {
            // Most rows have the columns of the row before.
            if seen.is_some_and(|seen| Arc::ptr_eq(seen, &row.is_read)) {
                continue;
            }
            seen = Some(&row.is_read);
            for (name, is_read) in row.cells.columns().names().iter().zip(&*row.is_read) {
                *columns.entry(name).or_default() |= is_read.load(Ordering::Relaxed);
            }
        }
        columns.into_iter().filter(|(_, is_read)| !is_read).map(|(name, _)| name).collect()
    }

    /// Counts the columns that a template names as read, also in a branch that no row takes.
    pub(super) fn note_named(row: &Value, source: &str) {
        let Some(row) = row.downcast_object_ref::<Self>() else { return };
        let is_named = |name: &str| {
            let before = |at: usize| [ROW, "'", "\""].iter().any(|before| source[..at].ends_with(before));
            source.match_indices(name).any(|(at, _)| before(at))
        };
        let columns = row.cells.columns().names().iter().zip(&*row.is_read);
        for (_, is_read) in columns.filter(|(name, is_read)| !is_read.load(Ordering::Relaxed) && is_named(name)) {
            is_read.store(true, Ordering::Relaxed);
        }
    }

    /// The names of the columns of a row.
    pub(super) fn columns(row: &Value) -> &[String] {
        row.downcast_object_ref::<Self>().map(|row| row.cells.columns().names()).unwrap_or_default()
    }

    fn read(&self, column: &str) -> Option<&str> {
        let place = self.cells.columns().place(column)?;
        self.is_read[place].store(true, Ordering::Relaxed);
        self.cells.cell(place)
    }
}

impl Object for CellsOfRow {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if let Some(values) = &self.values {
            // A key of a mapping in the manifest may be a number.
            self.read(&key.to_string());
            return values.get_item(key).ok().filter(|value| !value.is_undefined());
        }
        let (key, cell) = (key.as_str()?, self.read(key.as_str()?)?);
        Some(broken(key, cell).map_or_else(|| Value::from(cell), Value::from))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        // For a loop over the row.
        self.is_read.iter().for_each(|is_read| is_read.store(true, Ordering::Relaxed));
        let names = || self.cells.columns().names().iter().map(Value::from).collect();
        let keys = self.values.as_ref().and_then(|values| values.try_iter().ok()).map(Iterator::collect);
        Enumerator::Values(keys.unwrap_or_else(names))
    }
}

/// The text of a cell, unless its value is none, or an error.
fn text_in<'r>(row: &'r Value, column: &str) -> Option<Cow<'r, str>> {
    let row: &CellsOfRow = row.downcast_object_ref()?;
    let cell = row.read(column)?;
    match &row.values {
        Some(values) => values.get_attr(column).ok()?.as_str().map(|text| text.to_owned().into()),
        None => broken(column, cell).is_none().then_some(Cow::Borrowed(cell)),
    }
}

/// The error for a template that uses a cell with a spreadsheet error. Templates without that cell have no error.
fn broken(column: &str, cell: &str) -> Option<Error> {
    let held = match cell {
        NO_RESULT => "a formula without a result",
        TEXT_BOX => "a text box beside its text",
        _ => cell,
    };
    let is_error = held != cell
        || cell.starts_with('#') && OF_SPREADSHEETS.split(' ').any(|error| error == cell)
        || cell
            .strip_prefix("Err:")
            .is_some_and(|code| !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit()));
    is_error.then(|| {
        Error::new(ErrorKind::InvalidOperation, format!("the cell under `{column}` contains {held}"))
            .with_source(BrokenCell)
    })
}

/// The cause of an error of a template that uses a cell with an error of the spreadsheet.
#[derive(Debug, thiserror::Error)]
#[error("the spreadsheet has an error")]
pub(super) struct BrokenCell;

/// Names that are values by themselves in Jinja.
const CONSTANTS: [&str; 6] = ["true", "True", "false", "False", "none", "None"];

/// The words and names of a template, in their order.
pub(super) struct Named<'t>(Vec<Segment<'t>>);

enum Segment<'t> {
    Words(&'t str),
    Name(&'t str),
    Column(&'t str),
}

impl<'t> Named<'t> {
    /// Splits a valid template into words and names. `None` if it has anything else.
    pub(super) fn parse(source: &'t str) -> Option<Self> {
        if source.contains("{%") || source.contains("{#") {
            return None;
        }
        // A line break at the end is not part of a template.
        let source = source.strip_suffix('\n').unwrap_or(source);
        let mut rest = source.strip_suffix('\r').unwrap_or(source);
        let mut parts = Vec::new();
        while let Some((words, tag)) = rest.split_once("{{") {
            let (name, behind) = tag.split_once("}}")?;
            let name = name.trim_ascii();
            let part = name.strip_prefix(ROW).map_or(Segment::Name(name), Segment::Column);
            let (Segment::Name(name) | Segment::Column(name)) = part else { return None };
            if !is_name(name) || CONSTANTS.contains(&name) {
                return None;
            }
            parts.extend([Segment::Words(words), part]);
            rest = behind;
        }
        parts.push(Segment::Words(rest));
        Some(Self(parts))
    }

    /// Its text for a job, if each name is a column or a finished field, and a text. Any other name is for the engine.
    pub(super) fn filled<'f>(&self, row: Option<&Value>, field: impl Fn(&str) -> Option<&'f str>) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Segment::Words(words) => text.push_str(words),
                Segment::Column(column) => text.push_str(&text_in(row?, column)?),
                Segment::Name(name) => text.push_str(field(name)?),
            }
        }
        Some(text).filter(|text| text.len() <= MAX_TEXT_BYTES)
    }

    /// The columns among words that are empty in a row, each with the number of earlier columns that start with its name.
    pub(super) fn holes(&self, row: &Value) -> Vec<(&'t str, usize)> {
        let has_words = self.0.iter().any(|part| matches!(part, Segment::Words(words) if !words.trim().is_empty()));
        let is_empty = |column: &str| text_in(row, column).is_some_and(|text| text.trim().is_empty());
        let (mut holes, mut before): (Vec<(&str, usize)>, Vec<&str>) = (Vec::new(), Vec::new());
        for (at, part) in self.0.iter().enumerate().filter(|_| has_words) {
            let Segment::Column(column) = part else { continue };
            let is_told = holes.iter().any(|(shown, _)| shown == column);
            if is_empty(column) && !is_told && !self.stands_apart(at) {
                holes.push((*column, before.iter().filter(|earlier| earlier.starts_with(*column)).count()));
            }
            before.push(*column);
        }
        holes
    }

    /// Returns whether a name comes last, after a finished sentence: its text is optional.
    fn stands_apart(&self, at: usize) -> bool {
        // Words, possibly empty, surround each name.
        let words =
            |at: usize| if let Some(Segment::Words(words)) = self.0.get(at) { words.trim_matches(' ') } else { "" };
        words(at - 1).ends_with(['.', '!', '?', '…', '。']) && words(at + 1).is_empty() && at + 2 == self.0.len()
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// The beginning of the name of a column.
const ROW: &str = "row.";

/// The columns that a code names as `row.NAME`, each with its place.
pub(super) fn columns_in(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices(ROW).map(|(at, _)| {
        let name = &code[at + ROW.len()..];
        (at, &name[..name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len())])
    })
}

/// Cells that mean no. In a condition, each text that is not empty counts as yes.
const NO: [&str; 6] = ["no", "false", "0", "nein", "non", "nee"];

/// A column that an expression uses as something else than a text: as a condition (`if row.sale`), or as a number (`row.price > 10`).
pub(super) struct Used {
    column: String,
    is_condition: bool,
}

impl Used {
    /// All such columns of a template. A column that is also written is only tested for its presence.
    pub(super) fn in_template(source: &str) -> Vec<Self> {
        let mut used: Vec<Self> = tags(source).iter().flat_map(|tag| Self::in_code(&tag.code)).collect();
        let tested: Vec<String> = used.iter().filter(|it| it.is_condition).map(|it| it.column.clone()).collect();
        let times_tested = |column: &str| tested.iter().filter(|tested| *tested == column).count();
        let times = |column: &str| columns_in(&code_of(source)).filter(|(_, named)| *named == column).count();
        used.retain(|it| !it.is_condition || times(&it.column) == times_tested(&it.column));
        used
    }

    fn in_code(code: &str) -> Vec<Self> {
        let is_operator = |c: char| matches!(c, '*' | '+' | '-' | '/' | '<' | '>' | '=' | '!');
        let is_value = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_digit()) || text.starts_with("true") || text.starts_with("false")
        };
        let columns = columns_in(code).filter_map(|(at, name)| {
            let (before, after) = (code[..at].trim_end(), code[at + ROW.len() + name.len()..].trim_start());
            let first = before.trim_end_matches(is_operator);
            let second = after.trim_start_matches(is_operator);
            let last = first.trim_end().rsplit(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).next();
            let is_number = second.len() < after.len() && is_value(second.trim_start())
                || first.len() < before.len()
                    && !after.starts_with('|')
                    && last.is_some_and(|last| last.parse::<f64>().is_ok());
            let word = |word: Option<&str>, words: &[&str]| word.is_none_or(|word| words.contains(&word));
            let is_condition = !before.is_empty()
                && word(before.split_whitespace().next_back(), &["if", "elif", "and", "or", "not"])
                && word(after.split_whitespace().next(), &["and", "or", "else"]);
            (is_number || is_condition).then(|| Self { column: name.to_owned(), is_condition: !is_number })
        });
        columns.collect()
    }

    /// The error of a row with another text than a number, or with a no.
    pub(super) fn error_in(&self, row: &Value) -> Option<TemplateError> {
        let (column, cell) = (&self.column, text_in(row, &self.column)?);
        let (message, help) = if !self.is_condition {
            let help = "or put quotes around the value that it is compared with";
            (format!("`row.{column}` is text, and not a number"), format!("write `row.{column} | int`, {help}"))
        } else if NO.iter().any(|no| no.eq_ignore_ascii_case(cell.trim())) {
            let message = format!("`row.{column}` is `{cell}`, and each text that is not empty counts as yes");
            (message, format!("compare it: `row.{column} == \"yes\"`"))
        } else {
            return None;
        };
        Some(TemplateError::new(message, help).in_part(Part::Fragment(format!("row.{column}"), 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Columns;

    #[test]
    fn empty_cell_among_words_is_a_hole() {
        let columns = Columns::new(["a", "b", "c", "n"].map(str::to_owned).to_vec()).expect("different names");
        let values = Value::from_pairs([("a", "x".into()), ("b", " ".into()), ("c", "".into()), ("n", Value::from(0))]);
        let cells = Cells::new(Arc::new(columns), ["x", " ", "", "0"]);
        let row = CellsOfRow::value(Arc::new(cells), Some(values), None);
        let holes = |source| Named::parse(source).expect("words and names").holes(&row);
        for hole in [
            "a {{ row.b }} mug",
            "{{ row.a }} of {{row.b}}",
            "{{ row.b }}: a mug, {{ row.b }}",
            "A mug. {{ row.b }} at dawn",
        ] {
            assert_eq!(holes(hole), [("b", 0)], "{hole}");
        }
        assert_eq!(holes("a {{ row.c }} mug of {{ row.b }} and {{ row.a }}"), [("c", 0), ("b", 0)]);
        assert_eq!(holes("{{ row.both }} and {{ row.b }} as {{ row.b }}"), [("b", 1)]);
        assert_eq!(holes("Turns slowly.\n{{ row.b }}\nat dawn"), [("b", 0)], "it may be what turns");
        for whole in [
            "{{ row.b }}",
            "{{ row.a }}{{ row.b }}",
            "a {{ row.a }} mug",
            "{{ row.n }} mugs",
            "a {{ b }} mug",
            "A mug. {{ row.b }}",
        ] {
            assert!(holes(whole).is_empty(), "{whole}");
        }
    }
}
