//! Strict Jinja.
//!
//! An undefined name is an error at its place, never an empty string. A template may use a bounded number of steps, so
//! no manifest can block the loader, and [`bounds`] limits the growth of its texts.

use std::fmt;
use std::sync::Arc;

use memchr::memchr;
use minijinja::value::{ArgType as _, Object, Serde, ValueKind};
use minijinja::{Environment, ErrorKind, Output, State, Template, UndefinedBehavior, Value};
use unicode_normalization::UnicodeNormalization as _;

use super::bounds::{self, TemplateError, part_of};
use super::row::{BrokenCell, CellsOfRow, Named, Used, columns_in};
use crate::domain::Rule;
use crate::manifest::source::diagnostic::{Part, help_near};

/// The most steps of the template engine for one text; a prompt with a loop over a few dozen words needs some hundreds.
const MAX_STEPS: u64 = 100_000;

/// The most useful filters, for the help after an unknown filter.
const FILTERS: &str = "lower, upper, title, capitalize, trim, slug, replace, default, join, split, first, last, length, int, round, format";

/// The template engine with the names of the whole manifest in scope.
pub(crate) struct Templates {
    engine: Environment<'static>,
    /// The names that are in scope everywhere.
    pub names: Vec<String>,
}

/// A string of the manifest, compiled if it is a template.
pub(crate) enum Text<'t> {
    /// A plain string.
    Plain(&'t str),
    /// A template.
    Template(Compiled<'t>),
}

impl<'t> Text<'t> {
    /// The empty columns among the words of a prompt; see [`Named::holes`].
    pub(crate) fn holes(&self, row: Option<&Value>) -> Vec<(&'t str, usize)> {
        let Self::Template(Compiled { named: Some(named), .. }) = self else { return Vec::new() };
        row.map(|row| named.holes(row)).unwrap_or_default()
    }
}

/// A compiled template.
pub(crate) struct Compiled<'t> {
    template: Template<'t, 't>,
    /// The names in it.
    pub names: Vec<String>,
    /// Its words and names, if there is nothing else in it.
    pub(super) named: Option<Named<'t>>,
    /// Its columns in numbers and conditions.
    used: Vec<Used>,
}

/// The value of a field that is rendered. The engine makes a copy only of those that a template names.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    Text(String),
    Whole(i64),
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Whole(whole) => whole.fmt(f),
        }
    }
}

/// The scope of one job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The row, if the job has one.
    pub row: Option<Value>,
    /// Its number among the rows, from 1.
    pub row_number: Option<usize>,
    /// The job's fields that are rendered already.
    pub fields: Vec<(&'static str, Made)>,
    /// The values of the job's matrix.
    pub matrix: Vec<(String, Value)>,
}

/// A text that is being made, up to a bound.
struct Bounded(Vec<u8>);

impl std::io::Write for &mut Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > bounds::MAX_TEXT_BYTES {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Object for Scope {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.value(key.as_str()?)
    }
}

impl Scope {
    /// The text of a field that is rendered already.
    fn text(&self, field: &str) -> Option<&str> {
        let (_, made) = self.fields.iter().find(|(name, _)| *name == field)?;
        if let Made::Text(text) = made { Some(text) } else { None }
    }

    /// The names of the columns of its row, if it has one.
    fn columns(&self) -> Option<&[String]> {
        self.row.as_ref().map(CellsOfRow::columns)
    }

    /// The value of a name for this job.
    pub(super) fn value(&self, key: &str) -> Option<Value> {
        if key == "row" {
            return self.row.clone();
        }
        if key == "row_number" {
            return self.row_number.map(Value::from);
        }
        match self.fields.iter().find(|(name, _)| *name == key) {
            Some((_, Made::Text(text))) => Some(text.into()),
            Some((_, Made::Whole(whole))) => Some((*whole).into()),
            None => self.matrix.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()),
        }
    }
}

impl Templates {
    /// Sets the engine up with the vars and the date in scope.
    pub(crate) fn new(vars: impl IntoIterator<Item = (String, serde_yaml::Value)>, today: &str) -> Self {
        let mut engine = bounds::engine();
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        engine.set_fuel(Some(MAX_STEPS));
        engine.set_formatter(write_value);
        engine.add_filter("slug", |value: Value| match value.kind() {
            ValueKind::Number => Ok(slug(&value.to_string())),
            _ => <&str>::from_value(Some(&value)).map(slug),
        });
        engine.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        let mut names = vec!["today".to_owned()];
        for (name, value) in vars {
            engine.add_global(name.clone(), Value::from(Serde(value)));
            names.push(name);
        }
        engine.add_global("today", today);
        Self { engine, names }
    }

    /// Compiles a text; one without a template costs nothing.
    pub(crate) fn compile<'t>(&'t self, source: &'t str) -> Result<Text<'t>, TemplateError> {
        if !is_template(source) {
            return Ok(Text::Plain(source));
        }
        if let Some(refusal) = bounds::refuse(source) {
            return Err(refusal);
        }
        let template = self.engine.template_from_str(source).map_err(|error| explain_syntax(&error, source))?;
        let names = template.undeclared_variables(false).into_iter().collect();
        let (named, used) = (Named::parse(source), Used::in_template(source));
        Ok(Text::Template(Compiled { template, names, named, used }))
    }

    /// Fills a text in.
    pub(crate) fn render(&self, text: &Text<'_>, scope: &Arc<Scope>) -> Result<String, TemplateError> {
        match text {
            Text::Plain(source) => Ok((*source).to_owned()),
            Text::Template(Compiled { template, named, used, .. }) => {
                let filled = named.as_ref().and_then(|named| named.filled(scope.row.as_ref(), |name| scope.text(name)));
                if let Some(text) = filled {
                    return Ok(text);
                }
                let error = scope.row.as_ref().and_then(|row| used.iter().find_map(|used| used.error_in(row)));
                if let Some(error) = error {
                    return Err(error);
                }
                scope.row.iter().for_each(|row| CellsOfRow::note_named(row, template.source()));
                let mut text = Bounded(Vec::new());
                match template.render_captured_to(Value::from_dyn_object(Arc::clone(scope)), &mut text) {
                    Ok(_) => Ok(String::from_utf8(text.0).unwrap_or_default()),
                    Err(error) => Err(self.explain(&error, template.source(), scope)),
                }
            }
        }
    }

    fn explain(&self, error: &minijinja::Error, source: &str, scope: &Scope) -> TemplateError {
        let part = part_of(error, source);
        let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        match error.kind() {
            ErrorKind::WriteFailure => TemplateError::new(bounds::too_long(), "no prompt is as long as that").in_part(part),
            ErrorKind::OutOfFuel => {
                TemplateError::new(format!("the template must take at most {MAX_STEPS} steps"), "write shorter loops")
            }
            ErrorKind::UnknownFilter => TemplateError::new(detail, format!("filters: {FILTERS}")).in_part(part),
            ErrorKind::UndefinedError => {
                let code = if let Part::Fragment(code, _) = &part { code.as_str() } else { "" };
                // Of a comparison, the part is all of it.
                let is_unknown = |word: &&str| {
                    let root = word.split('.').next().unwrap_or_default();
                    let is_name = root.starts_with(char::is_alphabetic) && !word.contains(['\'', '"', '[']);
                    is_name && !KEYWORDS.contains(&root) && !self.names_in(scope).contains(&root)
                };
                let name = code.split([' ', '{', '}', '(', ')']).find(is_unknown).unwrap_or(code);
                self.undefined(name, part.clone(), scope)
            }
            kind => self.missing_column(source, scope).unwrap_or_else(|| {
                let cause = std::error::Error::source(error);
                if cause.is_some_and(<dyn std::error::Error>::is::<BrokenCell>) {
                    let help = "mend the cell in a spreadsheet program, and save the file: that stores the results of formulas";
                    return TemplateError { rule: Rule::CellError, ..TemplateError::new(detail, help).in_part(part) };
                }
                let help = match kind {
                    ErrorKind::UnknownMethod | ErrorKind::UnknownFunction => {
                        format!("the date is `{{{{ today }}}}`; filters, as in `{{{{ name | upper }}}}`: {FILTERS}")
                    }
                    _ => "`shotlist help manifest` explains templates".to_owned(),
                };
                TemplateError::new(format!("the template failed: {detail}"), help).in_part(part)
            }),
        }
    }

    fn undefined(&self, name: &str, part: Part, scope: &Scope) -> TemplateError {
        let message = format!("`{name}` is not defined");
        TemplateError::new(message, self.help_for(name, scope)).in_part(part)
    }

    /// The first column of a template that the row lacks. The error of a filter does not name it.
    fn missing_column(&self, source: &str, scope: &Scope) -> Option<TemplateError> {
        let columns = scope.columns()?;
        let (_, missing) =
            columns_in(source).find(|(_, name)| !name.is_empty() && !columns.iter().any(|known| known == name))?;
        let name = format!("row.{missing}");
        Some(self.undefined(&name, Part::Fragment(name.clone(), 0), scope))
    }

    /// The names that are in scope of a job.
    fn names_in<'s>(&'s self, scope: &'s Scope) -> Vec<&'s str> {
        let of_row = if scope.row.is_some() { &["row", "row_number"][..] } else { &[] };
        let fields = scope.fields.iter().map(|(name, _)| *name);
        let of_matrix = scope.matrix.iter().map(|(name, _)| name.as_str());
        self.names.iter().map(String::as_str).chain(of_row.iter().copied()).chain(fields).chain(of_matrix).collect()
    }

    fn help_for(&self, name: &str, scope: &Scope) -> String {
        let (columns, names) = (scope.columns(), self.names_in(scope));
        if columns.is_none() && (name.starts_with("row.") || matches!(name, "row" | "row_number")) {
            return "`row` requires `for_each`".to_owned();
        }
        let columns: Vec<&str> = columns.unwrap_or_default().iter().map(String::as_str).collect();
        let in_brackets = || name.strip_prefix("row['")?.strip_suffix("']");
        if let Some(column) = name.strip_prefix("row.").or_else(in_brackets) {
            return help_near(column, "columns of the row", &columns);
        }
        match name.rsplit_once('.') {
            // Other tools have them in groups: `matrix.lang`, `vars.brand`, `item.sku`.
            Some((_, last)) if names.contains(&last) => format!("write `{{{{ {last} }}}}`"),
            Some((_, last)) if columns.contains(&last) => format!("write `{{{{ row.{last} }}}}`"),
            _ => other_word(name).unwrap_or_else(|| help_near(name, "names in scope", &names)),
        }
    }
}

/// Words of the language itself.
const KEYWORDS: [&str; 10] = ["if", "elif", "else", "and", "or", "not", "in", "is", "for", "set"];
/// Words of other template languages, each before the one to write.
const OTHER_WORDS: &str =
    "||=or;&&=and;else if=elif;null=none; ? ={{ one if … else another }};#if={% if … %} … {% endif %}";

fn other_word(code: &str) -> Option<String> {
    let mut words = OTHER_WORDS.split(';').filter_map(|words| words.split_once('='));
    let has_word = |other: &str| code.split(|c: char| !c.is_alphanumeric()).any(|word| word == other);
    let (other, word) =
        words.find(|(other, _)| if *other == "null" { has_word(other) } else { code.contains(other) })?;
    Some(format!("in place of `{}`, write `{word}`", other.trim()))
}

/// Writes a value into a text. A value without a text of its own is an error, such as an empty variable, which would become `None`, or a list with its
/// brackets.
fn write_value(out: &mut Output, state: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    let refuse = |what: &str| Err(minijinja::Error::new(ErrorKind::BadSerialization, format!("the value is {what}")));
    match value.kind() {
        ValueKind::None => refuse("empty"),
        ValueKind::Seq | ValueKind::Iterable => refuse("a list; join it: {{ name | join(\", \") }}"),
        ValueKind::Map => refuse("a mapping; name one of its values: {{ name.key }}"),
        ValueKind::Bool => {
            out.write_str(if value.is_true() { "true" } else { "false" }).map_err(minijinja::Error::from)
        }
        _ => minijinja::escape_formatter(out, state, value),
    }
}

/// A text in the characters of an ID: lower-case ASCII letters, digits, and a dash for each run of other characters. Accented European letters lose their
/// accent or become two letters.
pub(in crate::manifest) fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        let plain = match letter {
            'ä' | 'æ' => "ae",
            'ö' | 'ø' | 'œ' => "oe",
            'ü' => "ue",
            'ß' => "ss",
            'đ' => "d",
            'ł' => "l",
            'ı' => "i",
            '\'' | '’' => continue,
            _ => "",
        };
        // Without its accent.
        let letter = letter.nfd().next().unwrap_or(letter);
        if plain.is_empty() && letter.is_ascii_alphanumeric() {
            slug.push(letter);
        } else if !plain.is_empty() {
            slug.push_str(plain);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// The correct spelling of a column name with a space, if that is the error of the template.
fn column_with_a_blank(before: &str, source: &str) -> Option<String> {
    let inside = &source[before.rfind("{{")? + 2..];
    let name = inside[..inside.find("}}")?].trim().strip_prefix("row.")?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '/' | '(' | ')'));
    (is_name && !name.chars().all(char::is_alphanumeric))
        .then(|| format!("for a column with a space in its name, write {{{{ row['{name}'] }}}}"))
}

/// Returns whether a string is a template.
pub(crate) fn is_template(source: &str) -> bool {
    memchr(b'{', source.as_bytes()).is_some() && ["{{", "{%", "{#"].iter().any(|mark| source.contains(mark))
}

fn explain_syntax(error: &minijinja::Error, source: &str) -> TemplateError {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let usual = || "a template is `{{ name }}`; to write two braces as they are, use {{ \"{{\" }}".to_owned();
    let unclosed = source.rfind("{{").filter(|at| !source[*at..].contains("}}"));
    if let Some(at) = unclosed {
        let name = source[at + 2..].split(['}', '%']).next().unwrap_or_default().trim();
        let help = format!("write `{{{{ {name} }}}}`; to write two braces as they are, use {{{{ \"{{{{\" }}}}");
        return TemplateError::new("`{{` is not closed", help).in_part(Part::Fragment(source[at..].to_owned(), 0));
    }
    let help = error.range().and_then(|range| column_with_a_blank(source.get(..range.start)?, source));
    let help = help.or_else(|| other_word(&bounds::code_of(source)));
    let message = format!("can't read the template: {detail}");
    TemplateError::new(message, help.unwrap_or_else(usual)).in_part(part_of(error, source))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{Cells, Columns};
    use crate::manifest::template::row::{CellsOfRow, NO_RESULT};

    fn scope() -> Scope {
        let columns = Columns::new(["a", "b", "c", "d"].map(str::to_owned).to_vec()).expect("different names");
        let cells = Cells::new(Arc::new(columns), ["cup", "", "{{ id }}", NO_RESULT]);
        Scope {
            row: Some(CellsOfRow::value(Arc::new(cells), None, None)),
            row_number: Some(3),
            fields: vec![("id", Made::Text("job".to_owned())), ("duration", Made::Whole(5))],
            matrix: vec![("id".to_owned(), "other".into()), ("size".to_owned(), "720p".into())],
        }
    }

    proptest! {
        #[test]
        fn names_are_filled_in_as_the_engine_does(pieces in prop::collection::vec(prop::sample::select(vec![
            "A ", "é", "{", "}", "}}", "{{", "\n", "\r\n", " ", "{{ row.a }}", "{{row.b}}", "{{ row.c }}", "{{ row.d }}",
            "{{ row.none }}", "{{ row . a }}", "{{ row['a'] }}", "{{ row.a.b }}", "{{ row }}", "{{ row_number }}", "{{ id }}", "{{id\n}}", "{{ duration }}",
            "{{ size }}", "{{ today }}", "{{ brand }}", "{{ empty }}", "{{ true }}", "{{ None }}", "{{ nothing }}", "{{- id }}", "{{ id -}}",
            "{{+ id }}", "{{ id +}}", "{{ 'id' }}", "{{ id\u{a0}}}", "{{ é }}", "{{ not }}", "{{ if }}", "{{ loop }}", "{{ self }}", "{{ range }}",
            "{# id #}", "{% if id %}", "{% endif %}",
        ]), 1..6)) {
            let vars = [("brand".to_owned(), "Acme".into()), ("empty".to_owned(), serde_yaml::Value::Null)];
            let (templates, source) = (Templates::new(vars, "2026-11-27"), pieces.concat());
            let Ok(Text::Template(mut compiled)) = templates.compile(&source) else { return Ok(()) };
            for scope in [scope(), Scope::default()].map(Arc::new) {
                let named = compiled.named.take();
                let rendered = |compiled| templates.render(&Text::Template(compiled), &scope).map_err(|error| error.message);
                let by_engine = rendered(Compiled { template: compiled.template.clone(), names: vec![], named: None, used: vec![] });
                let by_names = rendered(Compiled { template: compiled.template.clone(), names: vec![], named, used: vec![] });
                prop_assert_eq!(by_names, by_engine);
                compiled.named = Named::parse(&source);
            }
        }
    }
}
