//! The request of a job before it is checked: the plain fields of both model families, and local images.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Purchase, hex, named};

named! {
    /// A plain field of a job. Which family takes which is in the catalog.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Field {
        /// The model identifier.
        Model = "model",
        /// The text that describes the video.
        Prompt = "prompt",
        /// The length of the video in seconds.
        Duration = "duration",
        /// `16:9` or `9:16` (family A).
        AspectRatio = "aspect_ratio",
        /// `<width>x<height>` (family B).
        Size = "size",
        /// One or more reference image URLs (family A).
        Image = "image",
        /// A reviewed human face (family B).
        Face = "face",
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The two numbers of a size in pixels or an aspect ratio, neither of them zero: `1280x720`, `9:16`.
pub(crate) fn sides(text: &str, between: char) -> Option<(u32, u32)> {
    let (wide, high) = text.split_once(between)?;
    let side = |digits: &str| -> Option<u32> {
        let is_plain = !digits.is_empty() && digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| digits.parse().ok()).flatten().filter(|&side| side > 0)
    };
    Some((side(wide)?, side(high)?))
}

/// Returns whether a shape is higher than it is wide: `9:16`, `720x1280`.
pub(crate) fn is_upright(aspect_ratio: Option<&str>, size: Option<&str>) -> bool {
    let shape = aspect_ratio.and_then(|ratio| sides(ratio, ':')).or_else(|| sides(size?, 'x'));
    shape.is_some_and(|(wide, high)| wide < high)
}

/// The plain fields of one job after templates and defaults, not yet checked against a family.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Spec {
    /// The model identifier.
    pub model: String,
    /// The prompt, with every template filled in.
    pub prompt: Option<String>,
    /// Seconds.
    pub duration: Option<i64>,
    /// As written, for example `16:9`.
    pub aspect_ratio: Option<String>,
    /// As written, for example `1280x720`.
    pub size: Option<String>,
    /// Reference images; empty where none is given.
    pub image: Vec<String>,
    /// The name of their field in a request, if it is not `image`.
    pub image_sent_as: Option<String>,
    /// The local images in their place.
    pub local_images: Vec<LocalImage>,
    /// The name of a declared face.
    pub face: Option<String>,
    /// The stand-in for image URLs when two requests are compared, for URLs that differ every day.
    pub image_key: Option<String>,
    /// Fields that the interface does not document, merged into the request as they are.
    pub extra: serde_json::Map<String, Value>,
}

impl Spec {
    /// The fields of a purchase that people are shown: no image, and no undocumented field.
    pub(super) fn for_purchase(Purchase { model, request, .. }: &Purchase) -> Self {
        let sent: Value = serde_json::from_str(request.body()).unwrap_or_default();
        let text = |field: Field| sent[field.name()].as_str().map(str::to_owned);
        Self {
            prompt: text(Field::Prompt),
            duration: sent[Field::Duration.name()].as_i64(),
            aspect_ratio: text(Field::AspectRatio),
            size: text(Field::Size),
            face: text(Field::Face),
            model: model.clone(),
            ..Self::default()
        }
    }

    /// The size or the aspect ratio.
    pub fn shape(&self) -> Option<&str> {
        self.size.as_deref().or(self.aspect_ratio.as_deref())
    }

    /// Returns whether the requested video is higher than it is wide.
    pub fn is_upright(&self) -> bool {
        is_upright(self.aspect_ratio.as_deref(), self.size.as_deref())
    }

    /// Returns whether the job sets this field.
    pub fn has(&self, field: Field) -> bool {
        match field {
            Field::Model => !self.model.is_empty(),
            Field::Prompt => self.prompt.is_some(),
            Field::Duration => self.duration.is_some(),
            Field::AspectRatio => self.aspect_ratio.is_some(),
            Field::Size => self.size.is_some(),
            Field::Image => !self.image.is_empty() || !self.local_images.is_empty(),
            Field::Face => self.face.is_some(),
        }
    }
}

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
