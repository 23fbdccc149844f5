//! The plain fields of a job, which may use each other: each is made when it is first needed.

use std::path::Path;
use std::sync::Arc;

use minijinja::Value;

use super::fields::Fields;
use super::maker::{Maker, Reported, State, location_of};
use crate::domain::{Field, Rule};
use crate::manifest::raw::job_field::{JobField, JobField as F};
use crate::manifest::raw::table::wrong_type;
use crate::manifest::source::diagnostic::{Diagnostic, unreadable};
use crate::manifest::source::lints;
use crate::manifest::source::location::{Pointer, help_near};
use crate::manifest::template::engine::Text;

impl<'r, 't> Maker<'r, 't, '_> {
    /// Makes a plain field, and first those that it uses; false if that can't be done.
    pub(super) fn make(&mut self, field: JobField) -> bool {
        match self.states[field as usize] {
            State::Made => return true,
            State::Broken | State::Busy => return false,
            State::Unmade => {}
        }
        self.states[field as usize] = State::Busy;
        self.states[field as usize] = match self.value_of(field) {
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
    /// A template of the job itself that gives nothing, as for an empty cell of a spreadsheet, means "as usual".
    fn value_of(&mut self, field: JobField) -> Result<Option<Value>, Reported> {
        if let Some(value) = self.value_in_combination(field)? {
            return Ok(Some(value));
        }
        if let Some(value) = self.value_in(self.own, field)? {
            return Ok(Some(value));
        }
        let Some(of_request) = field.of_request() else { return Ok(None) };
        if let Some(source) = self.default_source(of_request)?
            && let Some(value) = self.value_in(source, field)?
        {
            return Ok(Some(value));
        }
        Ok(self.family_default(of_request))
    }

    /// The value that the job's combination of its matrix has for a field.
    fn value_in_combination(&mut self, field: JobField) -> Result<Option<Value>, Reported> {
        let name = field.name();
        let Some(cell) = self.combination.iter().find(|cell| cell.name == name) else { return Ok(None) };
        let source = match &cell.value {
            serde_yaml::Value::String(text) => text.clone(),
            serde_yaml::Value::Number(number) => number.to_string(),
            other => {
                self.found.push(wrong_type(
                    &format!("`{name}`"),
                    "a string or a number",
                    other,
                    cell.at.clone().value(),
                ));
                return Err(Reported);
            }
        };
        let at = || cell.at.clone();
        let filled = self.fill_source(&source, at)?;
        if field == F::Duration {
            return self.whole(field, &filled, at).map(|seconds| Some(seconds.into()));
        }
        Ok(Some(filled.into()))
    }

    /// The value that is in one of the two places, if one does and it is not empty.
    fn value_in(&mut self, source: &'r Fields<'t>, field: JobField) -> Result<Option<Value>, Reported> {
        if let Some(seconds) = source.whole(field) {
            return Ok(Some(seconds.into()));
        }
        if field == F::Prompt && source.text(F::PromptFile).is_some() {
            return self.prompt_of_file(source).map(|prompt| prompt.map(Value::from));
        }
        let Some(text) = source.text(field) else { return Ok(None) };
        if let Text::Plain(plain) = text {
            return Ok(Some((*plain).into()));
        }
        let at = || source.at(field);
        let filled = if field == F::Prompt { self.fill_prompt(text, at)? } else { self.fill(text, at)? };
        let is_empty = filled.trim().is_empty();
        match field {
            // A blank prompt is reported where it is, unless an image makes it needless; a blank id always is.
            F::Id => Ok(Some(filled.into())),
            F::Prompt if is_empty && !self.own.says(F::Image) => Ok(Some(filled.into())),
            _ if is_empty => Ok(None),
            F::Duration => self.whole(field, &filled, at).map(|number| Some(number.into())),
            _ => Ok(Some(filled.into())),
        }
    }

    /// The defaults, if they say something about this field and the family does not pass it over.
    pub(super) fn default_source(&mut self, field: Field) -> Result<Option<&'r Fields<'t>>, Reported> {
        if !self.defaults.says(JobField::of(field)) {
            return Ok(None);
        }
        // Without its model no one can say whether a default is for this job.
        if field != Field::Model && !self.make(F::Model) {
            return Err(Reported);
        }
        if self.model.is_some_and(|model| model.family.passes_over(field)) {
            self.passed_over.push(field);
            return Ok(None);
        }
        Ok(Some(self.defaults))
    }

    fn family_default(&mut self, field: Field) -> Option<Value> {
        if field == Field::Model || !self.make(F::Model) {
            return None;
        }
        let family = self.model?.family;
        match field {
            Field::Duration => Some(family.fields.duration.default.into()),
            _ => family.default_text(field).map(Value::from),
        }
    }

    fn look_up_model(&mut self) {
        let Some(name) = self.made_text(F::Model) else {
            if self.states[F::Model as usize] != State::Broken {
                let diagnostic =
                    Diagnostic::error(Rule::ModelMissing, "this job has no `model`", self.own.top().value());
                let names: Vec<&str> = self.catalog.model_names().collect();
                self.found.push(
                    diagnostic.with_help(format!("write `model`, here or under `defaults`: {}", names.join(", "))),
                );
                self.states[F::Model as usize] = State::Broken;
            }
            return;
        };
        self.model = self.catalog.model(&name);
        if self.model.is_none() {
            let names: Vec<&str> = self.catalog.model_names().collect();
            let place = location_of(F::Model, self.own, self.defaults, self.combination);
            let diagnostic = Diagnostic::error(Rule::ModelUnknown, format!("unknown model `{name}`"), place);
            self.found.push(diagnostic.with_help(help_near(&name, "models", &names)));
            self.states[F::Model as usize] = State::Broken;
        }
    }

    /// Fills a prompt in, and tells of a cell that is empty among its words: what is left may say something else.
    fn fill_prompt(&mut self, text: &Text<'_>, at: impl Fn() -> Pointer) -> Result<String, Reported> {
        let filled = self.fill(text, &at)?;
        let holes = text.holes(self.scope.row.as_ref());
        self.found.extend(holes.into_iter().map(|(column, earlier)| lints::empty_cell(column, at(), earlier)));
        Ok(filled)
    }

    /// The prompt of a file, which is named as it is or by a template.
    fn prompt_of_file(&mut self, source: &'r Fields<'t>) -> Result<Option<String>, Reported> {
        let at = || source.at(F::PromptFile);
        if let Some(text) = &source.prompt_in_file {
            return self.fill_prompt(text, at).map(Some);
        }
        let Some(path) = source.text(F::PromptFile) else { return Ok(None) };
        let path = self.fill(path, at)?;
        if path.trim().is_empty() {
            return Ok(None);
        }
        let text = self.prompts.read_one(path.trim()).map_err(|error| {
            self.found.push(unreadable("prompt file", Path::new(path.trim()), &error, at().value()));
            Reported
        })?;
        self.fill_source(&text, at).map(Some)
    }
}
