//! `prompt_file`: prompts that stand in files of their own.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::manifest::raw::mirror::RawFields;
use crate::manifest::source::text::{FileAccess, TextError};
use crate::manifest::template::engine::is_template;

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
