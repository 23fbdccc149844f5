//! The fields of one entry of `jobs`, or of `defaults`, with their templates compiled once for all rows.

use serde_yaml::Mapping;

use super::decode::WholeOrTemplate;
use super::diagnostic::Diagnostic;
use super::place::{Part, Place, Pointer};
use super::raw::{RawFields, RawJob};
use super::template::{TemplateError, Templates, Text};
use crate::domain::Field;

/// The texts of an entry or of the defaults, compiled.
pub struct Fields<'t> {
    pub(super) at: Pointer,
    texts: Vec<(&'static str, Text<'t>)>,
    pub(super) whole: Option<i64>,
    pub(super) image: Option<Vec<Text<'t>>>,
    pub(super) tags: Option<Vec<Text<'t>>>,
    pub(super) extra: Option<&'t Mapping>,
}

impl<'t> Fields<'t> {
    /// Compiles the fields of one entry, with its id.
    pub fn of_job(templates: &'t Templates, job: &'t RawJob, at: Pointer, found: &mut Vec<Diagnostic>) -> Self {
        let mut fields = Self::compile(templates, &job.fields, at, found);
        if let Some(id) = &job.id {
            fields.add(templates, "id", id, found);
        }
        fields
    }

    /// Compiles the fields of an entry or of the defaults.
    pub fn compile(templates: &'t Templates, raw: &'t RawFields, at: Pointer, found: &mut Vec<Diagnostic>) -> Self {
        let mut fields =
            Self { at, texts: Vec::new(), whole: None, image: None, tags: None, extra: raw.extra.as_ref() };
        let texts = [
            (Field::Model, &raw.model),
            (Field::Prompt, &raw.prompt),
            (Field::AspectRatio, &raw.aspect_ratio),
            (Field::Size, &raw.size),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                fields.add(templates, field.name(), text, found);
            }
        }
        match &raw.duration {
            Some(WholeOrTemplate::Whole(seconds)) => fields.whole = Some(*seconds),
            Some(WholeOrTemplate::Template(text)) => fields.add(templates, Field::Duration.name(), text, found),
            None => {}
        }
        fields.image = raw.image.as_ref().map(|list| fields.list(templates, "image", list, found));
        fields.tags = raw.tags.as_ref().map(|list| fields.list(templates, "tags", list, found));
        fields
    }

    fn add(&mut self, templates: &'t Templates, name: &'static str, text: &'t str, found: &mut Vec<Diagnostic>) {
        match templates.compile(text) {
            Ok(text) => self.texts.push((name, text)),
            Err(error) => found.push(template_finding(error, self.at.key(name))),
        }
    }

    fn list(
        &self,
        templates: &'t Templates,
        name: &str,
        list: &'t [String],
        found: &mut Vec<Diagnostic>,
    ) -> Vec<Text<'t>> {
        list.iter()
            .enumerate()
            .filter_map(|(index, text)| {
                let compiled = templates.compile(text);
                compiled.map_err(|error| found.push(template_finding(error, self.at.key(name).index(index)))).ok()
            })
            .collect()
    }

    /// A text that stands here, compiled.
    pub fn text(&self, name: &str) -> Option<&Text<'t>> {
        self.texts.iter().find(|(known, _)| *known == name).map(|(_, text)| text)
    }

    /// Whether the field stands here.
    pub fn has(&self, field: Field) -> bool {
        match field {
            Field::Duration => self.whole.is_some() || self.text(field.name()).is_some(),
            Field::Image => self.image.is_some(),
            _ => self.text(field.name()).is_some(),
        }
    }

    /// The place of a field here.
    pub fn place(&self, field: Field) -> Place {
        self.at.key(field.name()).value()
    }
}

/// A template that can't be read or filled in, as a finding about the text that holds it.
pub fn template_finding(error: TemplateError, at: Pointer) -> Diagnostic {
    let part = error.fragment.map_or(Part::Value, Part::Fragment);
    let mut finding = Diagnostic::error("template", error.message, Place::Value(at, part));
    finding.help = error.help;
    finding
}
