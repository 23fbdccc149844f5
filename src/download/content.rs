//! Responses of the content endpoint as JSON with the URL of a video, and the hash of a video. The interface shows no shape of that JSON (§4), so all
//! usual shapes are read.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::domain::{VideoFile, hex};
use crate::files::open_plain;

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
    text(&value).or_else(|| named(&value, &|name| name == "video_url", 0)).or_else(|| {
        named(
            &value,
            &|name| ["url", "uri", "link", "href"].iter().any(|word| name.to_ascii_lowercase().contains(word)),
            0,
        )
    })
}

fn named(value: &Value, is_meant: &dyn Fn(&str) -> bool, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Object(fields) => fields
            .iter()
            .find_map(|(name, value)| {
                value.as_str().filter(|text| is_meant(name) && is_address(text)).map(str::to_owned)
            })
            .or_else(|| fields.values().find_map(|value| named(value, is_meant, depth + 1))),
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
        match file.read(&mut buffer)? {
            0 => break,
            read => {
                hash.update(&buffer[..read]);
                length += read as u64;
            }
        }
    }
    Ok((length, hex(&hash.finalize())))
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
