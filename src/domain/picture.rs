//! A picture on this machine that a video begins with.

use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::hex;

/// A local picture. What is in it says which picture it is; where it lies, and where it can be fetched, do not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// Its path, with every link followed.
    pub path: PathBuf,
    /// SHA-256 of its bytes, as 64 hexadecimal digits.
    pub sha256: String,
}

impl Picture {
    /// The largest, in bytes: many times what a frame of 720p takes. The interface names no limit.
    pub const LARGEST: u64 = 64 << 20;

    /// The picture of these bytes.
    #[must_use]
    pub fn new(path: PathBuf, bytes: &[u8]) -> Self {
        Self { path, sha256: hex(&Sha256::digest(bytes)) }
    }

    /// The placeholder in a request for a URL that the image does not have yet. It is an object, which no URL and no
    /// list of URLs is.
    pub(super) fn stand_in(&self) -> Value {
        json!({ "sha256": self.sha256 })
    }
}

/// The reason why a string can't be a URL from which the service fetches an image (interface §2.1).
#[must_use]
pub(crate) fn why_no_web_address(text: &str) -> Option<&'static str> {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let is_of_the_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    if !is_of_the_web || rest.is_empty() || rest.starts_with('/') {
        return Some("is not an http or https URL");
    }
    if rest.contains(char::is_whitespace) {
        return Some("has a blank in it, and no address has: write %20");
    }
    rest.contains(char::is_control).then_some("has a control character in it")
}

/// Returns whether a URL contains a user and a password.
#[must_use]
pub(crate) fn has_password(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}
