//! Layout errors: wrong indentation, several keys on one line, and lines of other document formats.

use std::collections::HashMap;

use granit_parser::{Event, Parser};

use super::diagnostic::Diagnostic;
use super::location::{Location, Pointer};
use super::marks::Marks;
use crate::domain::{Job, Rule, count};

/// The marks that begin or end a block of code in Markdown, as chats write it.
const FENCE: &str = "```";

/// Frequent keys.
const KEYS: [&str; 14] = [
    "id",
    "model",
    "prompt",
    "duration",
    "aspect_ratio",
    "size",
    "image",
    "face",
    "takes",
    "tags",
    "name",
    "jobs",
    "file",
    "labels",
];
/// The help for a key without a space behind its colon.
pub(crate) const SPACED: &str = "write `key: value`, with a colon and a space";

fn error(message: String, place: Location, help: &str) -> Diagnostic {
    Diagnostic::error(Rule::Yaml, message, place).with_help(help)
}

/// A layout error that stops the parser on a line, from 1.
pub(super) fn layout_error(text: &str, line: usize) -> Option<Diagnostic> {
    let written = text.lines().nth(line.checked_sub(1)?)?;
    if text.starts_with("{\\rtf") {
        let message = "this is an RTF document, not plain text".to_owned();
        return Some(error(message, Location::At(1, 1), "save it as plain text in the editor that wrote it"));
    }
    if written.trim_start().starts_with(FENCE) {
        let message = "a line of backticks is Markdown, not YAML".to_owned();
        return Some(error(message, Location::At(line, 1), "remove the lines that begin with three backticks"));
    }
    unindented(text).or_else(|| on_one_line(written, line))
}

/// A text below `key: |` that is not indented further than its key.
pub(crate) fn unindented(text: &str) -> Option<Diagnostic> {
    let start_of = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()).peekable();
    while let Some((line, _)) = lines.next() {
        let Some((name, column, value)) = key(line) else { continue };
        if !matches!(value, "|" | ">" | "|-" | ">-" | "|+" | ">+") {
            continue;
        }
        let Some((below, number)) = lines.peek() else { break };
        let indent = below.len() - below.trim_start().len();
        let is_text = key(below).is_none() && !below.trim_start().starts_with(['-', '#', '"', '\'']);
        // A line of another text may look like a key.
        let colon = start_of(line) + column + name.len();
        let is_inside = || Marks::of_texts(text).iter().any(|text| text.contains(&colon));
        if indent <= column && is_text && !is_inside() {
            let message = format!("the text of `{name}` is not indented");
            let help = format!("indent the lines of the text below `{name}`");
            return Some(error(message, Location::At(*number, indent + 1), &help));
        }
    }
    None
}

/// Several keys on one line, with commas between them.
fn on_one_line(written: &str, line: usize) -> Option<Diagnostic> {
    let (_, start, value) = key(written)?;
    let (_, next) = value.split_once(", ").filter(|_| !value.starts_with(['{', '[', '"', '\'']))?;
    let (name, ..) = key(next).filter(|(name, ..)| KEYS.contains(name))?;
    let message = format!("`{name}` is on the line of another key");
    let place = Location::At(line, start + 1);
    Some(error(message, place, "write one key a line, or put them in braces: { id: a, prompt: \"…\" }"))
}

/// A key that stands further in than the one before it, which has a value already; or, where the parser stops at it, in a column in which no key
/// above it is. `number` counts from 0, `stopped` from 1.
pub(super) fn out_of_line(lines: &[&str], number: usize, stopped: usize) -> Option<Diagnostic> {
    let (name, column, _) = key(lines.get(number)?)?;
    let above = || lines[..number].iter().rev().filter(|line| !line.trim().is_empty());
    let (before, left, value) = key(above().next()?)?;
    if lines[number].trim_start().starts_with('-') || column == left {
        return None;
    }
    let columns = |number: usize| count(number, "column");
    let message = if column > left && !value.is_empty() {
        format!("`{name}` is indented {} further than `{before}`, which already has a value", columns(column - left))
    } else if column < left
        && number + 1 == stopped
        && above().filter_map(|line| key(line)).all(|(_, own, _)| own != column)
    {
        format!("`{name}` is {} left of `{before}`", columns(left - column))
    } else {
        return None;
    };
    Some(error(message, Location::At(number + 1, column + 1), "begin keys of one mapping in the same column"))
}

/// The byte of the colon of a key that has no space behind it, or that is the wide one of Chinese and Japanese.
pub(crate) fn unspaced(line: &str) -> Option<usize> {
    let inside = line.trim_start_matches([' ', '-']);
    let colon = inside.find([':', '：'])?;
    let is_unspaced = inside[colon..].starts_with('：') || !inside[colon + 1..].starts_with([' ', '\t', '\r', '/']);
    let is_key = KEYS.contains(&inside[..colon].trim_end()) && inside.len() > colon + 1;
    (is_key && is_unspaced).then_some(line.len() - inside.len() + colon)
}

/// The key of a line such as `- key: value`, the column at which it is, from 0, and its value.
fn key(line: &str) -> Option<(&str, usize, &str)> {
    let inside = line.trim_start_matches([' ', '-']);
    let (key, value) = inside.split_once(':')?;
    let is_key = !key.is_empty() && !key.contains([' ', '"', '\'', '{', '[', '#']);
    is_key.then(|| (key, line.len() - inside.len(), value.trim()))
}

/// The most jobs of one manifest, and the most rows of one spreadsheet: twice what is measured.
pub(crate) const MAX_JOBS: usize = 200_000;
/// The most bytes of text that a manifest may come to, with what it refers to again and again, and the most that all of
/// its requests may.
pub(crate) const MAX_TEXT: usize = 64 * 1024 * 1024;
/// This many open brackets make it worth counting how deep they are. Nothing that a manifest may hold is as deep.
const SUSPICIOUS: usize = 200;
/// The size of a value besides its text, in bytes: a list of nulls has a size, too.
const VALUE: usize = 16;

/// Looks at a text before it is parsed into values: how deep it is, and how much its references make of it. What is no
/// YAML is left to the parser that has the words for it.
pub(crate) fn precheck(text: &str) -> Option<Diagnostic> {
    let is_deep = open_brackets(text) > SUSPICIOUS;
    let refers = text.contains('&') && text.contains('*');
    if !is_deep && !refers {
        return None;
    }
    let mut sizes = Sizes::default();
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, _)) => sizes.take(&event),
            // This parser goes no deeper than some hundreds, and at once; the other one takes minutes to say so.
            Err(error) if is_deep => {
                let marker = error.marker();
                let place = Location::At(marker.line(), marker.col() + 1);
                let diagnostic = Diagnostic::error(Rule::YamlLimit, "the manifest is nested too deeply", place);
                return Some(diagnostic.with_help("reduce the nesting"));
            }
            Err(_) => return None,
        }
        if sizes.whole > MAX_TEXT {
            let message = format!("the manifest's references must expand to at most {} MiB", MAX_TEXT >> 20);
            let diagnostic = Diagnostic::error(Rule::YamlLimit, message, Location::File);
            return Some(diagnostic.with_help("use fewer `*name` references, or put the text into a `prompt_file`"));
        }
    }
    None
}

/// The most brackets that are open at once, if all of them are brackets. Where there are too few to be suspicious, all of them.
fn open_brackets(text: &str) -> usize {
    // To count is many times as quick as to follow.
    let all = text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if all <= SUSPICIOUS {
        return all;
    }
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => {
                open += 1;
                most = most.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// The sizes of values, with references followed, while events arrive.
#[derive(Default)]
struct Sizes {
    whole: usize,
    /// Lists and mappings that are open: their anchor, and what there was before them.
    open: Vec<(usize, usize)>,
    anchors: HashMap<usize, usize>,
}

impl Sizes {
    fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Scalar(text, _, anchor, _) => {
                self.whole += text.len() + VALUE;
                self.anchors.insert(*anchor, text.len() + VALUE);
            }
            Event::Alias(anchor) => {
                self.whole = self.whole.saturating_add(self.anchors.get(anchor).copied().unwrap_or(VALUE));
            }
            Event::SequenceStart(_, anchor, _) | Event::MappingStart(_, anchor, _) => {
                self.open.push((*anchor, self.whole));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = self.open.pop() {
                    self.anchors.insert(anchor, self.whole - before + VALUE);
                }
            }
            _ => {}
        }
    }
}

/// The remaining bounds while a manifest is expanded.
#[derive(Debug)]
pub(crate) struct Room {
    jobs: usize,
    text: usize,
}

impl Room {
    /// All of it.
    pub(crate) fn new() -> Self {
        Self { jobs: MAX_JOBS, text: MAX_TEXT }
    }

    /// Tells an entry that asks for more jobs than there is room for, before any of them is made.
    pub(crate) fn expect(&self, jobs: usize, at: &Pointer) -> Option<Diagnostic> {
        (jobs > self.jobs).then(|| too_many(at))
    }

    /// Takes the room of jobs that were made, or tells that there is none.
    pub(crate) fn take<'j>(&mut self, jobs: impl Iterator<Item = &'j Job>, at: &Pointer) -> Option<Diagnostic> {
        for job in jobs {
            let Some(left) = self.jobs.checked_sub(1) else { return Some(too_many(at)) };
            self.jobs = left;
            let Some(left) = self.text.checked_sub(job.purchase.request.body().len()) else {
                let message = format!("the requests of the manifest must have at most {} MiB", MAX_TEXT >> 20);
                let diagnostic = Diagnostic::error(Rule::TooMuchText, message, at.clone().value());
                return Some(diagnostic.with_help("split the manifest, or shorten the prompts"));
            };
            self.text = left;
        }
        None
    }
}

fn too_many(at: &Pointer) -> Diagnostic {
    let message = format!("the manifest must make at most {MAX_JOBS} jobs");
    let diagnostic = Diagnostic::error(Rule::TooManyJobs, message, at.clone().value());
    diagnostic.with_help("split the manifest; rows, combinations, and takes multiply")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_indented_is_found_and_no_line_of_another_text_is_taken_for_its_key() {
        let found = |text: &str| unindented(text).map(|diagnostic| diagnostic.place);
        assert_eq!(found("a:\n  prompt: |\n  A dog runs\n"), Some(Location::At(3, 3)));
        assert_eq!(found("- prompt: >-\n\nA dog runs: fast\n"), Some(Location::At(3, 1)));
        for fine in [
            "a:\n  prompt: |\n    A dog\nb: x\n",
            "prompt: |\n  A cat in the park\n\n  Camera: |\n  slow pan\n",
            "prompt: |\n  A cat\n  Style: >\n  soft\nid: a\n",
            "prompt: \"A cat\n  Camera: |\n  slow pan\"\n",
            "note: |\n\"duration\": 5\n",
            "note: |\n# a comment\nid: a\n",
            "note: |\n",
        ] {
            assert_eq!(found(fine), None, "{fine}");
        }
    }

    #[test]
    fn what_multiplies_or_goes_too_deep_is_found_before_it_is_parsed() {
        let big = "y".repeat(1_000_000);
        let many = "  - *t\n".repeat(100);
        let nested = "x: &a [*t, *t, *t, *t, *t, *t, *t, *t]\ny: &b [*a, *a, *a, *a]\nz: [*b, *b, *b]\n";
        for bad in [
            format!("t: &t {big}\njobs:\n{many}"),
            format!("t: &t {big}\n{nested}"),
            format!("jobs: {}", "[".repeat(100_000)),
            format!("jobs: {}1{}", "{a: ".repeat(40_000), "}".repeat(40_000)),
        ] {
            assert!(precheck(&bad).is_some_and(|diagnostic| diagnostic.rule.code() == "yaml-limit"), "{bad:.60}");
        }
        let smileys = format!("jobs:\n{}", "  - 'a text with :[ and :{'\n".repeat(1000));
        for good in [smileys, "a: &a 1\nb: *a\n".to_owned(), "a: *\n".to_owned(), "a: [[[1]]]\n".to_owned()] {
            assert!(precheck(&good).is_none(), "{good:.60}");
        }
    }
}
