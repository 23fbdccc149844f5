//! The text of a draft: YAML for people, with a comment at each guess.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use super::columns::{self, Column, Meaning, is_taken, names_models, taker};
use crate::catalog::{Catalog, Model};
use crate::domain::text::one_line;
use crate::domain::{Field, count};
use crate::files::table::name_of;
use crate::manifest::raw::decode::{RawForEach, RawTable};
use crate::manifest::source::diagnostic::{Diagnostic, Severity};
use crate::manifest::source::location::Pointer;
use crate::manifest::source::text::FileAccess;
use crate::manifest::tables::rows;
use crate::manifest::template::engine::slug;

/// The longest beginning of an id that is made of a name, in characters.
const MAX_STEM: usize = 60;

/// The table, and what was found in it.
pub(super) struct Table<'t> {
    /// The name of its file, as the manifest has it.
    pub file: &'t str,
    /// The sheet of the workbook; nothing for its only one.
    pub sheet: Option<&'t str>,
    /// The line with the names of the columns, from 1.
    pub header_row: u64,
    /// The encoding, if it is neither UTF-8 nor UTF-16.
    pub encoding: Option<&'t str>,
    /// The number of its rows.
    pub rows: usize,
    /// The number of those that are hidden in it.
    pub hidden: usize,
    /// A comment on the sheet, the header, and the encoding that were found.
    pub read: Option<&'t str>,
}

/// The model for rows that name none.
#[derive(Clone, Copy)]
pub(super) struct Chosen<'m> {
    /// Its name.
    pub name: &'m str,
    /// True if the user asked for it.
    pub is_given: bool,
}

/// The manifest that makes a job of each row.
pub(super) fn text(from: &Table<'_>, columns: &[Column], model: Chosen<'_>, catalog: &Catalog) -> String {
    let Table { file, sheet, header_row, encoding, rows, hidden, read } = *from;
    let name = Path::new(file).file_stem().map_or_else(|| file.into(), |stem| stem.to_string_lossy());
    let rates: Vec<String> =
        catalog.suggested_names().filter_map(|name| Some(format!("{name} {}", catalog.model(name)?.rate()))).collect();
    let why = match (model.is_given, names_models(columns)) {
        (_, true) => "for rows that name none",
        (true, false) => "as you chose",
        (false, false) => "it takes most of what the sheet has, for least",
    };
    let mut text = format!(
        "# yaml-language-server: $schema=shotlist.schema.json\n\
         # Made of {}: a job for each row, {rows} now. The meaning of each column is a guess, noted beside it.\n\
         version: 1\n\
         name: {}\n\n\
         # The most that one run may spend, in USD. Without it, a run asks, or refuses without a terminal.\n\
         # budget: {{ run: 10.00 }}\n\n\
         defaults:\n  \
           # {why}: {}\n  \
           model: {}\n\n\
         jobs:\n",
        one_line(file),
        quoted(&name),
        rates.join(", "),
        model.name,
    );
    text += &id(&name, columns);
    text += &read.map(|read| format!("    # {read}\n")).unwrap_or_default();
    let sheet = sheet.map(|sheet| format!(", sheet: {}", quoted(sheet))).unwrap_or_default();
    let header_row = if header_row == 1 { String::new() } else { format!(", header_row: {header_row}") };
    let encoding = encoding.map(|encoding| format!(", encoding: {encoding}")).unwrap_or_default();
    let (mut left_out, mut why) = (String::new(), Vec::new());
    if hidden > 0 {
        left_out += ", hidden: skip";
        why.push(count(hidden, "hidden row"));
    }
    let mut excluded = Vec::new();
    for column in columns.iter().filter(|column| !column.left_out.is_empty()) {
        let states = column.left_out.iter();
        excluded.extend(states.clone().map(|state| format!("{{ {}: {} }}", quoted(&column.name), quoted(state))));
        let states: Vec<String> = states.map(|state| format!("`{state}`")).collect();
        why.push(format!("rows whose `{}` is {}", one_line(&column.name), states.join(" or ")));
    }
    if !excluded.is_empty() {
        left_out += &format!(", exclude: [{}]", excluded.join(", "));
    }
    if !why.is_empty() {
        text += &format!("    # Left out: {}.\n", why.join(", and "));
    }
    text += &match sheet + &header_row + &encoding + &left_out {
        plain if plain.is_empty() => format!("    for_each: {}\n", quoted(file)),
        place => format!("    for_each: {{ file: {}{place} }}\n", quoted(file)),
    };
    text += &prompt(columns);
    let Some(model) = catalog.model(model.name) else { return text };
    for column in columns {
        text += &field(column, columns, model, catalog);
    }
    text += &labels(columns);
    text += "    # The columns, with their first values:\n";
    for column in columns {
        let values = if column.values.is_empty() { String::new() } else { format!(" ({})", column.values.join(", ")) };
        let read = read_as(column, columns, model, catalog).unwrap_or_else(|why| format!("not used: {why}"));
        text += &format!("    #   `{}`{values}: {read}\n", one_line(&column.name));
    }
    text
}

/// The meaning of a column, or the reason why nothing is made of it.
fn read_as(column: &Column, columns: &[Column], model: Model<'_>, catalog: &Catalog) -> Result<String, String> {
    if let Some(why) = not_taken(column, columns, model, catalog) {
        return Err(why);
    }
    let has_prompt = columns.iter().any(|column| column.meaning == Meaning::Prompt);
    let read = match column.meaning {
        Meaning::Id { .. } => "the ID",
        Meaning::Prompt => "the prompt",
        Meaning::Field(field) => field.name(),
        Meaning::ImageFile { .. } => "image_file",
        Meaning::Tags => "tags",
        Meaning::Label => "a label",
        Meaning::Takes => return Err("each take is paid for".to_owned()),
        Meaning::Words if has_prompt || !column.has_words() => return Err(column.why_not()),
        Meaning::Words => "words for the prompt",
    };
    Ok(read.to_owned())
}

fn id(name: &str, columns: &[Column]) -> String {
    let known = "    # What was paid is known by the id: ";
    let found = columns.iter().find_map(|column| match column.meaning {
        Meaning::Id { is_slugged } => Some((column, if is_slugged { " | slug" } else { "" })),
        _ => None,
    });
    if let Some((column, filter)) = found {
        let id = quoted(&format!("{{{{ {}{filter} }}}}", cell(&column.name)));
        let counts = if column.is_counted_anew() {
            "    # It counts the rows: if one is put in above others and they are counted anew, they are bought again.\n"
        } else if column.is_count {
            "    # It counts the rows: where one is put in above others, they keep their numbers, and it gets a new one.\n"
        } else {
            ""
        };
        return format!(
            "  - id: {id}\n{known}a row whose `{}` changes is bought again.\n{counts}",
            one_line(&column.name)
        );
    }
    let id = quoted(&format!("{}-{{{{ row_number }}}}", stem(name)));
    let twice = columns.iter().find_map(|column| Some((one_line(&column.name), one_line(column.twice.as_ref()?))));
    let twice =
        twice.map(|(name, cell)| format!("    # (`{name}` would be one, if `{cell}` did not stand there twice.)\n"));
    format!(
        "  - id: {id}\n{known}no column has a lasting name for each row, so a row that is put in\n    # above others \
         makes them all new, and they are bought again. A column of ids would keep them.\n{}",
        twice.unwrap_or_default()
    )
}

fn prompt(columns: &[Column]) -> String {
    if let Some(column) = columns.iter().find(|column| column.meaning == Meaning::Prompt) {
        return format!("    prompt: {}\n", quoted(&filled(column)));
    }
    let words: Vec<String> = columns.iter().filter(|column| column.has_words()).map(filled).collect();
    // Blank, it is an error until someone has written it: words alone would be paid for anyway.
    if words.is_empty() {
        return "    # No column seems to be a prompt: write what the video shows.\n    prompt: \"\"\n".to_owned();
    }
    let words = quoted(&words.join(", "));
    format!(
        "    # No column seems to be a prompt: write a sentence, with what belongs into it of {words}.\n    prompt: \"\"\n"
    )
}

/// The beginning of an ID that is made from the sheet's name.
fn stem(name: &str) -> String {
    let slug: String = slug(name).chars().take(MAX_STEM).collect();
    if slug.is_empty() { "row".to_owned() } else { slug }
}

/// The line of a column that is a field of its own.
fn field(column: &Column, columns: &[Column], model: Model<'_>, catalog: &Catalog) -> String {
    let key = match column.meaning {
        Meaning::Field(field) => field.name(),
        Meaning::ImageFile { .. } => "image_file",
        // In a shot list of a real camera it says how often something was filmed.
        Meaning::Takes => {
            let line = format!("takes: {}", quoted(&filled(column)));
            return format!("    # {line} # each take is paid for: without the first `#`, rows ask for so many\n");
        }
        Meaning::Tags => "tags",
        Meaning::Label | Meaning::Id { .. } | Meaning::Prompt | Meaning::Words => return String::new(),
    };
    let line = format!("{key}: {}", quoted(&filled(column)));
    match not_taken(column, columns, model, catalog) {
        Some(why) => format!("    # {line} # {why}\n"),
        None => format!("    {line}{}\n", shown(column.meaning)),
    }
}

/// The reason why the field of a column is left out of the jobs.
fn not_taken(column: &Column, columns: &[Column], model: Model<'_>, catalog: &Catalog) -> Option<String> {
    let field = match column.meaning {
        Meaning::Field(field) => field,
        Meaning::ImageFile { .. } => Field::Image,
        _ => return None,
    };
    if names_models(columns) || is_taken(column, model.family) {
        let is_missing = column.meaning == Meaning::ImageFile { is_here: false };
        return is_missing.then(|| "some of these images are not in this directory".to_owned());
    }
    let instead = match model.family.instead_of(field) {
        Some(instead) => one_line(instead),
        None if model.family.passes_over(field) => {
            format!("this model always makes {} s", model.family.fields.duration.min)
        }
        None => "this model can make none of these".to_owned(),
    };
    let taker = taker(column, catalog).map(|name| format!("; `--model {name}` takes it"));
    Some(instead + &taker.unwrap_or_default())
}

/// The comment on a field that was read from a column.
fn shown(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::ImageFile { .. } => " # needs `--asset-command`, which gives each an address",
        Meaning::Field(Field::Model) => " # decides the price",
        Meaning::Field(Field::Duration) => " # in seconds; some models are priced by it",
        Meaning::Tags => " # `--tag NAME` takes only the jobs that have it",
        Meaning::Field(Field::Image) => " # the video starts with this image",
        _ => "",
    }
}

/// The labels of each job.
fn labels(columns: &[Column]) -> String {
    let labels = columns.iter().filter(|column| column.meaning == Meaning::Label);
    let labels: BTreeMap<String, String> = labels.map(|column| (slug(&column.name), quoted(&filled(column)))).collect();
    if labels.is_empty() {
        return String::new();
    }
    let labels: Vec<String> = labels.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("    labels: {{ {} }}\n", labels.join(", "))
}

fn filled(column: &Column) -> String {
    format!("{{{{ {} }}}}", cell(&column.name))
}

/// The columns that nothing is made of, for people, with the reasons.
pub(super) fn unused(columns: &[Column], model: &str, catalog: &Catalog) -> Vec<String> {
    let Some(model) = catalog.model(model) else { return Vec::new() };
    let reason = |column: &Column| {
        let why = read_as(column, columns, model, catalog).err()?;
        Some(format!("`{}` ({why})", one_line(&column.name)))
    };
    columns.iter().filter_map(reason).collect()
}

/// The name of a cell in a template.
fn cell(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let has_signs = name.contains(|c: char| matches!(c, '\'' | '"' | '\\') || c.is_control());
    match (is_plain, has_signs) {
        (true, _) => format!("row.{name}"),
        (false, false) => format!("row['{name}']"),
        // The escapes of JSON are those of templates, too.
        (false, true) => format!("row[{}]", quoted(name)),
    }
}

/// A text as YAML has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The number of lines in which a header is looked for.
const HIGHEST_HEADER: usize = 10;

/// A manifest for a sheet.
#[derive(Debug)]
pub struct Draft {
    /// Its text.
    pub text: String,
    /// The columns that nothing is made of, for people.
    pub unused: Vec<String>,
    /// The sheet and the header that were found, if there was a choice.
    pub read: Option<String>,
}

/// The reason why a sheet can't become a manifest.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The sheet can't be read, or has an error.
    #[error("{0}")]
    Unreadable(String, Option<String>),
    /// There is nothing in it.
    #[error("{0} has no rows")]
    Empty(String),
    /// The first row is one of the videos.
    #[error("the first row of `{0}` looks like data, not like the names of columns")]
    NoHeader(String),
    /// The catalog has no such model.
    #[error("found no model `{0}`")]
    NoModel(String),
}

impl DraftError {
    /// The help.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unreadable(_, help) => help.clone(),
            Self::NoHeader(_) => {
                Some("put a row above it with a name for each column, such as `id` and `prompt`".to_owned())
            }
            Self::Empty(_) => Some("the first row names the columns, and each row below it is a video".to_owned()),
            Self::NoModel(_) => {
                let names: Vec<&str> = Catalog::embedded().model_names().collect();
                Some(format!("the models are: {}", names.join(", ")))
            }
        }
    }
}

/// A manifest in this directory that makes a job of each row of a file, which is there or below, or of one of its sheets.
pub fn draft(directory: &Path, file: &str, sheet: Option<&str>, model: Option<&str>) -> Result<Draft, DraftError> {
    let catalog = Catalog::embedded();
    if let Some(unknown) = model.filter(|model| catalog.model(model).is_none()) {
        return Err(DraftError::NoModel(unknown.to_owned()));
    }
    let mut found = Vec::new();
    let access = FileAccess::new(directory, None, None);
    let Place { table, words, others, is_without_header } = find(file, sheet, &access, catalog);
    let (sheet, header_row, encoding) = (table.sheet.clone(), table.header_row, table.encoding.map(name_of));
    let rows = rows::read(&RawForEach::File(table), &access, &Pointer::top(), &mut found);
    if let Some(Diagnostic { message, help, row, .. }) =
        found.into_iter().find(|diagnostic| diagnostic.severity == Severity::Error)
    {
        let place = row.map(|row| format!("{}, line {}: ", row.file, row.line)).unwrap_or_default();
        return Err(DraftError::Unreadable(place + &message, help));
    }
    if is_without_header {
        return Err(DraftError::NoHeader(file.to_owned()));
    }
    let first = rows.first().ok_or_else(|| DraftError::Empty(file.to_owned()))?;
    let names = first.cells.columns().names().iter().filter(|name| !name.is_empty());
    let columns: Vec<Column> = names
        .map(|name| {
            let cells: Vec<&str> = rows.iter().filter_map(|row| row.cells.get(name)).collect();
            Column::of(name, &cells, directory, catalog)
        })
        .collect();
    let columns = columns::settled(columns);
    let model = Chosen { name: columns::model(&columns, model, catalog), is_given: model.is_some() };
    let hidden = rows.iter().filter(|row| row.is_hidden).count();
    let encoded = encoding.as_deref().map(|encoding| format!("read as `{encoding}`, which may be wrong: {words}"));
    let read: Vec<String> = encoded.into_iter().chain(choice(sheet.as_deref(), &others, header_row)).collect();
    let read = (!read.is_empty()).then(|| read.join("; "));
    let (sheet, encoding) = (sheet.as_deref(), encoding.as_deref());
    let table = Table { file, sheet, header_row, encoding, rows: rows.len(), hidden, read: read.as_deref() };
    Ok(Draft { text: text(&table, &columns, model, catalog), unused: unused(&columns, model.name, catalog), read })
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

/// Finds the sheet whose header names a prompt and the most columns: the first of equals, and the first visible sheet if none does.
fn find(file: &str, wanted: Option<&str>, access: &FileAccess, catalog: &Catalog) -> Place {
    let (encoding, words) = rows::unnamed_encoding(file, access).unzip();
    let mut sheets = rows::beginnings(file, encoding, access, HIGHEST_HEADER);
    let rank =
        |lines: &[Line]| header(lines).map(|(_, cells)| (columns::names_prompt(cells), columns::names_in(cells)));
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
        columns::is_data(cells, &below, catalog)
    });
    let table = RawTable { sheet, header_row, encoding, ..RawTable::of(file.to_owned()) };
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
        .take_while(|(_, cells)| !columns::is_sentence(cells))
        .find(|(_, cells)| columns::names_in(cells) > 0)
        .or_else(|| full.next())
}

/// A sentence on the sheet and the header, where there was a choice.
fn choice(sheet: Option<&str>, others: &[String], header_row: u64) -> Option<String> {
    let others: Vec<String> = others.iter().map(|name| format!("`{}`", one_line(name))).collect();
    let sheet = sheet
        .filter(|_| !others.is_empty())
        .map(|sheet| format!("read the sheet `{}`; others, for `--sheet`: {}", one_line(sheet), others.join(", ")));
    let header = (header_row > 1).then(|| format!("the names of the columns are in row {header_row}"));
    let parts: Vec<String> = sheet.into_iter().chain(header).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
