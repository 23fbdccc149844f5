//! The location of a value in the file.
//!
//! A [`Location`] is symbolic (`jobs[3].duration`), so it costs little to carry. [`Marks`] has the byte range of each value: an event parser makes them
//! when the first diagnostic is shown, and keeps ranges only, never values.
//!
//! A stream has no directory of its own. Files that its manifest names, and its ledger, are in the working directory, and never beside a device: the
//! ledger of `/dev/stdin` would be gone after the next boot.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use granit_parser::{Event, Parser};

use super::text::{self, MAX_FILE_BYTES, TextError};

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

/// The name of stdin.
const STANDARD_INPUT: &str = "-";

/// Returns whether a manifest is a stream, and not a file that exists the next time.
pub(crate) fn is_stream(path: &Path) -> bool {
    // These may lead to a plain file under an unknown name.
    let is_descriptor = ["/dev/stdin", "/dev/fd", "/proc"].iter().any(|top| path.starts_with(top));
    path == Path::new(STANDARD_INPUT)
        || is_descriptor
        || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The directory for the relative paths of a manifest: its own, or the working directory for a stream.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    if is_stream(path) { PathBuf::new() } else { path.parent().unwrap_or(Path::new("")).to_owned() }
}

/// The directory of the manifest's own file, where its ledger and its reports are. A link to it is not another manifest: with
/// a ledger of its own, everything would be paid for again.
pub(crate) fn home(path: &Path) -> PathBuf {
    let real = if path.is_symlink() && !is_stream(path) { path.canonicalize().ok() } else { None };
    directory_of(real.as_deref().unwrap_or(path))
}

/// The manifest's text.
pub(crate) fn read_origin(path: &Path) -> Result<String, TextError> {
    if path == Path::new(STANDARD_INPUT) {
        text::read_all(io::stdin().lock(), MAX_FILE_BYTES)
    } else if path.to_str().is_some_and(text::is_url) {
        Err(TextError::Url)
    } else {
        text::read_all(std::fs::File::open(path)?, MAX_FILE_BYTES)
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
