//! The fields of one entry of `jobs`, or of `defaults`, with their templates compiled once for all rows. Images and prompts from files are read once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_yaml::Mapping;

use crate::domain::{LocalImage, Rule};
use crate::manifest::raw::decode::{RawFields, RawJob};
use crate::manifest::raw::job_field::{JobField, JobField as F};
use crate::manifest::raw::table::WholeOrTemplate;
use crate::manifest::source::diagnostic::{Diagnostic, unreadable};
use crate::manifest::source::location::{Location, Pointer};
use crate::manifest::source::text::{FileAccess, TextError};
use crate::manifest::template::bounds::template_diagnostic;
use crate::manifest::template::engine::{Templates, Text, is_template};

/// The texts of an entry or of the defaults, compiled.
pub(super) struct Fields<'t> {
    at: Pointer,
    texts: Vec<(JobField, Text<'t>)>,
    wholes: Vec<(JobField, i64)>,
    /// True if `takes` is the most that are bought until one is kept.
    pub(super) until_kept: bool,
    /// The prompt of `prompt_file`, where the file is named without a template.
    pub(super) prompt_in_file: Option<Text<'t>>,
    pub(super) image: Option<Vec<Text<'t>>>,
    /// The local images.
    pub(super) image_files: Option<Vec<Text<'t>>>,
    pub(super) tags: Option<Vec<Text<'t>>>,
    pub(super) labels: Vec<(&'t str, Text<'t>)>,
    pub(super) extra: Option<&'t Mapping>,
}

impl<'t> Fields<'t> {
    /// Compiles the fields of one entry, with its id. The prompt is that of the file which it names without a template.
    pub(super) fn of_job(
        templates: &'t Templates,
        prompt_in_file: Option<&'t PromptText>,
        job: &'t RawJob,
        at: Pointer,
        found: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut fields = Self::compile(templates, prompt_in_file, &job.fields, at, found);
        if let Some(id) = &job.id {
            fields.add(templates, F::Id, id, found);
        }
        fields
    }

    /// Compiles the fields of an entry or of the defaults.
    pub(super) fn compile(
        templates: &'t Templates,
        prompt_in_file: Option<&'t PromptText>,
        raw: &'t RawFields,
        at: Pointer,
        found: &mut Vec<Diagnostic>,
    ) -> Self {
        let (texts, wholes) = (Vec::new(), Vec::new());
        let (until_kept, extra) = (raw.until_kept, raw.extra.as_ref());
        let mut fields = Self {
            at,
            texts,
            wholes,
            until_kept,
            prompt_in_file: None,
            image: None,
            image_files: None,
            tags: None,
            labels: Vec::new(),
            extra,
        };
        let texts = [
            (F::Model, &raw.model),
            (F::Prompt, &raw.prompt),
            (F::PromptFile, &raw.prompt_file),
            (F::AspectRatio, &raw.aspect_ratio),
            (F::Size, &raw.size),
            (F::ImageKey, &raw.image_key),
            (F::Face, &raw.face),
            (F::File, &raw.file),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                fields.add(templates, field, text, found);
            }
        }
        for (field, whole) in [(F::Duration, &raw.duration), (F::Takes, &raw.takes)] {
            match whole {
                Some(WholeOrTemplate::Whole(number)) => fields.wholes.push((field, *number)),
                Some(WholeOrTemplate::Template(text)) => fields.add(templates, field, text, found),
                None => {}
            }
        }
        fields.read_prompt(templates, prompt_in_file, raw, found);
        if raw.image.is_some() && raw.image_file.is_some() {
            found.push(fields.twice(Rule::ImageConflict, F::Image, F::ImageFile));
        }
        fields.image = raw.image.as_ref().map(|list| fields.list(templates, F::Image, list, found));
        fields.image_files = raw.image_file.as_ref().map(|list| fields.list(templates, F::ImageFile, list, found));
        fields.tags = raw.tags.as_ref().map(|list| fields.list(templates, F::Tags, list, found));
        for (name, value) in raw.labels.iter().flatten() {
            match templates.compile(value) {
                Ok(value) => fields.labels.push((name, value)),
                Err(error) => found.push(template_diagnostic(error, fields.at(F::Labels).key(name))),
            }
        }
        fields
    }

    fn read_prompt(
        &mut self,
        templates: &'t Templates,
        prompt_in_file: Option<&'t PromptText>,
        raw: &'t RawFields,
        found: &mut Vec<Diagnostic>,
    ) {
        let Some(path) = &raw.prompt_file else { return };
        let at = self.at(F::PromptFile);
        if raw.prompt.is_some() {
            found.push(self.twice(Rule::PromptConflict, F::Prompt, F::PromptFile));
            return;
        }
        match prompt_in_file {
            None => {}
            Some(Err(error)) => found.push(unreadable("prompt file", Path::new(path), error, at.value())),
            Some(Ok(text)) => match templates.compile(text) {
                Ok(text) => self.prompt_in_file = Some(text),
                Err(error) => found.push(in_file(template_diagnostic(error, at), path)),
            },
        }
    }

    /// Two fields say the same thing.
    fn twice(&self, rule: Rule, one: JobField, other: JobField) -> Diagnostic {
        let message = format!("found both `{}` and `{}`", one.name(), other.name());
        let diagnostic = Diagnostic::error(rule, message, self.at(other).named());
        diagnostic.with_help("keep one of the two")
    }

    fn add(&mut self, templates: &'t Templates, field: JobField, text: &'t str, found: &mut Vec<Diagnostic>) {
        match templates.compile(text) {
            Ok(text) => self.texts.push((field, text)),
            Err(error) => found.push(template_diagnostic(error, self.at(field))),
        }
    }

    fn list(
        &self,
        templates: &'t Templates,
        field: JobField,
        list: &'t [String],
        found: &mut Vec<Diagnostic>,
    ) -> Vec<Text<'t>> {
        list.iter()
            .enumerate()
            .filter_map(|(index, text)| {
                let compiled = templates.compile(text);
                compiled.map_err(|error| found.push(template_diagnostic(error, self.at(field).index(index)))).ok()
            })
            .collect()
    }

    /// The entry, or the defaults, as a whole.
    pub(super) fn top(&self) -> Pointer {
        self.at.clone()
    }

    /// The location of a field's value, present or not.
    pub(super) fn at(&self, field: JobField) -> Pointer {
        self.at.key(field.name())
    }

    /// A text that is here, compiled.
    pub(super) fn text(&self, field: JobField) -> Option<&Text<'t>> {
        self.texts.iter().find(|(known, _)| *known == field).map(|(_, text)| text)
    }

    /// A whole number that is here.
    pub(super) fn whole(&self, field: JobField) -> Option<i64> {
        self.wholes.iter().find(|(known, _)| *known == field).map(|(_, number)| *number)
    }

    /// Returns whether the field is set here.
    pub(super) fn says(&self, field: JobField) -> bool {
        match field {
            F::Image => self.image.is_some() || self.image_files.is_some(),
            F::Prompt => self.text(field).is_some() || self.text(F::PromptFile).is_some(),
            _ => self.whole(field).is_some() || self.text(field).is_some(),
        }
    }

    /// The location of a field here.
    pub(super) fn location(&self, field: JobField) -> Location {
        let field = match field {
            F::Prompt if self.text(field).is_none() => F::PromptFile,
            F::Image if self.image.is_none() => F::ImageFile,
            field => field,
        };
        self.at(field).value()
    }
}

/// A diagnostic about the text of a file, which is named where the diagnostic stands.
pub(super) fn in_file(mut diagnostic: Diagnostic, path: &str) -> Diagnostic {
    diagnostic.message = format!("in {path}: {}", diagnostic.message);
    diagnostic
}

/// The images that were read.
pub(crate) struct LocalImages {
    access: FileAccess,
    read: Mutex<HashMap<String, Arc<Result<LocalImage, Unusable>>>>,
}

/// The reason why a file can't be an image.
pub(super) enum Unusable {
    /// It can't be read.
    Unreadable(TextError),
    /// It is something else.
    NoPicture,
}

impl LocalImages {
    /// Of the files that a manifest may read.
    pub(crate) fn new(access: &FileAccess) -> Self {
        Self { access: access.clone(), read: Mutex::default() }
    }

    /// The image of this name.
    pub(super) fn read(&self, name: &str) -> Arc<Result<LocalImage, Unusable>> {
        let mut read = self.read.lock();
        Arc::clone(read.entry(name.to_owned()).or_insert_with(|| Arc::new(self.read_one(name))))
    }

    fn read_one(&self, name: &str) -> Result<LocalImage, Unusable> {
        let (path, bytes) = self.access.read_bytes(name, LocalImage::MAX_BYTES).map_err(Unusable::Unreadable)?;
        if is_image(&bytes) { Ok(LocalImage::new(path, &bytes)) } else { Err(Unusable::NoPicture) }
    }
}

/// Returns whether a file begins as an image in a format of the web.
fn is_image(bytes: &[u8]) -> bool {
    let begins = |start: &[u8]| bytes.starts_with(start);
    let holds = |at: usize, words: &[&[u8]]| words.iter().any(|word| bytes.get(at..at + word.len()) == Some(*word));
    begins(b"\x89PNG\r\n\x1a\n")
        || begins(b"\xff\xd8\xff")
        || begins(b"GIF8")
        || (begins(b"RIFF") && holds(8, &[b"WEBP"]))
        || (holds(4, &[b"ftyp"]) && holds(8, &[b"avif", b"heic", b"heix", b"mif1"]))
}

/// The largest file of a prompt, in bytes: many times what any family takes.
const MAX_PROMPT_BYTES: u64 = 256 * 1024;

/// The text of a file, or the reason why it can't be read.
pub(crate) type PromptText = Result<String, TextError>;

/// The prompts that the manifest names without a template, each read once.
pub(crate) struct PromptFiles<'a> {
    access: &'a FileAccess,
    texts: Mutex<HashMap<String, Arc<PromptText>>>,
}

impl<'a> PromptFiles<'a> {
    /// None yet. Paths are relative to the manifest's directory, and stay in it.
    pub(crate) fn new(access: &'a FileAccess) -> Self {
        Self { access, texts: Mutex::default() }
    }

    /// The prompt of the file that an entry names as it is.
    pub(super) fn named_by(&self, fields: &RawFields) -> Option<Arc<PromptText>> {
        let path = fields.prompt_file.as_deref().filter(|path| !is_template(path))?;
        let mut texts = self.texts.lock();
        if !texts.contains_key(path) {
            texts.insert(path.to_owned(), Arc::new(self.read_one(path)));
        }
        texts.get(path).cloned()
    }

    /// Reads the prompt of a file, without the line break that editors end a file with.
    pub(crate) fn read_one(&self, path: &str) -> Result<String, TextError> {
        let text = self.access.read(path, MAX_PROMPT_BYTES)?;
        Ok(text.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_reported_by_how_it_begins() {
        let images: [&[u8]; 6] = [
            b"\x89PNG\r\n\x1a\n....",
            b"\xff\xd8\xff\xe0..",
            b"GIF89a",
            b"RIFF\x01\x02\x03\x04WEBPVP8 ",
            b"\0\0\0\x20ftypavif",
            b"\0\0\0\x18ftypheic",
        ];
        for bytes in images {
            assert!(is_image(bytes), "{bytes:?}");
        }
        let others: [&[u8]; 7] =
            [b"", b"\x89PNG", b"%PDF-1.7", b"<svg", b"RIFF....WAVE", b"\0\0\0\x20ftypisom", b"PK\x03\x04"];
        for bytes in others {
            assert!(!is_image(bytes), "{bytes:?}");
        }
    }
}
