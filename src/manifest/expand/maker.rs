//! One entry of `jobs` with one row: chooses between the job's own fields and the defaults, and fills the templates in.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::Serde;

use super::fields::Fields;
use super::local_images::LocalImages;
use super::local_images::PromptFiles;
use crate::catalog::{Catalog, Model};
use crate::domain::{Field, Labels, Rule, Spec};
use crate::manifest::raw::job_field::{JobField, JobField as F};
use crate::manifest::raw::matrix::Cell;
use crate::manifest::raw::table::{help_with_whole, whole_in};
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::source::lints;
use crate::manifest::source::location::{Location, Part, Pointer};
use crate::manifest::tables::row::Row;
use crate::manifest::template::engine::{Scope, Templates, Text};
use crate::manifest::template::error::template_diagnostic;

/// An entry rendered with one row.
pub(super) struct Rendered<'c> {
    /// The id, if it could be made.
    pub id: Option<String>,
    /// The fields, before the family's defaults.
    pub spec: Spec,
    /// The model, if it is known.
    pub model: Option<Model<'c>>,
    /// The words that it is selected by.
    pub tags: Vec<String>,
    /// The labels.
    pub labels: Labels,
    /// The number of jobs, one for each take.
    pub takes: u32,
    /// The most takes of one job that are bought until one is kept.
    pub up_to: Option<u32>,
    /// The path of each take's video, if it is set.
    pub files: Option<Vec<String>>,
    /// Defaults that the family does not take, and that were passed over.
    pub passed_over: Vec<Field>,
    /// The diagnostics.
    pub found: Vec<Diagnostic>,
}

/// Something could not be made, and that was reported.
pub(super) struct Reported;

/// The state of a plain field.
#[derive(Clone, PartialEq)]
pub(super) enum State {
    Unmade,
    /// Being made: to need it now is a circle.
    Busy,
    /// Could not be made, which was reported.
    Broken,
    /// Made, though it may have no value.
    Made,
}

/// The parts of an entry, the same for all of its rows and combinations.
#[derive(Clone, Copy)]
pub(super) struct Entry<'r, 't, 'c> {
    /// The engine.
    pub templates: &'r Templates,
    /// The families.
    pub catalog: &'c Catalog,
    /// The files of prompts.
    pub prompts: &'r PromptFiles<'r>,
    /// The images on this machine.
    pub local_images: &'r LocalImages,
    /// The entry's own fields.
    pub own: &'r Fields<'t>,
    /// The defaults.
    pub defaults: &'r Fields<'t>,
}

pub(super) struct Maker<'r, 't, 'c> {
    templates: &'r Templates,
    pub(super) catalog: &'c Catalog,
    pub(super) prompts: &'r PromptFiles<'r>,
    pub(super) local_images: &'r LocalImages,
    pub(super) own: &'r Fields<'t>,
    pub(super) defaults: &'r Fields<'t>,
    pub(super) combination: &'r [Cell],
    /// The state of each field.
    pub(super) states: [State; JobField::ALL.len()],
    pub(super) scope: Arc<Scope>,
    pub(super) model: Option<Model<'c>>,
    pub(super) passed_over: Vec<Field>,
    pub(super) found: Vec<Diagnostic>,
}

/// Makes one job's fields.
pub(super) fn render<'c>(entry: Entry<'_, '_, 'c>, row: Option<&Row>, combination: &[Cell]) -> Rendered<'c> {
    let Entry { templates, catalog, prompts, local_images, own, defaults } = entry;
    let other = combination.iter().filter(|cell| !JobField::named(&cell.name).is_some_and(JobField::is_plain));
    let scope = Arc::new(Scope {
        row: row.map(|row| row.value.clone()),
        row_number: row.map(|row| row.number),
        fields: Vec::with_capacity(JobField::PLAIN.len()),
        matrix: other.map(|cell| (cell.name.clone(), Value::from(Serde(cell.value.clone())))).collect(),
    });
    let mut maker = Maker {
        templates,
        catalog,
        prompts,
        local_images,
        own,
        defaults,
        combination,
        states: [const { State::Unmade }; JobField::ALL.len()],
        scope,
        model: None,
        passed_over: Vec::new(),
        found: Vec::new(),
    };
    for field in JobField::PLAIN {
        maker.make(field);
    }
    let (image, local_images) = maker.images();
    let extra = maker.extra();
    let image_key = maker.image_key(&image, &extra);
    let spec = Spec {
        model: maker.made_text(F::Model).unwrap_or_default(),
        prompt: maker.made_text(F::Prompt),
        duration: maker.made(F::Duration).and_then(Value::as_i64),
        aspect_ratio: maker.made_text(F::AspectRatio),
        size: maker.made_text(F::Size),
        image,
        image_sent_as: None,
        local_images,
        face: maker.made_text(F::Face),
        image_key,
        extra,
    };
    if let Some(prompt) = &spec.prompt {
        let scope = &maker.scope;
        let names = || {
            let columns = scope.row.iter().filter_map(|row| row.try_iter().ok()).flatten().map(|name| name.to_string());
            let others = scope.matrix.iter().map(|(name, _)| name.clone());
            templates.names().map(str::to_owned).chain(columns).chain(others).collect()
        };
        let lint = lints::unfilled_placeholder(prompt, names, || location_of(F::Prompt, own, defaults, combination));
        maker.found.extend(lint);
    }
    let tags = maker.tags();
    let labels = maker.labels();
    let id = maker.made_text(F::Id);
    let (takes, up_to) = maker.takes();
    let files = id.as_deref().and_then(|id| maker.files(id, takes));
    let Maker { model, passed_over, found, .. } = maker;
    Rendered { id, spec, model, tags, labels, takes, up_to, files, passed_over, found }
}

impl Maker<'_, '_, '_> {
    /// Fills a text in. Its place is looked up only for a diagnostic.
    pub(super) fn fill(&mut self, text: &Text<'_>, at: impl FnOnce() -> Pointer) -> Result<String, Reported> {
        if let Text::Template(template) = text {
            let is_used = |field: &JobField| template.names.iter().any(|name| name == field.name());
            for field in JobField::PLAIN.into_iter().filter(is_used) {
                if self.make(field) {
                    continue;
                }
                if self.states[field as usize] == State::Busy {
                    let message = format!("`{}` refers to itself", field.name());
                    let place = Location::Value(at(), Part::Fragment(field.name().to_owned(), 0));
                    self.found.push(Diagnostic::error(Rule::TemplateCycle, message, place));
                }
                return Err(Reported);
            }
        }
        self.templates.render(text, &self.scope).map_err(|error| {
            self.found.push(template_diagnostic(error, at()));
            Reported
        })
    }

    /// Compiles and fills in a text that is met only now.
    pub(super) fn fill_source(&mut self, source: &str, at: impl FnOnce() -> Pointer) -> Result<String, Reported> {
        let templates = self.templates;
        match templates.compile(source) {
            Ok(text) => self.fill(&text, at),
            Err(error) => {
                self.found.push(template_diagnostic(error, at()));
                Err(Reported)
            }
        }
    }

    pub(super) fn whole(
        &mut self,
        field: JobField,
        filled: &str,
        at: impl FnOnce() -> Pointer,
    ) -> Result<i64, Reported> {
        whole_in(filled).ok_or_else(|| {
            let message = format!("`{}` must be a whole number, found `{}`", field.name(), filled.trim());
            let diagnostic = Diagnostic::error(Rule::WrongType, message, at().value());
            self.found.push(diagnostic.with_help(help_with_whole(filled)));
            Reported
        })
    }

    fn made(&self, field: JobField) -> Option<&Value> {
        self.scope.fields.iter().find(|(known, _)| *known == field.name()).map(|(_, value)| value)
    }

    pub(super) fn made_text(&self, field: JobField) -> Option<String> {
        self.made(field).map(ToString::to_string)
    }
}

/// The location of a field: in the matrix, on the job, under the defaults, or nowhere, which points to the job.
pub(super) fn location_of(field: JobField, own: &Fields<'_>, defaults: &Fields<'_>, combination: &[Cell]) -> Location {
    if let Some(cell) = combination.iter().find(|cell| cell.name == field.name()) {
        return cell.at.clone().value();
    }
    if own.says(field) {
        own.location(field)
    } else if defaults.says(field) {
        defaults.location(field)
    } else {
        own.at(F::Id).value()
    }
}
