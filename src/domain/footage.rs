//! A downloaded video: its file, its facts, and its differences from the request.
//!
//! A service that ignores a field of a request delivers, and charges for, another video.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{OutputPath, Usd, sides};

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
    /// The four-character codes of its tracks (ISO/IEC 14496-12 §8.5.2), video first.
    pub codecs: Vec<String>,
    /// True if it has sound.
    pub has_audio: bool,
    /// True if it has content credentials (C2PA).
    pub has_credentials: bool,
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

/// A difference between a video and its request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// True if it is another duration or shape, which no model may deliver.
    pub is_grave: bool,
    /// The delivered and the requested value.
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
