//! The way from a sheet to the text: read, understood, written down.

use std::path::Path;

use super::columns::{self, Column};
use super::text;
use crate::catalog::Catalog;
use crate::manifest::raw::mirror::RawForEach;
use crate::manifest::source::diagnostic::{Diagnostic, Severity};
use crate::manifest::source::location::Pointer;
use crate::manifest::source::text::FileAccess;
use crate::manifest::tables::rows;

/// What can't be made into a manifest.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The sheet can't be read, or has a mistake.
    #[error("{0}")]
    Unreadable(String, Option<String>),
    /// There is nothing in it.
    #[error("{0} has no rows")]
    Empty(String),
    /// The catalogue has no such model.
    #[error("there is no model `{0}`")]
    NoModel(String),
}

impl DraftError {
    /// How to mend it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unreadable(_, help) => help.clone(),
            Self::Empty(_) => Some("the first row names the columns, and each row below it is a video".to_owned()),
            Self::NoModel(_) => {
                let names: Vec<&str> = Catalog::embedded().model_names().collect();
                Some(format!("the models are: {}", names.join(", ")))
            }
        }
    }
}

/// The text of a manifest in this folder that makes a job of each row of a sheet, which lies there or below.
pub fn draft(folder: &Path, sheet: &str, model: Option<&str>) -> Result<String, DraftError> {
    let catalog = Catalog::embedded();
    if let Some(unknown) = model.filter(|model| catalog.model(model).is_none()) {
        return Err(DraftError::NoModel(unknown.to_owned()));
    }
    let mut found = Vec::new();
    let from = RawForEach::File { file: sheet.to_owned(), sheet: None };
    let rows = rows::read(&from, &FileAccess::new(folder, None, None), &Pointer::top(), &mut found);
    if let Some(Diagnostic { message, help, .. }) =
        found.into_iter().find(|finding| finding.severity == Severity::Error)
    {
        return Err(DraftError::Unreadable(message, help));
    }
    let first = rows.first().ok_or_else(|| DraftError::Empty(sheet.to_owned()))?;
    let names = first.cells.columns().names().iter().filter(|name| !name.is_empty());
    let columns: Vec<Column> = names
        .map(|name| {
            let cells: Vec<&str> = rows.iter().filter_map(|row| row.cells.get(name)).collect();
            Column::of(name, &cells, folder, catalog)
        })
        .collect();
    let columns = columns::settled(columns);
    let model = columns::model(&columns, model, catalog);
    Ok(text::text(sheet, rows.len(), &columns, model, catalog))
}
