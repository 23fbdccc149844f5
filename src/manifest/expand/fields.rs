//! The fields of one entry of `jobs`, or of `defaults`, with their templates compiled once for all rows. Images and prompts from files are read once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::catalog::Catalog;
use crate::domain::{LocalImage, Rule};
use crate::manifest::raw::decode::RawFields;
use crate::manifest::raw::table::{FieldValue, FieldValues, JobField, JobField as F};
use crate::manifest::source::diagnostic::{Diagnostic, Findings, Location, Pointer};
use crate::manifest::source::text::{FileAccess, MAX_PROMPT_BYTES, TextError};
use crate::manifest::template::bounds::template_diagnostic;
use crate::manifest::template::engine::{Templates, Text};

/// Fields that mean the same, so only one of them may be set.
const TWICE: [(Rule, JobField, JobField); 4] = [
    (Rule::PromptConflict, F::Prompt, F::PromptFile),
    (Rule::ImageConflict, F::Image, F::ImageFile),
    (Rule::ShapeConflict, F::Shape, F::AspectRatio),
    (Rule::ShapeConflict, F::Shape, F::Size),
];

/// Returns whether only one of two fields may be set.
pub(super) fn exclude_each_other(one: JobField, other: JobField) -> bool {
    TWICE.iter().any(|(_, a, b)| (*a, *b) == (one, other) || (*a, *b) == (other, one))
}

/// The fields of an entry or of the defaults, compiled.
pub(super) struct Fields<'t> {
    pub(super) at: Pointer,
    pub(super) raw: &'t RawFields,
    pub(super) values: FieldValues<Text<'t>>,
}

impl<'t> Fields<'t> {
    /// Compiles the fields of an entry or of the defaults.
    pub(super) fn compile(templates: &'t Templates, raw: &'t RawFields, at: Pointer, found: &mut Findings) -> Self {
        let mut compiled = Vec::with_capacity(raw.values.0.len() + 1);
        for (field, value) in &raw.values.0 {
            let place = || at.key(field.name());
            let mut compile = |text: &'t str, at: &dyn Fn() -> Pointer| {
                templates.compile(text).map_err(|error| found.push(template_diagnostic(error, at()))).ok()
            };
            let value = match value {
                FieldValue::Whole(number) => Some(FieldValue::Whole(*number)),
                FieldValue::Text(text) => compile(text, &place).map(FieldValue::Text),
                FieldValue::List(list) => {
                    let list = list.iter().enumerate();
                    let list = list.filter_map(|(index, text)| compile(text, &|| place().index(index)));
                    Some(FieldValue::List(list.collect()))
                }
                FieldValue::Labels(labels) => {
                    let labels = labels
                        .iter()
                        .filter_map(|(name, text)| Some((name.clone(), compile(text, &|| place().key(name))?)));
                    Some(FieldValue::Labels(labels.collect()))
                }
            };
            compiled.extend(value.map(|value| (*field, value)));
        }
        let fields = Self { at, raw, values: FieldValues(compiled) };
        for (rule, field, other) in TWICE {
            if raw.values.has(field) && raw.values.has(other) {
                let message = format!("found both `{}` and `{}`", field.name(), other.name());
                let twice = Diagnostic::error(rule, message, fields.at(other).named());
                found.push(twice.with_help("keep one of the two"));
            }
        }
        fields
    }

    /// The location of a field's value, present or not.
    pub(super) fn at(&self, field: JobField) -> Pointer {
        self.at.key(field.name())
    }

    /// Returns whether the field is set here.
    pub(super) fn says(&self, field: JobField) -> bool {
        let from_file = match field {
            F::Image => F::ImageFile,
            F::Prompt => F::PromptFile,
            field => field,
        };
        self.values.has(field) || self.values.has(from_file)
    }

    /// Returns whether the field, or one that excludes it, is set here.
    pub(super) fn says_any(&self, field: JobField) -> bool {
        self.says(field) || JobField::ALL.into_iter().any(|other| exclude_each_other(field, other) && self.says(other))
    }

    /// The location of a field here.
    pub(super) fn location(&self, field: JobField) -> Location {
        let field = match field {
            F::Prompt if self.values.text(field).is_none() => F::PromptFile,
            F::Image if !self.values.has(field) => F::ImageFile,
            field => field,
        };
        self.at(field).value()
    }
}

/// The input of an expansion, without its entries.
pub(in crate::manifest) struct Inputs<'i> {
    /// The template engine with the manifest's names in scope.
    pub templates: &'i Templates,
    /// The families.
    pub catalog: &'i Catalog,
    /// The readable files.
    pub access: &'i FileAccess,
    pub prompts: Cache<String>,
    pub local_images: Cache<Option<LocalImage>>,
}

/// The contents of files by name, because each file is read once.
pub(in crate::manifest) type Cache<T> = Mutex<HashMap<String, Arc<Result<T, TextError>>>>;

impl Inputs<'_> {
    /// The text of a prompt, without the line break that editors end a file with.
    pub(super) fn prompt(&self, name: &str) -> Arc<Result<String, TextError>> {
        once(&self.prompts, name, || Ok(self.access.read(name, MAX_PROMPT_BYTES)?.trim_end().to_owned()))
    }

    /// An image on this machine, or `None` if the file is something else.
    pub(super) fn local_image(&self, name: &str) -> Arc<Result<Option<LocalImage>, TextError>> {
        once(&self.local_images, name, || {
            let (path, bytes) = self.access.read_bytes(name, LocalImage::MAX_BYTES)?;
            Ok(is_image(&bytes).then(|| LocalImage::new(path, &bytes)))
        })
    }
}

fn once<T>(cache: &Cache<T>, name: &str, read: impl FnOnce() -> Result<T, TextError>) -> Arc<Result<T, TextError>> {
    Arc::clone(cache.lock().entry(name.to_owned()).or_insert_with(|| Arc::new(read())))
}

/// Returns whether the first bytes of a file are those of an image format of the web.
fn is_image(bytes: &[u8]) -> bool {
    let begins = |start: &[u8]| bytes.starts_with(start);
    let holds = |at: usize, words: &[&[u8]]| words.iter().any(|word| bytes.get(at..at + word.len()) == Some(*word));
    begins(b"\x89PNG\r\n\x1a\n")
        || begins(b"\xff\xd8\xff")
        || begins(b"GIF8")
        || (begins(b"RIFF") && holds(8, &[b"WEBP"]))
        || (holds(4, &[b"ftyp"]) && holds(8, &[b"avif", b"heic", b"heix", b"mif1"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_recognized_by_its_first_bytes() {
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
