//! Meanings of a sheet's columns: from their cells, and where those are ambiguous, from their names.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::headers::HEADERS;
use crate::catalog::{Catalog, Family, SizeRule};
use crate::domain::printable::one_line;
use crate::domain::{Field, JobId, Usd};
use crate::manifest::raw::table::whole_in;
use crate::manifest::template::engine::slug;

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// It tells the rows apart. Whether its cells have to be made into ids first.
    Id { is_slugged: bool },
    /// The prompt.
    Prompt,
    /// A field of the request.
    Field(Field),
    /// A picture on this machine, and whether each of them lies where the manifest will look.
    ImageFile { is_here: bool },
    /// The number of takes.
    Takes,
    /// Tags, by which jobs are selected.
    Tags,
    /// A label, such as the client.
    Label,
    /// Words that may stand in a prompt.
    Words,
}

/// A column, and what it seems to mean.
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
    is_slugged: bool,
    /// True if it has text for a prompt, and not only numbers, days, or notes.
    is_wording: bool,
    lengths: Vec<i64>,
}

/// The number of lists of names of IDs; columns of names alone are in the last one.
const LISTS: usize = 3;
const NAMES: usize = LISTS - 1;
/// The place of a column whose cells only tell the rows apart: behind all columns with the name of an ID, also those that count the rows.
const ANY_NAME: (usize, usize) = (2 * LISTS, 0);
/// The ends of the names of image files.
const PICTURES: [&str; 4] = [".png", ".jpg", ".jpeg", ".webp"];
/// A text this long, with blanks in it, is a prompt under any name, in characters on average.
const PROMPT_LENGTH: usize = 30;
/// The number of values that are shown of a column, and the characters of each.
const SHOWN: usize = 3;
const SHOWN_CHARACTERS: usize = 24;
/// No video has a side shorter than this, in pixels.
const SMALLEST_SIDE: u32 = 100;
/// The name of a column that has more than its own words in it is no longer than this, in characters.
const LONGEST_NAME: usize = 24;
/// An id longer than this is a text, in characters.
const LONGEST_ID: usize = 60;

impl Column {
    /// The column of this name with these cells, one for each row.
    pub(super) fn of(name: &str, cells: &[&str], folder: &Path, catalog: &Catalog) -> Self {
        let headers = &*HEADERS;
        let plain: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let said: Vec<&str> = cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect();
        let all = |is: &dyn Fn(&str) -> bool| !said.is_empty() && said.iter().all(|cell| is(cell));
        // One cell that is wrong is for the plan to tell: passed over with its column, it would be made as usual.
        let any = |is: &dyn Fn(&str) -> bool| said.iter().any(|cell| is(cell));
        let is_named = |list: &[String]| list.contains(&plain);
        let words: Vec<String> = name.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
        let has_word = |list: &[String]| list.iter().any(|known| words.contains(known));
        let is_url = |cell: &str| cell.starts_with("https://") || cell.starts_with("http://");
        let lengths: Vec<i64> = said.iter().filter_map(|cell| whole_in(cell)).collect();
        let is_possible = |cell: &str| whole_in(cell).is_some_and(|length| is_possible_length(length, catalog));
        let is_length = has_word(&headers.durations)
            || has_word(&headers.lengths)
                && (has_word(&headers.of_videos) || is_named(&headers.lengths) && all(&is_possible));
        // Under a field's own name, whatever stands there is meant for it: the plan tells what is wrong with it, row by row.
        let own = Field::named(&name.trim().to_lowercase()).filter(|_| !said.is_empty());
        // Things have sizes, too.
        let own = own.filter(|field| *field != Field::Size || any(&|cell| SizeRule::parse(cell).is_some()));
        let meaning = if let Some(field) = own.filter(|field| !matches!(field, Field::Prompt | Field::Image)) {
            Meaning::Field(field)
        } else if is_named(&headers.takes) && !said.is_empty() {
            Meaning::Takes
        } else if all(&|cell| catalog.model(cell).is_some())
            || has_word(&headers.models) && any(&|cell| is_like_a_model(cell, catalog))
        {
            Meaning::Field(Field::Model)
        } else if all(&|cell| is_ratio(cell) && is_known_ratio(cell, catalog))
            || has_word(&headers.shapes) && any(&|cell| is_ratio(cell) || is_known_ratio(cell, catalog))
        {
            Meaning::Field(Field::AspectRatio)
        } else if all(&is_size) {
            Meaning::Field(Field::Size)
        } else if is_length && any(&|cell| whole_in(cell).is_some()) {
            Meaning::Field(Field::Duration)
        } else if all(&is_url) && headers.images.iter().any(|image| plain.contains(image)) {
            Meaning::Field(Field::Image)
        } else if all(&|cell| PICTURES.iter().any(|ending| cell.to_lowercase().ends_with(ending)) && !is_url(cell)) {
            Meaning::ImageFile { is_here: all(&|cell| folder.join(cell).is_file()) }
        } else if is_named(&headers.tags) {
            Meaning::Tags
        } else if is_named(&headers.labels) {
            Meaning::Label
        } else {
            Meaning::Words
        };
        let place = |list: &[String]| list.iter().position(|known| *known == plain);
        let place_in_ids = headers.ids().into_iter().enumerate().find_map(|(list, words)| Some((list, place(words)?)));
        let characters: usize = said.iter().map(|cell| cell.chars().count()).sum();
        let is_wordy = characters >= PROMPT_LENGTH * said.len() && all(&|cell| cell.contains(' '));
        // A number of a shot is no description of it.
        let is_text = said.iter().any(|cell| cell.contains(' '));
        let as_prompt = headers.prompts.iter().position(|known| words.contains(known));
        let as_prompt =
            as_prompt.filter(|_| is_text || is_named(&headers.sure_prompts)).or(is_wordy.then_some(usize::MAX));
        // A price or a day tells rows apart, too, until it changes.
        let is_name = all(&|cell| cell.chars().filter(|c| c.is_alphabetic()).count() > 1);
        let is_count = cells.iter().zip(1..).all(|(cell, number)| whole_in(cell) == Some(number));
        let as_id = match place_in_ids {
            Some((list, place)) if is_count => Some((LISTS + list, place)),
            place => place.or((is_name && !is_count).then_some(ANY_NAME)),
        };
        let why = why(
            &said,
            &[
                (is_length, "is not a whole number of seconds", &|cell| whole_in(cell).is_some()),
                (is_named(&headers.lengths), "is not the length of a video", &is_possible),
                (has_word(&headers.lengths), "may be in another unit", &|_| false),
                (has_word(&headers.shapes), "is not the shape of a video", &|cell| is_known_ratio(cell, catalog)),
                (plain == Field::Size.name(), "is not a size in pixels", &|_| false),
                (has_word(&headers.models), "is not a model", &|cell| is_like_a_model(cell, catalog)),
                (
                    headers.images.iter().any(|image| plain.contains(image)),
                    "is neither a URL nor an image file",
                    &|_| false,
                ),
            ],
        );
        Self {
            name: name.to_owned(),
            meaning,
            twice: twice(cells).filter(|_| place_in_ids.is_some_and(|(list, _)| list < NAMES)),
            is_count,
            why,
            values: said.iter().take(SHOWN).map(|cell| shortened(cell)).collect(),
            left_out: if is_named(&headers.tags) { left_out(&said) } else { Vec::new() },
            as_id: as_id.filter(|_| tells_apart(cells)),
            as_prompt: as_prompt.filter(|_| !said.is_empty()),
            is_slugged: cells.iter().any(|cell| JobId::new(*cell).is_err()),
            is_wording: any(&|cell| cell.chars().filter(|c| c.is_alphabetic()).count() > 1)
                && !any(&is_url)
                && !has_word(&headers.aside)
                && !is_length,
            lengths,
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

    /// Returns whether it counts the rows, and would count them anew with another row among them.
    pub(super) fn is_counted_anew(&self) -> bool {
        self.is_count && self.as_id.is_some_and(|(list, _)| list > LISTS)
    }

    /// The reason why nothing is made of it.
    pub(super) fn why_not(&self) -> String {
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

/// The columns once it is decided which of them is the prompt and which is the id, and each field is said once.
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
    columns
}

/// The model for rows that name none: the given one, else the one that takes most of what the sheet asks for, and of those the
/// cheapest for its usual length.
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
            // A length that no video can have is for the plan to tell, row by row.
            let is_possible = |length: &i64| family.fields.duration.broken_by(*length).is_none();
            column.lengths.iter().any(is_possible) || column.lengths.is_empty() && !family.passes_over(Field::Duration)
        }
        Meaning::Field(field) => family.takes(field),
        _ => true,
    }
}

/// The cheapest model whose family takes what a column asks for.
pub(super) fn taker<'c>(column: &Column, catalog: &'c Catalog) -> Option<&'c str> {
    let takes = |name: &&str| catalog.model(name).is_some_and(|model| is_taken(column, model.family));
    catalog.suggested_names().filter(takes).min_by_key(|name| usual_price(name, catalog))
}

/// The price of a video of the default length.
fn usual_price(name: &str, catalog: &Catalog) -> Option<Usd> {
    let model = catalog.model(name)?;
    Some(model.price(u32::try_from(model.family.fields.duration.default).ok()?))
}

/// Returns whether a column names the model of each row.
pub(super) fn names_models(columns: &[Column]) -> bool {
    columns.iter().any(|column| column.is(Field::Model))
}

/// Returns whether some model makes videos of this length, in seconds.
fn is_possible_length(length: i64, catalog: &Catalog) -> bool {
    let families = catalog.model_names().filter_map(|name| Some(catalog.model(name)?.family));
    families.into_iter().any(|family| family.fields.duration.broken_by(length).is_none())
}

/// A test of a cell, for headers that promise more than the cells keep: whether the header does, and what the first cell that fails is.
type Promise<'p> = (bool, &'p str, &'p dyn Fn(&str) -> bool);

/// The reason why nothing is made of a column of words.
fn why(said: &[&str], promises: &[Promise<'_>]) -> String {
    let broken = promises
        .iter()
        .filter(|(is_promised, ..)| *is_promised)
        .find_map(|(_, what, keeps)| Some(format!("`{}` {what}", shortened(said.iter().find(|cell| !keeps(cell))?))));
    broken.unwrap_or_else(|| if said.is_empty() { "it is empty" } else { "not a field of a job" }.to_owned())
}

/// The beginning of a cell, on one line.
fn shortened(cell: &str) -> String {
    let line = one_line(cell);
    let is_short = line.chars().count() <= SHOWN_CHARACTERS;
    if is_short { line } else { format!("{}…", line.chars().take(SHOWN_CHARACTERS - 1).collect::<String>()) }
}

/// The cells that say that their rows are not to be made, each once.
fn left_out(said: &[&str]) -> Vec<String> {
    let states: BTreeSet<String> = said.iter().map(|cell| cell.to_lowercase()).collect();
    states.into_iter().filter(|state| HEADERS.left_out.contains(state)).collect()
}

/// Returns whether it is the name of a model, in any letter case.
fn is_like_a_model(cell: &str, catalog: &Catalog) -> bool {
    catalog.model_names().any(|name| name.eq_ignore_ascii_case(cell))
}

fn is_ratio(cell: &str) -> bool {
    let sides = cell.split_once(':');
    sides.is_some_and(|(wide, high)| whole_in(wide).is_some() && whole_in(high).is_some())
}

/// The number of cells of a line that are names of columns.
pub(super) fn names_in(line: &[String]) -> usize {
    let known: HashSet<&str> = HEADERS.all().chain(Field::ALL.map(Field::name)).collect();
    let is_name = |cell: &&String| {
        let plain = cell.to_lowercase();
        let mut words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        known.contains(plain.trim()) || cell.chars().count() <= LONGEST_NAME && words.any(|word| known.contains(word))
    };
    line.iter().filter(is_name).count()
}

/// Returns whether a line names a column of prompts.
pub(super) fn names_prompt(line: &[String]) -> bool {
    line.iter().any(|cell| HEADERS.prompts.contains(&cell.trim().to_lowercase()))
}

/// Returns whether a line has a sentence, and fewer names than other cells.
pub(super) fn is_sentence(line: &[String]) -> bool {
    let has_sentence = line.iter().any(|cell| cell.chars().count() >= PROMPT_LENGTH && cell.contains(' '));
    has_sentence && 2 * names_in(line) < line.len()
}

/// Returns whether a line has cells that no header has: a shape, a model, a URL, or a sentence.
pub(super) fn is_data(line: &[String], catalog: &Catalog) -> bool {
    let is_value = |cell: &String| {
        cell.contains("://") || is_ratio(cell) && is_known_ratio(cell, catalog) || is_like_a_model(cell, catalog)
    };
    is_sentence(line) || line.iter().any(is_value)
}

/// Returns whether some model has this shape: without a telling name, a ratio could be a time of day.
fn is_known_ratio(cell: &str, catalog: &Catalog) -> bool {
    let families = catalog.model_names().filter_map(|name| Some(catalog.model(name)?.family));
    families.filter_map(|family| family.fields.aspect_ratio.as_ref()).any(|choice| choice.meant_by(cell).is_some())
}

/// Returns whether it is a size in pixels, and not that of a pack.
fn is_size(cell: &str) -> bool {
    SizeRule::parse(cell).is_some_and(|(wide, high)| wide.min(high) >= SMALLEST_SIDE)
}

/// The first cell that stands in an earlier row already.
fn twice(cells: &[&str]) -> Option<String> {
    let mut seen = HashSet::new();
    cells.iter().map(|cell| cell.trim()).find(|cell| !cell.is_empty() && !seen.insert(*cell)).map(str::to_owned)
}

/// Returns whether every row has a value of its own, as an ID.
fn tells_apart(cells: &[&str]) -> bool {
    let mut seen = HashSet::new();
    cells.iter().all(|cell| {
        let id = slug(cell);
        cell.chars().count() <= LONGEST_ID && !id.is_empty() && seen.insert(id)
    })
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
        let prompt = Column::of("Prompt", &["A dog runs", "A cat sleeps"], Path::new(""), catalog);
        model(&[prompt], None, catalog).to_owned()
    }
}
