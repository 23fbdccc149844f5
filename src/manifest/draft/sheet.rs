//! The way from a sheet to the text: read, understood, written down.

use std::path::Path;

use super::columns::{self, Column};
use super::text::{Chosen, Table, text, unused};
use crate::catalog::Catalog;
use crate::manifest::raw::mirror::RawForEach;
use crate::manifest::source::diagnostic::{Diagnostic, Severity};
use crate::manifest::source::location::Pointer;
use crate::manifest::source::text::FileAccess;
use crate::manifest::tables::rows;

/// A manifest for a sheet.
#[derive(Debug)]
pub struct Draft {
    /// Its text.
    pub text: String,
    /// The columns that nothing is made of, for people.
    pub unused: Vec<String>,
}

/// The reason why a sheet can't become a manifest.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The sheet can't be read, or has a mistake.
    #[error("{0}")]
    Unreadable(String, Option<String>),
    /// There is nothing in it.
    #[error("{0} has no rows")]
    Empty(String),
    /// The first row names one of many columns.
    #[error("the first row of `{0}` looks like a title: one name for {1} columns")]
    Title(String, usize),
    /// The catalogue has no such model.
    #[error("found no model `{0}`")]
    NoModel(String),
}

impl DraftError {
    /// The help.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unreadable(_, help) => help.clone(),
            Self::Title(..) => Some("take the rows above the names of the columns out of the sheet".to_owned()),
            Self::Empty(_) => Some("the first row names the columns, and each row below it is a video".to_owned()),
            Self::NoModel(_) => {
                let names: Vec<&str> = Catalog::embedded().model_names().collect();
                Some(format!("the models are: {}", names.join(", ")))
            }
        }
    }
}

/// A manifest in this folder that makes a job of each row of a file, which lies there or below, or of one of its sheets.
pub fn draft(folder: &Path, file: &str, sheet: Option<&str>, model: Option<&str>) -> Result<Draft, DraftError> {
    let catalog = Catalog::embedded();
    if let Some(unknown) = model.filter(|model| catalog.model(model).is_none()) {
        return Err(DraftError::NoModel(unknown.to_owned()));
    }
    let mut found = Vec::new();
    let from = RawForEach::File { file: file.to_owned(), sheet: sheet.map(str::to_owned) };
    let rows = rows::read(&from, &FileAccess::new(folder, None, None), &Pointer::top(), &mut found);
    if let Some(Diagnostic { message, help, row, .. }) =
        found.into_iter().find(|finding| finding.severity == Severity::Error)
    {
        let place = row.map(|row| format!("{}, line {}: ", row.file, row.line)).unwrap_or_default();
        return Err(DraftError::Unreadable(place + &message, help));
    }
    let first = rows.first().ok_or_else(|| DraftError::Empty(file.to_owned()))?;
    let all = first.cells.columns().names();
    let names = all.iter().filter(|name| !name.is_empty());
    if all.len() > 2 && names.clone().count() == 1 {
        return Err(DraftError::Title(file.to_owned(), all.len()));
    }
    let columns: Vec<Column> = names
        .map(|name| {
            let cells: Vec<&str> = rows.iter().filter_map(|row| row.cells.get(name)).collect();
            Column::of(name, &cells, folder, catalog)
        })
        .collect();
    let columns = columns::settled(columns);
    let model = Chosen { name: columns::model(&columns, model, catalog), is_given: model.is_some() };
    let text = text(&Table { file, sheet, rows: rows.len() }, &columns, model, catalog);
    Ok(Draft { text, unused: unused(&columns) })
}
