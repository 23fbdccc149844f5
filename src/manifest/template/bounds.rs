//! Bounds on the time and memory of templates, in proportion to their values, and the errors of templates.
//!
//! Steps are counted, but one step can double a string, or walk over a list. So the engine starts empty: only bounded filters, tests, and functions
//! are added. Operators that multiply are counted in the text itself, before it runs.

use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, tests as checks};

use crate::domain::Rule;
use crate::manifest::source::diagnostic::{Diagnostic, Location, Part, Pointer};

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

/// Adds functions of the engine's own, each under a name.
macro_rules! add {
    ($engine:ident . $add:ident, $module:ident: $($name:literal $function:ident),* $(,)?) => {
        $($engine.$add($name, $module::$function);)*
    };
}

/// An engine with bounded filters, tests, and functions.
pub(super) fn engine() -> Environment<'static> {
    let mut engine = Environment::empty();
    add!(engine.add_test, checks:
        "defined" is_defined, "undefined" is_undefined, "none" is_none, "boolean" is_boolean, "number" is_number,
        "integer" is_integer, "float" is_float, "string" is_string, "sequence" is_sequence, "mapping" is_mapping,
        "iterable" is_iterable, "odd" is_odd, "even" is_even, "divisibleby" is_divisibleby, "in" is_in,
        "startingwith" is_startingwith, "endingwith" is_endingwith, "lower" is_lower, "upper" is_upper,
        "eq" is_eq, "ne" is_ne, "lt" is_lt, "le" is_le, "gt" is_gt, "ge" is_ge, "true" is_true, "false" is_false,
    );
    // Their output is at most as long as their input.
    add!(engine.add_filter, filters:
        "lower" lower, "upper" upper, "title" title, "capitalize" capitalize, "trim" trim, "split" split, "lines" lines,
        "length" length, "count" length, "default" default, "d" default, "round" round, "abs" abs, "int" int,
        "float" float, "bool" bool, "first" first,
    );
    add_text_filters(&mut engine);
    add_list_filters(&mut engine);
    engine.add_function("range", |lower: isize, upper: Option<isize>, step: Option<isize>| {
        let items = minijinja::functions::range(lower, upper, step)?;
        check_items(&items).map(|()| items)
    });
    engine
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
pub(super) struct Tag {
    is_statement: bool,
    pub code: String,
}

/// The code of a template, without its words and strings.
pub(super) fn code_of(source: &str) -> String {
    tags(source).into_iter().map(|tag| tag.code).collect()
}

pub(super) fn tags(source: &str) -> Vec<Tag> {
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
}
