//! A reference image on this machine.

use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::hex;

/// A local image. Its content is its identity, not its path or URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalImage {
    /// The path, with links resolved.
    pub path: PathBuf,
    /// SHA-256 of its bytes, as 64 hexadecimal digits.
    pub sha256: String,
}

impl LocalImage {
    /// The maximum size, in bytes: many times a frame of 720p. The interface names no limit.
    pub const MAX_BYTES: u64 = 64 << 20;

    /// The image of these bytes.
    pub fn new(path: PathBuf, bytes: &[u8]) -> Self {
        Self { path, sha256: hex(&Sha256::digest(bytes)) }
    }

    /// The placeholder in a request for URLs that images do not have yet: an object or a list of objects, never a string as a URL is.
    pub(super) fn stand_in(images: &[Self]) -> Option<Value> {
        one_or_list(images.iter().map(|image| json!({ "sha256": image.sha256 })).collect())
    }

    /// The SHA-256 of each image, separated by spaces. `None` without images.
    pub fn digests(images: &[Self]) -> Option<Box<str>> {
        let digests: Vec<&str> = images.iter().map(|image| &*image.sha256).collect();
        (!digests.is_empty()).then(|| digests.join(" ").into())
    }
}

/// The value of an image field: one image without a list.
pub(super) fn one_or_list(mut images: Vec<Value>) -> Option<Value> {
    if images.len() > 1 { Some(images.into()) } else { images.pop() }
}

/// The reason why a string is not a web URL for an image (interface §2.1).
pub(crate) fn why_no_web_address(text: &str) -> Option<&'static str> {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let is_of_the_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    if !is_of_the_web || rest.is_empty() || rest.starts_with('/') {
        return Some("is not an http or https URL");
    }
    if rest.contains(char::is_whitespace) {
        return Some("contains a space; write %20");
    }
    rest.contains(char::is_control).then_some("contains a control character")
}

/// Returns whether a URL contains a user and a password.
pub(crate) fn has_password(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}
