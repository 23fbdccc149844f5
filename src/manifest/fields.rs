//! The fields of one entry of `jobs`, or of `defaults`, with their templates compiled once for all rows.

use std::path::Path;

use serde_yaml::Mapping;

use super::decode::WholeOrTemplate;
use super::diagnostic::{Diagnostic, unreadable};
use super::place::{Place, Pointer};
use super::prompts::PromptFiles;
use super::raw::{RawFields, RawJob};
use super::template::{TemplateError, Templates, Text};

/// The texts of an entry or of the defaults, compiled.
pub struct Fields<'t> {
    pub(super) at: Pointer,
    texts: Vec<(&'static str, Text<'t>)>,
    wholes: Vec<(&'static str, i64)>,
    /// The prompt of `prompt_file`, where the file is named without a template.
    pub(super) prompt_in_file: Option<Text<'t>>,
    pub(super) image: Option<Vec<Text<'t>>>,
    pub(super) tags: Option<Vec<Text<'t>>>,
    pub(super) extra: Option<&'t Mapping>,
}

impl<'t> Fields<'t> {
    /// Compiles the fields of one entry, with its id.
    pub fn of_job(
        templates: &'t Templates,
        prompts: &'t PromptFiles,
        job: &'t RawJob,
        at: Pointer,
        found: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut fields = Self::compile(templates, prompts, &job.fields, at, found);
        if let Some(id) = &job.id {
            fields.add(templates, "id", id, found);
        }
        fields
    }

    /// Compiles the fields of an entry or of the defaults.
    pub fn compile(
        templates: &'t Templates,
        prompts: &'t PromptFiles,
        raw: &'t RawFields,
        at: Pointer,
        found: &mut Vec<Diagnostic>,
    ) -> Self {
        let (texts, wholes) = (Vec::new(), Vec::new());
        let extra = raw.extra.as_ref();
        let mut fields = Self { at, texts, wholes, prompt_in_file: None, image: None, tags: None, extra };
        let texts = [
            ("model", &raw.model),
            ("prompt", &raw.prompt),
            ("prompt_file", &raw.prompt_file),
            ("aspect_ratio", &raw.aspect_ratio),
            ("size", &raw.size),
            ("image_key", &raw.image_key),
            ("face", &raw.face),
            ("file", &raw.file),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                fields.add(templates, name, text, found);
            }
        }
        for (name, whole) in [("duration", &raw.duration), ("takes", &raw.takes)] {
            match whole {
                Some(WholeOrTemplate::Whole(number)) => fields.wholes.push((name, *number)),
                Some(WholeOrTemplate::Template(text)) => fields.add(templates, name, text, found),
                None => {}
            }
        }
        fields.read_prompt(templates, prompts, raw, found);
        fields.image = raw.image.as_ref().map(|list| fields.list(templates, "image", list, found));
        fields.tags = raw.tags.as_ref().map(|list| fields.list(templates, "tags", list, found));
        fields
    }

    fn read_prompt(
        &mut self,
        templates: &'t Templates,
        prompts: &'t PromptFiles,
        raw: &'t RawFields,
        found: &mut Vec<Diagnostic>,
    ) {
        let Some(path) = &raw.prompt_file else { return };
        let at = self.at.key("prompt_file");
        if raw.prompt.is_some() {
            let finding = Diagnostic::error("prompt-twice", "there is a `prompt` and a `prompt_file`", at.named());
            found.push(finding.with_help("keep one of the two: nobody can know which was meant"));
            return;
        }
        match prompts.known(path) {
            None => {}
            Some(Err(error)) => found.push(unreadable("the prompt file", Path::new(path), error, at.value())),
            Some(Ok(text)) => match templates.compile(text) {
                Ok(text) => self.prompt_in_file = Some(text),
                Err(error) => found.push(in_file(template_finding(error, at), path)),
            },
        }
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

    /// A whole number that stands here.
    pub fn whole(&self, name: &str) -> Option<i64> {
        self.wholes.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    }

    /// Whether something of this name stands here.
    pub fn says(&self, name: &str) -> bool {
        match name {
            "image" => self.image.is_some(),
            "prompt" => self.text(name).is_some() || self.text("prompt_file").is_some(),
            _ => self.whole(name).is_some() || self.text(name).is_some(),
        }
    }

    /// The place of a field here.
    pub fn place(&self, name: &str) -> Place {
        let name = if name == "prompt" && self.text(name).is_none() { "prompt_file" } else { name };
        self.at.key(name).value()
    }
}

/// A finding about the text of a file, which is named where the finding stands.
pub fn in_file(mut finding: Diagnostic, path: &str) -> Diagnostic {
    finding.message = format!("in {path}: {}", finding.message);
    finding
}

/// A template that can't be read or filled in, as a finding about the text that holds it.
pub fn template_finding(error: TemplateError, at: Pointer) -> Diagnostic {
    let part = error.part();
    let mut finding = Diagnostic::error("template", error.message, Place::Value(at, part));
    finding.help = error.help;
    finding
}
