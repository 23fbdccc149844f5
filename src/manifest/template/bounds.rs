//! Bounds on the time and memory of templates, in proportion to their values; the cells of a row, with the gaps that empty ones leave in prompts; and errors.
//!
//! Steps are counted, but one step can double a string, or walk over a list. So the engine starts empty: only bounded filters, tests, and functions
//! are added. Operators that multiply are counted in the text itself, before it runs.

use std::borrow::Cow;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, Rest, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, tests as checks};

use crate::domain::{Cells, Rule};
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::source::lints::OF_SPREADSHEETS;
use crate::manifest::source::location::{Location, Part, Pointer};

/// The maximum growth by the operators of one text, as a power of two: `~` and `+` double at most, and `*` multiplies.
const MAX_GROWTH: u32 = 14;
/// The largest factor of a `*`.
const MAX_FACTOR: u32 = 2000;
/// The maximum number of items that a filter walks over, and that `range` makes.
const MAX_ITEMS: usize = 10_000;
/// The longest string that a template may make, in bytes; a prompt has 1500 characters.
pub(super) const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The longest expression between braces, in bytes, and the maximum number of them in one text: the engine goes a step deeper into its
/// stack for each operator and each statement inside another.
const MAX_TAG: usize = 4 * 1024;
const MAX_TAGS: usize = 500;
/// The maximum number of columns that `format` pads to.
const MAX_COLUMNS: usize = 1000;
/// Words of statements without a use in a prompt that can grow without a bound. A `set` without `=` ends with `endset`.
const REFUSED: [&str; 7] = ["macro", "call", "recursive", "include", "import", "filter", "endset"];

/// An engine with bounded filters, tests, and functions.
pub(super) fn engine() -> Environment<'static> {
    let mut engine = Environment::empty();
    add_tests(&mut engine);
    add_plain_filters(&mut engine);
    add_list_filters(&mut engine);
    engine.add_function("range", |lower: isize, upper: Option<isize>, step: Option<isize>| {
        let items = minijinja::functions::range(lower, upper, step)?;
        check_items(&items).map(|()| items)
    });
    engine
}

/// Adds functions of the engine's own, each under a name.
macro_rules! add {
    ($engine:ident . $add:ident, $module:ident: $($name:literal $function:ident),* $(,)?) => {
        $($engine.$add($name, $module::$function);)*
    };
}

fn add_tests(engine: &mut Environment<'_>) {
    add!(engine.add_test, checks:
        "defined" is_defined, "undefined" is_undefined, "none" is_none, "boolean" is_boolean, "number" is_number,
        "integer" is_integer, "float" is_float, "string" is_string, "sequence" is_sequence, "mapping" is_mapping,
        "iterable" is_iterable, "odd" is_odd, "even" is_even, "divisibleby" is_divisibleby, "in" is_in,
        "startingwith" is_startingwith, "endingwith" is_endingwith, "lower" is_lower, "upper" is_upper,
        "eq" is_eq, "ne" is_ne, "lt" is_lt, "le" is_le, "gt" is_gt, "ge" is_ge, "true" is_true, "false" is_false,
    );
}

/// Filters whose output is at most as long as their input.
fn add_plain_filters(engine: &mut Environment<'_>) {
    add!(engine.add_filter, filters:
        "lower" lower, "upper" upper, "title" title, "capitalize" capitalize, "trim" trim, "split" split, "lines" lines,
        "length" length, "count" length, "default" default, "d" default, "round" round, "abs" abs, "int" int,
        "float" float, "bool" bool, "first" first,
    );
    add_text_filters(engine);
}

/// Filters that walk over a list.
fn add_list_filters(engine: &mut Environment<'_>) {
    macro_rules! of_lists {
        ($($name:ident)*) => { [$((stringify!($name), Value::from_function(filters::$name))),*] };
    }
    let list_filters = of_lists!(
        dictsort items last list map max min reject rejectattr reverse select selectattr sort string sum unique
    );
    for (name, filter) in list_filters {
        engine.add_filter(name, move |state: &mut State<'_, '_>, items: Value, rest: Rest<ValueOrKwargs>| {
            check_items(&items)?;
            let args: Vec<Value> = std::iter::once(items).chain(rest.0.into_iter().map(Value::from)).collect();
            filter.call(state, &args)
        });
    }
}

/// Refuses a list that is too long to walk over. Text may be as long as texts are.
fn check_items(items: &Value) -> Result<(), Error> {
    if items.as_str().is_some() || items.len().is_none_or(|length| length <= MAX_ITEMS) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidOperation, format!("a list must have at most {MAX_ITEMS} items")))
}

/// Filters that can multiply a string: each compares the length before it makes it.
fn add_text_filters(engine: &mut Environment<'_>) {
    engine.add_filter("replace", |text: String, from: String, to: String| {
        let times = if from.is_empty() { text.chars().count() + 1 } else { text.matches(&from).count() };
        within(text.len().saturating_add(times.saturating_mul(to.len())))?;
        Ok::<_, Error>(text.replace(&from, &to))
    });
    engine.add_filter("format", |state: &mut State<'_, '_>, text: Value, values: Rest<ValueOrKwargs>| {
        if let Some(pattern) = text.as_str()
            && !is_narrow(pattern)
        {
            let message = format!("`format` pads to at most {MAX_COLUMNS} columns, and takes no width from a value");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        filters::format(state, &text, values)
    });
    engine.add_filter("join", |items: Value, between: Option<String>| {
        let between = between.unwrap_or_default();
        check_items(&items)?;
        let mut text = String::new();
        for (number, item) in items.try_iter()?.enumerate() {
            if number > 0 {
                text.push_str(&between);
            }
            text.push_str(&item.to_string());
            within(text.len())?;
        }
        Ok::<_, Error>(text)
    });
}

/// Returns whether every width in a pattern of `format` is explicit and small.
fn is_narrow(pattern: &str) -> bool {
    pattern.split('%').skip(1).all(|rest| {
        let flags = rest.find(|c: char| c.is_ascii_alphabetic()).map_or(rest, |end| &rest[..end]);
        let mut widths = flags.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
        !flags.contains('*') && widths.all(|digits| digits.parse().is_ok_and(|width: usize| width <= MAX_COLUMNS))
    })
}

fn within(length: usize) -> Result<(), Error> {
    if length <= MAX_TEXT_BYTES { Ok(()) } else { Err(Error::new(ErrorKind::InvalidOperation, too_long())) }
}

pub(super) fn too_long() -> String {
    format!("the string must have at most {} KiB", MAX_TEXT_BYTES / 1024)
}

/// Refuses a template that could grow without bounds.
pub(super) fn refuse(source: &str) -> Option<TemplateError> {
    let (mut growth, tags) = (0, tags(source));
    if tags.len() > MAX_TAGS || tags.iter().any(|tag| tag.code.len() > MAX_TAG) {
        let message = format!("a string must have at most {MAX_TAGS} templates of {MAX_TAG} bytes each");
        return Some(TemplateError::new(message, "use fewer and shorter ones"));
    }
    for tag in tags {
        let words = || tag.code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        // Text in a raw block is no template, and finding its end would need the engine's own parser.
        let raw = words().next().filter(|word| *word == "raw");
        let refused = raw.or_else(|| words().find(|word| REFUSED.contains(word)));
        if let Some(word) = refused.filter(|_| tag.is_statement) {
            let message = format!("templates can't use `{word}`");
            let help = if word == "raw" {
                "write {{ '{{' }} for two braces"
            } else {
                "use {{ name }}, {% set name = value %}, {% if %} and {% for %}"
            };
            let error = TemplateError::new(message, help);
            return Some(error.in_part(Part::Fragment(word.to_owned(), 0)));
        }
        let Some(more) = growth_of(&tag.code) else {
            let message = format!("`*` must have a number from 0 to {MAX_FACTOR} beside it");
            return Some(TemplateError::new(message, "write the number itself: `{{ row.seconds * 2 }}`"));
        };
        growth += more;
    }
    (growth > MAX_GROWTH).then(|| {
        let message = "the operators `~`, `+`, and `*` of one text could make it too long";
        TemplateError::new(message, "write the parts one after the other: `{{ one }} {{ another }}`")
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
        let times = |column: &str| code_of(source).matches(&format!("row.{column}")).count();
        used.retain(|it| !it.is_condition || times(&it.column) == times_tested(&it.column));
        used
    }

    fn in_code(code: &str) -> Vec<Self> {
        let is_operator = |c: char| matches!(c, '*' | '+' | '-' | '/' | '<' | '>' | '=' | '!');
        let is_value = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_digit()) || text.starts_with("true") || text.starts_with("false")
        };
        let columns = code.match_indices("row.").filter_map(|(at, _)| {
            let (before, name) = (code[..at].trim_end(), &code[at + 4..]);
            let (name, after) =
                name.split_at(name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len()));
            let (after, first) = (after.trim_start(), before.trim_end_matches(is_operator));
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

    /// The error of a row whose cell is no number, or means no.
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

/// The growth by the operators of an expression, as a power of two, or `None` if a factor is unknown or too large.
fn growth_of(code: &str) -> Option<u32> {
    let ends_word = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'));
    let mut growth = u32::try_from(code.matches(['~', '+']).count()).unwrap_or(u32::MAX);
    for (at, _) in code.match_indices('*').filter(|(at, _)| !code[..*at].ends_with('*')) {
        let (before, after) = (code[..at].trim_end(), code[at..].trim_start_matches('*').trim_start());
        let before = before.rsplit(ends_word).next().unwrap_or_default();
        let after = after.split(ends_word).next().unwrap_or_default();
        let factors = [before, after].into_iter().filter_map(|word| word.parse::<u32>().ok());
        let factor = factors.max().filter(|factor| *factor <= MAX_FACTOR)?;
        growth = growth.saturating_add(u32::BITS - factor.leading_zeros());
    }
    Some(growth)
}

/// The text between braces, without its quoted strings. The braces end where no bracket is open, as in the engine.
struct Tag {
    is_statement: bool,
    code: String,
}

/// The code of a template, without its words and strings.
pub(super) fn code_of(source: &str) -> String {
    tags(source).into_iter().map(|tag| tag.code).collect()
}

fn tags(source: &str) -> Vec<Tag> {
    let (mut tags, mut rest) = (Vec::new(), source);
    while let Some(at) = rest.find('{') {
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next().filter(|kind| matches!(kind, '{' | '%' | '#')) else { continue };
        if kind == '#' {
            // A comment opens and closes nothing.
            rest = rest.find("#}").map_or("", |end| &rest[end + 2..]);
            continue;
        }
        let close = if kind == '%' { "%}" } else { "}}" };
        let (mut code, mut quote, mut end, mut is_escaped) = (String::new(), None, rest.len(), false);
        let mut open = 0_i64;
        for (at, c) in rest.char_indices().skip(1) {
            if std::mem::take(&mut is_escaped) {
                continue;
            }
            match quote {
                Some(_) if c == '\\' => is_escaped = true,
                Some(begin) if c == begin => quote = None,
                Some(_) => {}
                None if c == '"' || c == '\'' => quote = Some(c),
                None if open == 0 && rest[at..].starts_with(close) => {
                    end = at;
                    break;
                }
                None => {
                    open += i64::from(matches!(c, '(' | '[' | '{')) - i64::from(matches!(c, ')' | ']' | '}'));
                    code.push(c);
                }
            }
        }
        rest = &rest[end..];
        tags.push(Tag { is_statement: kind == '%', code });
    }
    tags
}

/// The text for a formula without a stored result, as in generated workbooks.
pub(in crate::manifest) const NO_RESULT: &str = "#NO-RESULT!";
/// The text for a cell with an anchored text box.
pub(in crate::manifest) const TEXT_BOX: &str = "#TEXT-BOX!";

/// The cells of a row, for the engine.
#[derive(Debug)]
pub(in crate::manifest) struct CellsOfRow(pub Arc<Cells>);

impl Object for CellsOfRow {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        let cell = self.0.get(key)?;
        Some(broken(key, cell).map_or_else(|| Value::from(cell), Value::from))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.columns().names().iter().map(Value::from).collect())
    }
}

/// The text of a cell, unless its value is none, or an error.
pub(super) fn text_in<'r>(row: &'r Value, column: &str) -> Option<Cow<'r, str>> {
    let Some(CellsOfRow(cells)) = row.downcast_object_ref() else {
        return row.get_attr(column).ok()?.as_str().map(|text| text.to_owned().into());
    };
    cells.get(column).filter(|cell| broken(column, cell).is_none()).map(Cow::Borrowed)
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
            let part = name.strip_prefix("row.").map_or(Segment::Name(name), Segment::Column);
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

/// The reason why a template can't be rendered.
#[derive(Debug)]
pub(crate) struct TemplateError {
    /// The rule that is broken.
    pub rule: Rule,
    /// The error.
    pub message: String,
    /// The help.
    pub help: String,
    /// The part of the text that is at fault.
    pub part: Part,
}

impl TemplateError {
    /// An error of a whole text.
    pub(super) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { rule: Rule::Template, message: message.into(), help: help.into(), part: Part::Value }
    }

    /// The same for a part of the text.
    pub(super) fn in_part(self, part: Part) -> Self {
        Self { part, ..self }
    }
}

/// The part of a text that an error is about.
pub(super) fn part_of(error: &Error, source: &str) -> Part {
    let part = || {
        let range = error.range()?;
        let text = source.get(range.clone()).filter(|text| !text.is_empty())?.to_owned();
        let earlier = source.get(..range.start)?.matches(&text).count();
        Some(Part::Fragment(text, earlier))
    };
    part().unwrap_or(Part::Value)
}

/// The diagnostic for a template that can't be compiled or rendered, at its text.
pub(in crate::manifest) fn template_diagnostic(error: TemplateError, at: Pointer) -> Diagnostic {
    Diagnostic::error(error.rule, error.message, Location::Value(at, error.part)).with_help(error.help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_in_statements_and_joins_outside_quotes() {
        for good in [
            "import {{ row.call }} {{ \"{% macro %}\" }}",
            "{% for c in 'a+b+c+d+e+f+g+h+i+j+k+l+m+n' %}{{ c ~ \" + \" }}{% endfor %}",
            "{{ a + b }} + + + + + + + + + + + + + +",
            "{# {% macro g() %} #}{{ {'a': {'b': 1}} }}{% if raw %}x{% endif %}",
            "{% set a = b %}{{ '%03d%%, %.2f' | format(a, b) }} filter",
            "{{ row.seconds * 2 }} {{ 16*row.width // 9 }} {{ '* * *' }} * * *",
            r"{{ row['it\'s * n'] }}",
        ] {
            assert!(refuse(good).is_none(), "{good}");
        }
        for bad in [
            "{% macro f() %}{% endmacro %}",
            "{%- for x in y recursive %}",
            "{% import 'x' as y %}",
            "{{ \"}\" ~ a~a~a~a~a~a~a~a~a~a~a~a~a~a~a }}",
            "{% set a %}{{ a }}{{ a }}{% endset %}",
            "{%- set a -%}{{ a }}{% endset %}",
            "{% filter upper %}x{% endfilter %}",
            "{# {{ ' #}{% macro f() %}x{% endmacro %}",
            "{# it's {{ x' #}{% set a %}{{ a }}{{ a }}{% endset %}",
            "{%\nset a %}{{ a }}{{ a }}{% endset %}",
            "{% set(a) %}{{ a }}{{ a }}{%-\tendset %}",
            "{% set a | default(1==1) %}{{ a }}{{ a }}{% endset %}",
            "{%+ raw %} endraw {{ ' {% endraw %}{% set a %}{{ a }}{{ a }}{% endset %}",
            "{%\nraw %}{{ '{% endraw %}",
            "{{ {'a': {'b': 1}} ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a }}",
            "{{ ({}}}) ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a }}",
            "{{ '}}' }}{% set a = a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a %}",
            "{{ [1] * 100000000 }}",
            "{{ l * n }}",
            "{{ l * c2 }}",
            "{{ 1_000_000 * l }}",
            "{{ l * 1e9 }}",
            "{{ l * 1000 * 1000 }}",
        ] {
            assert!(refuse(bad).is_some(), "{bad}");
        }
        for deep in ["not ".repeat(50_000), "-".repeat(5_000), "a".to_owned() + &".a".repeat(50_000)] {
            assert!(refuse(&format!("{{{{ {deep} }}}}")).is_some(), "{deep:.20}");
        }
        assert!(refuse(&"{% if a %}".repeat(50_000)).is_some());
    }

    #[test]
    fn format_width_is_explicit_and_small() {
        for good in ["%s", "%03d of %d", "%-10s|", "100%", "%%", "%(name)s", "%.3f"] {
            assert!(is_narrow(good), "{good}");
        }
        for bad in ["%1000000000d", "%*d", "%.99999f", "%d %99999999999999999999s"] {
            assert!(!is_narrow(bad), "{bad}");
        }
    }

    #[test]
    fn empty_cell_among_words_is_a_hole() {
        let row = Value::from_pairs([
            ("a", Value::from("x")),
            ("b", Value::from(" ")),
            ("c", Value::from("")),
            ("n", Value::from(0)),
        ]);
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
