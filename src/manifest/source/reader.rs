//! Reads YAML into values in one pass over the parser's events, which are dropped as they come. Entries of `jobs` are handed out one by one: of a long
//! list, few values exist at a time.
//!
//! `yaml_serde` stores the events of a whole document: 180 MB for 100,000 jobs. So it reads only two things: a plain scalar that may be a number, a
//! Boolean, or null, to decide its type; and a text with a tag, an anchor, a merge key, a duplicate key, or invalid YAML. There the two parsers differ,
//! or it has to report the error.

use std::collections::{HashMap, HashSet};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, options};
use serde_yaml::Value;

use super::diagnostic::{Diagnostic, Findings, Location, Part, Pointer, Severity, error};
use super::syntax;
use crate::domain::Rule;

/// Bytes of all scalars of a manifest, aliases followed, and of all of its requests.
pub(crate) const MAX_TEXT: usize = 64 << 20;
/// Levels of `[` and `{` inside each other, and levels of indentation: together the limit of `yaml_serde`.
const MAX_DEPTH: usize = 64;
/// The deepest level of keys that are no cells: those of a job's labels, below the top, `jobs`, and the job.
const MAX_FIELD_DEPTH: usize = 4;
/// Keys that are compared with each other; of more keys, hashes are.
const MAX_COMPARED: usize = 16;
/// The size of a value without its text, in bytes, so that a list of nulls has a size.
const VALUE_BYTES: usize = 16;

/// An entry of `jobs`: the keys and values of a mapping, in order, or another value.
pub(crate) enum RawEntry {
    Mapping(Vec<(Value, Value)>),
    Other(Value),
}

impl From<Value> for RawEntry {
    fn from(value: Value) -> Self {
        match value {
            Value::Mapping(map) => Self::Mapping(map.into_iter().collect()),
            other => Self::Other(other),
        }
    }
}

/// Reads a text of YAML or JSON, applies merge keys, and decodes the entries of `jobs`, which are then no longer in the value. Reports
/// forgotten values, because their keys would count as absent.
pub(crate) fn read<J>(
    text: &str,
    decode: impl Fn(RawEntry, usize) -> J,
    forgotten: &mut Findings,
) -> Result<(Value, Vec<J>), Vec<Diagnostic>> {
    let (mut jobs, invalid) = (Vec::new(), |error| vec![syntax::diagnostic(&error, text)]);
    let mut value = match Reader::build(text, &mut |entry| jobs.push(decode(entry, jobs.len())), forgotten) {
        Ok(value) => value,
        Err(Some(why)) => return Err(why),
        Err(None) => {
            jobs.clear();
            // JSON has surrogate pairs, which YAML does not know.
            let mut value: Value =
                serde_yaml::from_str(text).or_else(|error| serde_json::from_str(text).map_err(|_| invalid(error)))?;
            value.apply_merge().map_err(invalid)?;
            value
        }
    };
    if let Some(Value::Sequence(entries)) = value.get_mut("jobs") {
        for entry in entries.drain(..) {
            jobs.push(decode(entry.into(), jobs.len()));
        }
    }
    Ok((value, jobs))
}

/// Drops consequences: after a forgotten value, other errors about it and about its mapping; after any wrong part of the manifest or of a job,
/// errors about missing things in it.
pub(crate) fn without_consequences(found: &mut Findings) {
    let part = |key: &str| Pointer::top().key(key);
    let job_of = |it: &Diagnostic| it.job.as_ref().map(|job| job.id.clone());
    let (mut forgotten, mut mappings, mut broken) = (HashSet::new(), HashSet::new(), HashSet::new());
    let is_cause =
        |it: &&Diagnostic| it.severity == Severity::Error && matches!(it.rule, Rule::WrongType | Rule::UnknownKey);
    for cause in found.iter().filter(is_cause) {
        let Location::Value(at, of) = &cause.place else { continue };
        if cause.rule == Rule::WrongType && *of == Part::Key {
            forgotten.insert(at.clone());
            mappings.insert(at.first(at.0.len().saturating_sub(1)));
        }
        broken.insert((at.first(1 + usize::from(at.first(1) == part("jobs"))), job_of(cause)));
        // Its help names the intended key first.
        broken.extend(cause.help.as_ref().and_then(|help| help.split('`').nth(1)).map(|key| (part(key), None)));
    }
    found.retain(|error| {
        let Location::Value(at, of) = &error.place else { return true };
        // The jobs of an entry may be selected one by one.
        let causes = |key| [(part(key), None), (at.first(2), None), (at.first(2), job_of(error))];
        let is_broken = |key| causes(key).iter().any(|cause| broken.contains(cause));
        !(*of == Part::Value && forgotten.contains(at)
            || mappings.contains(at)
            || needed(error.rule).is_some_and(is_broken))
    });
}

/// The part of a manifest that an error may miss.
fn needed(rule: Rule) -> Option<&'static str> {
    match rule {
        Rule::Template => Some("vars"),
        Rule::FaceUnknown => Some("faces"),
        rule => (rule == Rule::FieldNotOfFamily || rule.is_about_absence()).then_some("defaults"),
    }
}

/// No values: the errors of the text, or else `yaml_serde` has to read it.
type Interrupt = Option<Vec<Diagnostic>>;

fn from_error(error: &ScanError) -> Interrupt {
    if !matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
        return None;
    }
    let place = Location::At(error.marker().line(), error.marker().col() + 1);
    let too_deep = error!(YamlLimit, place, "the manifest is nested too deeply"; "reduce the nesting");
    Some(vec![too_deep])
}

fn too_large() -> Diagnostic {
    error!(YamlLimit, Location::File, "the manifest's references must expand to at most {} MiB", MAX_TEXT >> 20;
        "use fewer `*name` references, or put the text into a `prompt_file`")
}

/// The values of one document while its events arrive.
struct Reader<'j> {
    on_job: &'j mut dyn FnMut(RawEntry),
    open: Vec<Collection>,
    /// The sizes of the values with an anchor, by its number.
    anchors: HashMap<usize, usize>,
    /// The size of all values so far.
    size: usize,
    top: Option<Value>,
    /// The number of jobs that were handed out.
    jobs: usize,
    /// The second places of keys that a mapping has twice.
    twice: Vec<Pointer>,
    /// True if the last line has no line break, so that parsers differ about the one of a block scalar there.
    is_open: bool,
    /// True if `yaml_serde` has to read the text: the rest of it is read for its bounds.
    is_left: bool,
}

/// A list or a mapping that is open.
struct Collection {
    content: Content,
    anchor: usize,
    /// The size of all values before it.
    before: usize,
}

enum Content {
    List(Vec<Value>),
    /// With the key of the next value.
    Map(Vec<(Value, Value)>, Option<Value>),
}

impl<'j> Reader<'j> {
    fn build(text: &str, on_job: &'j mut dyn FnMut(RawEntry), forgotten: &mut Findings) -> Result<Value, Interrupt> {
        // Line breaks of YAML 1.1 only: a text from a word processor would keep them, unseen.
        let is_left = text.contains(['\u{85}', '\u{2028}', '\u{2029}']);
        let is_open = !text.ends_with('\n');
        let (open, anchors) = (Vec::new(), HashMap::new());
        let mut reader =
            Self { on_job, open, anchors, size: 0, top: None, jobs: 0, twice: Vec::new(), is_open, is_left };
        let limits = options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
        let mut last = Span::default();
        for event in Parser::new_from_str_with_options(text, limits) {
            let (event, span) = event.map_err(|error| from_error(&error))?;
            if span.is_empty() && matches!(event, Event::Scalar(_, ScalarStyle::Plain, ..)) {
                forgotten.extend(reader.without_value(text, last));
            }
            last = span;
            if let Event::Scalar(text, ScalarStyle::Plain, ..) = &event
                && is_infinite(text)
            {
                let place = Location::At(span.start.line(), span.start.col() + 1);
                return Err(Some(vec![error!(Yaml, place, "the number `{text}` is too large";
                    "write a smaller number, or put quotes around a string")]));
            }
            reader.on_event(event)?;
            if reader.size > MAX_TEXT {
                return Err(Some(vec![too_large()]));
            }
        }
        match (reader.twice.is_empty(), reader.is_left) {
            (false, _) => Err(Some(syntax::duplicate_keys(&reader.twice))),
            (true, true) => Err(None),
            (true, false) => Ok(reader.top.unwrap_or_default()),
        }
    }

    /// The error that a key, the last scalar of the text, has no value.
    fn without_value(&self, text: &str, key: Span) -> Option<Diagnostic> {
        let Content::Map(_, Some(Value::String(name))) = &self.open.last()?.content else { return None };
        let (place, range) = (self.pointer().named(), key.byte_range()?);
        let has_colon = text.get(range.end..)?.trim_start().starts_with(':');
        let is_cut_off = !has_colon && text.get(..range.start)?.trim_end().ends_with(',');
        // A forgotten `ledger`, `face`, or label lifts a protection. The cells of a row, which are deeper, may be empty.
        let is_field = has_colon && self.open.len() <= MAX_FIELD_DEPTH;
        let help =
            if is_cut_off { "put quotes around a string with a comma" } else { "write a value, or remove the line" };
        (is_cut_off || is_field).then(|| error!(WrongType, place, "`{name}` has no value"; "{help}"))
    }

    /// The place of the next value.
    fn pointer(&self) -> Pointer {
        let jobs = Pointer::top().key("jobs");
        self.open.iter().fold(Pointer::top(), |at, open| match &open.content {
            Content::List(list) => at.index(if at == jobs { self.jobs } else { list.len() }),
            Content::Map(_, key) => at.key(key.as_ref().and_then(Value::as_str).unwrap_or_default()),
        })
    }

    fn on_event(&mut self, event: Event<'_>) -> Result<(), Interrupt> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let before = self.size;
                self.size += text.len() + VALUE_BYTES;
                let value = if style == ScalarStyle::Plain { plain(&text) } else { Some(Value::String(text.into())) };
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                self.is_left |= tag.is_some() || value.is_none() || is_block && self.is_open;
                self.note_anchor(anchor, before);
                self.add(value.unwrap_or_default());
            }
            Event::SequenceStart(_, anchor, ref tag) | Event::MappingStart(_, anchor, ref tag) => {
                self.is_left |= tag.is_some();
                let is_list = matches!(event, Event::SequenceStart(..));
                let content =
                    if is_list { Content::List(Vec::new()) } else { Content::Map(Vec::with_capacity(4), None) };
                self.open.push(Collection { content, anchor, before: self.size });
                self.size += VALUE_BYTES;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Collection { content, anchor, before } = self.open.pop().ok_or(None)?;
                self.note_anchor(anchor, before);
                match content {
                    Content::List(list) => self.add(Value::Sequence(list)),
                    Content::Map(pairs, _) => {
                        self.note_duplicates(&pairs);
                        if self.is_in_jobs() {
                            self.hand_out(RawEntry::Mapping(pairs));
                        } else {
                            self.add(Value::Mapping(pairs.into_iter().collect()));
                        }
                    }
                }
            }
            Event::Alias(anchor) => {
                // An anchor without a size is still open: it would be inside itself.
                self.size += self.anchors.get(&anchor).ok_or(None)?;
                self.add(Value::Null);
            }
            Event::DocumentStart(..) => self.is_left |= self.top.is_some(),
            _ => {}
        }
        Ok(())
    }

    /// Records the keys that are twice in a mapping that ends. Two merge keys are for `yaml_serde` to report.
    fn note_duplicates(&mut self, pairs: &[(Value, Value)]) {
        let mut seen: HashMap<&Value, usize> = HashMap::new();
        for (nth, (key, _)) in pairs.iter().enumerate() {
            let earlier = if pairs.len() <= MAX_COMPARED {
                pairs[..nth].iter().filter(|(other, _)| other == key).count()
            } else {
                let times = seen.entry(key).or_default();
                std::mem::replace(times, *times + 1)
            };
            self.is_left |= earlier > 0;
            let number = key.is_number().then(|| serde_yaml::to_string(key).unwrap_or_default());
            let text = number.as_deref().map(str::trim).or(key.as_str()).filter(|text| earlier == 1 && *text != "<<");
            self.twice.extend(text.map(|text| self.pointer().key(text)));
        }
    }

    /// Returns whether the open collection is the list of jobs, and its entries are handed out.
    fn is_in_jobs(&self) -> bool {
        let [Collection { content: Content::Map(_, Some(Value::String(key))), .. }, jobs] = &self.open[..] else {
            return false;
        };
        key == "jobs" && matches!(jobs.content, Content::List(_))
    }

    fn hand_out(&mut self, job: RawEntry) {
        self.jobs += 1;
        (self.on_job)(job);
    }

    /// Records the size of a value with an anchor.
    fn note_anchor(&mut self, anchor: usize, before: usize) {
        if anchor > 0 {
            self.is_left = true;
            self.anchors.insert(anchor, self.size - before);
        }
    }

    fn add(&mut self, value: Value) {
        if self.is_in_jobs() {
            return self.hand_out(value.into());
        }
        match self.open.last_mut().map(|collection| &mut collection.content) {
            None => self.top = Some(value),
            Some(Content::List(list)) => list.push(value),
            Some(Content::Map(map, key)) => match key.take() {
                None => {
                    self.is_left |= value == "<<";
                    *key = Some(value);
                }
                Some(key) => map.push((key, value)),
            },
        }
    }
}

/// Returns whether it is a decimal number beyond all numbers.
fn is_infinite(text: &str) -> bool {
    text.len() > 3
        && text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && text.ends_with(|c: char| c.is_ascii_digit())
        && text.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// The value of a scalar without quotes, unless `yaml_serde` refuses it.
fn plain(text: &str) -> Option<Value> {
    // A number, a Boolean, or null has no other letters than these, after the mark of its base. Without a digit or a letter, `yaml_serde` would read a
    // YAML indicator.
    let digits = text.trim_start_matches(['+', '-']);
    let is_of_a_base = digits.len() > 2 && digits.starts_with('0');
    let is_typed = |byte: u8| {
        byte.is_ascii_digit()
            || matches!(byte, b'+' | b'-' | b'.' | b'_')
            || if is_of_a_base { byte.is_ascii_alphanumeric() } else { b"aefilnrstuAEFILNRSTU".contains(&byte) }
    };
    let may_be_typed = text.starts_with(|c: char| c.is_ascii_digit() || "+-.nNtTfF".contains(c))
        && text.bytes().all(is_typed)
        && text.bytes().any(|byte| byte.is_ascii_alphanumeric());
    match text {
        "" | "~" => Some(Value::Null),
        _ if !may_be_typed => Some(Value::String(text.to_owned())),
        // A duration is the most frequent number, and does not need another parser.
        _ if let Ok(number @ 1..) = text.parse::<u32>()
            && text.starts_with(|c: char| c != '0' && c.is_ascii_digit()) =>
        {
            Some(Value::Number(number.into()))
        }
        _ => serde_yaml::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The whole value, unless it is left to `yaml_serde`.
    fn built(text: &str) -> Option<Value> {
        let mut jobs = Vec::new();
        let mut value = Reader::build(text, &mut |entry| jobs.push(entry), &mut Vec::new()).ok()?;
        if let Some(Value::Sequence(list)) = value.get_mut("jobs") {
            list.extend(jobs.into_iter().map(|entry| match entry {
                RawEntry::Mapping(pairs) => Value::Mapping(pairs.into_iter().collect()),
                RawEntry::Other(value) => value,
            }));
        }
        Some(value)
    }

    #[test]
    fn scalar_type_is_decided_by_yaml_serde() {
        let scalars = "1 0 -1 +1 007 1e3 1_000 0x1F 0o17 0b1 -0x1 1.50 .5 -.inf .NaN nan inf 99999999999999999999 null Null nULL ~ true TRUE \
                       yes no on n t - -- --- -a ... .a 12:30 2026-11-27 beta-2.0 + 720x1280 1280x720 0x 0xZ 0x_1 0o8 0b2 -0x1 +0x1 1f 5s 10e 1e 1E+5 1e-2 \
                       +.inf .INF -.5 1. 00 09 0_1 1,5 16:9 1e400 NULL True";
        for scalar in scalars.split(' ').filter(|scalar| *scalar != "-") {
            for text in
                [format!("[a, {scalar}]"), format!("a: {scalar}"), format!("a: '{scalar}'"), format!("- {scalar}\n")]
            {
                if let Some(value) = built(&text) {
                    assert_eq!(Some(value), serde_yaml::from_str(&text).ok(), "{text}");
                }
            }
        }
    }

    #[test]
    fn ambiguous_text_is_left_to_yaml_serde() {
        for text in [
            "a: !x b",
            "a: &b c",
            "a: &| c",
            "<<: { a: 1 }",
            "a: b\u{2028}c",
            ">\n - ",
            "a: |\n  - b",
            "a: 1\na: 2",
            "a\n---\nb",
            "a: *b",
            "a: &b [*b]",
            "a: [",
            "a: \"\\q\"",
        ] {
            assert_eq!(built(text), None, "{text}");
        }
        assert_eq!(built(""), Some(Value::Null));
    }

    #[test]
    fn entries_of_jobs_are_decoded_once() {
        let jobs = |text: &str| {
            let (value, jobs) = read(text, |_, number| number, &mut Vec::new()).expect("YAML");
            (jobs, value.get("jobs").and_then(Value::as_sequence).map_or(0, Vec::len))
        };
        for text in [
            "vars: { jobs: [1] }\njobs: [{ id: a, tags: [1, 2] }, &b 2, *b]\n",
            "b: &b { a: 1 }\njobs: [{ <<: *b }, 1, 2]\n",
            "jobs: [1, 2, !x 3]\n",
            "jobs: &all [1, 2, { a: 1 }]\nvars: *all\n",
            "{ \"jobs\": [1, 2, \"\\ud83d\\ude00\"] }",
        ] {
            assert_eq!(jobs(text), (vec![0, 1, 2], 0), "{text}");
        }
        assert_eq!(jobs("jobs: { jobs: [1] }\n"), (vec![], 0));
        assert!(read("jobs: [1]\njobs: [2]\n", |_, _| (), &mut Vec::new()).is_err());
    }

    #[test]
    fn slip_of_a_key_gives_no_other_value_than_yaml_serde() {
        let base = "version: 1\njobs:\n  - id: a\n    prompt: A dog\n    tags: [x, y]\n  - id: \"b\"\n    prompt: |\n      two\n      lines\n";
        for (at, _) in base.char_indices() {
            // Not `?`: libyaml takes it for an explicit key in a flow collection also without a space.
            for slip in " \t\n:-#'\"[]{},|>&*!%@`\\~0a\u{0}\u{85}\u{2028}\r".chars() {
                let text = format!("{}{slip}{}", &base[..at], &base[at..]);
                if let (Some(own), Ok(other)) = (built(&text), serde_yaml::from_str::<Value>(&text)) {
                    assert_eq!(own, other, "{text}");
                }
            }
        }
    }

    #[test]
    fn keys_without_a_value_are_reported() {
        let keys = |text: &str| {
            let mut found = Vec::new();
            drop(read(text, |_, _| (), &mut found));
            found.into_iter().map(|it| it.message.split('`').nth(1).expect("a key").to_owned()).collect::<Vec<_>>()
        };
        for (text, expected) in [
            (
                "budget:\n\n# run: 5\njobs:\n- id: a\n  size: # wide\n- id: b\n  takes:",
                &["budget", "size", "takes"][..],
            ),
            ("defaults:\r\n  duration: #8\r\n  model: &m alpha-2\r\n", &["duration"]),
            ("jobs: [{ for_each: [{ id: \"x\", text: a mug,\n  white, on a table }] }]", &["white", "on a table"]),
            ("vars: { look: soft, warm }\njobs: [{ labels: { client: Acme, Inc. } }]", &["warm", "Inc."]),
            (
                "ledger:\nbatch:\njobs:\n- face:\n  image_file: # a.png\n  labels:\n    client:\n  for_each:\n",
                &["ledger", "batch", "face", "image_file", "client", "for_each"],
            ),
            // An empty cell, and what a program writes for an absent value.
            ("jobs:\n- for_each:\n  - n: a\n    image:\n  - { n: b, image: , size: }\n  prompt: >\n    size:\n", &[]),
            ("{\"jobs\": [{\"duration\": null, \"size\": ~, \"tags\": [a, b], \"takes\":5}]}", &[]),
            ("tags:\n- a\nbudget:\n  run: 5\nprompt:\n\n  a mug, { white, red }\nvars: {}\nsize: ''\n", &[]),
        ] {
            assert_eq!(keys(text), expected, "{text}");
        }
    }

    #[test]
    fn depth_and_expansion_are_bounded() {
        let big = "y".repeat(1_000_000);
        let many = "  - *t\n".repeat(100);
        let nested = "x: &a [*t, *t, *t, *t, *t, *t, *t, *t]\ny: &b [*a, *a, *a, *a]\nz: [*b, *b, *b]\n";
        for bad in [
            format!("t: &t {big}\njobs:\n{many}"),
            format!("t: &t {big}\n{nested}"),
            format!("jobs: {}", "[".repeat(100_000)),
            format!("jobs: {}1{}", "{a: ".repeat(40_000), "}".repeat(40_000)),
        ] {
            let refused = read(&bad, |_, _| (), &mut Vec::new()).expect_err("a bound");
            assert_eq!(refused[0].rule, Rule::YamlLimit, "{bad:.60}");
        }
        let smileys = format!("jobs:\n{}", "  - 'a text with :[ and :{'\n".repeat(1000));
        for good in [smileys.as_str(), "a: &a 1\nb: *a\n", "a: [[[1]]]\n"] {
            assert!(read(good, |_, _| (), &mut Vec::new()).is_ok(), "{good:.60}");
        }
    }

    /// A text, but no number beyond all numbers, which is an error here.
    fn any_text(pattern: &'static str) -> impl Strategy<Value = Value> {
        pattern.prop_filter("a finite number", |text: &String| !is_infinite(text)).prop_map(Value::String)
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|number| Value::Number(number.into())),
            (-1e9..1e9).prop_map(|number: f64| Value::Number(number.into())),
            any_text("[ -~\\n\u{e9}\u{1f980}]{0,12}"),
        ];
        scalar.prop_recursive(3, 24, 4, |inner| {
            let keys = prop_oneof![any_text("[a-z0-9 :#]{0,6}"), any::<i8>().prop_map(|it| Value::Number(it.into()))];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Sequence),
                prop::collection::vec((keys, inner), 0..4)
                    .prop_map(|pairs| Value::Mapping(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_value_is_read_as_it_was(value in any_value()) {
            let text = serde_yaml::to_string(&value).expect("YAML");
            prop_assert_eq!(built(&text), Some(value.clone()), "{}", text);
            let json = serde_json::to_string(&value);
            if let Ok(json) = json {
                prop_assert_eq!(built(&json), serde_yaml::from_str(&json).ok(), "{}", json);
            }
        }

        #[test]
        fn text_is_read_as_by_yaml_serde(text in "([ ]{0,3}(- |[ab]: |\\? |&a |\\*a |[\"'|>\\[\\]{},#]|[a-z0-9.~]{1,3}|\\n){1,6}){1,6}") {
            if let (Some(own), Ok(other)) = (built(&text), serde_yaml::from_str::<Value>(&text)) {
                prop_assert_eq!(own, other, "{}", text);
            }
        }
    }
}
