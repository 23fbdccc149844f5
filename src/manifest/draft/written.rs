//! Finds the meaning of one column from its cells, and where those are ambiguous, from its name (`headers.yaml`).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::catalog::{Catalog, Family};
use crate::domain::text::one_line;
use crate::domain::{Field, SHAPES, ratio_meant_by, sides};
use crate::manifest::raw::table::{JobField, JobField as F, seconds_in, whole_in};
use crate::manifest::source::text::is_url;
use crate::manifest::tables::rows::is_image_name;

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// A field of a job.
    Field(JobField),
    /// A label, such as the client.
    Label,
    /// Words for a prompt.
    Words,
}

/// The field that a column's name may promise, if the column has it.
pub(super) fn promise(meaning: Meaning) -> Option<JobField> {
    match meaning {
        Meaning::Field(F::Shape | F::AspectRatio | F::Size) => Some(F::Shape),
        Meaning::Field(F::Duration) => Some(F::Duration),
        _ => None,
    }
}

/// A text this long, with blanks in it, is a prompt under any name, in characters on average.
pub(super) const PROMPT_LENGTH: usize = 30;
/// The most characters of a cell that are shown.
const SHOWN_CHARACTERS: usize = 24;
/// The most states of a column.
const MAX_STATES: usize = 6;
/// No video has a side shorter than this, in pixels.
const MIN_SIDE: u32 = 100;

/// A test of a cell.
type Test<'t> = &'t dyn Fn(&str) -> bool;

/// A column: the parts of its name, and its non-empty cells.
pub(in crate::manifest) struct Written<'c> {
    /// The name in lower case, without blanks and signs, and its words.
    plain: String,
    words: Vec<String>,
    /// The field with this name, if there is one.
    own: Option<Field>,
    /// The non-empty cells.
    pub said: Vec<&'c str>,
    /// The number of the others.
    blanks: usize,
    /// True for an export of a shop: there, a published product is for sale.
    is_of_shop: bool,
    catalog: &'c Catalog,
}

impl<'c> Written<'c> {
    pub(in crate::manifest) fn new(name: &str, cells: &[&'c str], is_of_shop: bool, catalog: &'c Catalog) -> Self {
        Self {
            plain: name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect(),
            words: name.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect(),
            own: Field::named(&name.trim().to_lowercase()),
            said: cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect(),
            blanks: cells.iter().filter(|cell| cell.trim().is_empty()).count(),
            is_of_shop,
            catalog,
        }
    }

    /// The most probable meaning.
    pub(super) fn meaning(&self) -> Meaning {
        let (catalog, headers) = (self.catalog, &*HEADERS);
        let field = if let Some(field) = self.own_field() {
            JobField::for_request_field(field)
        } else if self.is_named(&headers.takes) && !self.said.is_empty() {
            F::Takes
        } else if self.all(&|cell| catalog.model(cell).is_some())
            || self.has_word(&headers.models) && self.any(&|cell| is_like_a_model(cell, catalog))
        {
            F::Model
        } else if self.all(&|cell| sides(cell, 'x').is_some_and(|(wide, high)| wide.min(high) >= MIN_SIDE)) {
            F::Size
        } else if self.all(&|cell| is_shape(cell) && !cell.contains('/'))
            || self.has_word(&headers.shapes) && self.any(&is_shape)
        {
            // With a slash, it may be a day.
            F::Shape
        } else if self.is_length() && self.any(&is_seconds) {
            F::Duration
        } else if self.any(&is_url) && self.is_named_as_image() {
            F::Image
        } else if self.all(&is_image_file) || self.any(&is_image_file) && self.is_named_as_image() {
            F::ImageFile
        } else if self.is_named(&headers.tags) {
            F::Tags
        } else {
            return if self.is_named(&headers.labels) { Meaning::Label } else { Meaning::Words };
        };
        Meaning::Field(field)
    }

    /// The model, length, or shape of the videos: each word of the name means it, and the family takes the value of a cell.
    pub(in crate::manifest) fn certain_field(&self, family: &Family) -> Option<JobField> {
        let Headers { models, durations, lengths, shapes, of_videos, .. } = &*HEADERS;
        let says = |field: Field, lists: &[&Vec<String>]| {
            let is_known = |word: &String| word.is_empty() || lists.iter().any(|list| list.contains(word));
            self.own == Some(field) || self.words.iter().all(is_known)
        };
        let is_taken = |cell: &str| seconds_in(cell).is_some_and(|it| family.fields.duration.broken_by(it).is_none());
        let has_length = || !family.passes_over(Field::Duration) && self.any(&is_taken);
        let has_model = || self.any(&|cell| is_like_a_model(cell, self.catalog));
        let Meaning::Field(field) = self.meaning() else { return None };
        let is_certain = match field {
            F::Model => says(Field::Model, &[models, of_videos]) && has_model(),
            F::Duration => says(Field::Duration, &[durations, lengths, of_videos]) && has_length(),
            F::Size => self.own == Some(Field::Size) && family.takes(Field::Size),
            F::Shape => says(Field::AspectRatio, &[shapes, of_videos]),
            _ => false,
        };
        is_certain.then_some(field)
    }

    /// The field with the name of the column. The plan reports its invalid cells, row by row.
    fn own_field(&self) -> Option<Field> {
        let is_meant = |field: &Field| match field {
            Field::Prompt | Field::Image => false,
            // `shape` is for any model.
            Field::AspectRatio => self.any(&|cell| !is_shape(cell)),
            // Things have sizes, too.
            Field::Size => self.any(&|cell| sides(cell, 'x').is_some()),
            _ => !self.said.is_empty(),
        };
        self.own.filter(is_meant)
    }

    /// The reason to leave the column unused: the first cell without a value of the header's type. With it, the field that the name promises if no
    /// cell has a value for it: by default, the videos would be something else.
    pub(super) fn why_not(&self) -> (String, Option<JobField>) {
        let (catalog, headers) = (self.catalog, &*HEADERS);
        let nothing = &|_: &str| false;
        let (duration, shape) = (Some(JobField::Duration), Some(JobField::Shape));
        let is_image = self.is_named_as_image() && !self.all(&|cell| whole_in(cell).is_some());
        let is_end = self.names_an_image() && !is_image && self.has_word(&headers.ends);
        let is_in_other_unit = self.has_word(&headers.durations) && self.has_word(&headers.other_units);
        let promises: [(bool, &str, Test<'_>, Option<JobField>); 9] = [
            (is_in_other_unit, "is not in seconds, by the name of the column", nothing, duration),
            (self.is_length(), "is not a whole number of seconds", &is_seconds, duration),
            (self.is_named(&headers.lengths), "is not the length of a video", &|cell| self.can_be_length(cell), None),
            (self.has_word(&headers.lengths), "may be in another unit", nothing, None),
            (self.has_word(&headers.shapes), "is not the shape of a video", &is_shape, shape),
            (self.own == Some(Field::Size), "is not a size in pixels", nothing, None),
            (self.has_word(&headers.models), "is not a model", &|cell| is_like_a_model(cell, catalog), None),
            (is_end, "is for the end of a video, and images are for its start", nothing, None),
            (is_image, "is neither a URL nor an image file", nothing, None),
        ];
        let broken = promises.iter().filter(|(is_promised, ..)| *is_promised).find_map(|(_, what, keeps, field)| {
            let cell = shortened(self.said.iter().find(|cell| !keeps(cell))?);
            Some((format!("`{cell}` {what}"), field.filter(|_| !self.any(keeps))))
        });
        let otherwise = if self.said.is_empty() { "it is empty" } else { "not a field of a job" };
        broken.unwrap_or_else(|| (otherwise.to_owned(), None))
    }

    /// The list of names of IDs that has its name, and the place in it.
    pub(super) fn place_in_ids(&self) -> Option<(usize, usize)> {
        let place = |list: &[String]| list.iter().position(|known| *known == self.plain);
        let named = HEADERS.ids().into_iter().enumerate().find_map(|(list, words)| Some((list, place(words)?)));
        // `Product SKU`, after all columns that have no other word.
        named.or_else(|| self.has_word(&HEADERS.id_words).then_some((0, usize::MAX)))
    }

    /// The rank as a prompt, if it may be one; less is better.
    pub(super) fn as_prompt(&self) -> Option<usize> {
        // One sign of Chinese or Japanese counts as three letters.
        let length = |cell: &&str| cell.chars().map(|c| if is_sign(c) { 3 } else { 1 }).sum::<usize>();
        let has_blank = |cell: &str| cell.contains(' ') || length(&cell) > 2 * cell.chars().count();
        let all: usize = self.said.iter().map(length).sum();
        let is_wordy = all >= PROMPT_LENGTH * self.said.len() && self.all(&has_blank);
        // A number of a shot is no description of it.
        let is_text = self.any(&has_blank) || self.is_named(&HEADERS.sure_prompts) && !self.said.is_empty();
        let place = HEADERS.prompts.iter().position(|known| self.has(known));
        place.filter(|_| is_text).or(is_wordy.then_some(usize::MAX)).filter(|_| !self.has_word(&HEADERS.negatives))
    }

    /// Returns whether each cell is a word with letters, and some are codes, such as `AC-008`. Prices, dates, and spoken words change.
    pub(super) fn are_codes(&self) -> bool {
        let is_code = |cell: &str| cell.contains(|c: char| c.is_ascii_digit() || "-_".contains(c));
        self.all(&|cell| has_letters(cell) && !cell.contains(char::is_whitespace)) && self.any(&is_code)
    }

    /// Returns whether it has text for a prompt, and not only numbers, days, or notes.
    pub(super) fn is_wording(&self) -> bool {
        let is_state = self.has_word(&HEADERS.states) || self.has_word(&HEADERS.approvals);
        self.any(&has_letters) && !self.any(&is_url) && !self.is_aside() && !self.is_length() && !is_state
    }

    /// Returns whether its name is that of a price, a date, or a note.
    pub(super) fn is_aside(&self) -> bool {
        self.has_word(&HEADERS.aside)
    }

    /// The cells that exclude their rows.
    pub(super) fn left_out(&self) -> (Vec<String>, usize) {
        let Headers { states, left_out, .. } = &*HEADERS;
        self.cells(false, |state| self.has_word(states) && left_out.iter().any(|known| known == state))
    }

    /// The cells that may exclude their rows, such as `no` under `Approved`. If some rows are approved, the others may not be.
    pub(super) fn doubtful(&self) -> (Vec<String>, usize) {
        let Headers { approvals, disapproved, approved, finished, confirmed, states, left_out, .. } = &*HEADERS;
        let is_in = |list: &[String], state: &str| list.iter().any(|known| known == state);
        let is_state = self.has_word(states);
        let is_left = |state: &str| is_state && is_in(left_out, state);
        let is_good = |state: &str| is_in(approved, state) || !is_state && is_in(confirmed, state);
        let is_ended = !is_state && !self.is_of_shop && self.has_word(finished);
        let is_approval = self.has_word(approvals) || self.is_of_shop && self.has_word(finished);
        if (is_approval || is_state) && self.any(&|cell| is_good(&state_in(cell))) {
            return self.cells(true, |state| !is_good(state) && !is_left(state));
        }
        let lists = [(is_ended, confirmed), (is_approval, disapproved), (is_state, finished)];
        let is_wrong = |state: &str| lists.iter().any(|(is_meant, list)| *is_meant && is_in(list, state));
        self.cells(false, |state| is_wrong(state) && !is_left(state))
    }

    /// The distinct cells with one of these states, also the blank ones if they count, and the number of their rows.
    fn cells(&self, blanks_count: bool, is_meant: impl Fn(&str) -> bool) -> (Vec<String>, usize) {
        let blanks = if blanks_count { self.blanks } else { 0 };
        let said = self.said.iter().filter(|cell| is_meant(&state_in(cell))).map(|cell| cell.to_lowercase());
        let cells: Vec<String> = said.chain(std::iter::repeat_n(String::new(), blanks)).collect();
        let rows = cells.len();
        let distinct: Vec<String> = cells.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        if distinct.len() > MAX_STATES { (Vec::new(), 0) } else { (distinct, rows) }
    }

    fn all(&self, is: Test<'_>) -> bool {
        !self.said.is_empty() && self.said.iter().all(|cell| is(cell))
    }

    /// One valid cell suffices: the plan reports the invalid ones, and an unused column would give them the default.
    fn any(&self, is: Test<'_>) -> bool {
        self.said.iter().any(|cell| is(cell))
    }

    fn is_named(&self, list: &[String]) -> bool {
        list.contains(&self.plain)
    }

    fn has_word(&self, list: &[String]) -> bool {
        list.iter().any(|known| self.has(known))
    }

    /// Returns whether its name has a word. Chinese and Japanese write no blanks between words.
    fn has(&self, known: &String) -> bool {
        self.words.contains(known) || known.chars().all(is_sign) && self.plain.contains(known)
    }

    /// Returns whether its name is that of the image that a video starts with.
    fn is_named_as_image(&self) -> bool {
        self.names_an_image() && !self.has_word(&HEADERS.ends)
    }

    fn names_an_image(&self) -> bool {
        HEADERS.images.iter().any(|image| self.plain.contains(image))
    }

    /// Returns whether its name is that of a length of videos, or of a length, and each cell is one that a video can have.
    fn is_length(&self) -> bool {
        let Headers { durations, lengths, of_videos, .. } = &*HEADERS;
        let is_possible = || self.is_named(lengths) && self.all(&|cell| self.can_be_length(cell));
        !self.has_word(&HEADERS.other_units)
            && (self.has_word(durations) || self.has_word(lengths) && (self.has_word(of_videos) || is_possible()))
    }

    /// Returns whether some model makes videos of this length, in seconds.
    fn can_be_length(&self, cell: &str) -> bool {
        let families = self.catalog.model_names().filter_map(|name| Some(self.catalog.model(name)?.family));
        let durations = families.map(|family| &family.fields.duration);
        seconds_in(cell).is_some_and(|length| durations.into_iter().any(|rule| rule.broken_by(length).is_none()))
    }
}

/// Returns whether it is a sign of Chinese, Japanese, or Korean.
fn is_sign(c: char) -> bool {
    ('\u{2e80}'..='\u{d7ff}').contains(&c)
}

/// The state in a cell, without the signs around it: `done` in `✅ Done`.
fn state_in(cell: &str) -> String {
    let words = cell.trim_matches(|c: char| !c.is_alphanumeric());
    if words.is_empty() { cell } else { words }.to_lowercase()
}

fn is_seconds(cell: &str) -> bool {
    seconds_in(cell).is_some()
}

fn is_image_file(cell: &str) -> bool {
    is_image_name(cell) && !is_url(cell)
}

fn has_letters(cell: &str) -> bool {
    cell.chars().filter(|c| c.is_alphabetic()).count() > 1
}

/// Returns whether it is the name of a model, in any letter case.
pub(super) fn is_like_a_model(cell: &str, catalog: &Catalog) -> bool {
    catalog.model_names().any(|name| name.eq_ignore_ascii_case(cell))
}

/// Returns whether some model has this shape.
fn is_shape(cell: &str) -> bool {
    ratio_meant_by(cell).is_some_and(|ratio| SHAPES.contains(&ratio))
}

/// Returns whether it is the shape of some model in numbers. Others could be a time of day.
pub(super) fn is_ratio(cell: &str) -> bool {
    cell.contains(':') && is_shape(cell)
}

/// The beginning of a cell, on one line.
pub(super) fn shortened(cell: &str) -> String {
    let line = one_line(cell);
    let is_short = line.chars().count() <= SHOWN_CHARACTERS;
    if is_short { line } else { format!("{}…", line.chars().take(SHOWN_CHARACTERS - 1).collect::<String>()) }
}

/// The words.
pub(super) static HEADERS: LazyLock<Headers> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("headers.yaml")).unwrap_or_default());

/// Lists of words, the likelier ones first.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Headers {
    pub lasting_ids: Vec<String>,
    pub counted_ids: Vec<String>,
    pub names: Vec<String>,
    pub id_words: Vec<String>,
    pub sure_prompts: Vec<String>,
    pub prompts: Vec<String>,
    pub negatives: Vec<String>,
    pub durations: Vec<String>,
    pub lengths: Vec<String>,
    pub of_videos: Vec<String>,
    pub other_units: Vec<String>,
    pub models: Vec<String>,
    pub shapes: Vec<String>,
    pub images: Vec<String>,
    pub ends: Vec<String>,
    pub tags: Vec<String>,
    pub takes: Vec<String>,
    pub labels: Vec<String>,
    pub aside: Vec<String>,
    pub left_out: Vec<String>,
    pub states: Vec<String>,
    pub shops: Vec<String>,
    pub approvals: Vec<String>,
    pub approved: Vec<String>,
    pub disapproved: Vec<String>,
    pub finished: Vec<String>,
    pub confirmed: Vec<String>,
}

impl Headers {
    /// The headers of IDs: lasting ones, row counters, and names.
    pub(super) fn ids(&self) -> [&[String]; 3] {
        [&self.lasting_ids, &self.counted_ids, &self.names]
    }

    /// Every word that is the name of a column, or a part of one.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let Self { prompts, durations, models, shapes, tags, takes, labels, aside, states, .. } = self;
        let others = [prompts, durations, models, shapes, tags, takes, labels, aside, states].into_iter().flatten();
        self.ids().into_iter().flatten().chain(others).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_words_are_in_lower_case() {
        let read: Headers = serde_yaml::from_str(include_str!("headers.yaml")).expect("lists of words");
        assert!(read.all().count() > 150);
        for word in read.all() {
            assert!(!word.contains(char::is_whitespace) && word == word.to_lowercase(), "{word}");
        }
    }
}
