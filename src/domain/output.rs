//! The path of a video in the output directory.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::JobId;

/// A path inside the output directory that means the same on every system: parts joined by `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct OutputPath(String);

/// The reason why a string is not such a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// The path, or a part of it, is empty.
    #[error("a part of the path is empty")]
    Empty,
    /// It starts at the root of a disk.
    #[error("the path is absolute, and leads out of the output directory")]
    Absolute,
    /// It leaves the directory by `..`.
    #[error("`..` leads out of the output directory")]
    Climbs,
    /// A character that some system refuses or interprets.
    #[error("`{}` is not valid in a file name on every system", .0.escape_debug())]
    Character(char),
    /// A device name of Windows, or a name that ends in a dot or a blank.
    #[error("`{0}` is not a valid file name on every system")]
    Name(String),
    /// It is too long for some file system.
    #[error("a part of the path is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// A part is hidden, as ledgers, version control, and settings are.
    #[error("`{0}` is hidden")]
    Hidden(String),
    /// The name of a report.
    #[error("`{0}` is the name of a report")]
    Report(String),
}

/// The longest part of a path, in bytes: the 255 of common file systems, less room for a version and a temporary suffix.
const MAX_BYTES: usize = 200;
/// The names of reports in the output directory.
const REPORTS: [&str; 3] = ["report.csv", "report.json", "report.html"];

impl TryFrom<String> for OutputPath {
    type Error = InvalidPath;

    /// A path that the ledger stored.
    fn try_from(text: String) -> Result<Self, InvalidPath> {
        Self::stored(&text)
    }
}

/// Returns a path in the form that it shares with each spelling of the same file. Some file systems ignore letter case and the composition of
/// accents.
pub(crate) fn folded(path: &str) -> String {
    // Decomposed text folds letter by letter. Lowercase letters may compose again.
    if path.is_ascii() { path.to_ascii_lowercase() } else { path.nfd().flat_map(char::to_lowercase).nfc().collect() }
}

impl OutputPath {
    /// The path as [`folded`].
    pub(crate) fn folded(&self) -> String {
        folded(&self.0)
    }

    /// Parses a path that stays inside the output directory and can be written on every system.
    pub fn new(text: &str) -> Result<Self, InvalidPath> {
        if text.split('/').any(|part| part.len() > MAX_BYTES) {
            return Err(InvalidPath::TooLong);
        }
        match text.split('/').find(|part| part.starts_with('.') && !matches!(*part, "." | "..")) {
            Some(hidden) => Err(InvalidPath::Hidden(hidden.to_owned())),
            None => Self::stored(text),
        }
    }

    /// A path that the ledger stored earlier. The path of a version may be longer than a manifest allows.
    pub fn stored(text: &str) -> Result<Self, InvalidPath> {
        if text.starts_with(['/', '\\']) || text.get(1..2) == Some(":") {
            return Err(InvalidPath::Absolute);
        }
        for part in text.split('/') {
            check_part(part)?;
        }
        if let Some(report) = REPORTS.into_iter().find(|report| text.eq_ignore_ascii_case(report)) {
            return Err(InvalidPath::Report(report.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The default path of a job: a file named after the ID. An ID that is a device name gets a leading `_`, which no ID has.
    pub fn for_job(job: &JobId) -> Self {
        let name = format!("{job}.mp4");
        Self::new(&name).unwrap_or_else(|_| Self(format!("_{name}")))
    }

    /// The path of an earlier video, `waves~2.mp4` for `waves.mp4`. No ID has a `~`.
    #[must_use]
    pub fn version(&self, number: u32) -> Self {
        let (stem, extension) = self.split();
        Self(format!("{stem}~{number}{extension}"))
    }

    /// Returns whether it has the form of a version of another path.
    pub fn is_version(&self) -> bool {
        let number = self.split().0.rsplit_once('~').map(|(_, number)| number);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// The path up to its extension, and the extension with its dot; a dot at the start of a name begins none.
    fn split(&self) -> (&str, &str) {
        let name = self.0.rfind('/').map_or(0, |slash| slash + 1);
        let dot = self.0[name..].rfind('.').filter(|&dot| dot > 0).map_or(self.0.len(), |dot| name + dot);
        self.0.split_at(dot)
    }

    /// The path, with `/` between its parts.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_part(part: &str) -> Result<(), InvalidPath> {
    if part.is_empty() {
        return Err(InvalidPath::Empty);
    }
    if part == ".." {
        return Err(InvalidPath::Climbs);
    }
    if let Some(bad) = part.chars().find(|c| c.is_control() || "<>:\"|?*\\".contains(*c)) {
        return Err(InvalidPath::Character(bad));
    }
    let stem = part.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let is_device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || (stem.len() == 4
            && (stem.starts_with("COM") || stem.starts_with("LPT"))
            && stem.ends_with(|c: char| c.is_ascii_digit()));
    if is_device || part.ends_with(['.', ' ']) || part.starts_with([' ']) {
        return Err(InvalidPath::Name(part.to_owned()));
    }
    Ok(())
}

impl fmt::Display for OutputPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_file_fold_to_one_form() {
        for spelling in ["caf\u{e9}/a.mp4", "cafe\u{301}/a.mp4", "CAF\u{c9}/A.mp4", "CAFE\u{301}/A.MP4"] {
            assert_eq!(folded(spelling), "caf\u{e9}/a.mp4");
        }
        // Two marks in another order, and a Hangul syllable of three letters.
        assert_eq!(folded("q\u{307}\u{323}"), folded("q\u{323}\u{307}"));
        assert_eq!(folded("\u{1112}\u{1161}\u{11ab}.mp4"), "\u{d55c}.mp4");
        assert_ne!(folded("cafe.mp4"), folded("caf\u{e9}.mp4"));
    }

    #[test]
    fn nothing_leaves_the_output_directory() {
        for good in ["a.mp4", "teasers/a.mp4", "a/b/c.mp4", "ü 1.mp4"] {
            assert!(OutputPath::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/a",
            "\\a",
            "C:/a",
            "c:a",
            "../a",
            "a/../../b",
            "a/..",
            "./a",
            "a//b",
            "a/",
            "a\\b",
            "a\nb",
            "a\0",
            "a?",
            "con",
            "con.mp4",
            "NUL.mp4",
            "com1",
            "a.",
            "a ",
            " a",
            "report.csv",
            "REPORT.html",
            ".shotlist/ledger.db",
            "a/.git/hooks/pre-commit",
            ".a",
            "..a.mp4",
        ] {
            assert!(OutputPath::new(bad).is_err(), "{bad:?}");
        }
        assert!(OutputPath::new(&"x".repeat(201)).is_err());
    }

    #[test]
    fn every_id_has_a_file_and_every_file_has_versions() {
        let longest = OutputPath::new(&"x".repeat(MAX_BYTES)).expect("a path");
        let version = longest.version(10_000);
        assert_eq!(OutputPath::stored(version.as_str()).as_ref(), Ok(&version), "the ledger could not be read again");
        assert!(OutputPath::stored("../x").is_err());
        for (id, file) in [("hero", "hero.mp4"), ("a.2", "a.2.mp4"), ("con", "_con.mp4"), ("Nul.x", "_Nul.x.mp4")] {
            assert_eq!(OutputPath::for_job(&JobId::new(id).expect("an id")).as_str(), file);
        }
        for (path, version) in [("a.mp4", "a~2.mp4"), ("x.y/a.2.mp4", "x.y/a.2~2.mp4"), ("x.y/a", "x.y/a~2")] {
            let path = OutputPath::new(path).expect("a path");
            assert_eq!(path.version(2).as_str(), version);
            assert!(path.version(2).is_version() && !path.is_version(), "{path}");
        }
    }
}
