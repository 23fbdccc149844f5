//! One entry of `jobs` with one row: chooses between the job's own fields and the defaults, and fills the templates in.
//!
//! A job's fields may use each other (`id: "{{ model }}-{{ duration }}"`), so each is made when it is first needed.

use std::path::Path;

use minijinja::Value;
use minijinja::value::Serde;

use super::decode::{help_with_whole, whole_in, wrong_type};
use super::diagnostic::{Diagnostic, unreadable};
use super::fields::{Fields, template_finding};
use super::matrix::Cell;
use super::place::{Part, Place, Pointer};
use super::prompts::PromptFiles;
use super::rows::Row;
use super::slips;
use super::suggest;
use super::template::{Scope, Templates, Text};
use crate::catalog::{Catalog, Model};
use crate::domain::{Field, Spec};

/// What an entry became with one row.
pub struct Rendered<'c> {
    /// The id, if it could be made.
    pub id: Option<String>,
    /// The fields, before the family's defaults.
    pub spec: Spec,
    /// The model, if it is known.
    pub model: Option<Model<'c>>,
    /// The labels.
    pub tags: Vec<String>,
    /// How many takes there are.
    pub takes: u32,
    /// Where each take's video goes, if that is said.
    pub files: Option<Vec<String>>,
    /// Defaults that the family does not take, and that were passed over.
    pub passed_over: Vec<Field>,
    /// What went wrong.
    pub found: Vec<Diagnostic>,
}

/// Something could not be made, and that was told.
pub(super) struct Told;

/// How far a plain field is.
#[derive(Clone, PartialEq)]
enum State {
    Unmade,
    /// Being made: to need it now is a circle.
    Busy,
    /// Could not be made, which was told.
    Broken,
    /// Made, though it may have no value.
    Made,
}

/// The plain fields that templates may use.
pub const PLAIN: [&str; 7] = ["model", "duration", "aspect_ratio", "size", "face", "prompt", "id"];

/// What an entry is made of, the same for all of its rows and combinations.
#[derive(Clone, Copy)]
pub struct Entry<'r, 't, 'c> {
    /// The engine.
    pub templates: &'r Templates,
    /// The families.
    pub catalog: &'c Catalog,
    /// The files of prompts.
    pub prompts: &'r PromptFiles,
    /// The entry's own fields.
    pub own: &'r Fields<'t>,
    /// The defaults.
    pub defaults: &'r Fields<'t>,
}

pub(super) struct Maker<'r, 't, 'c> {
    templates: &'r Templates,
    catalog: &'c Catalog,
    prompts: &'r PromptFiles,
    pub(super) own: &'r Fields<'t>,
    pub(super) defaults: &'r Fields<'t>,
    combination: &'r [Cell],
    cells: [State; PLAIN.len()],
    pub(super) scope: Scope,
    pub(super) model: Option<Model<'c>>,
    passed_over: Vec<Field>,
    pub(super) found: Vec<Diagnostic>,
}

/// Makes one job's fields.
pub fn render<'c>(entry: Entry<'_, '_, 'c>, row: Option<&Row>, combination: &[Cell]) -> Rendered<'c> {
    let Entry { templates, catalog, prompts, own, defaults } = entry;
    let other = combination.iter().filter(|cell| !PLAIN.contains(&cell.name.as_str()));
    let scope = Scope {
        row: row.map(|row| row.value.clone()),
        row_number: row.map(|row| row.number),
        fields: Vec::with_capacity(PLAIN.len()),
        matrix: other.map(|cell| (cell.name.clone(), Value::from(Serde(cell.value.clone())))).collect(),
    };
    let mut maker = Maker {
        templates,
        catalog,
        prompts,
        own,
        defaults,
        combination,
        cells: [const { State::Unmade }; PLAIN.len()],
        scope,
        model: None,
        passed_over: Vec::new(),
        found: Vec::new(),
    };
    for name in PLAIN {
        maker.make(name);
    }
    let spec = Spec {
        model: maker.made_text("model").unwrap_or_default(),
        prompt: maker.made_text("prompt"),
        duration: maker.made("duration").and_then(Value::as_i64),
        aspect_ratio: maker.made_text("aspect_ratio"),
        size: maker.made_text("size"),
        image: maker.images(),
        face: maker.made_text("face"),
        image_key: maker.image_key(),
        extra: maker.extra(),
    };
    if let Some(prompt) = &spec.prompt {
        let scope = &maker.scope;
        let names = || {
            let columns = scope.row.iter().filter_map(|row| row.try_iter().ok()).flatten().map(|name| name.to_string());
            let others = scope.matrix.iter().map(|(name, _)| name.clone());
            templates.names().map(str::to_owned).chain(columns).chain(others).collect()
        };
        let slip = slips::leftover(prompt, names, || place_of("prompt", own, defaults, combination));
        maker.found.extend(slip);
    }
    let tags = maker.tags();
    let id = maker.made_text("id");
    let takes = maker.takes();
    let files = id.as_deref().and_then(|id| maker.files(id, takes));
    let Maker { model, passed_over, found, .. } = maker;
    Rendered { id, spec, model, tags, takes, files, passed_over, found }
}

impl<'r, 't> Maker<'r, 't, '_> {
    /// Makes a plain field, and first those that it uses; false if that can't be done.
    fn make(&mut self, name: &'static str) -> bool {
        let Some(index) = PLAIN.iter().position(|plain| *plain == name) else { return true };
        match self.cells[index] {
            State::Made => return true,
            State::Broken | State::Busy => return false,
            State::Unmade => {}
        }
        self.cells[index] = State::Busy;
        self.cells[index] = match self.value_of(name) {
            Ok(value) => {
                self.scope.fields.extend(value.map(|value| (name, value)));
                State::Made
            }
            Err(Told) => State::Broken,
        };
        if name == "model" {
            self.look_up_model();
        }
        self.cells[index] != State::Broken
    }

    /// The value of a plain field, if it has one: the job's own, else the default, else the family's.
    ///
    /// A template of the job itself that gives nothing, as for an empty cell of a spreadsheet, means "as usual".
    fn value_of(&mut self, name: &'static str) -> Result<Option<Value>, Told> {
        let field = Field::named(name);
        if let Some(value) = self.value_in_combination(name)? {
            return Ok(Some(value));
        }
        if let Some(value) = self.value_in(self.own, name)? {
            return Ok(Some(value));
        }
        let Some(field) = field else { return Ok(None) };
        if let Some(source) = self.default_source(field)?
            && let Some(value) = self.value_in(source, name)?
        {
            return Ok(Some(value));
        }
        Ok(self.family_default(field))
    }

    /// The value that the job's combination of its matrix has for a field.
    fn value_in_combination(&mut self, name: &'static str) -> Result<Option<Value>, Told> {
        let Some(cell) = self.combination.iter().find(|cell| cell.name == name) else { return Ok(None) };
        let source = match &cell.value {
            serde_yaml::Value::String(text) => text.clone(),
            serde_yaml::Value::Number(number) => number.to_string(),
            other => {
                self.found.push(wrong_type(&format!("`{name}`"), "a text or a number", other, cell.at.clone().value()));
                return Err(Told);
            }
        };
        let filled = self.fill_source(&source, cell.at.clone())?;
        if name == "duration" {
            return self.whole(name, &filled, cell.at.clone()).map(|seconds| Some(seconds.into()));
        }
        Ok(Some(filled.into()))
    }

    /// The value that stands in one of the two places, if one does and it is not empty.
    fn value_in(&mut self, source: &'r Fields<'t>, name: &'static str) -> Result<Option<Value>, Told> {
        if let Some(seconds) = source.whole(name) {
            return Ok(Some(seconds.into()));
        }
        if name == "prompt" && source.text("prompt_file").is_some() {
            return self.prompt_of_file(source).map(|prompt| prompt.map(Value::from));
        }
        let Some(text) = source.text(name) else { return Ok(None) };
        // Most texts are plain, and need no place to be told at.
        if let Text::Plain(plain) = text {
            return Ok(Some((*plain).into()));
        }
        let at = source.at.key(name);
        let filled = self.fill(text, at.clone())?;
        let is_empty = filled.trim().is_empty();
        match name {
            // A blank prompt is told where it stands, unless an image makes it needless; a blank id always is.
            "id" => Ok(Some(filled.into())),
            "prompt" if is_empty && self.own.image.is_none() => Ok(Some(filled.into())),
            _ if is_empty => Ok(None),
            "duration" => self.whole(name, &filled, at).map(|seconds| Some(seconds.into())),
            _ => Ok(Some(filled.into())),
        }
    }

    /// The defaults, if they say something about this field and the family does not pass it over.
    pub(super) fn default_source(&mut self, field: Field) -> Result<Option<&'r Fields<'t>>, Told> {
        if !self.defaults.says(field.name()) {
            return Ok(None);
        }
        // Without its model nobody can say whether a default is for this job.
        if field != Field::Model && !self.make("model") {
            return Err(Told);
        }
        if self.model.is_some_and(|model| model.family.passes_over(field)) {
            self.passed_over.push(field);
            return Ok(None);
        }
        Ok(Some(self.defaults))
    }

    fn family_default(&mut self, field: Field) -> Option<Value> {
        if field == Field::Model || !self.make("model") {
            return None;
        }
        let rules = &self.model?.family.fields;
        match field {
            Field::Duration => Some(rules.duration.default.into()),
            Field::AspectRatio => Some(rules.aspect_ratio.as_ref()?.default.clone().into()),
            _ => None,
        }
    }

    pub(super) fn fill(&mut self, text: &Text<'_>, at: Pointer) -> Result<String, Told> {
        if let Text::Template(_, names) = text {
            for plain in PLAIN.into_iter().filter(|plain| names.iter().any(|name| name == plain)) {
                if self.make(plain) {
                    continue;
                }
                if self.is_busy(plain) {
                    let message = format!("`{plain}` is used to make itself");
                    let place = Place::Value(at, Part::Fragment(plain.to_owned(), 0));
                    self.found.push(Diagnostic::error("template-circle", message, place));
                }
                return Err(Told);
            }
        }
        self.templates.render(text, &self.scope).map_err(|error| {
            self.found.push(template_finding(error, at));
            Told
        })
    }

    fn is_busy(&self, plain: &str) -> bool {
        PLAIN.iter().zip(&self.cells).any(|(name, cell)| *name == plain && *cell == State::Busy)
    }

    /// The prompt of a file, which is named as it is or by a template.
    fn prompt_of_file(&mut self, source: &'r Fields<'t>) -> Result<Option<String>, Told> {
        let at = source.at.key("prompt_file");
        if let Some(text) = &source.prompt_in_file {
            return self.fill(text, at).map(Some);
        }
        let Some(path) = source.text("prompt_file") else { return Ok(None) };
        let path = self.fill(path, at.clone())?;
        if path.trim().is_empty() {
            return Ok(None);
        }
        let text = self.prompts.read_one(path.trim()).map_err(|error| {
            self.found.push(unreadable("the prompt file", Path::new(path.trim()), &error, at.clone().value()));
            Told
        })?;
        self.fill_source(&text, at).map(Some)
    }

    /// Compiles and fills in a text that is met only now.
    pub(super) fn fill_source(&mut self, source: &str, at: Pointer) -> Result<String, Told> {
        let templates = self.templates;
        match templates.compile(source) {
            Ok(text) => self.fill(&text, at),
            Err(error) => {
                self.found.push(template_finding(error, at));
                Err(Told)
            }
        }
    }

    pub(super) fn whole(&mut self, name: &str, filled: &str, at: Pointer) -> Result<i64, Told> {
        whole_in(filled).ok_or_else(|| {
            let message = format!("`{name}` must be a whole number, and this gives `{}`", filled.trim());
            let finding = Diagnostic::error("wrong-type", message, at.value());
            self.found.push(finding.with_help(help_with_whole(filled)));
            Told
        })
    }

    fn look_up_model(&mut self) {
        let Some(name) = self.made_text("model") else {
            if self.cells[0] != State::Broken {
                let finding =
                    Diagnostic::error("model-missing", "this job has no `model`", self.own.at.clone().value());
                let names: Vec<&str> = self.catalog.model_names().collect();
                self.found
                    .push(finding.with_help(format!("write `model`, here or under `defaults`: {}", names.join(", "))));
                self.cells[0] = State::Broken;
            }
            return;
        };
        self.model = self.catalog.model(&name);
        if self.model.is_none() {
            let names: Vec<&str> = self.catalog.model_names().collect();
            let place = place_of("model", self.own, self.defaults, self.combination);
            let finding = Diagnostic::error("model-unknown", format!("unknown model `{name}`"), place);
            self.found.push(finding.with_help(suggest::help(&name, "models", &names)));
            self.cells[0] = State::Broken;
        }
    }

    fn made(&self, name: &str) -> Option<&Value> {
        self.scope.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn made_text(&self, name: &str) -> Option<String> {
        self.made(name).map(ToString::to_string)
    }
}

/// Where a field was written: in the matrix, on the job, under the defaults, or nowhere, which is about the job.
pub fn place_of(name: &str, own: &Fields<'_>, defaults: &Fields<'_>, combination: &[Cell]) -> Place {
    if let Some(cell) = combination.iter().find(|cell| cell.name == name) {
        return cell.at.clone().value();
    }
    if own.says(name) {
        own.place(name)
    } else if defaults.says(name) {
        defaults.place(name)
    } else {
        own.at.key("id").value()
    }
}
