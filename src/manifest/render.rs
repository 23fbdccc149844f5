//! One entry of `jobs` with one row: chooses between the job's own fields and the defaults, and fills the templates in.
//!
//! A job's fields may use each other (`id: "{{ model }}-{{ duration }}"`), so each is made when it is first needed.

use minijinja::Value;

use super::diagnostic::Diagnostic;
use super::fields::{Fields, template_finding};
use super::place::{Part, Place, Pointer};
use super::rows::Row;
use super::suggest;
use super::template::{Scope, Templates, Text, is_template};
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
    /// Defaults that the family does not take, and that were passed over.
    pub passed_over: Vec<Field>,
    /// What went wrong.
    pub found: Vec<Diagnostic>,
}

/// Something could not be made, and that was told.
struct Told;

/// How far a plain field is.
#[derive(Clone, PartialEq)]
enum Cell {
    Unmade,
    /// Being made: to need it now is a circle.
    Busy,
    /// Could not be made, which was told.
    Broken,
    /// Made, though it may have no value.
    Made,
}

/// The plain fields that templates may use.
const PLAIN: [&str; 6] = ["model", "duration", "aspect_ratio", "size", "prompt", "id"];

struct Maker<'r, 't, 'c> {
    templates: &'r Templates,
    catalog: &'c Catalog,
    own: &'r Fields<'t>,
    defaults: &'r Fields<'t>,
    cells: [Cell; PLAIN.len()],
    scope: Scope,
    model: Option<Model<'c>>,
    passed_over: Vec<Field>,
    found: Vec<Diagnostic>,
}

/// Makes one job's fields.
pub fn render<'c>(
    templates: &Templates,
    catalog: &'c Catalog,
    own: &Fields<'_>,
    defaults: &Fields<'_>,
    row: Option<&Row>,
) -> Rendered<'c> {
    let mut maker = Maker {
        templates,
        catalog,
        own,
        defaults,
        cells: [const { Cell::Unmade }; PLAIN.len()],
        scope: Scope { row: row.map(|row| row.value.clone()), fields: Vec::with_capacity(PLAIN.len()) },
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
        face: None,
        extra: maker.extra(),
    };
    let tags = maker.tags();
    let id = maker.made_text("id");
    let Maker { model, passed_over, found, .. } = maker;
    Rendered { id, spec, model, tags, passed_over, found }
}

impl<'r, 't> Maker<'r, 't, '_> {
    /// Makes a plain field, and first those that it uses; false if that can't be done.
    fn make(&mut self, name: &'static str) -> bool {
        let Some(index) = PLAIN.iter().position(|plain| *plain == name) else { return true };
        match self.cells[index] {
            Cell::Made => return true,
            Cell::Broken | Cell::Busy => return false,
            Cell::Unmade => {}
        }
        self.cells[index] = Cell::Busy;
        self.cells[index] = match self.value_of(name) {
            Ok(value) => {
                self.scope.fields.extend(value.map(|value| (name, value)));
                Cell::Made
            }
            Err(Told) => Cell::Broken,
        };
        if name == "model" {
            self.look_up_model();
        }
        self.cells[index] != Cell::Broken
    }

    /// The value of a plain field, if it has one: the job's own, else the default, else the family's.
    ///
    /// A template of the job itself that gives nothing, as for an empty cell of a spreadsheet, means "as usual".
    fn value_of(&mut self, name: &'static str) -> Result<Option<Value>, Told> {
        let field = Field::named(name);
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

    /// The value that stands in one of the two places, if one does and it is not empty.
    fn value_in(&mut self, source: &'r Fields<'t>, name: &'static str) -> Result<Option<Value>, Told> {
        if name == "duration"
            && let Some(seconds) = source.whole
        {
            return Ok(Some(seconds.into()));
        }
        let Some(text) = source.text(name) else { return Ok(None) };
        let at = source.at.key(name);
        let filled = self.fill(text, at.clone())?;
        let is_empty = matches!(text, Text::Template(..)) && filled.trim().is_empty();
        match name {
            // A blank prompt is told where it stands, unless an image makes it needless; a blank id always is.
            "id" => Ok(Some(filled.into())),
            "prompt" if is_empty && self.own.image.is_none() => Ok(Some(filled.into())),
            _ if is_empty => Ok(None),
            "duration" => self.whole(&filled, at).map(|seconds| Some(seconds.into())),
            _ => Ok(Some(filled.into())),
        }
    }

    /// The defaults, if they say something about this field and the family does not pass it over.
    fn default_source(&mut self, field: Field) -> Result<Option<&'r Fields<'t>>, Told> {
        if !self.defaults.has(field) {
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

    fn fill(&mut self, text: &Text<'_>, at: Pointer) -> Result<String, Told> {
        if let Text::Template(_, names) = text {
            for plain in PLAIN.into_iter().filter(|plain| names.iter().any(|name| name == plain)) {
                if self.make(plain) {
                    continue;
                }
                if self.is_busy(plain) {
                    let message = format!("`{plain}` is used to make itself");
                    let place = Place::Value(at, Part::Fragment(plain.to_owned()));
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
        PLAIN.iter().zip(&self.cells).any(|(name, cell)| *name == plain && *cell == Cell::Busy)
    }

    fn whole(&mut self, filled: &str, at: Pointer) -> Result<i64, Told> {
        filled.trim().parse().map_err(|_| {
            let message = format!("`duration` must be a whole number, and the template gives `{}`", filled.trim());
            self.found.push(Diagnostic::error("wrong-type", message, at.value()));
            Told
        })
    }

    fn look_up_model(&mut self) {
        let Some(name) = self.made_text("model") else {
            if self.cells[0] != Cell::Broken {
                let finding =
                    Diagnostic::error("model-missing", "this job has no `model`", self.own.at.clone().value());
                let names: Vec<&str> = self.catalog.model_names().collect();
                self.found
                    .push(finding.with_help(format!("write `model`, here or under `defaults`: {}", names.join(", "))));
                self.cells[0] = Cell::Broken;
            }
            return;
        };
        self.model = self.catalog.model(&name);
        if self.model.is_none() {
            let source = if self.own.has(Field::Model) { self.own } else { self.defaults };
            let names: Vec<&str> = self.catalog.model_names().collect();
            let finding =
                Diagnostic::error("model-unknown", format!("unknown model `{name}`"), source.place(Field::Model));
            self.found.push(finding.with_help(suggest::help(&name, "models", &names)));
            self.cells[0] = Cell::Broken;
        }
    }

    fn images(&mut self) -> Vec<String> {
        let own = self.fill_list(self.own.image.as_deref(), &self.own.at.key("image"));
        match self.default_source(Field::Image) {
            Ok(Some(source)) if own.is_empty() => self.fill_list(source.image.as_deref(), &source.at.key("image")),
            _ => own,
        }
    }

    fn tags(&mut self) -> Vec<String> {
        let source = if self.own.tags.is_some() { self.own } else { self.defaults };
        self.fill_list(source.tags.as_deref(), &source.at.key("tags"))
    }

    fn fill_list(&mut self, list: Option<&[Text<'_>]>, at: &Pointer) -> Vec<String> {
        let texts = list.unwrap_or_default().iter().enumerate();
        let filled: Vec<String> = texts.filter_map(|(index, text)| self.fill(text, at.index(index)).ok()).collect();
        filled.into_iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
    }

    /// The defaults' `extra` with the job's own on top, templates filled in, as JSON.
    fn extra(&mut self) -> serde_json::Map<String, serde_json::Value> {
        let mut merged = serde_json::Map::new();
        for source in [self.defaults, self.own] {
            let at = source.at.key("extra");
            for (key, value) in source.extra.into_iter().flatten() {
                let Some(name) = key.as_str() else {
                    self.found.push(Diagnostic::error(
                        "key-not-text",
                        "a field's name must be a text",
                        at.clone().value(),
                    ));
                    continue;
                };
                if let Some(value) = self.extra_value(name, value, at.key(name)) {
                    merged.insert(name.to_owned(), value);
                }
            }
        }
        merged
    }

    fn extra_value(&mut self, name: &str, value: &serde_yaml::Value, at: Pointer) -> Option<serde_json::Value> {
        let documented = Field::named(name).is_some_and(|field| self.model.is_some_and(|m| m.family.takes(field)));
        if documented {
            let message = format!("`extra` can't say `{name}`: the interface documents that field");
            let help = format!("write `{name}` on the job itself, where it is checked and priced");
            self.found.push(Diagnostic::error("extra-contradicts", message, at.named()).with_help(help));
            return None;
        }
        match serde_json::to_value(value) {
            Ok(json) => self.fill_json(json, &at),
            Err(error) => {
                let message = format!("`{name}` can't be sent as JSON: {error}");
                self.found.push(Diagnostic::error("extra-not-json", message, at.value()));
                None
            }
        }
    }

    fn fill_json(&mut self, value: serde_json::Value, at: &Pointer) -> Option<serde_json::Value> {
        use serde_json::Value as Json;
        Some(match value {
            Json::String(source) if is_template(&source) => {
                let templates = self.templates;
                match templates.compile(&source) {
                    Ok(text) => Json::String(self.fill(&text, at.clone()).ok()?),
                    Err(error) => {
                        self.found.push(template_finding(error, at.clone()));
                        return None;
                    }
                }
            }
            Json::Array(items) => Json::Array(items.into_iter().filter_map(|item| self.fill_json(item, at)).collect()),
            Json::Object(fields) => Json::Object(
                fields.into_iter().filter_map(|(key, value)| Some((key, self.fill_json(value, at)?))).collect(),
            ),
            scalar => scalar,
        })
    }

    fn made(&self, name: &str) -> Option<&Value> {
        self.scope.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn made_text(&self, name: &str) -> Option<String> {
        self.made(name).map(ToString::to_string)
    }
}
