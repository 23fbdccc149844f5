//! Keeps the texts that a template makes in proportion to what it was given.
//!
//! Steps are counted, but one step can double a text, and forty of them would fill any memory. So what repeats itself
//! without a bound is not there (`namespace`, macros, recursive loops), joining is allowed a handful of times in one text,
//! and filters that multiply say so before they do it.

use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::error::TemplateError;
use crate::manifest::source::location::Part;

/// The most `~` and `+` in one text: each can double what it is given at the most.
const MAX_JOINS: usize = 12;
/// The longest text that a template may make, in bytes; a prompt has 1500 characters.
pub(super) const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The longest expression between braces, in bytes, and the most of them in one text: the engine goes a step deeper into its
/// stack for each operator and each statement inside another.
const MAX_TAG: usize = 4 * 1024;
const MAX_TAGS: usize = 500;
/// The most columns that `format` may pad to.
const WIDEST: usize = 1000;
/// Statements that a template has no use for and could grow by without a bound.
const REFUSED: [&str; 6] = ["macro", "call", "recursive", "include", "import", "filter"];

/// Replaces what multiplies by what looks first.
pub(super) fn bound(engine: &mut Environment<'_>) {
    engine.remove_global("namespace");
    // Lists of as many lists as someone writes.
    engine.remove_filter("slice");
    engine.remove_filter("batch");
    engine.add_filter("indent", |text: String, width: usize, first: Option<bool>| {
        within(text.len().saturating_add(width.saturating_mul(text.lines().count() + 1)))?;
        let indent = " ".repeat(width);
        let lines = text.split_inclusive('\n').enumerate();
        let is_indented = |number: usize, line: &str| (number > 0 || first == Some(true)) && !line.trim().is_empty();
        Ok::<_, Error>(
            lines
                .flat_map(|(number, line)| [if is_indented(number, line) { indent.as_str() } else { "" }, line])
                .collect::<String>(),
        )
    });
    engine.add_filter("replace", |text: String, from: String, to: String| {
        let times = if from.is_empty() { text.chars().count() + 1 } else { text.matches(&from).count() };
        within(text.len().saturating_add(times.saturating_mul(to.len())))?;
        Ok::<_, Error>(text.replace(&from, &to))
    });
    engine.add_filter("format", |state: &mut State<'_, '_>, text: Value, values: Rest<ValueOrKwargs>| {
        if let Some(pattern) = text.as_str()
            && !is_narrow(pattern)
        {
            let message = format!("`format` pads to at most {WIDEST} columns, and takes no width from a value");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        minijinja::filters::format(state, &text, values)
    });
    engine.add_filter("join", |items: Value, between: Option<String>| {
        let between = between.unwrap_or_default();
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
        !flags.contains('*') && widths.all(|digits| digits.parse().is_ok_and(|width: usize| width <= WIDEST))
    })
}

fn within(length: usize) -> Result<(), Error> {
    if length <= MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidOperation, format!("the string must have at most {} KiB", MAX_TEXT_BYTES / 1024)))
}

/// Refuses a template that could grow without bounds.
pub(super) fn refuse(source: &str) -> Option<TemplateError> {
    let (mut joins, tags) = (0, tags(source));
    if tags.len() > MAX_TAGS || tags.iter().any(|tag| tag.code.len() > MAX_TAG) {
        let message = format!("a string must have at most {MAX_TAGS} templates of {MAX_TAG} bytes each");
        return Some(TemplateError::new(message, "use fewer and shorter ones"));
    }
    for tag in tags {
        if tag.is_statement
            && tag.code.trim_start_matches(['-', '+', ' ']).starts_with("set ")
            && !tag.code.contains('=')
        {
            return Some(TemplateError::new("templates can't use `set` without `=`", "write {% set name = value %}"));
        }
        let words = || tag.code.split(|c: char| !c.is_alphanumeric() && c != '_');
        if let Some(word) = words().find(|word| tag.is_statement && REFUSED.contains(word)) {
            let message = format!("templates can't use `{word}`");
            let error = TemplateError::new(message, "use {{ name }}, {% if %} and {% for %}");
            return Some(error.at(Part::Fragment(word.to_owned(), 0)));
        }
        joins += tag.code.matches(['~', '+']).count();
    }
    (joins > MAX_JOINS).then(|| {
        let message = format!("more than {MAX_JOINS} `~` and `+` in one text");
        TemplateError::new(message, "write the parts one after the other: `{{ one }} {{ another }}`")
    })
}

/// The text between braces, without its quoted strings.
struct Tag {
    is_statement: bool,
    code: String,
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
        let (mut code, mut quote, mut end) = (String::new(), None, rest.len());
        for (at, c) in rest.char_indices().skip(1) {
            match quote {
                Some(open) if c == open => quote = None,
                Some(_) => {}
                None if c == '"' || c == '\'' => quote = Some(c),
                None if rest[at..].starts_with(close) => {
                    end = at;
                    break;
                }
                None => code.push(c),
            }
        }
        rest = &rest[end..];
        if kind == '%' && code.trim_matches(['-', '+', ' ']) == "raw" {
            rest = rest.find("endraw").map_or("", |end| &rest[end..]);
        }
        tags.push(Tag { is_statement: kind == '%', code });
    }
    tags
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
            "{% raw %}{% macro f() %} {{ ' {% endraw %} {# {% macro g() %} #}",
            "{% set a = b %}{{ '%03d%%, %.2f' | format(a, b) }} filter",
        ] {
            assert!(refuse(good).is_none(), "{good}");
        }
        for bad in [
            "{% macro f() %}{% endmacro %}",
            "{%- for x in y recursive %}",
            "{% import 'x' as y %}",
            "{{ \"}\" ~ a~a~a~a~a~a~a~a~a~a~a~a~a }}",
            "{% set a %}{{ a }}{{ a }}{% endset %}",
            "{%- set a -%}{{ a }}{% endset %}",
            "{% filter upper %}x{% endfilter %}",
            "{# {{ ' #}{% macro f() %}x{% endmacro %}",
            "{# it's {{ x' #}{% set a %}{{ a }}{{ a }}{% endset %}",
            "{% raw %}{{ ' {% endraw %}{% macro f() %}{% endmacro %}",
            "{{ '}}' }}{% set a = a+a+a+a+a+a+a+a+a+a+a+a+a+a %}",
        ] {
            assert!(refuse(bad).is_some(), "{bad}");
        }
        for deep in ["not ".repeat(50_000), "-".repeat(5_000), "a".to_owned() + &".a".repeat(50_000)] {
            assert!(refuse(&format!("{{{{ {deep} }}}}")).is_some(), "{deep:.20}");
        }
        assert!(refuse(&"{% if a %}".repeat(50_000)).is_some());
    }

    #[test]
    fn a_width_is_said_and_small() {
        for good in ["%s", "%03d of %d", "%-10s|", "100%", "%%", "%(name)s", "%.3f"] {
            assert!(is_narrow(good), "{good}");
        }
        for bad in ["%1000000000d", "%*d", "%.99999f", "%d %99999999999999999999s"] {
            assert!(!is_narrow(bad), "{bad}");
        }
    }
}
