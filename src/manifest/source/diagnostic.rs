//! A diagnostic, with its place, the rule, and how to fix it.
//!
//! A [`Location`] is symbolic (`jobs[3].duration`), so it costs little to carry. [`Marks`] has the byte range of each value: an event parser makes them
//! when the first diagnostic is shown, and keeps ranges only, never values.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use granit_parser::{Event, Parser};

use super::text;
pub use crate::catalog::Severity;
use crate::domain::Rule;
use crate::domain::text::shortened;

/// An error of a rule at a place: its message, and after a semicolon its help, both as for [`format!`].
macro_rules! error {
    ($rule:ident, $place:expr, $($message:expr),+ $(; $($help:expr),+)?) => {
        $crate::manifest::source::diagnostic::Diagnostic::error($crate::domain::Rule::$rule, format!($($message),+), $place)
            $(.with_help(format!($($help),+)))?
    };
}

/// The same as a warning.
macro_rules! warning {
    ($($parts:tt)+) => {
        $crate::manifest::source::diagnostic::error!($($parts)+).into_warning()
    };
}

pub(in crate::manifest) use {error, warning};

/// One thing that is wrong with a manifest.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// The severity: an error stops the run.
    pub severity: Severity,
    /// The rule's short name, for scripts.
    pub rule: Rule,
    /// The error, as one sentence without a period.
    pub message: String,
    /// The help.
    pub help: Option<String>,
    /// The location.
    pub place: Location,
    /// The job, if it is about one.
    pub job: Option<JobLabel>,
    /// The line of the CSV file that the job came from.
    pub row: Option<RowLocation>,
    /// A second place, with its caption.
    pub other: Option<(Location, &'static str)>,
}

/// The diagnostics so far.
pub(in crate::manifest) type Findings = Vec<Diagnostic>;

/// Returns whether one of them is an error. A warning damages nothing.
pub(in crate::manifest) fn have_errors(found: &[Diagnostic]) -> bool {
    found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// The default help of a rule.
fn default_help(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::CsvNoRows => "add a row below the header, or name another file or sheet",
        Rule::KeyNotText => "put quotes around it",
        Rule::MovedCycle => "leave out one of its lines",
        Rule::NoRows => "add a row, or leave out fewer with `exclude` or `status`",
        Rule::NotMoney => "write the amount alone: 40 or 12.50",
        Rule::TemplateCycle => "write it with other fields, columns, or variables",
        Rule::Unreadable => "check the path, which is relative to the manifest's directory, and the permissions",
        Rule::UnknownKey | Rule::WrongType => "`shotlist help manifest` lists the keys with their types",
        Rule::Yaml => "check the indentation, and put quotes around texts with `:` or `#`",
        _ => return None,
    })
}

/// The ID and labels of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobLabel {
    /// Its id.
    pub id: String,
    /// Its tags.
    pub tags: Vec<String>,
}

/// A line of a CSV file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowLocation {
    /// The file, as the manifest names it.
    pub file: Arc<str>,
    /// The first line of the row, from 1.
    pub line: u64,
}

impl Diagnostic {
    /// An error without job or row, with the default help of its rule; add others with the `with_` functions.
    pub fn error(rule: Rule, message: impl Into<String>, place: Location) -> Self {
        Self {
            severity: Severity::Error,
            rule,
            message: shortened(message.into()),
            help: default_help(rule).map(str::to_owned),
            place,
            job: None,
            row: None,
            other: None,
        }
    }

    /// The same as a warning: a probable error that does not stop the run.
    #[must_use]
    pub(in crate::manifest) fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    /// Adds how to fix it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(shortened(help.into()));
        self
    }

    /// Adds its job and row.
    #[must_use]
    pub fn with_job(mut self, job: Option<JobLabel>, row: Option<RowLocation>) -> Self {
        self.job = job.map(|job| JobLabel { id: shortened(job.id), ..job });
        self.row = row;
        self
    }
}

/// The manifest's text, with an index of its lines and values.
#[derive(Debug)]
pub struct Sources {
    path: PathBuf,
    text: String,
    marks: OnceCell<Marks>,
    /// The beginning of each line.
    lines: OnceCell<Vec<usize>>,
}

/// A place as an editor names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// Bytes of the manifest's text.
    pub range: Range<usize>,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Sources {
    /// The text of a manifest.
    pub fn new(path: &Path, text: String) -> Self {
        Self { path: path.to_owned(), text, marks: OnceCell::new(), lines: OnceCell::new() }
    }

    /// The manifest's path from the command line.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line and column of a location, or `None` for a diagnostic about the whole file.
    pub fn locate(&self, place: &Location) -> Option<Located> {
        let range = self.range(place)?;
        let lines = self.lines();
        let line = lines.partition_point(|start| *start <= range.start);
        let line_start = lines.get(line.checked_sub(1)?).copied()?;
        let column = self.text.get(line_start..range.start)?.chars().count() + 1;
        // Without the line breaks and blanks that a block scalar ends with.
        let end = self.text.get(range.clone()).map_or(range.end, |written| range.start + written.trim_end().len());
        Some(Located { line, column, range: range.start..end })
    }

    fn range(&self, place: &Location) -> Option<Range<usize>> {
        match place {
            Location::File => None,
            Location::Value(pointer, part) => {
                self.marks.get_or_init(|| Marks::parse(&self.text)).find(pointer, part, &self.text)
            }
            Location::At(line, column) => Some(self.range_at(*line, *column)),
        }
    }

    fn lines(&self) -> &[usize] {
        let starts = || [0].into_iter().chain(self.text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        self.lines.get_or_init(starts)
    }

    /// Diagnostics in file order, each once.
    pub fn sort(&self, diagnostics: &mut [Diagnostic]) {
        diagnostics.sort_by_cached_key(|diagnostic| {
            (self.range(&diagnostic.place).map(|range| range.start), diagnostic.row.as_ref().map(|row| row.line))
        });
    }

    fn range_at(&self, line: usize, column: usize) -> Range<usize> {
        let start = self.lines().get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let rest = &self.text[start..];
        let within = rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at);
        let at = start + within;
        let width = self.text[at..].chars().next().map_or(0, char::len_utf8);
        at..at + width
    }
}

/// A file that could not be taken as text, reported as a diagnostic about it.
pub(in crate::manifest) fn unreadable(what: &str, error: &text::TextError, place: Location) -> Diagnostic {
    let message = format!("can't read {what}: {error}");
    error.help().into_iter().fold(Diagnostic::error(Rule::Unreadable, message, place), Diagnostic::with_help)
}

/// One step from a value to a part of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// The value of a key.
    Key(String),
    /// An entry of a list, from 0.
    Index(usize),
}

/// The way from the top of the file to a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pointer(pub(super) Vec<Step>);

/// A part of the value that a pointer names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// The key itself.
    Key,
    /// The value.
    Value,
    /// An occurrence of this text in the value, after a number of earlier ones. The whole value if the text is not found.
    Fragment(String, usize),
    /// A second occurrence of the key, where a key is twice.
    Again,
}

/// The location of a diagnostic.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Location {
    /// A value of the manifest, or a part of it.
    Value(Pointer, Part),
    /// A line and a column of the manifest, each from 1, the column in characters.
    At(usize, usize),
    /// The manifest as a whole.
    File,
}

impl Pointer {
    /// The top of the file.
    pub fn top() -> Self {
        Self::default()
    }

    /// The value of a key of this one.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    /// An entry of this one.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    /// Its first steps.
    pub(super) fn first(&self, steps: usize) -> Self {
        Self(self.0[..steps.min(self.0.len())].to_vec())
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = Vec::with_capacity(self.0.len() + 1);
        steps.extend_from_slice(&self.0);
        steps.push(step);
        Self(steps)
    }

    /// The value there.
    pub fn value(&self) -> Location {
        Location::Value(self.clone(), Part::Value)
    }

    /// The key there.
    pub fn named(&self) -> Location {
        Location::Value(self.clone(), Part::Key)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if nth == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The least likeness of two names, from 0 to 1, for a suggestion.
const LIKENESS: f64 = 0.75;

/// The most similar known name, if it is similar enough.
pub(crate) fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let folded = written.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&folded, &name.to_lowercase().replace('-', "_")), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// The first letter of another script in a name that is otherwise a known one: a whole word of another script is no misspelling.
pub(crate) fn foreign_letter(written: &str, known: &str) -> Option<char> {
    let foreign = written.chars().filter(|c| !c.is_ascii()).count();
    let is_known = written.chars().count() == known.len()
        && 2 * foreign <= known.len()
        && written.chars().zip(known.chars()).all(|(c, of_known)| c == of_known || !c.is_ascii());
    written.chars().find(|c| is_known && !c.is_ascii())
}

/// "a similar one exists: `x`", or the list of known names.
pub(crate) fn help_near(written: &str, what: &str, known: &[&str]) -> String {
    if let Some((name, c)) = known.iter().find_map(|name| Some((name, foreign_letter(written, name)?))) {
        return format!("write `{name}`: the `{c}` here is U+{:04X}, another character", u32::from(c));
    }
    match nearest(written, known.iter().copied()) {
        Some(name) if written.to_lowercase() == name => format!("write it in small letters: `{name}`"),
        Some(name) => format!("a similar one exists: `{name}`"),
        _ if known.is_empty() => format!("there are no {what}"),
        _ => format!("{what}: {}", known.join(", ")),
    }
}

/// Keys of the manifest, each before its names in other tools and services.
const SYNONYMS: &str = "id name title key slug|for_each with_items foreach loop rows items|vars variables env globals|\
     defaults default settings common|file path source csv|duration seconds length duration_s durations|\
     size resolution dimensions sizes|shape ratio aspect orientation format shapes ratios aspects|model models|\
     prompt prompts text description caption|takes variations variants versions count quantity repeat num_videos|run total max limit max_cost|\
     image image_url first_frame input_reference reference start_image picture photo images promptimage";

/// The key that a name of other tools means.
pub(crate) fn synonym(written: &str) -> Option<&'static str> {
    let written = written.to_lowercase();
    let mut lists = SYNONYMS.split('|').filter_map(|list| list.split_once(' '));
    lists.find(|(_, names)| names.split(' ').any(|name| name == written)).map(|(key, _)| key)
}

/// A similar key, or the place for a field that only the service knows.
pub(crate) fn help_with_key(written: &str, known: &[&str]) -> String {
    if let Some(key) = synonym(written).filter(|key| known.contains(key)) {
        return format!("write `{key}`");
    }
    // YAML takes a comment of JSON for a part of the next key.
    if written.starts_with("//") || written.starts_with("/*") {
        return "begin comments with `#`".to_owned();
    }
    let usual = help_near(written, "keys known here", known);
    if known.contains(&"extra") && usual.starts_with("keys known here") {
        return format!("{usual}; a field of the service that is not among them goes under `extra`");
    }
    usual
}

/// A value in the text.
#[derive(Debug)]
struct Mark {
    range: Range<usize>,
    /// The key of an entry of a mapping.
    key: Option<Range<usize>>,
    /// The value that has its parts: itself, or the one that an alias refers to. So an alias bomb takes no more memory than its text.
    content: usize,
}

/// A collection, by its place among the values, while its parts arrive.
enum Open {
    /// With the number of its items so far.
    List(usize, usize),
    /// With the key of the next value.
    Mapping(usize, Option<(String, Range<usize>)>),
}

/// The byte range of each value and key of a YAML text, up to its first error.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// The first one is the top.
    values: Vec<Mark>,
    /// The parts of a value; of a key that occurs twice, both.
    parts: HashMap<(usize, Step), Vec<usize>>,
    /// True if the text is no YAML from a place on.
    is_cut: bool,
}

impl Marks {
    /// Marks of a text, up to its first error. The parser that found that reported it with a place.
    pub(crate) fn parse(text: &str) -> Self {
        let (mut marks, mut anchors, mut open) = (Self::default(), HashMap::new(), Vec::new());
        for event in Parser::new_from_str(text) {
            let Some((event, range)) = event.ok().and_then(|(event, span)| Some((event, span.byte_range()?))) else {
                marks.is_cut = true;
                break;
            };
            let at = marks.values.len();
            let (anchor, content) = match event {
                Event::Scalar(_, _, anchor, _)
                | Event::SequenceStart(_, anchor, _)
                | Event::MappingStart(_, anchor, _) => (anchor, at),
                Event::Alias(anchor) => (0, anchors.get(&anchor).copied().unwrap_or(at)),
                Event::SequenceEnd | Event::MappingEnd => {
                    if let Some(Open::List(value, _) | Open::Mapping(value, _)) = open.pop() {
                        marks.values[value].range.end = range.end;
                    }
                    continue;
                }
                _ => continue,
            };
            if anchor > 0 {
                anchors.insert(anchor, content);
            }
            let key = marks.place_in(open.last_mut(), &event, &range, at);
            marks.values.push(Mark { range, key, content });
            match event {
                Event::SequenceStart(..) => open.push(Open::List(at, 0)),
                Event::MappingStart(..) => open.push(Open::Mapping(at, None)),
                _ => {}
            }
        }
        marks
    }

    /// Adds a value to its collection, or notes it as the key of the next value. Returns the place of its key.
    fn place_in(
        &mut self,
        collection: Option<&mut Open>,
        event: &Event<'_>,
        range: &Range<usize>,
        at: usize,
    ) -> Option<Range<usize>> {
        let (value, step, key) = match collection? {
            Open::List(value, items) => {
                *items += 1;
                (*value, Step::Index(*items - 1), None)
            }
            Open::Mapping(value, next) => {
                let Some((key, place)) = next.take() else {
                    let text = if let Event::Scalar(text, ..) = event { text.as_ref() } else { "" };
                    *next = Some((text.to_owned(), range.clone()));
                    return None;
                };
                (*value, Step::Key(key), Some(place))
            }
        };
        self.parts.entry((value, step)).or_default().push(at);
        key
    }

    /// The byte range of every text and key.
    pub(crate) fn of_texts(text: &str) -> Vec<Range<usize>> {
        let events = Parser::new_from_str(text).map_while(Result::ok);
        events
            .filter(|(event, _)| matches!(event, Event::Scalar(..)))
            .filter_map(|(_, span)| span.byte_range())
            .collect()
    }

    /// The part of a value, its own or one that a merge key (`<<`) brings in.
    fn part(&self, value: usize, step: &Step, nth: usize) -> Option<usize> {
        let content = |value: usize| self.values[value].content;
        let own = |content: usize, step: &Step| self.parts.get(&(content, step.clone()));
        if let Some(parts) = own(content(value), step) {
            return parts.get(nth).copied();
        }
        let base = content(own(content(value), &Step::Key("<<".to_owned()))?[0]);
        let items = (0..).map_while(|index| own(base, &Step::Index(index)));
        let mut bases = items.map(|parts| content(parts[0])).chain([base]);
        bases.find_map(|base| own(base, step)).map(|parts| parts[0])
    }

    /// The byte range of a place, or of the nearest thing around it that has one.
    pub(crate) fn find(&self, pointer: &Pointer, part: &Part, text: &str) -> Option<Range<usize>> {
        let (mut value, mut range) = (0, first_line(&self.values.first()?.range, text));
        for (nth, step) in (1..).zip(&pointer.0) {
            let is_last = nth == pointer.0.len();
            match self.part(value, step, usize::from(is_last && *part == Part::Again)) {
                Some(next) => value = next,
                // It may come after the error.
                None if self.is_cut => return None,
                None => break,
            }
            let mark = &self.values[value];
            let is_key =
                is_last && matches!(part, Part::Key | Part::Again) || text[mark.range.clone()].trim().is_empty();
            range = mark.key.clone().filter(|_| is_key).unwrap_or_else(|| mark.range.clone());
        }
        if let Part::Fragment(fragment, earlier) = part {
            let mut found = text.get(range.clone()).into_iter().flat_map(|written| written.match_indices(fragment));
            if let Some((at, _)) = found.nth(*earlier) {
                return Some(range.start + at..range.start + at + fragment.len());
            }
        }
        Some(range)
    }
}

/// The first line of a range, because a whole file underlined would hide the place.
fn first_line(range: &Range<usize>, text: &str) -> Range<usize> {
    let written = text.get(range.clone()).unwrap_or_default();
    let length = written.find('\n').unwrap_or(written.len());
    range.start..range.start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["duration", "prompt", "aspect_ratio", "for_each"];
        assert_eq!(nearest("durration", known), Some("duration"));
        assert_eq!(nearest("aspect-ratio", known), Some("aspect_ratio"));
        assert_eq!(nearest("foreach", known), Some("for_each"));
        assert_eq!(nearest("zebra", known), None);
    }

    fn slice<'t>(text: &'t str, pointer: &Pointer, part: &Part) -> &'t str {
        Marks::parse(text).find(pointer, part, text).map_or("nowhere", |range| &text[range])
    }

    #[test]
    fn finds_values_keys_and_fragments() {
        let text = "jobs:\n  - id: \"é-{{ x }}\"\n    duration: 12\n    image: [a, b]\n    prompt:\n";
        let job = Pointer::top().key("jobs").index(0);
        assert_eq!(slice(text, &job.key("duration"), &Part::Value), "12");
        assert_eq!(slice(text, &job.key("duration"), &Part::Key), "duration");
        assert_eq!(slice(text, &job.key("image").index(1), &Part::Value), "b");
        assert_eq!(slice(text, &job.key("id"), &Part::Fragment("x".into(), 0)), "x");
        assert_eq!(slice(text, &job.key("prompt"), &Part::Value), "prompt");
    }

    #[test]
    fn merged_value_is_located_at_its_anchor() {
        let text = "base: &b { duration: 99 }\njobs:\n  - { <<: *b, id: x }\n";
        assert_eq!(slice(text, &Pointer::top().key("jobs").index(0).key("duration"), &Part::Value), "99");
    }

    #[test]
    fn duplicate_key_is_located_at_its_second_place() {
        let text = "a: 1\njobs:\n  - id: x\n    id: y\n";
        let id = Pointer::top().key("jobs").index(0).key("id");
        let again = Marks::parse(text).find(&id, &Part::Again, text).expect("a range");
        assert_eq!(text[..again.start].lines().count(), 4);
    }

    #[test]
    fn alias_bomb_makes_few_nodes() {
        use std::fmt::Write as _;
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..40 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            writeln!(text, "a{level}: &a{level} [{inner}]").expect("a string");
        }
        assert_eq!(slice(&text, &Pointer::top().key("a3"), &Part::Key), "a3");
    }
}
