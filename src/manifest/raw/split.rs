//! Reads the usual form of a manifest in pieces, several at once: `jobs:` at the top, and under it a list with a dash for each job.
//!
//! The parser keeps all events of a text until it is through. Of a hundred thousand jobs that is more memory than all else together, and
//! with it time; and it uses one processor. A piece of some hundred jobs fits into a cache.
//!
//! **Why pieces mean what the whole means.** A piece ends where a line begins with the dash of the list, in its column. Such a line is
//! another job, unless it stands inside a quoted text or inside brackets, where columns mean nothing: then the piece before it
//! ends in the midst of them, and is no YAML. In plain and block texts it can't stand, because these end with the first line that is no
//! deeper than what they belong to. An anchor of another piece is unknown in this one, which is no YAML either. What stands before and
//! after the list is read by itself, for the same reason. So a manifest is read in pieces only if each of them is sound and holds
//! the jobs that were counted in it; whatever else it may be is left to who reads it as a whole, and has the better words for what is wrong.

use std::ops::Range;

use serde_yaml::{Mapping, Value};

use super::decode::{Decoded, decode_job};
use crate::manifest::parallel::in_order;
use crate::manifest::source::location::Pointer;

/// How long a piece is at least, in bytes. Longer ones leave the caches, and shorter ones gain nothing: see `cargo bench --bench plan`.
const PIECE: usize = 32 * 1024;

/// The manifest without its jobs, and the jobs, of which none is parsed yet. Nothing if the file has another form.
pub(crate) fn read(text: &str) -> Option<(Mapping, Pieces<'_>)> {
    read_in_pieces(text, PIECE)
}

fn read_in_pieces(text: &str, length: usize) -> Option<(Mapping, Pieces<'_>)> {
    // Merge keys need the whole tree. A byte order mark in the midst of a text counts as a column, or not.
    if text.contains("<<") || text.contains('\u{feff}') || has_odd_breaks(text) {
        return None;
    }
    let form = Form::of(text, length)?;
    let mut rest = mapping(form.head)?;
    for (key, value) in mapping(form.tail)? {
        if rest.insert(key, value).is_some() {
            return None;
        }
    }
    (!rest.contains_key("jobs")).then_some((rest, Pieces { text, pieces: form.pieces }))
}

/// A list of jobs in pieces.
pub(crate) struct Pieces<'t> {
    text: &'t str,
    pieces: Vec<Piece>,
}

impl Pieces<'_> {
    /// Parses the jobs and works on each, with its place in the list, on all processors; what comes of them is taken in their order. Nothing
    /// if one of the pieces is not what it seemed, whatever was made of the others.
    pub(super) fn in_order<U: Send, R>(
        &self,
        work: impl Fn(usize, Decoded) -> U + Sync,
        take: impl FnOnce(&mut dyn Iterator<Item = U>) -> R,
    ) -> Option<R> {
        let work_on = |piece: &Piece| -> Option<Vec<U>> {
            let jobs = (piece.first..).zip(parse(self.text, piece)?);
            Some(jobs.map(|(number, job)| work(number, job)).collect())
        };
        let mut is_sound = true;
        let taken = in_order(&self.pieces, work_on, |worked| {
            let sound = worked.map_while(|piece| {
                is_sound = piece.is_some();
                piece
            });
            let mut sound = sound.flatten();
            let taken = take(&mut sound);
            // Whoever takes no more has not seen whether the rest is what it seemed.
            sound.for_each(drop);
            taken
        });
        is_sound.then_some(taken)
    }
}

/// A run of jobs in the text, and the first one's place in the list.
struct Piece {
    range: Range<usize>,
    first: usize,
    jobs: usize,
}

/// Where a manifest's list of jobs stands, and what is around it.
struct Form<'t> {
    head: &'t str,
    pieces: Vec<Piece>,
    tail: &'t str,
}

impl<'t> Form<'t> {
    /// With pieces of about this length, in bytes.
    fn of(text: &'t str, length: usize) -> Option<Self> {
        let key = if text.starts_with("jobs:") { 0 } else { text.find("\njobs:")? + 1 };
        // Where a document begins is nothing that a part may decide; but it may stand at the very top.
        let head = text[..key].strip_prefix("---\n").unwrap_or(&text[..key]);
        let mut lines = Lines { text, at: key };
        let after_key = lines.next()?.1["jobs:".len()..].trim_end();
        if !(after_key.is_empty() || after_key.trim_start().starts_with('#') && after_key.starts_with([' ', '\t'])) {
            return None;
        }
        let (start, first) = lines.find(|(_, line)| says_something(line))?;
        let column = first.len() - first.trim_start_matches(' ').len();
        let is_job = |line: &str| {
            line.len() > column && line.as_bytes()[..column].iter().all(|byte| *byte == b' ') && {
                matches!(line.as_bytes()[column..], [b'-', b' ' | b'\n' | b'\r', ..] | [b'-'])
            }
        };
        if !is_job(first) {
            return None;
        }
        let mut pieces = vec![Piece { range: start..start, first: 0, jobs: 1 }];
        let mut end = text.len();
        for (at, line) in lines {
            let piece = pieces.last_mut()?;
            if is_job(line) {
                if at - piece.range.start < length {
                    piece.jobs += 1;
                } else {
                    piece.range.end = at;
                    let first = piece.first + piece.jobs;
                    pieces.push(Piece { range: at..at, first, jobs: 1 });
                }
            } else if !line.starts_with(' ') && says_something(line) {
                end = at;
                break;
            }
        }
        pieces.last_mut()?.range.end = end;
        let tail = &text[end..];
        (!has_marker(head) && !has_marker(tail)).then_some(Self { head, pieces, tail })
    }
}

/// The lines of a text with their offsets, each with what ends it.
struct Lines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Lines<'t> {
    type Item = (usize, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let start = self.at;
        self.at += length;
        Some((start, &rest[..length]))
    }
}

/// Whether a line is neither blank nor a comment.
fn says_something(line: &str) -> bool {
    let line = line.trim_ascii();
    !line.is_empty() && !line.starts_with('#')
}

/// Whether a line may begin or end a document, or say something to the parser.
fn has_marker(text: &str) -> bool {
    text.lines().any(|line| ["---", "...", "%"].iter().any(|marker| line.starts_with(marker)))
}

/// Whether something breaks lines for the parser that breaks none here.
fn has_odd_breaks(text: &str) -> bool {
    let is_alone = |(at, _): (usize, &str)| text.as_bytes().get(at + 1) != Some(&b'\n');
    text.match_indices('\r').any(is_alone) || ['\u{85}', '\u{2028}', '\u{2029}'].iter().any(|&odd| text.contains(odd))
}

/// The mapping that a part is by itself, if it stands where the whole one does, at the very left, and is written as that is: line by line.
fn mapping(text: &str) -> Option<Mapping> {
    let Some(first) = text.lines().find(|line| says_something(line)) else { return Some(Mapping::new()) };
    if !first.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_') {
        return None;
    }
    match serde_yaml::from_str(text).ok()? {
        Value::Mapping(mapping) => Some(mapping),
        _ => None,
    }
}

/// The jobs of a piece, if it holds those that were counted.
fn parse(text: &str, piece: &Piece) -> Option<Vec<Decoded>> {
    let values: Vec<Value> = serde_yaml::from_str(&text[piece.range.clone()]).ok()?;
    let is_what_it_seemed = values.len() == piece.jobs;
    let at = Pointer::top().key("jobs");
    let jobs = values.into_iter().zip(piece.first..).map(|(value, index)| decode_job(value, &at.index(index)));
    is_what_it_seemed.then(|| jobs.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::manifest::raw::mirror::RawManifest;

    /// What stands beside the jobs, each job, and what is wrong with each.
    type Seen = (Mapping, Vec<String>);

    fn seen(rest: Mapping, jobs: impl Iterator<Item = Decoded>) -> Seen {
        (rest, jobs.map(|decoded| format!("{decoded:?}")).collect())
    }

    /// The same by the parser of the whole text.
    fn whole(text: &str) -> Option<Seen> {
        let value: Value = serde_yaml::from_str(text).ok()?;
        let mut rest = value.as_mapping()?.clone();
        rest.shift_remove("jobs");
        let (_, jobs) = RawManifest::decode(value, &mut Vec::new())?;
        Some(seen(rest, jobs.into_iter()))
    }

    fn in_pieces(text: &str, length: usize) -> Option<Seen> {
        let (rest, pieces) = read_in_pieces(text, length)?;
        pieces.in_order(|_, job| job, |jobs| seen(rest, jobs))
    }

    #[test]
    fn the_usual_form_is_read_in_pieces() {
        for dash in ["", "  ", "    "] {
            let job = |id: &str| {
                format!(
                    "{dash}- id: {id}\n{dash}  prompt: >\n{dash}    A crane\n\n{dash}    # one\n{dash}    - unfolds\n# aside\n"
                )
            };
            let jobs: String = ["a", "b", "c"].map(job).concat();
            let text = format!("---\nversion: 1\njobs:   # all of them\n\n{jobs}{dash}- {{ id: d }}\nbatch: x\n");
            let read = in_pieces(&text, 1).expect(dash);
            assert_eq!(read.1.len(), 4);
            assert_eq!(Some(read), whole(&text));
            assert_eq!(Form::of(&text, 1).expect("pieces").pieces.len(), 4);
        }
    }

    #[test]
    fn what_has_another_form_is_left_to_others() {
        let forms = [
            "{ version: 1, jobs: [{ id: a }] }",
            "version: 1\njobs: [{ id: a }]\n",
            "version: 1\njobs:\n  a: 1\n",
            "version: 1\njobs:\n",
            "version: 1\njobs: &all\n  - id: a\n",
            "version: 1\njobs:#\n  - id: a\n",
            "version: 1\njobs:\n  - id: a\njobs:\n  - id: b\n",
            "version: 1\nversion: 1\njobs:\n  - id: a\n",
            "version: 1\njobs:\n  - id: a\nversion: 1\n",
            "version: 1\n...\njobs:\n  - id: a\n",
            "version: 1\njobs:\n  - id: a\n---\nversion: 1\n",
            "name: \"a\njobs:\n  - id: a\nb\"\n",
            "jobs:\n  - id: a\n    prompt: \"x\n  - id: b\"\n",
            "jobs:\n  - id: a\n    image: [x,\n  - y]\n",
            "jobs:\n  - &a { id: a }\n  - *a\n",
            "{ version: 1 }\njobs:\n  - id: a\n",
            "null\njobs:\n  - id: a\nversion: 1\n",
            "version: 1\njobs:\n  - id: a\n{ batch: x }\n",
            "jobs:\n- id: a\r...\n- id: b\n",
        ];
        for text in forms {
            assert_eq!(in_pieces(text, 1), None, "{text}");
        }
    }

    /// Lines of manifests, and what makes a line mean something else than it seems to.
    fn line() -> impl Strategy<Value = String> {
        let indent = prop_oneof![Just(""), Just(" "), Just("  "), Just("    "), Just("      ")];
        let said = prop::sample::select(vec![
            "- id: a",
            "- id: b",
            "-",
            "- ",
            "- - x",
            "- {id: c, model: m}",
            "- {id: d,",
            "model: m}",
            "- id: \"e",
            "f\"",
            "- 'it''s",
            "it'",
            "- >-",
            "- |",
            "prompt: |",
            "prompt: >2",
            "prompt: plain text",
            "goes on",
            "- in a text",
            "tags: [x,",
            "y]",
            "# a remark",
            "- # one",
            "- &x {id: g}",
            "- *x",
            "model: &m alpha-2",
            "version: 1",
            "jobs:",
            "jobs: # here",
            "name: \"n",
            "---",
            "...",
            "%YAML 1.2",
            "? k",
            ": v",
            "batch: x",
            "{ a: 1 }",
            "null",
            "~",
            "[]",
            "!!map",
            "- id: i\r...",
            "x\u{2028}...",
            "vars:",
            "a: 1",
            "\t- id: t",
            "",
            "\u{85}- id: n",
            "- !!str id",
            "\"jobs\":",
            "<<: *x",
            "- id: h\r",
            "\u{feff}",
        ]);
        (indent, said).prop_map(|(indent, said)| format!("{indent}{said}\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_read_in_pieces_means_what_the_whole_means(
            head in prop::collection::vec(line(), 0..3),
            jobs in prop::collection::vec(line(), 1..10),
            tail in prop::collection::vec(line(), 0..3),
            length in prop_oneof![Just(1_usize), 1..60_usize],
        ) {
            let text = format!("{}jobs:\n{}{}", head.concat(), jobs.concat(), tail.concat());
            if let Some(read) = in_pieces(&text, length) {
                prop_assert_eq!(Some(read), whole(&text), "{}", text);
            }
        }
    }
}
