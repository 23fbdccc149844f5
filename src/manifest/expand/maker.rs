//! One entry of `jobs` with one row: chooses between the job's fields and the defaults, and renders their templates.
//!
//! Plain fields may use each other. Each is rendered when it is first needed.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::Serde;

use super::fields::{Fields, Inputs};
use crate::catalog::Model;
use crate::domain::{Field, Labels, SHAPES, Spec, ratio_meant_by};
use crate::manifest::raw::sections::{Cell, Faces};
use crate::manifest::raw::table::{
    JobField, JobField as F, help_with_whole, seconds_in, text_or_number, whole_in, wrong_type,
};
use crate::manifest::source::diagnostic::{Diagnostic, Location, Part, Pointer, error, help_near, unreadable};
use crate::manifest::source::lints;
use crate::manifest::tables::sheet::Row;
use crate::manifest::template::bounds::template_diagnostic;
use crate::manifest::template::engine::{Made, Scope, Text};

/// An entry rendered with one row.
pub(super) struct Rendered<'c> {
    /// The id, if it could be made.
    pub id: Option<String>,
    /// The fields, before the family's defaults.
    pub spec: Spec,
    /// The model, if it is known.
    pub model: Option<Model<'c>>,
    /// The tags for `--tag`.
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

/// The source of a job: an entry, with one row and one combination.
pub(super) struct Origin<'o> {
    /// The position in `jobs`.
    pub number: usize,
    /// True if the entry itself has a reported error.
    pub is_damaged: bool,
    pub inputs: &'o Inputs<'o>,
    /// The entry's own fields.
    pub own: &'o Fields<'o>,
    pub defaults: &'o Fields<'o>,
    /// The declared faces.
    pub faces: &'o Faces,
    /// The combination of its matrix.
    pub combination: &'o [Cell],
    /// Its row of a table.
    pub row: Option<&'o Row>,
    /// The values of its combination, by name.
    pub matrix: Option<&'o Arc<Labels>>,
}

impl Origin<'_> {
    /// The location of a field: in the matrix, on the job, under the defaults, or nowhere, which points to the job.
    pub(super) fn location(&self, field: JobField) -> Location {
        if let Some(cell) = self.combination.iter().find(|cell| cell.name == field.name()) {
            cell.at.value()
        } else if let Some(source) = [self.own, self.defaults].into_iter().find(|source| source.says(field)) {
            source.location(field)
        } else if matches!(field, F::AspectRatio | F::Size) {
            self.location(F::Shape)
        } else {
            self.own.at(F::Id).value()
        }
    }
}

pub(super) struct Maker<'e> {
    pub(super) origin: &'e Origin<'e>,
    /// The state of each field.
    pub(super) states: [State; JobField::ALL.len()],
    pub(super) scope: Arc<Scope>,
    pub(super) model: Option<Model<'e>>,
    pub(super) passed_over: Vec<Field>,
    pub(super) found: Vec<Diagnostic>,
}

/// Makes one job's fields.
pub(super) fn render<'e>(origin: &'e Origin<'e>) -> Rendered<'e> {
    let row = origin.row;
    let other = origin.combination.iter().filter(|cell| !JobField::named(&cell.name).is_some_and(JobField::is_plain));
    let scope = Arc::new(Scope {
        row: row.map(|row| row.value.clone()),
        row_number: row.map(|row| row.number),
        fields: Vec::with_capacity(JobField::PLAIN.len()),
        matrix: other.map(|cell| (cell.name.clone(), Value::from(Serde(cell.value.clone())))).collect(),
    });
    let mut maker = Maker {
        origin,
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
    if let Some(Made::Text(prompt)) = maker.made(F::Prompt) {
        let scope = &maker.scope;
        let names = || {
            let columns = row.into_iter().flat_map(|row| row.cells.columns().names().iter().cloned());
            let others = scope.matrix.iter().map(|(name, _)| name.clone());
            origin.inputs.templates.names.iter().cloned().chain(columns).chain(others).collect()
        };
        let lint = lints::unfilled_placeholder(prompt, names, || origin.location(F::Prompt));
        maker.found.extend(lint);
    }
    let tags = maker.tags();
    let labels = maker.labels();
    let (takes, up_to) = maker.takes();
    let id = maker.take_text(F::Id);
    let files = id.as_deref().and_then(|id| maker.files(id, takes));
    let spec = Spec {
        model: maker.take_text(F::Model).unwrap_or_default(),
        prompt: maker.take_text(F::Prompt),
        duration: maker
            .made(F::Duration)
            .and_then(|made| if let Made::Whole(whole) = made { Some(*whole) } else { None }),
        aspect_ratio: maker.take_text(F::AspectRatio),
        size: maker.take_text(F::Size),
        image,
        image_sent_as: None,
        local_images,
        face: maker.take_text(F::Face),
        image_key,
        extra,
    };
    let Maker { model, passed_over, found, .. } = maker;
    Rendered { id, spec, model, tags, labels, takes, up_to, files, passed_over, found }
}

impl<'e> Maker<'e> {
    /// Renders a text. `at` is called only for a diagnostic.
    pub(super) fn fill(&mut self, text: &Text<'_>, at: impl FnOnce() -> Pointer) -> Result<String, Reported> {
        if let Text::Template(template) = text {
            let is_used = |field: &JobField| template.names.iter().any(|name| name == field.name());
            for field in JobField::PLAIN.into_iter().filter(is_used) {
                if self.make(field) {
                    continue;
                }
                if self.states[field as usize] == State::Busy {
                    let place = Location::Value(at(), Part::Fragment(field.name().to_owned(), 0));
                    self.found.push(error!(TemplateCycle, place, "`{}` refers to itself", field.name()));
                }
                return Err(Reported);
            }
        }
        self.origin.inputs.templates.render(text, &self.scope).map_err(|error| {
            self.found.push(template_diagnostic(error, at()));
            Reported
        })
    }

    /// Compiles and fills in a text that is met only now.
    pub(super) fn fill_source(&mut self, source: &str, at: impl Fn() -> Pointer) -> Result<String, Reported> {
        let text = self.compiled(source, &at)?;
        self.fill(&text, at)
    }

    fn compiled<'t>(&mut self, source: &'t str, at: impl FnOnce() -> Pointer) -> Result<Text<'t>, Reported>
    where
        'e: 't,
    {
        self.origin.inputs.templates.compile(source).map_err(|error| {
            self.found.push(template_diagnostic(error, at()));
            Reported
        })
    }

    pub(super) fn whole(&mut self, field: F, filled: &str, at: impl FnOnce() -> Pointer) -> Result<i64, Reported> {
        whole_in(filled).ok_or_else(|| {
            let (field, found) = (field.name(), filled.trim());
            self.found.push(error!(WrongType, at().value(), "`{field}` must be a whole number, found `{found}`";
                "{}", help_with_whole(filled)));
            Reported
        })
    }

    fn made(&self, field: JobField) -> Option<&Made> {
        self.scope.fields.iter().find(|(known, _)| *known == field.name()).map(|(_, value)| value)
    }

    pub(super) fn made_text(&self, field: JobField) -> Option<String> {
        self.made(field).map(ToString::to_string)
    }

    /// Takes the text of a field that no template uses any more.
    fn take_text(&mut self, field: JobField) -> Option<String> {
        let fields = &mut Arc::make_mut(&mut self.scope).fields;
        let place = fields.iter().position(|(known, _)| *known == field.name())?;
        match fields.swap_remove(place).1 {
            Made::Text(text) => Some(text),
            Made::Whole(whole) => Some(whole.to_string()),
        }
    }

    /// Makes a plain field after the fields that it uses. Returns false after an error.
    pub(super) fn make(&mut self, field: JobField) -> bool {
        match self.states[field as usize] {
            State::Made => return true,
            State::Broken | State::Busy => return false,
            State::Unmade => {}
        }
        self.states[field as usize] = State::Busy;
        let value = if field == F::Shape { self.shape() } else { self.value_of(field) };
        self.states[field as usize] = match value {
            Ok(value) => {
                Arc::make_mut(&mut self.scope).fields.extend(value.map(|value| (field.name(), value)));
                State::Made
            }
            Err(Reported) => State::Broken,
        };
        if field == F::Model {
            self.look_up_model();
        }
        self.states[field as usize] != State::Broken
    }

    /// The value of a plain field, if it has one: the job's own, else the default, else the family's.
    ///
    /// An empty template on the job, as for an empty cell, means the default.
    fn value_of(&mut self, field: JobField) -> Result<Option<Made>, Reported> {
        if let Some(value) = self.value_in_combination(field)? {
            return Ok(Some(value));
        }
        if let Some(value) = self.value_in(self.origin.own, field)? {
            return Ok(Some(value));
        }
        let Some(of_request) = field.of_request() else { return Ok(None) };
        if let Some(value) = self.value_by_shape(of_request)? {
            return Ok(Some(value));
        }
        if let Some(source) = self.default_source(of_request)?
            && let Some(value) = self.value_in(source, field)?
        {
            return Ok(Some(value));
        }
        Ok(self.family_default(of_request))
    }

    /// The text of `shape`, of the job or else of the defaults.
    fn shape(&mut self) -> Result<Option<Made>, Reported> {
        let of_matrix = self.value_in_combination(F::Shape)?;
        let own = if of_matrix.is_some() { of_matrix } else { self.value_in(self.origin.own, F::Shape)? };
        let is_own = own.is_some();
        let value = if is_own { own } else { self.value_in(self.origin.defaults, F::Shape)? };
        let Some(value) = value.filter(|_| self.make(F::Model)) else { return Ok(None) };
        let place = || self.origin.location(F::Shape);
        if !ratio_meant_by(&value.to_string()).is_some_and(|ratio| SHAPES.contains(&ratio)) {
            self.found.push(error!(ShapeUnknown, place(), "`shape` must be 16:9 or 9:16, found `{value}`";
                "write \"16:9\" or \"9:16\""));
            return Err(Reported);
        }
        let has_field = |model: Model<'_>| [Field::AspectRatio, Field::Size].iter().any(|it| model.family.takes(*it));
        if is_own && !self.model.is_some_and(has_field) {
            self.found
                .push(error!(FieldNotOfFamily, place(), "the model has no field for a `shape`"; "remove `shape`"));
        }
        Ok(Some(value))
    }

    /// The aspect ratio or the size that follows from `shape`.
    fn value_by_shape(&mut self, field: Field) -> Result<Option<Made>, Reported> {
        if !matches!(field, Field::AspectRatio | Field::Size) {
            return Ok(None);
        }
        if !self.make(F::Shape) {
            return Err(Reported);
        }
        let ratio = self.made_text(F::Shape).and_then(|text| ratio_meant_by(&text));
        Ok(self.model.zip(ratio).and_then(|(model, ratio)| model.family.shaped(field, ratio)).map(Made::Text))
    }

    /// The value that the job's combination of its matrix has for a field.
    fn value_in_combination(&mut self, field: JobField) -> Result<Option<Made>, Reported> {
        let name = field.name();
        let Some(cell) = self.origin.combination.iter().find(|cell| cell.name == name) else { return Ok(None) };
        let Some(source) = text_or_number(&cell.value) else {
            self.found.push(wrong_type(&format!("`{name}`"), "a string or a number", &cell.value, cell.at.value()));
            return Err(Reported);
        };
        let at = || cell.at.clone();
        let filled = self.fill_source(&source, at)?;
        if field == F::Duration {
            return self.whole(field, &filled, at).map(|seconds| Some(Made::Whole(seconds)));
        }
        Ok(Some(Made::Text(filled)))
    }

    /// The value that is in one of the two places, if one does and it is not empty.
    fn value_in(&mut self, source: &'e Fields<'e>, field: JobField) -> Result<Option<Made>, Reported> {
        if let Some(seconds) = source.values.whole(field) {
            return Ok(Some(Made::Whole(seconds)));
        }
        if field == F::Prompt && source.values.text(F::PromptFile).is_some() {
            return self.prompt_of_file(source).map(|prompt| prompt.map(Made::Text));
        }
        let Some(text) = source.values.text(field) else { return Ok(None) };
        if let Text::Plain(plain) = text {
            return Ok(Some(Made::Text((*plain).to_owned())));
        }
        let at = || source.at(field);
        let filled = if field == F::Prompt { self.fill_prompt(text, at)? } else { self.fill(text, at)? };
        let is_empty = filled.trim().is_empty();
        match field {
            // A blank prompt is reported where it is, unless an image makes it needless; a blank id always is.
            F::Id if is_empty => Ok(Some(Made::Text(filled))),
            F::Prompt if !is_empty || !self.origin.own.says(F::Image) => Ok(Some(Made::Text(filled))),
            _ if is_empty => Ok(None),
            F::Duration => match seconds_in(&filled) {
                Some(seconds) => Ok(Some(Made::Whole(seconds))),
                None => self.whole(field, &filled, at).map(|number| Some(Made::Whole(number))),
            },
            // A cell may end with a blank, and no name does.
            _ => Ok(Some(Made::Text(filled.trim().to_owned()))),
        }
    }

    /// The defaults, if they set this field and the family does not skip it.
    pub(super) fn default_source(&mut self, field: Field) -> Result<Option<&'e Fields<'e>>, Reported> {
        if !self.origin.defaults.says(JobField::for_request_field(field)) {
            return Ok(None);
        }
        // The model decides whether a default applies to this job.
        if field != Field::Model && !self.make(F::Model) {
            return Err(Reported);
        }
        if self.model.is_some_and(|model| model.family.passes_over(field)) {
            self.passed_over.push(field);
            return Ok(None);
        }
        Ok(Some(self.origin.defaults))
    }

    fn family_default(&mut self, field: Field) -> Option<Made> {
        if field == Field::Model || !self.make(F::Model) {
            return None;
        }
        let family = self.model?.family;
        match field {
            Field::Duration => Some(Made::Whole(family.fields.duration.default)),
            _ => family.default_text(field).map(|text| Made::Text(text.to_owned())),
        }
    }

    fn look_up_model(&mut self) {
        if self.states[F::Model as usize] == State::Broken {
            return;
        }
        let (catalog, written) = (self.origin.inputs.catalog, self.made_text(F::Model));
        self.model = written.as_deref().and_then(|name| catalog.model(name));
        if self.model.is_none() {
            let names: Vec<&str> = catalog.model_names().collect();
            self.found.push(match written {
                Some(name) => error!(ModelUnknown, self.origin.location(F::Model), "unknown model `{name}`";
                    "{}", help_near(&name, "models", &names)),
                None => error!(ModelMissing, self.origin.own.at.value(), "this job has no `model`";
                    "write `model`, here or under `defaults`: {}", names.join(", ")),
            });
            self.states[F::Model as usize] = State::Broken;
        }
    }

    /// Renders a prompt, and reports an empty cell among its words, because the rest may have another meaning.
    fn fill_prompt(&mut self, text: &Text<'_>, at: impl Fn() -> Pointer) -> Result<String, Reported> {
        let filled = self.fill(text, &at)?;
        let holes = text.holes(self.scope.row.as_ref());
        self.found.extend(holes.into_iter().map(|(column, earlier)| lints::empty_cell(column, at(), earlier)));
        Ok(filled)
    }

    /// The prompt in a file, whose name may be a template.
    fn prompt_of_file(&mut self, source: &'e Fields<'e>) -> Result<Option<String>, Reported> {
        let at = || source.at(F::PromptFile);
        let Some(path) = source.values.text(F::PromptFile) else { return Ok(None) };
        let path = self.fill(path, at)?;
        if path.trim().is_empty() {
            return Ok(None);
        }
        let text = self.origin.inputs.prompt(path.trim());
        let text = text.as_ref().as_ref().map_err(|error| {
            self.found.push(unreadable(&format!("prompt file `{}`", path.trim()), error, at().value()));
            Reported
        })?;
        let before = self.found.len();
        let filled = self.compiled(text, at).and_then(|text| self.fill_prompt(&text, at));
        let is_here = |it: &&mut Diagnostic| matches!(&it.place, Location::Value(place, _) if *place == at());
        for diagnostic in self.found[before..].iter_mut().filter(is_here) {
            diagnostic.message = format!("in {}: {}", path.trim(), diagnostic.message);
        }
        filled.map(Some)
    }
}
