//! `image_file` and `prompt_file`: files whose content is a part of the request. Each is read once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::LocalImage;
use crate::manifest::raw::mirror::RawFields;
use crate::manifest::source::text::{FileAccess, TextError};
use crate::manifest::template::engine::is_template;

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
