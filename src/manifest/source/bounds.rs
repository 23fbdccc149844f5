//! Bounds on the size of a manifest. A few lines can ask for more than any machine holds: by takes times rows, by a
//! text that many jobs refer to, by brackets in brackets. Each of these is a clear error, found in time.

use std::collections::HashMap;

use granit_parser::{Event, Parser};

use super::diagnostic::Diagnostic;
use super::location::{Location, Pointer};
use crate::domain::{Job, Rule};

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
