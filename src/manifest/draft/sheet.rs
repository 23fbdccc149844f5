//! From a spreadsheet, or a directory of images, to a draft: finds the sheet and its header, and reads its rows.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::Path;

use super::columns::{self, Column};
use super::text::{head, quoted, shown, stem_of, text};
use super::written::{HEADERS, PROMPT_LENGTH, is_like_a_model, is_ratio};
use crate::catalog::Catalog;
use crate::domain::text::one_line;
use crate::domain::{Field, count};
use crate::files::table::name_of;
use crate::manifest::raw::decode::RawTable;
use crate::manifest::raw::table::JobField as F;
use crate::manifest::source::diagnostic::{Diagnostic, Pointer, Severity};
use crate::manifest::source::text::FileAccess;
use crate::manifest::tables::rows;

/// The name of a column that has more than its own words in it is no longer than this, in characters.
const MAX_NAME: usize = 24;
/// The number of lines to search for a header.
const HIGHEST_HEADER: usize = 10;

/// A manifest for a sheet.
#[derive(Debug)]
pub struct Draft {
    /// Its text.
    pub text: String,
    /// The unused columns, as text.
    pub unused: Vec<String>,
    /// The sheet and the header that were found, if there was a choice.
    pub read: Option<String>,
}

/// The reason why a sheet can't become a manifest.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct DraftError {
    message: String,
    /// The help.
    pub help: Option<String>,
}

impl DraftError {
    fn new(message: String, help: &str) -> Self {
        Self { message, help: Some(help.to_owned()) }
    }

    fn no_model(name: &str, catalog: &Catalog) -> Self {
        let names: Vec<&str> = catalog.model_names().collect();
        Self::new(format!("`{name}` is no model for these rows"), &format!("the models are: {}", names.join(", ")))
    }
}

/// A manifest in this directory that makes a job of each row of a file, which is there or below, or of one of its sheets.
pub fn draft(directory: &Path, file: &str, sheet: Option<&str>, model: Option<&str>) -> Result<Draft, DraftError> {
    let catalog = Catalog::embedded();
    if let Some(unknown) = model.filter(|model| catalog.model(model).is_none()) {
        return Err(DraftError::no_model(unknown, catalog));
    }
    let mut found = Vec::new();
    let access = FileAccess::new(directory, None, None);
    let Place { table, words, others, is_without_header } = find(file, sheet, &access, catalog);
    let rows = rows::read(&table, &access, &Pointer::top(), &mut found);
    if let Some(Diagnostic { message, help, row, .. }) =
        found.into_iter().find(|diagnostic| diagnostic.severity == Severity::Error)
    {
        let place = row.map(|row| format!("{}, line {}: ", row.file, row.line)).unwrap_or_default();
        return Err(DraftError { message: place + &message, help });
    }
    if is_without_header {
        let message = format!("the first row of `{file}` looks like data, not like the names of columns");
        return Err(DraftError::new(
            message,
            "put a row above it with a name for each column, such as `id` and `prompt`",
        ));
    }
    let help = "the first row names the columns, and each row below it is a video";
    let first = rows.first().ok_or_else(|| DraftError::new(format!("{file} has no rows"), help))?;
    let names = first.cells.columns().names().iter().filter(|name| !name.is_empty());
    let is_of_shop = names.clone().any(|name| HEADERS.shops.contains(&name.trim().to_lowercase()));
    let columns: Vec<Column> = names
        .map(|name| {
            let cells: Vec<&str> = rows.iter().filter_map(|row| row.cells.get(name)).collect();
            Column::new(name, &cells, is_of_shop, catalog)
        })
        .collect();
    let columns = columns::settled(columns);
    let encoded = table.encoding.map(|it| format!("read as `{}`, which may be wrong: {words}", name_of(it)));
    let read: Vec<String> = encoded.into_iter().chain(choice(&table, &others)).collect();
    let read = (!read.is_empty()).then(|| read.join("; "));
    let (text, unused) = text(&table, &rows, read.as_deref(), &columns, model, catalog);
    Ok(Draft { text, unused, read })
}

/// A manifest in this directory that makes a job of each image of another one.
pub fn draft_of_images(directory: &Path, images: &str, model: Option<&str>) -> Result<Draft, DraftError> {
    let (catalog, pattern) = (Catalog::embedded(), format!("{images}/*"));
    let mut found = Vec::new();
    let access = FileAccess::new(directory, None, None);
    let rows = rows::read(&RawTable::for_file(pattern.clone()), &access, &Pointer::top(), &mut found);
    if let Some(Diagnostic { message, help, .. }) = found.into_iter().next() {
        return Err(DraftError { message, help });
    }
    let takes_images = |name: &&str| catalog.model(name).is_some_and(|model| model.family.takes(Field::Image));
    if let Some(model) = model.filter(|model| !takes_images(model)) {
        return Err(DraftError::no_model(model, catalog));
    }
    let model = model.or_else(|| catalog.model_names().find(takes_images)).unwrap_or_default();
    let texts = rows.iter().filter(|row| row.cells.get("text").is_some_and(|text| !text.is_empty())).count();
    let text = format!(
        "{}jobs:
  - id: \"{{{{ row.stem | slug }}}}\"
    # What was paid is known by the id: an image with another name is bought again.
    for_each: {}
    image_file: \"{{{{ row.file }}}}\"{}
    # The prompt of `a.png` is the text of `a.txt` beside it: {texts} of {} have one.
    prompt: \"{{{{ row.text }}}}\"\n",
        head(images, &stem_of(images), &format!("image, {} now", rows.len()), "it takes images", model, catalog),
        quoted(&pattern),
        shown(F::ImageFile),
        count(rows.len(), "image"),
    );
    Ok(Draft { text, unused: Vec::new(), read: None })
}

/// The table in a file.
struct Place {
    table: RawTable,
    /// Words that show whether its encoding is right.
    words: String,
    /// The other visible sheets.
    others: Vec<String>,
    /// True if its first line is data, and no line names columns.
    is_without_header: bool,
}

/// Finds the sheet with a prompt and the most known columns in its header. The first one of equals, or the first visible sheet if no header has any.
fn find(file: &str, wanted: Option<&str>, access: &FileAccess, catalog: &Catalog) -> Place {
    let (encoding, words) = rows::unnamed_encoding(file, access).unzip();
    let mut sheets = rows::beginnings(file, encoding, access, HIGHEST_HEADER);
    let is_prompt = |cell: &String| HEADERS.prompts.contains(&cell.trim().to_lowercase());
    let rank = |lines: &[Line]| header(lines).map(|(_, cells)| (cells.iter().any(is_prompt), names_in(cells)));
    let is_wanted = |name: &Option<String>| wanted.is_none_or(|wanted| name.as_deref() == Some(wanted));
    let fitting = sheets.iter().enumerate().filter(|(_, (name, _))| is_wanted(name));
    let found = fitting.max_by_key(|(at, (_, lines))| (rank(lines), Reverse(*at))).map(|(at, _)| at);
    let (name, lines) = found.map(|at| sheets.remove(at)).unwrap_or_default();
    let others: Vec<String> = sheets.into_iter().filter_map(|(name, _)| name).collect();
    let sheet = wanted.map(str::to_owned).or(name.filter(|_| !others.is_empty()));
    let first = lines.first().map(|(line, _)| *line);
    let header = header(&lines);
    let header_row = header.map(|(line, _)| *line).filter(|line| Some(*line) != first).unwrap_or(1);
    let is_without_header = header.is_some_and(|(number, cells)| {
        let below = lines.iter().filter(|(line, _)| line > number).map(|(_, cells)| cells);
        is_data(cells, &below, catalog)
    });
    let table = RawTable { sheet, header_row, encoding, ..RawTable::for_file(file.to_owned()) };
    Place { table, words: words.unwrap_or_default(), others, is_without_header }
}

/// A line of a sheet: its number, from 1, and its cells.
type Line = (u64, Vec<String>);

/// The line that is the header, if there is one: of those that have cells under most columns the first that names one, or the first.
fn header(lines: &[Line]) -> Option<&Line> {
    let filled = |cells: &[String]| cells.iter().filter(|cell| !cell.is_empty()).count();
    let widest = lines.iter().map(|(_, cells)| filled(cells)).max()?;
    let mut full = lines.iter().filter(|(_, cells)| 2 * filled(cells) > widest);
    full.clone()
        .take_while(|(_, cells)| !is_sentence(cells))
        .find(|(_, cells)| names_in(cells) > 0)
        .or_else(|| full.next())
}

/// A sentence on the sheet and the header, where there was a choice.
fn choice(table: &RawTable, others: &[String]) -> Option<String> {
    let others: Vec<String> = others.iter().map(|name| format!("`{}`", one_line(name))).collect();
    let sheet = table.sheet.as_ref().filter(|_| !others.is_empty());
    let sheet =
        sheet.map(|it| format!("read the sheet `{}`; others, for `--sheet`: {}", one_line(it), others.join(", ")));
    let header = (table.header_row > 1).then(|| format!("the names of the columns are in row {}", table.header_row));
    let parts: Vec<String> = sheet.into_iter().chain(header).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The number of cells of a line that are names of columns.
fn names_in(line: &[String]) -> usize {
    let known: HashSet<&str> = HEADERS.all().chain(Field::ALL.map(Field::name)).collect();
    let is_name = |cell: &&String| {
        let plain = cell.to_lowercase();
        let mut words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        known.contains(plain.trim()) || cell.chars().count() <= MAX_NAME && words.any(|word| known.contains(word))
    };
    line.iter().filter(is_name).count()
}

/// Returns whether a line has a sentence, and fewer names than other cells.
fn is_sentence(line: &[String]) -> bool {
    line.iter().any(|cell| is_long(cell)) && 2 * names_in(line) < line.len()
}

/// Returns whether a line has cells that no header has: a shape, a model, a URL, or a sentence with others in the lines below.
fn is_data<'l>(line: &[String], below: &(impl Iterator<Item = &'l Vec<String>> + Clone), catalog: &Catalog) -> bool {
    let is_value = |cell: &String| cell.contains("://") || is_ratio(cell) || is_like_a_model(cell, catalog);
    let are_sentences = |(at, cell): (usize, &String)| {
        let below = below.clone().filter_map(|line| line.get(at)).filter(|cell| !cell.is_empty());
        let (all, sentences) = (below.clone().count(), below.filter(|cell| is_long(cell)).count());
        is_long(cell) && 2 * sentences >= all
    };
    let is_prompt = |cell: &String| HEADERS.sure_prompts.contains(&cell.trim().to_lowercase());
    let has_value = line.iter().any(is_value) && !line.iter().any(is_prompt);
    is_sentence(line) && line.iter().enumerate().any(are_sentences) || has_value
}

fn is_long(cell: &str) -> bool {
    cell.chars().count() >= PROMPT_LENGTH && cell.contains(' ')
}
