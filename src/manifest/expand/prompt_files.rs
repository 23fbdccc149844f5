//! `prompt_file`: prompts that stand in files of their own.

use crate::manifest::raw::mirror::RawManifest;
use crate::manifest::source::text::{FileAccess, TextError};
use crate::manifest::template::engine::is_template;
use std::collections::HashMap;

/// The largest file of a prompt, in bytes: many times what any family takes.
const LARGEST: u64 = 256 * 1024;

/// The prompts that the manifest names without a template, each read once.
pub(crate) struct PromptFiles {
    access: FileAccess,
    texts: HashMap<String, Result<String, TextError>>,
}

impl PromptFiles {
    /// Reads every file that the manifest names as it is. Paths are relative to the manifest's folder, and stay in it.
    pub(crate) fn read(raw: &RawManifest, access: &FileAccess) -> Self {
        let mut files = Self { access: access.clone(), texts: HashMap::new() };
        let named = raw.jobs.iter().map(|job| &job.fields).chain([&raw.defaults]);
        for path in named.filter_map(|fields| fields.prompt_file.as_deref()).filter(|path| !is_template(path)) {
            if !files.texts.contains_key(path) {
                let text = files.read_one(path);
                files.texts.insert(path.to_owned(), text);
            }
        }
        files
    }

    /// The prompt of a file that was read already; nothing if it was not.
    pub(crate) fn known(&self, path: &str) -> Option<&Result<String, TextError>> {
        self.texts.get(path)
    }

    /// Reads the prompt of a file, without the line break that editors end a file with.
    pub(crate) fn read_one(&self, path: &str) -> Result<String, TextError> {
        let text = self.access.read(path, LARGEST)?;
        Ok(text.trim_end().to_owned())
    }
}
