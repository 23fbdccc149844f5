//! Location of a value in the file.
//!
//! A [`Location`] is symbolic (`jobs[3].duration`), so it costs next to nothing to carry.
//!
//! A stream has no directory of its own. Files that its manifest names, and its ledger, are in the working directory,
//! and never beside a device: the ledger of `/dev/stdin` would be gone after the next boot.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::text::{self, MAX_FILE_BYTES, TextError};

/// One step from a value to a part of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// The value of a key.
    Key(String),
    /// An entry of a list, from 0.
    Index(usize),
}

/// The way from the top of the file to a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pointer(pub(super) Vec<Step>);

/// A part of the value that a pointer names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// The key itself.
    Key,
    /// The value.
    Value,
    /// An occurrence of this text inside the value, after so many earlier ones; or the value if it can't be found as it is.
    Fragment(String, usize),
    /// A second occurrence of the key, where a key is twice.
    Again,
}

/// The location of a diagnostic.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Location {
    /// A value of the manifest, or a part of it.
    Value(Pointer, Part),
    /// A line and a column of the manifest, each from 1, the column in characters.
    At(usize, usize),
    /// The manifest as a whole.
    File,
}

impl Pointer {
    /// The top of the file.
    pub fn top() -> Self {
        Self::default()
    }

    /// The value of a key of this one.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    /// An entry of this one.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = Vec::with_capacity(self.0.len() + 1);
        steps.extend_from_slice(&self.0);
        steps.push(step);
        Self(steps)
    }

    /// The value there.
    pub fn value(self) -> Location {
        Location::Value(self, Part::Value)
    }

    /// The key there.
    pub fn named(self) -> Location {
        Location::Value(self, Part::Key)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if nth == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The name of stdin.
const STANDARD_INPUT: &str = "-";

/// Returns whether a manifest is a stream, and not a file that exists the next time.
pub(crate) fn is_stream(path: &Path) -> bool {
    // These may lead to a plain file, whose other name is unknown.
    let is_descriptor = ["/dev/stdin", "/dev/fd", "/proc"].iter().any(|top| path.starts_with(top));
    path == Path::new(STANDARD_INPUT)
        || is_descriptor
        || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The directory of a manifest, from which on it names files; the working directory for a stream.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    if is_stream(path) { PathBuf::new() } else { path.parent().unwrap_or(Path::new("")).to_owned() }
}

/// The directory of the manifest's own file, where its ledger and its reports are. A link to it is not another manifest: with
/// a ledger of its own, everything would be paid for again.
pub(crate) fn home(path: &Path) -> PathBuf {
    let real = if path.is_symlink() && !is_stream(path) { path.canonicalize().ok() } else { None };
    directory_of(real.as_deref().unwrap_or(path))
}

/// The manifest's text.
pub(crate) fn read_origin(path: &Path) -> Result<String, TextError> {
    if path == Path::new(STANDARD_INPUT) {
        text::read_all(io::stdin().lock(), MAX_FILE_BYTES)
    } else if path.to_str().is_some_and(text::is_url) {
        Err(TextError::Url)
    } else {
        text::read_all(std::fs::File::open(path)?, MAX_FILE_BYTES)
    }
}

/// The least likeness of two names, from 0 to 1, for a suggestion.
const LIKENESS: f64 = 0.75;

/// The known name that is most like the one written, if any is like it.
pub(crate) fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let folded = written.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&folded, &name.to_lowercase().replace('-', "_")), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// "a similar one exists: `x`", or the list of what is known.
pub(crate) fn help_near(written: &str, what: &str, known: &[&str]) -> String {
    match nearest(written, known.iter().copied()) {
        Some(name) => format!("a similar one exists: `{name}`"),
        None if known.is_empty() => format!("there are no {what}"),
        None => format!("{what}: {}", known.join(", ")),
    }
}

/// Names in other tools and services for keys of the manifest.
const SYNONYMS: [(&[&str], &str); 5] = [
    (&["seconds", "length", "duration_s"], "duration"),
    (&["resolution", "dimensions"], "size"),
    (&["ratio", "aspect", "orientation"], "aspect_ratio"),
    (&["total", "max", "limit", "max_cost"], "run"),
    (&["image_url", "first_frame", "input_reference", "reference"], "image"),
];

/// The key that was probably meant, or where one goes that the service may know and shotlist does not.
pub(crate) fn help_with_key(written: &str, known: &[&str]) -> String {
    let synonym = SYNONYMS.iter().find(|(names, key)| names.contains(&written) && known.contains(key));
    if let Some((_, key)) = synonym {
        return format!("write `{key}`");
    }
    let usual = help_near(written, "keys known here", known);
    if known.contains(&"extra") && nearest(written, known.iter().copied()).is_none() {
        return format!("{usual}; a field of the service that is not among them goes under `extra`");
    }
    usual
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_what_is_alike_and_nothing_else() {
        let known = ["duration", "prompt", "aspect_ratio", "for_each"];
        assert_eq!(nearest("durration", known), Some("duration"));
        assert_eq!(nearest("aspect-ratio", known), Some("aspect_ratio"));
        assert_eq!(nearest("foreach", known), Some("for_each"));
        assert_eq!(nearest("zebra", known), None);
    }
}
