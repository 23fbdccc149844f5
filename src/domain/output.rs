//! A video: its path in the output directory, its file, its facts, and its differences from the request.
//!
//! A service that ignores a field of a request delivers, and charges for, another video.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use super::{JobId, Usd, displayed, sides};

/// A path inside the output directory that means the same on every system: parts joined by `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct OutputPath(String);

/// The reason why a string is not such a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPath(String);

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
            return Err(InvalidPath(format!("a part of the path is longer than {MAX_BYTES} bytes")));
        }
        let hidden = text.split('/').find(|part| part.starts_with('.') && !matches!(*part, "." | ".."));
        hidden.map_or_else(|| Self::stored(text), |hidden| Err(InvalidPath(format!("`{hidden}` is hidden"))))
    }

    /// A path that the ledger stored earlier. The path of a version may be longer than a manifest allows.
    pub fn stored(text: &str) -> Result<Self, InvalidPath> {
        if text.starts_with(['/', '\\']) || text.get(1..2) == Some(":") {
            return Err(InvalidPath("the path is absolute, and leads out of the output directory".to_owned()));
        }
        for part in text.split('/') {
            check_part(part)?;
        }
        if let Some(report) = REPORTS.into_iter().find(|report| text.eq_ignore_ascii_case(report)) {
            return Err(InvalidPath(format!("`{report}` is the name of a report")));
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

    /// Returns whether it has the form of a version of that path.
    pub fn is_version_of(&self, other: &Self) -> bool {
        let ((stem, extension), (own, theirs)) = (self.split(), other.split());
        self.is_version() && extension == theirs && stem.rsplit_once('~').is_some_and(|(stem, _)| stem == own)
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
        return Err(InvalidPath("a part of the path is empty".to_owned()));
    }
    if part == ".." {
        return Err(InvalidPath("`..` leads out of the output directory".to_owned()));
    }
    if let Some(bad) = part.chars().find(|c| c.is_control() || "<>:\"|?*\\".contains(*c)) {
        return Err(InvalidPath(format!("`{}` is not valid in a file name on every system", bad.escape_debug())));
    }
    let stem = part.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let is_device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || (stem.len() == 4
            && (stem.starts_with("COM") || stem.starts_with("LPT"))
            && stem.ends_with(|c: char| c.is_ascii_digit()));
    if is_device || part.ends_with(['.', ' ']) || part.starts_with([' ']) {
        return Err(InvalidPath(format!("`{part}` is not a valid file name on every system")));
    }
    Ok(())
}

displayed!(OutputPath(it): it.0);

/// The smallest difference in duration, in seconds: encoders end at a whole frame, and services report measured durations.
pub(crate) const MIN_DURATION_DIFFERENCE_S: f64 = 0.5;
/// The smallest difference in the ratio of the sides, and in lines, as a part of what was requested: models generate whole blocks of pixels, such
/// as 1248x704 for 720p.
const MIN_SHARE: f64 = 0.05;

/// The facts of a video file. What is absent is unknown.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Footage {
    /// The duration of its images, in milliseconds, after edits.
    pub duration_ms: Option<u64>,
    /// Its width and height in pixels, as they are encoded, after rotation.
    pub size: Option<(u32, u32)>,
    /// The number of frames in 1000 seconds.
    pub frames_per_1000_s: Option<u64>,
    /// True if it has sound.
    pub has_audio: bool,
}

/// A price list: the price of a video by a model, of so many seconds, and of a size if the request has one; `None` for an unknown model.
pub type PriceList<'p> = dyn Fn(&str, u32, Option<&str>) -> Option<Usd> + Sync + 'p;

/// The fields of a request that decide over its video, of any type.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    pub model: Value,
    pub duration: Value,
    pub size: Value,
    pub aspect_ratio: Value,
}

impl Asked {
    /// The fields of a request body; none of something else.
    pub(crate) fn from_request(request: &str) -> Self {
        serde_json::from_str(request).unwrap_or_default()
    }

    /// The price of the requested video, by a model of a price list.
    pub(crate) fn price(&self, model: &str, list: &PriceList<'_>) -> Option<Usd> {
        let seconds = self.duration.as_u64().and_then(|seconds| u32::try_from(seconds).ok());
        list(model, seconds.unwrap_or(0), self.size.as_str())
    }

    /// The model; empty without one.
    pub(crate) fn model(&self) -> &str {
        self.model.as_str().unwrap_or_default()
    }
}

/// A difference between a video, or a task as the service reports it, and its request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// True if it is another duration or shape, which no model may deliver.
    pub is_grave: bool,
    /// The delivered or reported value, and the requested one.
    pub text: String,
}

impl Footage {
    /// Its duration in seconds.
    pub fn duration_s(&self) -> Option<f64> {
        self.duration_ms.map(|ms| std::time::Duration::from_millis(ms).as_secs_f64())
    }

    /// Its frames a second.
    pub fn fps(&self) -> Option<f64> {
        self.frames_per_1000_s.map(|frames| std::time::Duration::from_millis(frames).as_secs_f64())
    }

    /// Returns its differences from the body of its request. A fact that was requested and can't be read is one, because the video may have
    /// been made to hide it.
    pub fn differences(&self, request: &str) -> Vec<Difference> {
        let asked = Asked::from_request(request);
        let grave = |text| Difference { is_grave: true, text };
        let duration = asked.duration.as_f64().and_then(|asked| match self.duration_s() {
            None => Some(format!("an unknown duration, requested {asked} s")),
            Some(made) if (made - asked).abs() < MIN_DURATION_DIFFERENCE_S => None,
            Some(made) => Some(format!("{made} s, requested {asked} s")),
        });
        let duration = duration.map(grave);
        let size = asked.size.as_str().and_then(|size| sides(size, 'x'));
        let between = if size.is_some() { 'x' } else { ':' };
        let shape = size.or_else(|| sides(asked.aspect_ratio.as_str()?, ':'));
        let shape = shape.and_then(|(wide, high)| match self.size {
            None => Some(format!("an unknown shape, requested {wide}{between}{high}")),
            Some((width, height)) => {
                let (made, asked) = (f64::from(width) / f64::from(height), f64::from(wide) / f64::from(high));
                let is_other = (made / asked - 1.0).abs() >= MIN_SHARE;
                is_other.then(|| format!("{width}x{height}, requested {wide}{between}{high}"))
            }
        });
        let shape = shape.map(grave);
        let lines = self.size.zip(size).map(|((width, height), (wide, high))| (width.min(height), wide.min(high)));
        let lines = lines.filter(|(made, asked)| f64::from(*made) <= f64::from(*asked) * (1.0 - MIN_SHARE));
        let lines = lines.map(|(made, asked)| Difference {
            is_grave: false,
            text: format!("{made} pixels on the short side, requested {asked}"),
        });
        [duration, shape, lines].into_iter().flatten().collect()
    }
}

/// A video that was fetched whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VideoFile {
    /// Its path in the output directory.
    pub path: OutputPath,
    /// SHA-256 of its bytes, 64 hexadecimal digits.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
    /// Its facts, if its index was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footage: Option<Footage>,
}

impl VideoFile {
    /// Returns its differences from the body of its request, also if nothing of it could be read.
    pub fn differences(&self, request: &str) -> Vec<Difference> {
        self.footage.as_ref().unwrap_or(&Footage::default()).differences(request)
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

    fn differing(duration_ms: u64, size: (u32, u32), request: &str) -> Vec<String> {
        let footage = Footage { duration_ms: Some(duration_ms), size: Some(size), ..Footage::default() };
        footage.differences(request).into_iter().map(|difference| difference.text).collect()
    }

    #[test]
    fn duration_shape_and_lines_are_compared_with_a_tolerance() {
        let (alpha, beta) = (r#"{"duration":12,"aspect_ratio":"16:9"}"#, r#"{"duration":10,"size":"1280x720"}"#);
        for (duration_ms, size, request) in [
            (12_000, (1280, 720), alpha),
            (11_501, (640, 360), alpha),
            (12_499, (1920, 1080), alpha),
            (10_000, (1248, 704), beta),
            (10_000, (1920, 1088), beta),
            (5000, (1, 1), "{}"),
            (5000, (1, 1), "no JSON"),
        ] {
            assert_eq!(differing(duration_ms, size, request), [""; 0], "{duration_ms} {size:?} {request}");
        }
        assert_eq!(differing(5000, (1280, 720), alpha), ["5 s, requested 12 s"]);
        assert_eq!(differing(12_500, (720, 1280), alpha), ["12.5 s, requested 12 s", "720x1280, requested 16:9"]);
        assert_eq!(differing(10_042, (720, 720), beta), ["720x720, requested 1280x720"]);
        assert_eq!(
            differing(9458, (854, 480), beta),
            ["9.458 s, requested 10 s", "480 pixels on the short side, requested 720"]
        );
        let unknown: Vec<String> = Footage::default().differences(beta).into_iter().map(|it| it.text).collect();
        assert_eq!(unknown, ["an unknown duration, requested 10 s", "an unknown shape, requested 1280x720"]);
        assert_eq!(Footage::default().differences("{}"), []);
    }
}
