//! The text of a draft: YAML for people, with a comment at each guess.

use std::collections::BTreeMap;
use std::path::Path;

use super::columns::{Column, Meaning, is_taken, names_models};
use crate::catalog::{Catalog, Model};
use crate::domain::Field;
use crate::domain::printable::one_line;
use crate::manifest::template::engine::slug;

/// The manifest that makes a job of each row.
pub(super) fn text(sheet: &str, rows: usize, columns: &[Column], model: &str, catalog: &Catalog) -> String {
    let file = Path::new(sheet).file_stem().map_or_else(|| sheet.into(), |stem| stem.to_string_lossy());
    let rates: Vec<String> =
        catalog.model_names().filter_map(|name| Some(format!("{name} {}", catalog.model(name)?.rate()))).collect();
    let why = if names_models(columns) {
        "for rows that name none"
    } else {
        "it takes most of what the sheet has, for least"
    };
    let mut text = format!(
        "# yaml-language-server: $schema=shotlist.schema.json\n\
         # Made of {}: a job for each of its {rows} rows. What the columns seem to mean is a guess, and stands beside each.\n\
         version: 1\n\
         name: {}\n\n\
         # The most that one run may newly spend, in dollars. Without it, a run asks; with it, it need not.\n\
         # budget: {{ run: 10.00 }}\n\n\
         defaults:\n  \
           model: {model} # {why}: {}\n\n\
         jobs:\n",
        one_line(sheet),
        quoted(&file),
        rates.join(", "),
    );
    text += &id(&file, columns);
    text += &format!("    for_each: {}\n", quoted(sheet));
    text += &prompt(columns);
    let Some(model) = catalog.model(model) else { return text };
    for column in columns {
        text += &field(column, columns, model);
    }
    text += &labels(columns);
    let unused: Vec<String> = unused(columns).map(|column| format!("`{}`", one_line(&column.name))).collect();
    if !unused.is_empty() {
        text += &format!("    # in no text yet: {}\n", unused.join(", "));
    }
    text
}

fn id(file: &str, columns: &[Column]) -> String {
    let known = "    # What was paid is known by the id: ";
    let found = columns.iter().find_map(|column| match column.meaning {
        Meaning::Id { is_slugged } => Some((column, is_slugged)),
        _ => None,
    });
    match found {
        Some((column, is_slugged)) => {
            let filter = if is_slugged { " | slug" } else { "" };
            format!(
                "  - id: {}\n{known}a row whose `{}` changes is bought again.\n",
                quoted(&format!("{{{{ {}{filter} }}}}", cell(&column.name))),
                one_line(&column.name)
            )
        }
        None => format!(
            "  - id: {}\n{known}no column has another value in each row, so a row that is put in\n    # above others \
             makes them all new. A column of ids would keep them.\n",
            quoted(&format!("{}-{{{{ row_number }}}}", slug(file)))
        ),
    }
}

fn prompt(columns: &[Column]) -> String {
    if let Some(column) = columns.iter().find(|column| column.meaning == Meaning::Prompt) {
        return format!("    prompt: {}\n", quoted(&filled(column)));
    }
    let words: Vec<String> = columns.iter().filter(|column| column.has_words()).map(filled).collect();
    let words = if words.is_empty() { "A video of {{ row_number }}".to_owned() } else { words.join(", ") };
    format!(
        "    # No column seems to be a prompt: write the sentence that these words belong into.\n    prompt: {}\n",
        quoted(&words)
    )
}

/// The line of a column that is a field of its own.
fn field(column: &Column, columns: &[Column], model: Model<'_>) -> String {
    let (key, field) = match column.meaning {
        Meaning::Field(field) => (field.name(), Some(field)),
        Meaning::ImageFile { .. } => ("image_file", Some(Field::Image)),
        Meaning::Tags => ("tags", None),
        Meaning::Label | Meaning::Id { .. } | Meaning::Prompt | Meaning::Words => return String::new(),
    };
    let line = format!("{key}: {}", quoted(&filled(column)));
    match field.filter(|_| !names_models(columns) && !is_taken(column, model.family)) {
        None if column.meaning == (Meaning::ImageFile { is_here: true }) => {
            format!("    {line} # needs `--asset-command`, which gives each an address\n")
        }
        None if column.meaning == (Meaning::ImageFile { is_here: false }) => {
            format!("    # {line} # not all of these pictures are in this folder\n")
        }
        None => format!("    {line}\n"),
        Some(field) => {
            let length = model.family.fields.duration.min;
            let instead = match model.family.instead_of(field) {
                Some(instead) => instead.to_owned(),
                None if model.family.passes_over(field) => format!("this model always makes {length} s"),
                None => "this model can make none of these".to_owned(),
            };
            format!("    # {line} # {}\n", one_line(&instead))
        }
    }
}

/// Whom each job is for.
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

fn unused(columns: &[Column]) -> impl Iterator<Item = &Column> {
    let has_prompt = columns.iter().any(|column| column.meaning == Meaning::Prompt);
    columns.iter().filter(move |column| has_prompt && column.meaning == Meaning::Words)
}

/// How a template names a cell.
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
