//! Requests for a download, and their outcomes.
//!
//! A response of the content endpoint may be JSON with the URL of a video, or the hash of a video. The interface shows no shape of that JSON (§4), so all
//! usual shapes are read.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::{RequestBuilder, Url};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::domain::{OutputPath, TaskId, VideoFile, hex};
use crate::files::open_plain;

/// The source of a video.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Link {
    /// The video itself.
    Video(String),
    /// The content endpoint of the service. Its response is not shown (§4): the video, a redirect to it, or JSON with its URL.
    Content(String),
}

/// The path of a video.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// The output directory of another batch, if it belongs to one.
    pub directory: Option<Arc<Path>>,
    /// The path inside the output directory.
    pub path: OutputPath,
    /// True if the video gets a versioned name, because the path belongs to another video.
    pub is_version: bool,
    /// The recorded video of an earlier attempt at that path.
    pub occupant: Option<VideoFile>,
    /// The task of the video. Tasks never share a partial file.
    pub task: TaskId,
}

/// A stored video.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The video.
    pub file: VideoFile,
    /// The new path of a video that was moved out of the way.
    pub displaced: Option<OutputPath>,
}

/// Fetches videos into a directory.
pub trait Downloads: Sync {
    /// Downloads a video into a hidden file beside its path. May be dropped at any time: the partial file is kept.
    fn fetch<'a>(&'a self, link: &'a Link, destination: &'a Destination) -> BoxFuture<'a, Result<(), FetchError>>;

    /// The new path of a downloaded video, if another video has its path now.
    fn find<'a>(&'a self, destination: &'a Destination, known: &'a VideoFile) -> BoxFuture<'a, Option<OutputPath>>;

    /// Renames a downloaded video to its path. Short, and must not be dropped: the caller records the result.
    fn store<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, Result<Stored, FetchError>>;
}

/// The limits of a download.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The maximum length of a video, in bytes. Twelve seconds in 720p have about ten megabytes.
    pub longest: u64,
    /// The maximum wait for the next byte.
    pub silence: Duration,
    /// The span in which at least [`Self::least`] bytes must arrive.
    pub window: Duration,
    /// The minimum number of bytes in each [`Self::window`].
    pub least: u64,
    /// The time limit of one link.
    pub whole: Duration,
    /// The maximum number of tries of a link without progress.
    pub tries: u32,
    /// The pause before the second try. Each further pause doubles.
    pub first_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            longest: 2 << 30,
            silence: Duration::from_secs(30),
            window: Duration::from_mins(1),
            least: 64 << 10,
            whole: Duration::from_mins(30),
            tries: 5,
            first_pause: Duration::from_secs(1),
        }
    }
}

/// The reason why a video was not downloaded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are named after what they hold")]
pub enum FetchError {
    /// The server refuses this link. The service may return another one.
    #[error("HTTP {0}")]
    Refused(u16),
    /// All tries failed.
    #[error("{0}")]
    Transient(String),
    /// The response is not a video.
    #[error("the download is not a complete MP4 video: {0}")]
    NotVideo(String),
    /// The video is too long, or too slow.
    #[error("must have at most {0} bytes")]
    TooLong(u64),
    /// The link or a redirect leads to a forbidden host.
    #[error("{0}")]
    BadRedirect(String),
    /// This machine can't store it.
    #[error("can't write `{}`", path.display())]
    Local { path: PathBuf, source: io::Error },
}

impl FetchError {
    /// Returns whether this machine is the cause: another link doesn't help.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local { .. })
    }

    pub(super) fn local(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Local { path: path.to_owned(), source }
    }
}

/// Starts a GET of a URL, with the key if the host may get it. The second argument is true after a redirect by another host. The client follows no
/// redirect, and resolves names by the same policy.
pub type Get = Box<dyn Fn(&Url, bool) -> RequestBuilder + Send + Sync>;

/// The maximum length of such a response, in bytes.
pub(super) const MAX_ANSWER_BYTES: usize = 64 << 10;
/// The maximum depth of a URL in the JSON.
const MAX_DEPTH: usize = 4;

/// Returns whether a response of this type, or with this beginning, is JSON.
pub(super) fn is_json(content_type: Option<&str>) -> bool {
    content_type.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        kind == "application/json" || kind.ends_with("+json")
    })
}

/// The URL in a JSON response: `video_url`, or else the first URL under a name with `url`, or the response itself.
pub(super) fn link(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let text = |value: &Value| value.as_str().filter(|text| is_address(text)).map(str::to_owned);
    let is_link =
        |name: &str| ["url", "uri", "link", "href"].iter().any(|word| name.to_ascii_lowercase().contains(word));
    text(&value).or_else(|| named(&value, &|name| name == "video_url", 0)).or_else(|| named(&value, &is_link, 0))
}

fn named(value: &Value, is_meant: &dyn Fn(&str) -> bool, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Object(fields) => {
            let own = fields.iter().filter(|(name, _)| is_meant(name)).filter_map(|(_, value)| value.as_str());
            let own = own.filter(|text| is_address(text)).map(str::to_owned).next();
            own.or_else(|| fields.values().find_map(|value| named(value, is_meant, depth + 1)))
        }
        Value::Array(values) => values.iter().find_map(|value| named(value, is_meant, depth + 1)),
        _ => None,
    }
}

fn is_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

/// Length and SHA-256 of a file.
pub(super) fn digest(file: &mut File) -> io::Result<(u64, String)> {
    file.seek(SeekFrom::Start(0))?;
    let mut hash = Sha256::new();
    let (mut length, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((length, hex(&hash.finalize())));
        }
        hash.update(&buffer[..read]);
        length += read as u64;
    }
}

/// Returns whether the file at a path is this video, by length and SHA-256. An unreadable file is not.
pub(crate) fn holds(path: &Path, video: &VideoFile) -> bool {
    let found = open_plain(path, File::options().read(true)).and_then(|mut file| digest(&mut file));
    found.is_ok_and(|(bytes, sha256)| bytes == video.bytes && sha256 == video.sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_address_in_every_usual_shape() {
        for body in [
            r#""https://v/a.mp4""#,
            r#"{"url": "https://v/a.mp4"}"#,
            r#"{"video_url": "https://v/a.mp4", "thumbnail_url": "https://v/a.jpg"}"#,
            r#"{"data": {"cover_url": "https://v/a.jpg", "video_url": "https://v/a.mp4"}}"#,
            r#"{"data": [{"downloadUrl": "https://v/a.mp4"}]}"#,
            r#"{"code": 0, "result": {"videos": [{"href": "https://v/a.mp4"}]}}"#,
        ] {
            assert_eq!(link(body.as_bytes()).as_deref(), Some("https://v/a.mp4"), "{body}");
        }
        for body in
            ["", "{}", "null", "[]", r#"{"url": "file:///etc/passwd"}"#, r#"{"message": "see https://v"}"#, "<html>"]
        {
            assert_eq!(link(body.as_bytes()), None, "{body}");
        }
        assert!(is_json(Some("Application/JSON; charset=utf-8")) && is_json(Some("application/problem+json")));
        assert!(!is_json(Some("video/mp4")) && !is_json(None));
    }
}
