//! The meanings of a sheet's columns: from their cells, and where those are ambiguous, from their names (`headers.yaml`).

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::catalog::{Catalog, Family, SizeRule};
use crate::domain::text::one_line;
use crate::domain::{Field, JobId, SHAPES, Usd, count, ratio_meant_by};
use crate::manifest::raw::job_field::JobField;
use crate::manifest::raw::table::{seconds_in, whole_in};
use crate::manifest::tables::rows::is_image_name;
use crate::manifest::template::engine::slug;

/// A column with its probable meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Column {
    /// Its name, as the sheet has it.
    pub name: String,
    /// The probable meaning.
    pub meaning: Meaning,
    /// True if it counts the rows.
    pub is_count: bool,
    /// The value that is repeated in a column with an ID's name.
    pub twice: Option<String>,
    /// The rank as an ID: `None` if it does not identify the rows, and less is better.
    as_id: Option<(usize, usize)>,
    /// The same as a prompt.
    as_prompt: Option<usize>,
    /// The reason why nothing is made of it, if it is nothing but words.
    pub why: String,
    /// The first values.
    pub values: Vec<String>,
    /// The values that mean that a row is left out.
    pub left_out: Vec<String>,
    /// Values that may mean it, and the number of rows that have one.
    pub doubtful: (Vec<String>, usize),
    /// The field that its name promises, though no cell has a value for it.
    pub promised: Option<JobField>,
    is_slugged: bool,
    /// True if it has text for a prompt, and not only numbers, days, or notes.
    is_wording: bool,
    lengths: Vec<i64>,
}

/// The number of lists of ID headers. The last one has names of products.
const LISTS: usize = 3;
const NAMES: usize = LISTS - 1;
/// The rank of a column with unique cells and no ID header: after all columns with one, including row counters.
const ANY_NAME: (usize, usize) = (2 * LISTS, 0);
/// The number of values that are shown of a column.
const SHOWN: usize = 3;
/// An id longer than this is a text, in characters.
const MAX_ID: usize = 60;

impl Column {
    /// The column of this name with these cells, one for each row.
    pub(super) fn new(name: &str, cells: &[&str], directory: &Path, catalog: &Catalog) -> Self {
        let written = Written::new(name, cells, catalog);
        let place_in_ids = written.place_in_ids();
        // A count changes if a row is inserted.
        let is_count = cells.iter().zip(1..).all(|(cell, number)| whole_in(cell) == Some(number));
        let as_id = match place_in_ids {
            Some((list, place)) if is_count => Some((LISTS + list, place)),
            place => place.or((written.is_name() && !is_count).then_some(ANY_NAME)),
        };
        Self {
            name: name.to_owned(),
            meaning: written.meaning(directory),
            twice: twice(cells).filter(|_| place_in_ids.is_some_and(|(list, _)| list < NAMES)),
            is_count,
            why: written.why_not(),
            values: written.said.iter().take(SHOWN).map(|cell| shortened(cell)).collect(),
            left_out: written.left_out(),
            doubtful: written.doubtful(),
            promised: written.promised(),
            as_id: as_id.filter(|_| tells_apart(cells)),
            as_prompt: written.as_prompt(),
            is_slugged: cells.iter().any(|cell| JobId::new(*cell).is_err()),
            is_wording: written.is_wording(),
            lengths: written.said.iter().filter_map(|cell| seconds_in(cell)).collect(),
        }
    }

    /// Returns whether its cells could be in a prompt.
    pub(super) fn has_words(&self) -> bool {
        match self.meaning {
            Meaning::Words => self.is_wording,
            Meaning::Id { .. } => self.is_wording && self.as_id.is_some_and(|(list, _)| list >= NAMES),
            _ => false,
        }
    }

    /// Returns whether it counts the rows, so that an inserted row changes the numbers after it.
    pub(super) fn is_counted_anew(&self) -> bool {
        self.is_count && self.as_id.is_some_and(|(list, _)| list > LISTS)
    }

    /// The reason why nothing is made of it.
    pub(super) fn why_not(&self) -> String {
        if let (states, rows @ 1..) = &self.doubtful {
            let rows = count(*rows, "row");
            return format!("{rows} with {}; the draft has a line that leaves them out", alternatives(states));
        }
        self.twice.as_ref().map_or_else(|| self.why.clone(), |cell| format!("`{}` repeats", shortened(cell)))
    }

    fn is(&self, field: Field) -> bool {
        self.meaning == Meaning::Field(field)
    }
}

/// The place of the column of words that is best at something, by the least rank.
fn best<R: Ord>(columns: &[Column], rank: fn(&Column) -> Option<R>) -> Option<usize> {
    let words = columns.iter().enumerate().filter(|(_, column)| column.meaning == Meaning::Words);
    words.filter_map(|(at, column)| Some((rank(column)?, at))).min().map(|(_, at)| at)
}

/// The columns after the choice of the prompt and the ID, with each field in one column only.
pub(super) fn settled(mut columns: Vec<Column>) -> Vec<Column> {
    if let Some(prompt) = best(&columns, |column| column.as_prompt) {
        columns[prompt].meaning = Meaning::Prompt;
    }
    if let Some(id) = best(&columns, |column| column.as_id) {
        columns[id].meaning = Meaning::Id { is_slugged: columns[id].is_slugged };
    }
    for at in 1..columns.len() {
        let (before, rest) = columns.split_at_mut(at);
        let same = before.iter().find(|column| column.meaning == rest[0].meaning);
        if let Some(first) = same.filter(|first| !matches!(first.meaning, Meaning::Label | Meaning::Words)) {
            rest[0].why = format!("`{}` means the same", one_line(&first.name));
            rest[0].meaning = Meaning::Words;
        }
    }
    let mut said: HashSet<JobField> = columns.iter().filter_map(|column| column.meaning.promise()).collect();
    for column in &mut columns {
        column.promised = column.promised.filter(|field| said.insert(*field));
    }
    columns
}

/// The model for rows without one: the given one, or else the model that accepts the most columns, and the cheapest of equals at its default
/// length.
pub(super) fn model<'m>(columns: &[Column], given: Option<&'m str>, catalog: &'m Catalog) -> &'m str {
    let taken = |name: &str| {
        catalog.model(name).map_or(0, |model| columns.iter().filter(|column| is_taken(column, model.family)).count())
    };
    let best = catalog.suggested_names().min_by_key(|name| (usize::MAX - taken(name), usual_price(name, catalog)));
    given.or(best).unwrap_or_default()
}

/// Returns whether a family accepts the values of a column.
pub(super) fn is_taken(column: &Column, family: &Family) -> bool {
    match column.meaning {
        Meaning::ImageFile { .. } => family.takes(Field::Image),
        Meaning::Field(Field::Duration) => {
            // The plan reports impossible durations, row by row.
            let is_possible = |length: &i64| family.fields.duration.broken_by(*length).is_none();
            column.lengths.iter().any(is_possible) || column.lengths.is_empty() && !family.passes_over(Field::Duration)
        }
        Meaning::Field(field) => family.takes(field),
        _ => true,
    }
}

/// The cheapest model that accepts the values of a column.
pub(super) fn taker<'c>(column: &Column, catalog: &'c Catalog) -> Option<&'c str> {
    let takes = |name: &&str| catalog.model(name).is_some_and(|model| is_taken(column, model.family));
    catalog.suggested_names().filter(takes).min_by_key(|name| usual_price(name, catalog))
}

/// The price of a video of the default length.
fn usual_price(name: &str, catalog: &Catalog) -> Option<Usd> {
    let model = catalog.model(name)?;
    Some(model.price(u32::try_from(model.family.fields.duration.default).ok()?, None))
}

/// Returns whether a column names the model of each row.
pub(super) fn names_models(columns: &[Column]) -> bool {
    columns.iter().any(|column| column.is(Field::Model))
}

/// The first cell that is in an earlier row already.
fn twice(cells: &[&str]) -> Option<String> {
    let mut seen = HashSet::new();
    cells.iter().map(|cell| cell.trim()).find(|cell| !cell.is_empty() && !seen.insert(*cell)).map(str::to_owned)
}

/// Returns whether the cells are unique as IDs.
fn tells_apart(cells: &[&str]) -> bool {
    let mut seen = HashSet::new();
    cells.iter().all(|cell| {
        let id = slug(cell);
        cell.chars().count() <= MAX_ID && !id.is_empty() && seen.insert(id)
    })
}

/// States of rows, for people: `no` or `false`.
pub(super) fn alternatives(states: &[String]) -> String {
    states.iter().map(|state| format!("`{}`", shortened(state))).collect::<Vec<_>>().join(" or ")
}

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// The ID. `is_slugged` if its cells need the filter `slug`.
    Id { is_slugged: bool },
    /// The prompt.
    Prompt,
    /// A field of the request.
    Field(Field),
    /// The shape of the video, for any family.
    Shape,
    /// A local image. `is_here` if each file exists below the manifest's directory.
    ImageFile { is_here: bool },
    /// The number of takes.
    Takes,
    /// Tags, for `--tag`.
    Tags,
    /// A label, such as the client.
    Label,
    /// Words for a prompt.
    Words,
}

impl Meaning {
    /// The field that a column's name may promise, if the column has it.
    fn promise(self) -> Option<JobField> {
        match self {
            Self::Shape | Self::Field(Field::AspectRatio | Field::Size) => Some(JobField::Shape),
            Self::Field(Field::Duration) => Some(JobField::Duration),
            _ => None,
        }
    }
}

/// A text this long, with blanks in it, is a prompt under any name, in characters on average.
pub(super) const PROMPT_LENGTH: usize = 30;
/// The most characters of a cell that are shown.
const SHOWN_CHARACTERS: usize = 24;
/// No video has a side shorter than this, in pixels.
const MIN_SIDE: u32 = 100;

/// A test of a cell.
type Test<'t> = &'t dyn Fn(&str) -> bool;

/// A column: the parts of its name, and its non-empty cells.
pub(super) struct Written<'c> {
    /// The name in lower case, without blanks and signs, and its words.
    plain: String,
    words: Vec<String>,
    /// The field with this name, if there is one.
    own: Option<Field>,
    /// The non-empty cells.
    pub said: Vec<&'c str>,
    catalog: &'c Catalog,
    headers: &'static Headers,
}

impl<'c> Written<'c> {
    pub(super) fn new(name: &str, cells: &[&'c str], catalog: &'c Catalog) -> Self {
        Self {
            plain: name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect(),
            words: name.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect(),
            own: Field::named(&name.trim().to_lowercase()),
            said: cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect(),
            catalog,
            headers: &HEADERS,
        }
    }

    /// The most probable meaning.
    pub(super) fn meaning(&self, directory: &Path) -> Meaning {
        let Self { catalog, headers, .. } = self;
        if let Some(field) = self.own_field() {
            Meaning::Field(field)
        } else if self.is_named(&headers.takes) && !self.said.is_empty() {
            Meaning::Takes
        } else if self.all(&|cell| catalog.model(cell).is_some())
            || self.has_word(&headers.models) && self.any(&|cell| is_like_a_model(cell, catalog))
        {
            Meaning::Field(Field::Model)
        } else if self.all(&|cell| SizeRule::parse(cell).is_some_and(|(wide, high)| wide.min(high) >= MIN_SIDE)) {
            Meaning::Field(Field::Size)
        } else if self.all(&is_ratio) || self.has_word(&headers.shapes) && self.any(&is_shape) {
            Meaning::Shape
        } else if self.is_length() && self.any(&is_seconds) {
            Meaning::Field(Field::Duration)
        } else if self.all(&is_url) && self.is_named_as_image() {
            Meaning::Field(Field::Image)
        } else if self.all(&|cell| is_image_name(cell) && !is_url(cell)) {
            Meaning::ImageFile { is_here: self.all(&|cell| directory.join(cell).is_file()) }
        } else if self.is_named(&headers.tags) {
            Meaning::Tags
        } else if self.is_named(&headers.labels) {
            Meaning::Label
        } else {
            Meaning::Words
        }
    }

    /// The field with the name of the column. The plan reports its invalid cells, row by row.
    fn own_field(&self) -> Option<Field> {
        let is_meant = |field: &Field| match field {
            Field::Prompt | Field::Image => false,
            // Things have sizes, too.
            Field::Size => self.any(&|cell| SizeRule::parse(cell).is_some()),
            _ => !self.said.is_empty(),
        };
        self.own.filter(is_meant)
    }

    /// The reason to leave the column unused: the first cell without a value of the header's type.
    pub(super) fn why_not(&self) -> String {
        let Self { catalog, headers, .. } = self;
        let nothing = &|_: &str| false;
        let promises: [(bool, &str, Test<'_>); 7] = [
            (self.is_length(), "is not a whole number of seconds", &is_seconds),
            (self.is_named(&headers.lengths), "is not the length of a video", &|cell| self.is_possible_length(cell)),
            (self.has_word(&headers.lengths), "may be in another unit", nothing),
            (self.has_word(&headers.shapes), "is not the shape of a video", &is_shape),
            (self.own == Some(Field::Size), "is not a size in pixels", nothing),
            (self.has_word(&headers.models), "is not a model", &|cell| is_like_a_model(cell, catalog)),
            (self.is_named_as_image(), "is neither a URL nor an image file", nothing),
        ];
        let broken = promises.iter().filter(|(is_promised, ..)| *is_promised).find_map(|(_, what, keeps)| {
            Some(format!("`{}` {what}", shortened(self.said.iter().find(|cell| !keeps(cell))?)))
        });
        let otherwise = if self.said.is_empty() { "it is empty" } else { "not a field of a job" };
        broken.unwrap_or_else(|| otherwise.to_owned())
    }

    /// The list of names of IDs that has its name, and the place in it.
    pub(super) fn place_in_ids(&self) -> Option<(usize, usize)> {
        let place = |list: &[String]| list.iter().position(|known| *known == self.plain);
        self.headers.ids().into_iter().enumerate().find_map(|(list, words)| Some((list, place(words)?)))
    }

    /// The rank as a prompt, if it may be one; less is better.
    pub(super) fn as_prompt(&self) -> Option<usize> {
        let characters: usize = self.said.iter().map(|cell| cell.chars().count()).sum();
        let has_blank = |cell: &str| cell.contains(' ');
        let is_wordy = characters >= PROMPT_LENGTH * self.said.len() && self.all(&has_blank);
        // A number of a shot is no description of it.
        let is_text = self.any(&has_blank) || self.is_named(&self.headers.sure_prompts) && !self.said.is_empty();
        let place = self.headers.prompts.iter().position(|known| self.words.contains(known));
        place.filter(|_| is_text).or(is_wordy.then_some(usize::MAX))
    }

    /// Returns whether each cell has letters. Prices and dates may be unique today, but change.
    pub(super) fn is_name(&self) -> bool {
        self.all(&has_letters)
    }

    /// Returns whether it has text for a prompt, and not only numbers, days, or notes.
    pub(super) fn is_wording(&self) -> bool {
        self.any(&has_letters) && !self.any(&is_url) && !self.has_word(&self.headers.aside) && !self.is_length()
    }

    /// The distinct cells that exclude their rows.
    pub(super) fn left_out(&self) -> Vec<String> {
        if !self.is_named(&self.headers.tags) {
            return Vec::new();
        }
        let states: BTreeSet<String> = self.said.iter().map(|cell| cell.to_lowercase()).collect();
        states.into_iter().filter(|state| self.headers.left_out.contains(state)).collect()
    }

    /// The distinct cells that may exclude their rows, such as `no` under `Approved`, and the number of these rows.
    fn doubtful(&self) -> (Vec<String>, usize) {
        let Headers { approvals, disapproved, finished, confirmed, tags, .. } = self.headers;
        let lists = [(approvals, disapproved), (finished, confirmed), (tags, finished)];
        let said: Vec<String> = self.said.iter().map(|cell| cell.to_lowercase()).collect();
        let means =
            |state: &&String| lists.iter().any(|(names, states)| self.is_named(names) && states.contains(state));
        let rows = said.iter().filter(means).count();
        (said.iter().filter(means).collect::<BTreeSet<_>>().into_iter().cloned().collect(), rows)
    }

    /// The field that the name promises, if no cell has a value for it: as usual, the videos would be something else.
    fn promised(&self) -> Option<JobField> {
        let promises = [
            (self.is_length(), JobField::Duration, &is_seconds as Test<'_>),
            (self.has_word(&self.headers.shapes), JobField::Shape, &is_shape),
        ];
        let is_broken = |promised: bool, keeps: Test<'_>| promised && !self.said.is_empty() && !self.any(keeps);
        promises.into_iter().find(|(promised, _, keeps)| is_broken(*promised, keeps)).map(|(_, field, _)| field)
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
        list.iter().any(|known| self.words.contains(known))
    }

    fn is_named_as_image(&self) -> bool {
        self.headers.images.iter().any(|image| self.plain.contains(image))
    }

    /// Returns whether its name is that of a length of videos, or of a length, and each cell is one that a video can have.
    fn is_length(&self) -> bool {
        let Headers { durations, lengths, of_videos, .. } = self.headers;
        let is_possible = || self.is_named(lengths) && self.all(&|cell| self.is_possible_length(cell));
        self.has_word(durations) || self.has_word(lengths) && (self.has_word(of_videos) || is_possible())
    }

    /// Returns whether some model makes videos of this length, in seconds.
    fn is_possible_length(&self, cell: &str) -> bool {
        let families = self.catalog.model_names().filter_map(|name| Some(self.catalog.model(name)?.family));
        let durations = families.map(|family| &family.fields.duration);
        seconds_in(cell).is_some_and(|length| durations.into_iter().any(|rule| rule.broken_by(length).is_none()))
    }
}

fn is_seconds(cell: &str) -> bool {
    seconds_in(cell).is_some()
}

fn is_url(cell: &str) -> bool {
    cell.starts_with("https://") || cell.starts_with("http://")
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
    pub sure_prompts: Vec<String>,
    pub prompts: Vec<String>,
    pub durations: Vec<String>,
    pub lengths: Vec<String>,
    pub of_videos: Vec<String>,
    pub models: Vec<String>,
    pub shapes: Vec<String>,
    pub images: Vec<String>,
    pub tags: Vec<String>,
    pub takes: Vec<String>,
    pub labels: Vec<String>,
    pub aside: Vec<String>,
    pub left_out: Vec<String>,
    pub approvals: Vec<String>,
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
        let Self { prompts, durations, models, shapes, tags, takes, labels, aside, .. } = self;
        let others = [prompts, durations, models, shapes, tags, takes, labels, aside].into_iter().flatten();
        self.ids().into_iter().flatten().chain(others).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_model_changes_drafts_only_once_it_is_suggested() {
        let chosen = |suggested: &str| {
            let model =
                format!("cheap: {{ family: beta, price: {{ per: second, usd: '0.01' }}, suggested: {suggested} }}");
            let text = format!("version: 1\nprices_taken_on: 2027-01-01\nmodels: {{ {model} }}\n");
            let catalog = Catalog::extended_by(&text).expect("a catalog");
            model_of(&catalog)
        };
        let model_of_today = model_of(Catalog::embedded());
        assert_eq!((chosen("false"), chosen("true")), (model_of_today, "cheap".to_owned()));
    }

    fn model_of(catalog: &Catalog) -> String {
        let prompt = Column::new("Prompt", &["A dog runs", "A cat sleeps"], Path::new(""), catalog);
        model(&[prompt], None, catalog).to_owned()
    }

    #[test]
    fn header_words_are_in_lower_case() {
        let read: Headers = serde_yaml::from_str(include_str!("headers.yaml")).expect("lists of words");
        assert!(read.all().count() > 150);
        for word in read.all() {
            assert!(!word.contains(char::is_whitespace) && word == word.to_lowercase(), "{word}");
        }
    }
}
