//! A column as it is written, and what its name and its cells say about its meaning.

use std::collections::BTreeSet;
use std::path::Path;

use super::headers::{HEADERS, Headers};
use crate::catalog::{Catalog, SizeRule};
use crate::domain::Field;
use crate::domain::text::one_line;
use crate::manifest::raw::table::whole_in;

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// It tells the rows apart. Whether its cells have to be made into ids first.
    Id { is_slugged: bool },
    /// The prompt.
    Prompt,
    /// A field of the request.
    Field(Field),
    /// An image on this machine, and whether each of them is where the manifest will look.
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

/// A text this long, with blanks in it, is a prompt under any name, in characters on average.
pub(super) const PROMPT_LENGTH: usize = 30;
/// The most characters of a cell that are shown.
const SHOWN_CHARACTERS: usize = 24;
/// The ends of the names of image files.
const PICTURES: [&str; 4] = [".png", ".jpg", ".jpeg", ".webp"];
/// No video has a side shorter than this, in pixels.
const MIN_SIDE: u32 = 100;

/// A test of a cell.
type Test<'t> = &'t dyn Fn(&str) -> bool;

/// A column: its name in parts, and the cells that hold something.
pub(super) struct Written<'c> {
    /// The name in lower case, without blanks and signs, and its words.
    plain: String,
    words: Vec<String>,
    /// The field with this name, if there is one.
    own: Option<Field>,
    /// The cells that hold something.
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
        let ends_as_image = |cell: &str| PICTURES.iter().any(|ending| cell.to_lowercase().ends_with(ending));
        let has_shape = |cell: &str| is_ratio(cell) || is_known_ratio(cell, catalog);
        if let Some(field) = self.own_field() {
            Meaning::Field(field)
        } else if self.is_named(&headers.takes) && !self.said.is_empty() {
            Meaning::Takes
        } else if self.all(&|cell| catalog.model(cell).is_some())
            || self.has_word(&headers.models) && self.any(&|cell| is_like_a_model(cell, catalog))
        {
            Meaning::Field(Field::Model)
        } else if self.all(&|cell| is_ratio(cell) && is_known_ratio(cell, catalog))
            || self.has_word(&headers.shapes) && self.any(&has_shape)
        {
            Meaning::Field(Field::AspectRatio)
        } else if self.all(&is_size) {
            Meaning::Field(Field::Size)
        } else if self.is_length() && self.any(&is_whole) {
            Meaning::Field(Field::Duration)
        } else if self.all(&is_url) && self.is_named_as_image() {
            Meaning::Field(Field::Image)
        } else if self.all(&|cell| ends_as_image(cell) && !is_url(cell)) {
            Meaning::ImageFile { is_here: self.all(&|cell| directory.join(cell).is_file()) }
        } else if self.is_named(&headers.tags) {
            Meaning::Tags
        } else if self.is_named(&headers.labels) {
            Meaning::Label
        } else {
            Meaning::Words
        }
    }

    /// The field whose own name it has: whatever is there is meant for it, and the plan tells what is wrong with it, row by row.
    fn own_field(&self) -> Option<Field> {
        let is_meant = |field: &Field| match field {
            Field::Prompt | Field::Image => false,
            // Things have sizes, too.
            Field::Size => self.any(&|cell| SizeRule::parse(cell).is_some()),
            _ => !self.said.is_empty(),
        };
        self.own.filter(is_meant)
    }

    /// The reason why nothing is made of its words: the first cell that does not keep what the header promises.
    pub(super) fn why_not(&self) -> String {
        let Self { catalog, headers, .. } = self;
        let nothing = &|_: &str| false;
        let promises: [(bool, &str, Test<'_>); 7] = [
            (self.is_length(), "is not a whole number of seconds", &is_whole),
            (self.is_named(&headers.lengths), "is not the length of a video", &|cell| self.is_possible_length(cell)),
            (self.has_word(&headers.lengths), "may be in another unit", nothing),
            (self.has_word(&headers.shapes), "is not the shape of a video", &|cell| is_known_ratio(cell, catalog)),
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

    /// Returns whether each cell has letters: a price or a day tells rows apart, too, until it changes.
    pub(super) fn is_name(&self) -> bool {
        self.all(&has_letters)
    }

    /// Returns whether it has text for a prompt, and not only numbers, days, or notes.
    pub(super) fn is_wording(&self) -> bool {
        self.any(&has_letters) && !self.any(&is_url) && !self.has_word(&self.headers.aside) && !self.is_length()
    }

    /// The cells that say that their rows are not to be made, each once.
    pub(super) fn left_out(&self) -> Vec<String> {
        if !self.is_named(&self.headers.tags) {
            return Vec::new();
        }
        let states: BTreeSet<String> = self.said.iter().map(|cell| cell.to_lowercase()).collect();
        states.into_iter().filter(|state| self.headers.left_out.contains(state)).collect()
    }

    fn all(&self, is: Test<'_>) -> bool {
        !self.said.is_empty() && self.said.iter().all(|cell| is(cell))
    }

    /// One cell that is wrong is for the plan to tell: passed over with its column, it would be made as usual.
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
        whole_in(cell).is_some_and(|length| durations.into_iter().any(|rule| rule.broken_by(length).is_none()))
    }
}

fn is_whole(cell: &str) -> bool {
    whole_in(cell).is_some()
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

/// Returns whether it is two whole numbers with a colon between them.
pub(super) fn is_ratio(cell: &str) -> bool {
    let sides = cell.split_once(':');
    sides.is_some_and(|(wide, high)| whole_in(wide).is_some() && whole_in(high).is_some())
}

/// Returns whether some model has this shape: without a telling name, a ratio could be a time of day.
pub(super) fn is_known_ratio(cell: &str, catalog: &Catalog) -> bool {
    let families = catalog.model_names().filter_map(|name| Some(catalog.model(name)?.family));
    families.filter_map(|family| family.fields.aspect_ratio.as_ref()).any(|choice| choice.meant_by(cell).is_some())
}

/// Returns whether it is a size in pixels, and not that of a pack.
fn is_size(cell: &str) -> bool {
    SizeRule::parse(cell).is_some_and(|(wide, high)| wide.min(high) >= MIN_SIDE)
}

/// The beginning of a cell, on one line.
pub(super) fn shortened(cell: &str) -> String {
    let line = one_line(cell);
    let is_short = line.chars().count() <= SHOWN_CHARACTERS;
    if is_short { line } else { format!("{}…", line.chars().take(SHOWN_CHARACTERS - 1).collect::<String>()) }
}
