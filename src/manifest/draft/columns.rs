//! Meanings of a sheet's columns: from their cells, and where those are ambiguous, from their names.

use std::collections::HashSet;
use std::path::Path;

use super::headers::HEADERS;
use super::written::{Meaning, PROMPT_LENGTH, Written, is_known_ratio, is_like_a_model, is_ratio, shortened};
use crate::catalog::{Catalog, Family};
use crate::domain::text::one_line;
use crate::domain::{Field, JobId, Usd};
use crate::manifest::raw::table::whole_in;
use crate::manifest::template::engine::slug;

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
/// The number of values that are shown of a column.
const SHOWN: usize = 3;
/// The name of a column that has more than its own words in it is no longer than this, in characters.
const MAX_NAME: usize = 24;
/// An id longer than this is a text, in characters.
const MAX_ID: usize = 60;

impl Column {
    /// The column of this name with these cells, one for each row.
    pub(super) fn of(name: &str, cells: &[&str], directory: &Path, catalog: &Catalog) -> Self {
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
            as_id: as_id.filter(|_| tells_apart(cells)),
            as_prompt: written.as_prompt(),
            is_slugged: cells.iter().any(|cell| JobId::new(*cell).is_err()),
            is_wording: written.is_wording(),
            lengths: written.said.iter().filter_map(|cell| whole_in(cell)).collect(),
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
    Some(model.price(u32::try_from(model.family.fields.duration.default).ok()?, None))
}

/// Returns whether a column names the model of each row.
pub(super) fn names_models(columns: &[Column]) -> bool {
    columns.iter().any(|column| column.is(Field::Model))
}

/// The number of cells of a line that are names of columns.
pub(super) fn names_in(line: &[String]) -> usize {
    let known: HashSet<&str> = HEADERS.all().chain(Field::ALL.map(Field::name)).collect();
    let is_name = |cell: &&String| {
        let plain = cell.to_lowercase();
        let mut words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        known.contains(plain.trim()) || cell.chars().count() <= MAX_NAME && words.any(|word| known.contains(word))
    };
    line.iter().filter(is_name).count()
}

/// Returns whether a line names a column of prompts.
pub(super) fn names_prompt(line: &[String]) -> bool {
    line.iter().any(|cell| HEADERS.prompts.contains(&cell.trim().to_lowercase()))
}

/// Returns whether a line has a sentence, and fewer names than other cells.
pub(super) fn is_sentence(line: &[String]) -> bool {
    line.iter().any(|cell| is_long(cell)) && 2 * names_in(line) < line.len()
}

/// Returns whether a line has cells that no header has: a shape, a model, a URL, or a sentence with others in the lines below.
pub(super) fn is_data<'l>(
    line: &[String],
    below: &(impl Iterator<Item = &'l Vec<String>> + Clone),
    catalog: &Catalog,
) -> bool {
    let is_value = |cell: &String| {
        cell.contains("://") || is_ratio(cell) && is_known_ratio(cell, catalog) || is_like_a_model(cell, catalog)
    };
    let are_sentences = |(at, cell): (usize, &String)| {
        let below = below.clone().filter_map(|line| line.get(at)).filter(|cell| !cell.is_empty());
        let (all, sentences) = (below.clone().count(), below.filter(|cell| is_long(cell)).count());
        is_long(cell) && 2 * sentences >= all
    };
    is_sentence(line) && line.iter().enumerate().any(are_sentences) || line.iter().any(is_value)
}

fn is_long(cell: &str) -> bool {
    cell.chars().count() >= PROMPT_LENGTH && cell.contains(' ')
}

/// The first cell that is in an earlier row already.
fn twice(cells: &[&str]) -> Option<String> {
    let mut seen = HashSet::new();
    cells.iter().map(|cell| cell.trim()).find(|cell| !cell.is_empty() && !seen.insert(*cell)).map(str::to_owned)
}

/// Returns whether every row has a value of its own, as an ID.
fn tells_apart(cells: &[&str]) -> bool {
    let mut seen = HashSet::new();
    cells.iter().all(|cell| {
        let id = slug(cell);
        cell.chars().count() <= MAX_ID && !id.is_empty() && seen.insert(id)
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
