//! The fields of a job, and the decoding of a YAML mapping key by key, so that one pass reports all of its errors.
//!
//! A derived deserializer stops at the first error. Here, each key is taken separately. A value of a wrong type is reported and counts as
//! absent, and keys that are left are unknown.
//!
//! A new field is a variant of [`JobField`], with its name and its traits. The compiler then requires an arm in
//! [`of_request`](JobField::of_request). It also needs a use in `expand`, and, if its value is no string, a line in `decode`. A field that is sent needs a
//! [`Field`], a member of [`Spec`](crate::domain::Spec), and a rule in the catalog.

use serde_yaml::Value;

use crate::domain::{Field, named};
use crate::manifest::source::diagnostic::{
    Diagnostic, Findings, Location, Part, Pointer, error, foreign_letter, help_with_key, nearest, synonym,
};
use crate::manifest::source::reader::RawEntry;
use crate::manifest::source::{lints, syntax};
use crate::manifest::template::engine::is_template;

named! {
    /// A field of a job, or of `defaults`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub(crate) enum JobField {
        Model = "model",
        Prompt = "prompt",
        PromptFile = "prompt_file",
        Duration = "duration",
        Shape = "shape",
        AspectRatio = "aspect_ratio",
        Size = "size",
        Image = "image",
        ImageFile = "image_file",
        ImageKey = "image_key",
        Face = "face",
        Takes = "takes",
        Tags = "tags",
        Labels = "labels",
        File = "file",
        Extra = "extra",
        Id = "id",
    }
}

use JobField as F;

impl JobField {
    /// The fields with one value, which templates may use, in rendering order.
    pub(in crate::manifest) const PLAIN: [Self; 8] =
        [F::Model, F::Duration, F::Shape, F::AspectRatio, F::Size, F::Face, F::Prompt, F::Id];

    /// The fields that jobs and `defaults` share: all but the ID.
    pub(in crate::manifest) fn shared() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|field| *field != F::Id)
    }

    /// The request field of this field, if any.
    pub(in crate::manifest) const fn of_request(self) -> Option<Field> {
        match self {
            F::Model => Some(Field::Model),
            F::Prompt | F::PromptFile => Some(Field::Prompt),
            F::Duration => Some(Field::Duration),
            F::AspectRatio => Some(Field::AspectRatio),
            F::Size => Some(Field::Size),
            F::Image | F::ImageFile => Some(Field::Image),
            F::Face => Some(Field::Face),
            F::Id | F::Shape | F::ImageKey | F::Takes | F::Tags | F::Labels | F::File | F::Extra => None,
        }
    }

    /// The field of a job that sets a field of the request.
    pub(in crate::manifest) fn for_request_field(field: Field) -> Self {
        let found = Self::ALL.into_iter().find(|own| own.of_request() == Some(field));
        found.expect("each field of a request is one of a job")
    }

    /// Returns whether templates may use it.
    pub(in crate::manifest) fn is_plain(self) -> bool {
        Self::PLAIN.contains(&self)
    }

    /// Returns whether typographic quotes around a value are an error, because no valid value has any.
    pub(in crate::manifest) fn is_a_word(self) -> bool {
        matches!(self, F::Model | F::Shape | F::AspectRatio | F::Size | F::PromptFile | F::ImageFile)
    }
}

/// The value of a field, with raw or compiled strings.
#[derive(Debug)]
pub(in crate::manifest) enum FieldValue<S> {
    Text(S),
    Whole(i64),
    List(Vec<S>),
    Labels(Vec<(String, S)>),
}

/// The fields of a job, or of `defaults`, that have a value.
#[derive(Debug, Default)]
pub(in crate::manifest) struct FieldValues<S>(pub Vec<(JobField, FieldValue<S>)>);

impl<S> FieldValues<S> {
    fn get(&self, field: JobField) -> Option<&FieldValue<S>> {
        self.0.iter().find(|(known, _)| *known == field).map(|(_, value)| value)
    }

    pub(in crate::manifest) fn has(&self, field: JobField) -> bool {
        self.get(field).is_some()
    }

    pub(in crate::manifest) fn text(&self, field: JobField) -> Option<&S> {
        if let FieldValue::Text(text) = self.get(field)? { Some(text) } else { None }
    }

    pub(in crate::manifest) fn whole(&self, field: JobField) -> Option<i64> {
        if let FieldValue::Whole(whole) = self.get(field)? { Some(*whole) } else { None }
    }

    pub(in crate::manifest) fn list(&self, field: JobField) -> Option<&[S]> {
        if let FieldValue::List(list) = self.get(field)? { Some(list) } else { None }
    }

    pub(in crate::manifest) fn labels(&self) -> &[(String, S)] {
        if let Some(FieldValue::Labels(labels)) = self.get(F::Labels) { labels } else { &[] }
    }
}

/// Reserved names of templates that are no plain fields.
const OTHER_RESERVED: [&str; 7] = ["row", "row_number", "today", "take", "loop", "image", "tags"];

/// Returns whether no variable or axis may have this name.
pub(in crate::manifest) fn is_reserved(name: &str) -> bool {
    OTHER_RESERVED.contains(&name) || JobField::named(name).is_some_and(JobField::is_plain)
}

/// The maximum number of unknown keys of a mapping that get a suggestion.
const MAX_SUGGESTIONS: usize = 100;

/// A mapping with the keys that are left.
pub(crate) struct Table<'f> {
    pairs: Vec<(Value, Value)>,
    at: Pointer,
    found: &'f mut Findings,
}

impl<'f> Table<'f> {
    /// A mapping at this place. Reports any other value, and returns `None`.
    pub(crate) fn open(value: impl Into<RawEntry>, at: Pointer, what: &str, found: &'f mut Findings) -> Option<Self> {
        match value.into() {
            RawEntry::Mapping(pairs) => Some(Self { pairs, at, found }),
            RawEntry::Other(other) => {
                found.push(wrong_type(what, "a mapping of names to values", &other, at.value()));
                None
            }
        }
    }

    /// The place of a key's value.
    pub(crate) fn at(&self, key: &str) -> Pointer {
        self.at.key(key)
    }

    /// The keys and values, for keys of the user.
    pub(crate) fn into_pairs(self) -> Vec<(Value, Value)> {
        self.pairs
    }

    /// The value of a key that is left.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.pairs.iter().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// Returns whether no unknown key is a misspelling of a missing one.
    pub(crate) fn misses(&self, key: &str) -> bool {
        let is_like = |name: &str| nearest(name, [key]).is_some() && (key.len() > 2 || name.len() == 2);
        // Behind a comment of JSON, which YAML takes for a part of the key.
        let has_end =
            |name: &str| name.trim_end_matches('"').strip_suffix(key).is_some_and(|rest| rest.ends_with([' ', '"']));
        let is_misspelled = |name: &str| foreign_letter(name, key).is_some() || has_end(name) || is_like(name);
        let is_it = |name: &str| synonym(name) == Some(key) || !syntax::is_key(name) && is_misspelled(name);
        !self.pairs.iter().any(|(name, _)| name.as_str().is_some_and(is_it))
    }

    /// Returns whether no key is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Reports a diagnostic about this mapping.
    pub(crate) fn tell(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// The diagnostics, for a mapping inside this one.
    pub(crate) fn found(&mut self) -> &mut Findings {
        self.found
    }

    /// The value of a key, also if it is null: absence may mean "no limit", and a forgotten value does not.
    pub(crate) fn take_even_null(&mut self, key: &str) -> Option<Value> {
        let nth = self.pairs.iter().position(|(name, _)| name.as_str() == Some(key))?;
        Some(self.pairs.swap_remove(nth).1)
    }

    /// The value of a key. Null counts as absent.
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        self.take_even_null(key).filter(|value| !value.is_null())
    }

    /// The mapping under a key that may have another value.
    pub(crate) fn inner_mapping(&mut self, key: &str) -> Option<Table<'_>> {
        if self.get(key)?.is_mapping() { self.inner(key) } else { None }
    }

    /// The mapping under a key.
    pub(crate) fn inner(&mut self, key: &str) -> Option<Table<'_>> {
        let (value, at) = (self.take(key)?, self.at(key));
        Table::open(value, at, &format!("`{key}`"), self.found)
    }

    /// A string. A whole number is taken as its digits, because users write `id: 7` without quotes.
    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        let value = self.take(key)?;
        text(value, key, || self.at.key(key), self.found)
    }

    /// A string of a job. Removes typographic quotes around a word, and reports them. Others may be intended, and must not change an identity.
    pub(crate) fn field(&mut self, field: JobField) -> Option<String> {
        let mut text = self.text(field.name())?;
        if !field.is_a_word() {
            return Some(text);
        }
        if let Some((character, visible)) = lints::invisible(&text) {
            self.found.push(error!(Invisible, self.at(field.name()).value(),
                "`{}` contains the invisible character {character}", field.name();
                "write the value again by hand"));
            text = visible;
        }
        if let Some(inside) = lints::typographic(&text) {
            let inside = inside.to_owned();
            self.found.push(lints::typographic_quotes(&text, self.at(field.name()).value()));
            text = inside;
        }
        Some(text)
    }

    /// A list of texts, or one text.
    pub(crate) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        let (value, at) = (self.take(key)?, self.at(key));
        match value {
            Value::Sequence(items) => {
                let items = items.into_iter().enumerate();
                Some(items.filter_map(|(index, item)| text(item, key, || at.index(index), self.found)).collect())
            }
            // As in a cell of a spreadsheet.
            value => {
                let text = text(value, key, || at, self.found)?;
                Some(if key == JobField::Tags.name() && !is_template(&text) { tags_of(&text) } else { vec![text] })
            }
        }
    }

    /// A whole number or a template.
    pub(crate) fn whole_or_template(&mut self, key: &str) -> Option<FieldValue<String>> {
        match self.take(key)? {
            Value::Number(number) if let Some(whole) = whole_in(&number.to_string()) => Some(FieldValue::Whole(whole)),
            Value::String(text) if text.contains("{{") || text.contains("{%") => Some(FieldValue::Text(text)),
            other => {
                let diagnostic = wrong_type(&format!("`{key}`"), "a whole number", &other, self.at(key).value());
                let written = text_or_number(&other).unwrap_or_default();
                let help = match whole_in(&written) {
                    Some(number) if number.to_string() == written => format!("write {number} without quotes"),
                    // YAML reads a number with a leading zero as a string.
                    Some(number) => format!("write {number}"),
                    None => help_with_whole(&written),
                };
                self.found.push(if other.is_sequence() { diagnostic } else { diagnostic.with_help(help) });
                None
            }
        }
    }

    /// Reports a value of a wrong type.
    pub(crate) fn tell_wrong_type(&mut self, key: &str, wanted: &str, value: &Value) {
        let place = self.at(key).value();
        self.tell(wrong_type(&format!("`{key}`"), wanted, value, place));
    }

    /// Reports the keys that are left.
    pub(crate) fn close(self, known: &[&str]) {
        let mut unknown = 0;
        for (key, value) in &self.pairs {
            let Value::String(name) = key else {
                let mut diagnostic = error!(KeyNotText, self.at.value(), "a key must be a string, found {}", kind(key));
                if let (Value::Number(decimals), Value::Null) = (key, value) {
                    diagnostic.message = format!("the comma before {decimals} begins another key");
                    diagnostic.help = Some("write a decimal with a point, such as 12.50".to_owned());
                }
                self.found.push(diagnostic);
                continue;
            };
            // A known key that is left was null, or a duplicate.
            if known.contains(&name.as_str()) {
                continue;
            }
            let place = Location::Value(self.at.key(name), Part::Key);
            if let Some((character, _)) = lints::invisible(name) {
                self.found.push(error!(Invisible, place,
                    "the key `{name}` contains the invisible character {character}";
                    "write the key again by hand"));
                continue;
            }
            let mut diagnostic = error!(UnknownKey, place, "unknown key `{name}`");
            unknown += 1;
            // The rest is not shown.
            if unknown <= MAX_SUGGESTIONS {
                let of_a_job = JobField::named(name).filter(|_| known.contains(&"jobs"));
                let of_a_job = of_a_job.map(|_| "write it under `defaults`, or in each job".to_owned());
                diagnostic.help = Some(of_a_job.unwrap_or_else(|| help_with_key(name, known)));
            }
            self.found.push(diagnostic);
        }
    }
}

/// Tags of one string, separated by commas.
pub(crate) fn tags_of(text: &str) -> Vec<String> {
    text.split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect()
}

pub(super) fn text(value: Value, key: &str, at: impl FnOnce() -> Pointer, found: &mut Findings) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        other => {
            found.push(wrong_type(&format!("`{key}`"), "a string", &other, at().value()));
            None
        }
    }
}

/// The text of a string or a number.
pub(crate) fn text_or_number(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The whole number in a string, also as spreadsheets write one: `5.0`.
pub(crate) fn whole_in(text: &str) -> Option<i64> {
    let text = text.trim();
    // Three zeros may be a thousand.
    let is_nothing = |zeros: &str| matches!(zeros, "0" | "00");
    let whole = text.split_once(['.', ',']).filter(|(_, zeros)| is_nothing(zeros)).map_or(text, |(whole, _)| whole);
    whole.parse().ok()
}

/// Units of seconds in cells of spreadsheets.
const SECONDS: [&str; 17] = [
    "", "s", "sec", "secs", "second", "seconds", "sek", "sekunden", "secondes", "seg", "segundos", "secondi", "\"",
    "''", "秒", "秒間", "초",
];

/// The whole seconds in a cell: `5`, `5,0`, `5 s`, `~8 sec.`, `0:05`, `00:00:05`, or the time code `00:00:05:00`.
pub(crate) fn seconds_in(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let text = text.trim_start_matches('~').trim_end_matches('.').to_lowercase();
    let text = if text.matches(':').count() == 3 { text.strip_suffix(":00")? } else { &text };
    if text.contains(':') {
        let parts = text.split(':').map(|part| part.parse::<u16>().ok()).collect::<Option<Vec<_>>>()?;
        let ([.., minutes, seconds @ 0..60], 2..=3) = (&parts[..], parts.len()) else { return None };
        let hours = if parts.len() == 3 { parts[0] } else { 0 };
        return Some(i64::from(hours) * 3600 + i64::from(*minutes) * 60 + i64::from(*seconds));
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
    SECONDS.contains(&unit.trim()).then(|| whole_in(&text[..text.len() - unit.len()]))?
}

/// A key as text; any other key is an error.
pub(crate) fn text_key<'k>(key: &'k Value, at: &Pointer, found: &mut Findings) -> Option<&'k str> {
    if key.as_str().is_none() {
        found.push(error!(KeyNotText, at.value(), "a key must be a string, found {}", kind(key)));
    }
    key.as_str()
}

/// The help for a whole number, with the number at the start of the string.
pub(crate) fn help_with_whole(written: &str) -> String {
    let digits: String = written.trim().chars().take_while(char::is_ascii_digit).collect();
    let rest = &written.trim()[digits.len()..];
    match digits.parse::<i64>() {
        Ok(number) if matches!(rest, ".000" | ",000") => format!("write {number}"),
        Ok(number) if rest.starts_with(['.', ',']) => format!("write {number} or {}", number.saturating_add(1)),
        _ if let Some(seconds) = seconds_in(written) => format!("write {seconds}"),
        _ => "write digits, for example 5".to_owned(),
    }
}

/// The help for values without names in place of a mapping.
const WITHOUT_NAMES: [(&str, &str); 5] = [
    ("`budget`", "name the limit: `budget: { run: 50 }`"),
    ("a limit", "name label and span: `labels: { client: { acme: { month: 200 } } }`"),
    ("`labels`", "name each label: `labels: { client: acme }`"),
    ("`faces`", "give each face a review: `faces: { anna: { review: pending } }`"),
    ("a job", "name its fields: `- { id: hero, model: alpha-2, prompt: \"A crane unfolds\" }`"),
];

/// The diagnostic for a value of a wrong type, with help for surprises of YAML.
pub(crate) fn wrong_type(what: &str, wanted: &str, value: &Value, place: Location) -> Diagnostic {
    let diagnostic = error!(WrongType, place, "{what} must be {wanted}, found {}", kind(value));
    let (is_mapping, field) = (wanted.starts_with("a mapping"), what.trim_matches('`'));
    let help = match value {
        Value::Mapping(map) if map.len() == 1 && map.keys().all(Value::is_mapping) => {
            "put quotes around the template: \"{{ … }}\""
        }
        Value::Bool(_) | Value::Number(_) if wanted == "a string" => "put quotes around it",
        Value::Tagged(_) => "put quotes around it, because YAML reads a leading `!` as a tag",
        Value::String(text) if is_mapping && syntax::unspaced(text).is_some() => syntax::SPACED,
        Value::Null if is_mapping => "write the fields, or remove the line",
        Value::Sequence(items) if is_mapping && what != "a manifest" && items.iter().all(Value::is_mapping) => {
            "remove the dash or the brackets, which make a list"
        }
        Value::Number(_) | Value::String(_) | Value::Sequence(_)
            if let Some((_, help)) = WITHOUT_NAMES.iter().find(|(mapping, _)| *mapping == what) =>
        {
            help
        }
        Value::Sequence(_) if what == "a manifest" => {
            "write above the list: `version: 1`, and `jobs:` in the next line"
        }
        // A prompt makes no ID.
        Value::Sequence(_)
            if JobField::named(field)
                .is_some_and(|it| it.is_plain() && !matches!(it, JobField::Id | JobField::Prompt)) =>
        {
            let matrix = format!("`matrix: {{ {field}: [ … ] }}`, and `{{{{ {field} | slug }}}}` in the ID");
            return diagnostic.with_help(format!("for a job of each, write {matrix}"));
        }
        _ => return diagnostic,
    };
    diagnostic.with_help(help)
}

/// The type of a value, for the user.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "no value",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a decimal number",
        Value::Number(_) => "a whole number",
        Value::String(_) => "a string",
        Value::Sequence(_) => "a list",
        Value::Mapping(_) => "a mapping",
        Value::Tagged(_) => "a value with a YAML tag",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::raw::decode::{ENTRY_KEYS, TOP_KEYS, field_keys};

    /// Some keys are similar to each other, such as `version` and `vars`.
    #[test]
    fn known_key_is_no_misspelling_of_a_missing_one() {
        let entry = [&ENTRY_KEYS[..], &field_keys()].concat();
        for keys in [&TOP_KEYS[..], &entry] {
            for missing in keys {
                let mut found = Vec::new();
                let others = keys.iter().filter(|key| key != &missing);
                let map = others.map(|key| (Value::from(*key), Value::from(1))).collect();
                let table = Table::open(Value::Mapping(map), Pointer::top(), "keys", &mut found).expect("a mapping");
                assert!(table.misses(missing), "{missing}");
            }
        }
    }
}
