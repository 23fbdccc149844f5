//! Compares the columns of a sheet: chooses those of the ID and the prompt, and the model that takes the most of them.

use std::collections::HashSet;

use super::written::{Meaning, Written, promise, shortened};
use crate::catalog::{Catalog, Family};
use crate::domain::text::one_line;
use crate::domain::{Field, JobId, Usd, count};
use crate::manifest::raw::table::{JobField, JobField as F, seconds_in, whole_in};
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
    /// True if the ID has its cells.
    pub is_in_id: bool,
    /// The reason why a column with an ID's name identifies no rows.
    pub why_no_id: Option<String>,
    /// The rank as an ID, without regard to its cells: less is better.
    as_id: Option<(usize, usize)>,
    /// The forms of its cells in an ID, if all of them may be in one.
    keys: Option<Vec<String>>,
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
    /// The number of blank cells.
    blanks: usize,
    /// The field that its name promises, though no cell has a value for it.
    pub promised: Option<JobField>,
    /// The filter that its cells need in an ID.
    pub filter: &'static str,
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
    pub(super) fn new(name: &str, cells: &[&str], is_of_shop: bool, catalog: &Catalog) -> Self {
        let written = Written::new(name, cells, is_of_shop, catalog);
        let place_in_ids = written.place_in_ids();
        // A count changes if a row is inserted.
        let is_count = cells.iter().zip(1..).all(|(cell, number)| whole_in(cell) == Some(number));
        let as_id = match place_in_ids {
            Some((list, place)) if is_count => Some((LISTS + list, place)),
            place => place.or((written.are_codes() && !is_count).then_some(ANY_NAME)),
        };
        let (why, promised) = written.why_not();
        let meaning = written.meaning();
        let is_aside = meaning == Meaning::Words && written.is_aside();
        let has_id_name = place_in_ids.is_some_and(|(list, _)| list < NAMES);
        Self {
            name: name.to_owned(),
            meaning,
            is_in_id: false,
            why_no_id: why_no_id(cells).filter(|_| has_id_name),
            is_count,
            why,
            values: written.said.iter().take(SHOWN).map(|cell| shortened(cell)).collect(),
            left_out: written.left_out().0,
            doubtful: written.doubtful(),
            blanks: cells.len() - written.said.len(),
            promised,
            as_id,
            keys: cells.iter().map(|cell| key(cell).filter(|_| !is_aside)).collect(),
            as_prompt: written.as_prompt(),
            filter: if cells.iter().any(|cell| JobId::new(*cell).is_err()) { " | slug" } else { "" },
            is_wording: written.is_wording(),
            lengths: written.said.iter().filter_map(|cell| seconds_in(cell)).collect(),
        }
    }

    /// Returns whether its cells could be in a prompt.
    pub(super) fn has_words(&self) -> bool {
        match self.meaning {
            Meaning::Words => self.is_wording,
            Meaning::Field(F::Id) => self.is_wording && self.as_id.is_some_and(|(list, _)| list >= NAMES),
            _ => false,
        }
    }

    /// The reason why nothing is made of it.
    pub(super) fn why_not(&self) -> String {
        if let (states, rows @ 1..) = &self.doubtful {
            let (states, rows) = (alternatives(states), count(*rows, "row"));
            return format!("{states} in {rows}; a comment in the draft shows how to leave such rows out");
        }
        self.why_no_id.as_ref().unwrap_or(&self.why).clone()
    }

    /// Returns whether it may tell rows with the same ID apart.
    fn is_part(&self) -> bool {
        let can_be_cell = |key: &String| !key.contains('.');
        self.keys.as_ref().is_some_and(|keys| keys.iter().all(can_be_cell))
            && !matches!(self.meaning, Meaning::Field(F::ImageFile | F::Image | F::Prompt | F::Takes))
    }
}

/// The columns of the ID: one that identifies each row, or one with an ID's name and a second one, such as `SKU` and `Language`.
fn identifying(columns: &[Column]) -> Vec<usize> {
    let ranked = |(at, column): (usize, &Column)| {
        (column.meaning == Meaning::Words && column.keys.is_some()).then_some((column.as_id?, at))
    };
    let mut ids: Vec<_> = columns.iter().enumerate().filter_map(ranked).collect();
    ids.sort_unstable();
    let single = ids.iter().find(|(_, at)| columns[*at].keys.as_ref().is_some_and(|keys| are_distinct(keys)));
    let pair = |lists: usize| {
        let named = ids.iter().filter(|(rank, at)| rank.0 < lists && !columns[*at].is_count);
        let mut pairs = named.flat_map(|(_, id)| {
            let others = columns.iter().enumerate().filter(|(at, other)| at != id && other.is_part());
            let mut others: Vec<_> = others.map(|(at, other)| (other.as_id.is_none(), at)).collect();
            others.sort_unstable();
            others.into_iter().map(|(_, other)| vec![*id.min(&other), *id.max(&other)])
        });
        pairs.find(|pair| {
            let [a, b] = [0, 1].map(|at| columns[pair[at]].keys.iter().flatten());
            are_distinct(&a.zip(b).map(|(a, b)| format!("{a}-{b}")).collect::<Vec<_>>())
        })
    };
    let pair = match single {
        Some((rank, _)) if rank.0 < NAMES => None,
        Some((rank, _)) if rank.0 < LISTS => pair(NAMES),
        _ => pair(LISTS),
    };
    pair.or(single.map(|(_, at)| vec![*at])).unwrap_or_default()
}

/// The reason why cells are no IDs: the first one that is blank, too long, or in an earlier row already.
fn why_no_id(cells: &[&str]) -> Option<String> {
    let mut seen = HashSet::new();
    cells.iter().find_map(|cell| match key(cell) {
        _ if cell.trim().is_empty() => Some("a cell is blank".to_owned()),
        None => Some(format!("`{}` can't be an ID", shortened(cell))),
        Some(key) => (!seen.insert(key)).then(|| format!("`{}` repeats", shortened(cell))),
    })
}

/// The form of a cell in an ID, if it may be in one.
fn key(cell: &str) -> Option<String> {
    Some(slug(cell)).filter(|key| cell.chars().count() <= MAX_ID && !key.is_empty())
}

fn are_distinct(keys: &[String]) -> bool {
    keys.iter().collect::<HashSet<_>>().len() == keys.len()
}

/// The columns after the choice of the prompt and the ID, with each field in one column only.
pub(super) fn settled(mut columns: Vec<Column>) -> Vec<Column> {
    let words = columns.iter_mut().filter(|column| column.meaning == Meaning::Words && column.as_prompt.is_some());
    if let Some(prompt) = words.min_by_key(|column| column.as_prompt) {
        prompt.meaning = Meaning::Field(F::Prompt);
        if prompt.blanks > 0 && !prompt.values.is_empty() {
            prompt.doubtful = (vec![String::new()], prompt.blanks);
        }
        let why = format!("`{}` is the prompt, which this could be, too", one_line(&prompt.name));
        let is_another = |it: &&mut Column| it.meaning == Meaning::Words && it.as_prompt.is_some();
        columns.iter_mut().filter(is_another).for_each(|column| column.why.clone_from(&why));
    }
    for at in identifying(&columns) {
        columns[at].is_in_id = true;
        if columns[at].meaning == Meaning::Words {
            columns[at].meaning = Meaning::Field(F::Id);
        }
    }
    // With jobs of both families, each family has its column for the shape.
    let has_sizes = columns.iter().any(|column| column.meaning == Meaning::Field(F::Size));
    let is_ratio = |it: &&mut Column| {
        has_sizes
            && it.meaning == Meaning::Field(F::Shape)
            && it.name.trim().eq_ignore_ascii_case(Field::AspectRatio.name())
    };
    columns.iter_mut().filter(is_ratio).for_each(|column| column.meaning = Meaning::Field(F::AspectRatio));
    for at in 1..columns.len() {
        let (before, rest) = columns.split_at_mut(at);
        let same = before.iter().find(|column| column.meaning == rest[0].meaning);
        let is_one_of_many =
            |column: &&Column| matches!(column.meaning, Meaning::Label | Meaning::Words | Meaning::Field(F::Id));
        if let Some(first) = same.filter(|first| !is_one_of_many(first)) {
            rest[0].why = format!("`{}` means the same", one_line(&first.name));
            rest[0].meaning = Meaning::Words;
        }
    }
    let mut said: HashSet<JobField> = columns.iter().filter_map(|column| promise(column.meaning)).collect();
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
    let best = catalog.model_names().min_by_key(|name| (usize::MAX - taken(name), usual_price(name, catalog)));
    given.or(best).unwrap_or_default()
}

/// Returns whether a family accepts the values of a column.
pub(super) fn is_taken(column: &Column, family: &Family) -> bool {
    match column.meaning {
        Meaning::Field(F::Duration) => {
            // The plan reports impossible durations, row by row.
            let is_possible = |length: &i64| family.fields.duration.broken_by(*length).is_none();
            column.lengths.iter().any(is_possible) || column.lengths.is_empty() && !family.passes_over(Field::Duration)
        }
        Meaning::Field(field) => field.of_request().is_none_or(|field| family.takes(field)),
        Meaning::Label | Meaning::Words => true,
    }
}

/// The cheapest model that accepts the values of a column.
pub(super) fn taker<'c>(column: &Column, catalog: &'c Catalog) -> Option<&'c str> {
    let takes = |name: &&str| catalog.model(name).is_some_and(|model| is_taken(column, model.family));
    catalog.model_names().filter(takes).min_by_key(|name| usual_price(name, catalog))
}

/// The price of a video of the default length.
fn usual_price(name: &str, catalog: &Catalog) -> Option<Usd> {
    let model = catalog.model(name)?;
    Some(model.price(u32::try_from(model.family.fields.duration.default).ok()?, None))
}

/// Returns whether a column names the model of each row.
pub(super) fn names_models(columns: &[Column]) -> bool {
    columns.iter().any(|column| column.meaning == Meaning::Field(F::Model))
}

/// States of rows, for people: `no` or `false`.
pub(super) fn alternatives(states: &[String]) -> String {
    let name = |state: &String| if state.is_empty() { "blank".to_owned() } else { format!("`{}`", shortened(state)) };
    states.iter().map(name).collect::<Vec<_>>().join(" or ")
}
