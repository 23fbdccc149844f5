//! The text of a draft: YAML for people, with a comment at each guess.

use std::collections::BTreeMap;
use std::path::Path;

use super::columns::{Column, alternatives, is_taken, model, names_models, taker};
use super::written::Meaning;
use crate::catalog::{Catalog, Model};
use crate::domain::count;
use crate::domain::text::one_line;
use crate::files::table::name_of;
use crate::manifest::raw::decode::RawTable;
use crate::manifest::raw::table::JobField as F;
use crate::manifest::tables::sheet::Row;
use crate::manifest::template::engine::slug;

/// The longest beginning of an id that is made of a name, in characters.
const MAX_STEM: usize = 60;

/// Unused columns with a reason each. An export of a database may have hundreds.
const MAX_UNUSED: usize = 20;

/// The manifest that makes a job of each row, and the unused columns.
///
/// `read` is a comment on the sheet, the header, and the encoding; `given` is the model that the user named for rows without one.
pub(super) fn text(
    table: &RawTable,
    rows: &[Row],
    read: Option<&str>,
    columns: &[Column],
    given: Option<&str>,
    catalog: &Catalog,
) -> (String, Vec<String>) {
    let RawTable { file, sheet, header_row, .. } = table;
    let hidden = rows.iter().filter(|row| row.is_hidden).count();
    let model = model(columns, given, catalog);
    // The jobs of another sheet are others, also under the same IDs.
    let name = sheet.as_ref().map_or_else(|| stem_of(file), |sheet| format!("{}-{sheet}", stem_of(file)));
    let why = match (given.is_some(), names_models(columns)) {
        (_, true) => "for rows that name none",
        (true, false) => "as you chose",
        (false, false) => "the cheapest model that uses most of your columns",
    };
    let of_rows =
        format!("row, {} now. The meaning of each column is a guess; the list at the end has all of them", rows.len());
    let mut text = head(file, &name, &of_rows, why, model, catalog) + "jobs:\n";
    text += &id(&name, columns);
    text += &read.map(|read| format!("    # {read}\n")).unwrap_or_default();
    let sheet = sheet.as_ref().map(|sheet| format!(", sheet: {}", quoted(sheet))).unwrap_or_default();
    let header_row = if *header_row == 1 { String::new() } else { format!(", header_row: {header_row}") };
    let encoding = table.encoding.map(|encoding| format!(", encoding: {}", name_of(encoding))).unwrap_or_default();
    let skips = if hidden > 0 { ", hidden: skip" } else { "" };
    let (mut left_out, mut why) = (skips.to_owned(), Vec::new());
    if hidden > 0 {
        why.push(count(hidden, "hidden row"));
    }
    let mut excluded = Vec::new();
    for column in columns.iter().filter(|column| !column.left_out.is_empty()) {
        excluded.extend(column.left_out.iter().map(|state| excludes(column, state)));
        let states = alternatives(&column.left_out);
        why.push(format!("rows whose `{}` is {states}", one_line(&column.name)));
    }
    if !excluded.is_empty() {
        left_out += &format!(", exclude: [{}]", excluded.join(", "));
    }
    if !why.is_empty() {
        text += &format!("    # Left out: {}.\n", why.join(", and "));
    }
    let place = sheet + &header_row + &encoding;
    text += &for_each(file, &(place.clone() + &left_out));
    for column in columns.iter().filter(|column| column.doubtful.1 > 0) {
        let ((states, doubtful), name) = (&column.doubtful, one_line(&column.name));
        excluded.extend(states.iter().map(|state| excludes(column, state)));
        let line = for_each(file, &format!("{place}{skips}, exclude: [{}]", excluded.join(", ")));
        let of_rows = format!("{} in {doubtful} of {}", alternatives(states), count(rows.len(), "row"));
        text +=
            &format!("    # `{name}` is {of_rows}, and they are jobs. To leave them out, write:\n    #{}", &line[3..]);
    }
    text += &prompt(columns);
    let Some(model) = catalog.model(model) else { return (text, Vec::new()) };
    for column in columns {
        text += &field(column, columns, model, catalog);
    }
    text += &labels(columns);
    text += "    # The columns, with their first values:\n";
    let mut unused = Vec::new();
    for column in columns {
        let name = one_line(&column.name);
        let read = match read_as(column, columns, model, catalog) {
            Ok(read) => read,
            Err(why) => {
                unused.push(format!("`{name}` ({why})"));
                if unused.len() > MAX_UNUSED {
                    continue;
                }
                format!("not used: {why}")
            }
        };
        let values = if column.values.is_empty() { String::new() } else { format!(" ({})", column.values.join(", ")) };
        text += &format!("    #   `{name}`{values}: {read}\n");
    }
    let more = unused.len().saturating_sub(MAX_UNUSED);
    if more > 0 {
        text += &format!("    #   {more} more: not used\n");
        unused.truncate(MAX_UNUSED);
        unused.push(format!("and {more} more"));
    }
    (text, unused)
}

/// The part above the jobs.
pub(super) fn head(file: &str, name: &str, of_each: &str, why: &str, model: &str, catalog: &Catalog) -> String {
    let rate = |name| Some(format!("{name} {}", catalog.model(name)?.rate()));
    let rates: Vec<String> = catalog.model_names().filter_map(rate).collect();
    format!(
        "# yaml-language-server: $schema=shotlist.schema.json\n\
         # Made from {}: a job for each {of_each}.\n\
         version: 1\n\
         name: {}\n\n\
         # A run spends at most this, in USD. Without it, a run asks you first, and without a terminal it refuses.\n\
         # budget: {{ run: 10.00 }}\n\n\
         defaults:\n  \
           # {why}: {}\n  \
           model: {model}\n\n",
        one_line(file),
        quoted(name),
        rates.join(", "),
    )
}

pub(super) fn stem_of(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The line that names the table.
fn for_each(file: &str, place: &str) -> String {
    let file = quoted(file);
    format!("    for_each: {}\n", if place.is_empty() { file } else { format!("{{ file: {file}{place} }}") })
}

/// An entry of `exclude`.
fn excludes(column: &Column, state: &str) -> String {
    format!("{{ {}: {} }}", quoted(&column.name), quoted(state))
}

/// The meaning of a column, or the reason why nothing is made of it.
fn read_as(column: &Column, columns: &[Column], model: Model<'_>, catalog: &Catalog) -> Result<String, String> {
    if let Some(why) = not_taken(column, columns, model, catalog) {
        return Err(why);
    }
    let has_prompt = columns.iter().any(|column| column.meaning == Meaning::Field(F::Prompt));
    let read = match column.meaning {
        Meaning::Field(F::Id) => "the ID",
        Meaning::Field(F::Prompt) => "the prompt",
        Meaning::Field(F::Takes) => return Err("each take costs its price".to_owned()),
        Meaning::Field(field) => field.name(),
        Meaning::Label => "a label",
        Meaning::Words if has_prompt || !column.has_words() => return Err(column.why_not()),
        Meaning::Words => "words for the prompt",
    };
    Ok(read.to_owned())
}

fn id(name: &str, columns: &[Column]) -> String {
    let parts: Vec<&Column> = columns.iter().filter(|column| column.is_in_id).collect();
    if parts.is_empty() {
        let id = quoted(&format!("{}-{{{{ row_number }}}}", stem(name)));
        let why = columns.iter().find_map(|column| Some((one_line(&column.name), column.why_no_id.as_ref()?)));
        let why = why.map(|(name, why)| format!("    # `{name}` could be the id, but {why}.\n")).unwrap_or_default();
        return format!(
            "  - id: {id}\n    # A paid video is known by its id. No column has a lasting name for each row: a row that you insert\n    \
             # renumbers those below it, and they are bought again. A column of ids prevents that.\n{why}"
        );
    }
    let part = |column: &&Column| format!("{{{{ {}{} }}}}", cell(&column.name), column.filter);
    let id = quoted(&parts.iter().map(part).collect::<Vec<_>>().join("-"));
    let names = parts.iter().map(|column| format!("`{}`", one_line(&column.name))).collect::<Vec<_>>().join(" or ");
    let counts = match parts[..] {
        [column] if column.is_count => {
            "    # It counts the rows: give an inserted row a new number, and keep the others.\n"
        }
        _ => "",
    };
    format!(
        "  - id: {id}\n    # A paid video is known by its id: a row whose {names} changes is bought again.\n{counts}"
    )
}

fn prompt(columns: &[Column]) -> String {
    if let Some(column) = columns.iter().find(|column| column.meaning == Meaning::Field(F::Prompt)) {
        return format!("    prompt: {}\n", quoted(&filled(column)));
    }
    let words: Vec<String> = columns.iter().filter(|column| column.has_words()).map(filled).collect();
    let example =
        if words.is_empty() { String::new() } else { format!(", for example with {}", quoted(&words.join(", "))) };
    // A blank prompt is an error until the user writes one. Words without a sentence would be bought.
    format!("    # No column looks like a prompt: describe the video in a sentence{example}.\n    prompt: \"\"\n")
}

/// The beginning of an ID that is made from the sheet's name.
fn stem(name: &str) -> String {
    let slug: String = slug(name).chars().take(MAX_STEM).collect();
    if slug.is_empty() { "row".to_owned() } else { slug }
}

/// The line of a column with its own field.
fn field(column: &Column, columns: &[Column], model: Model<'_>, catalog: &Catalog) -> String {
    let field = match (column.meaning, column.promised) {
        (Meaning::Words, Some(field)) => {
            let (why, key) = (column.why_not(), field.name());
            return format!(
                "    # {why}: write one `{key}` for all rows, or remove the line for the default.\n    {key}: \"\"\n"
            );
        }
        (Meaning::Label | Meaning::Words | Meaning::Field(F::Id | F::Prompt), _) => return String::new(),
        (Meaning::Field(field), _) => field,
    };
    let line = format!("{}: {}", field.name(), quoted(&filled(column)));
    match not_taken(column, columns, model, catalog) {
        Some(why) => format!("    # {line} # {why}\n"),
        // In a shot list for a camera, the column counts the recorded takes.
        None if field == F::Takes => {
            format!("    # {line} # each take costs its price; remove the first `#` to buy as many as the sheet says\n")
        }
        None => format!("    {line}{}\n", shown(field)),
    }
}

/// The reason why the field of a column is left out of the jobs.
fn not_taken(column: &Column, columns: &[Column], model: Model<'_>, catalog: &Catalog) -> Option<String> {
    let Meaning::Field(field) = column.meaning else { return None };
    let field = field.of_request()?;
    if names_models(columns) || is_taken(column, model.family) {
        return None;
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
pub(super) fn shown(field: F) -> &'static str {
    match field {
        F::ImageFile => " # needs `--asset-command`, which prints a URL for each file",
        F::Model => " # the price depends on it",
        F::Duration => " # in seconds; some models are priced by it",
        F::Tags => " # `--tag NAME` runs only the jobs with that tag",
        F::Image => " # the video starts with this image",
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
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
