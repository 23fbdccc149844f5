//! A job: its request before it is checked, with the plain fields of both model families, and the job with its price afterwards.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Attempt, Charging, Fingerprint, JobId, Labels, OutputPath, Request, Usd, displayed, hex, named};

/// What one submission of a job buys. A [`Job`] plans it, an intent announces it, and an [`Attempt`] records it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Purchase {
    /// The ID of the job in its batch.
    pub job: JobId,
    /// The exact request.
    pub request: Request,
    /// The model.
    pub model: String,
    /// The price, if it is charged.
    pub price: Usd,
    /// The moment at which the model's family charges.
    pub charging: Charging,
    /// The family's typical generation time in seconds, shortest and longest (interface §4).
    pub typical_s: (u32, u32),
    /// The labels, for limits and sums; no part of the identity.
    pub labels: Labels,
    /// The path of the video in the output directory, or `None` for a name after the ID.
    #[serde(deserialize_with = "super::review::if_valid")]
    pub output: Option<Box<OutputPath>>,
    /// The SHA-256 of each local image, separated by spaces.
    pub local_images: Option<Box<str>>,
}

impl Purchase {
    /// The identity of the request.
    pub fn fingerprint(&self) -> &Fingerprint {
        self.request.fingerprint()
    }
}

/// One video that the manifest asks for: checked against its family, priced, with the exact request that buys it.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// What its next submission buys.
    pub purchase: Purchase,
    /// The effective fields, family defaults included.
    pub spec: Spec,
    /// The number of the take among those of the same request, from 1.
    pub take: u32,
    /// The maximum number of takes that are bought one by one until one is kept, or `None` for a fixed number of takes.
    pub up_to: Option<u32>,
    /// Tags for selection; no part of the identity.
    pub tags: Vec<String>,
    /// Its row of a table.
    pub row: Option<Arc<Cells>>,
    /// The values of its matrix, by name.
    pub matrix: Option<Arc<Labels>>,
    /// The pending review of its face. Nothing is submitted before.
    pub review: Option<FaceReview>,
    /// True if its family generates real faces only after a review, and the job names no face.
    pub has_no_review: bool,
}

impl Job {
    /// The name in the batch.
    pub fn id(&self) -> &JobId {
        &self.purchase.job
    }

    /// The thing that the job waits for before it can be bought: a face review, or an image.
    pub fn waits_for(&self) -> Option<String> {
        let missing = || self.spec.local_images.iter().find(|image| image.is_missing);
        let review = self.review.as_ref().map(|review| format!("the review of `{}`", review.face));
        review.or_else(|| missing().map(|image| format!("the image `{}`", image.path.display())))
    }

    /// The fingerprint by which the job's attempts are known: that of its request, or of the last one that was bought with another image, if the
    /// job waits for its image. So a changed image makes a job stale, and not due.
    pub fn fingerprint_among<'a>(&self, attempts: impl DoubleEndedIterator<Item = &'a Attempt> + Clone) -> Fingerprint {
        let own = self.purchase.fingerprint().clone();
        if !self.spec.local_images.iter().any(|image| image.waits) {
            return own;
        }
        let mut bought = attempts.rev().filter(|attempt| !attempt.state.made_no_task());
        if bought.clone().any(|attempt| *attempt.purchase.fingerprint() == own) {
            return own;
        }
        let without_images = |purchase: &Purchase| {
            let mut body: serde_json::Map<String, Value> =
                serde_json::from_str(purchase.request.body()).unwrap_or_default();
            body.remove(self.spec.image_sent_as.as_deref().unwrap_or(Field::Image.name()));
            body
        };
        let is_alike = |attempt: &&Attempt| without_images(&attempt.purchase) == without_images(&self.purchase);
        bought.next().filter(is_alike).map_or(own, |attempt| attempt.purchase.fingerprint().clone())
    }

    /// Returns whether a purchase with this fingerprint, of [`Self::fingerprint_among`], is of another image than the current one.
    pub fn is_stale(&self, bought: &Fingerprint) -> bool {
        bought != self.purchase.fingerprint() && !self.spec.local_images.iter().any(|image| image.is_missing)
    }

    /// The path of its video in the output directory.
    pub fn output(&self) -> OutputPath {
        self.purchase.output.as_deref().cloned().unwrap_or_else(|| OutputPath::for_job(self.id()))
    }

    /// Another take of the same request, under an ID of its own.
    pub(crate) fn with_take(&self, id: JobId, take: u32) -> Self {
        let mut other = Self { take, ..self.clone() };
        other.purchase.job = id;
        other
    }

    /// The job as it was bought, also if its manifest has changed since. Facts that no request contains are those of `today`.
    pub(crate) fn as_bought(purchase: &Purchase, today: Option<&Self>) -> Self {
        Self {
            purchase: purchase.clone(),
            spec: Spec::for_purchase(purchase),
            take: today.map_or(1, |job| job.take),
            up_to: None,
            tags: today.map(|job| job.tags.clone()).unwrap_or_default(),
            row: today.and_then(|job| job.row.clone()),
            matrix: today.and_then(|job| job.matrix.clone()),
            review: None,
            has_no_review: false,
        }
    }
}

/// A pending face review (interface §3).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FaceReview {
    /// The name of the face.
    pub face: String,
    /// The one-time fee of its review, paid outside the interface.
    pub fee: Usd,
}

/// The names of a table's columns; shared by all of its rows.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Columns {
    names: Vec<String>,
}

impl Columns {
    /// Takes the names, in their order; a second column of one name, which is given back, is reported and not taken.
    pub fn new(names: Vec<String>) -> Result<Self, String> {
        let mut seen = BTreeSet::new();
        let twice = names.iter().find(|name| !name.is_empty() && !seen.insert(*name));
        if let Some(name) = twice { Err(name.clone()) } else { Ok(Self { names }) }
    }

    /// The names, in their order. One may be blank.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The place of a column among them.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name && !name.is_empty())
    }
}

/// The cells of one row, in one piece of memory: a table may have a hundred thousand rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cells {
    columns: Arc<Columns>,
    text: Box<str>,
    /// The end of each cell.
    ends: Box<[u32]>,
}

impl Cells {
    /// The cells under these columns, in their order.
    pub fn new<'c>(columns: Arc<Columns>, cells: impl IntoIterator<Item = &'c str, IntoIter: Clone>) -> Self {
        let cells = cells.into_iter();
        let mut text = String::with_capacity(cells.clone().map(str::len).sum());
        let mut ends = Vec::with_capacity(columns.names.len());
        for cell in cells {
            text.push_str(cell);
            // No table that is read is longer than 64 MiB.
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        Self { columns, text: text.into(), ends: ends.into() }
    }

    /// The columns.
    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    /// The cell under a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.cell(self.columns.place(name)?)
    }

    /// The cell of a column.
    pub(crate) fn cell(&self, column: usize) -> Option<&str> {
        let start = if column == 0 { 0 } else { *self.ends.get(column - 1)? };
        self.text.get(start as usize..*self.ends.get(column)? as usize)
    }

    /// Each name with its cell, in the order of the columns; columns without a name are passed over.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = self.columns.names.iter().enumerate().filter(|(_, name)| !name.is_empty());
        named.filter_map(|(column, name)| Some((name.as_str(), self.cell(column)?)))
    }
}

impl Serialize for Cells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, cell) in self.iter() {
            map.serialize_entry(name, cell)?;
        }
        map.end()
    }
}

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

displayed!(Field(it): it.name());

/// The two numbers of a size in pixels or an aspect ratio, neither of them zero: `1280x720`, `9:16`.
pub(crate) fn sides(text: &str, between: char) -> Option<(u32, u32)> {
    let (wide, high) = text.split_once(between)?;
    let side = |digits: &str| -> Option<u32> {
        let is_plain = !digits.is_empty() && digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| digits.parse().ok()).flatten().filter(|&side| side > 0)
    };
    Some((side(wide)?, side(high)?))
}

/// The aspect ratios that every family has: the landscape one, and the upright one.
pub(crate) const SHAPES: [(u16, u16); 2] = [(16, 9), (9, 16)];
/// Words for an upright video, in the languages of the headers of spreadsheets.
const PORTRAIT: &str = "portrait vertical hochformat hochkant hoch reel reels story stories shorts tiktok verticale retrato pionowo \
     竖屏 竖版 竖向 竖 縦 縦型 縦長 세로";
/// Words for a video that is wider than high.
const LANDSCAPE: &str = "landscape horizontal querformat quer widescreen paysage orizzontale paisaje paisagem poziomo \
     横屏 横版 横向 横 横型 横長 가로";

/// The aspect ratio that a text means, in lowest terms: `9:16`, `16x9`, `9 by 16`, `1080x1920`, `16:9 (landscape)`, the time of day that a spreadsheet
/// makes of it (`16:09:00`), or a word such as `portrait`.
pub(crate) fn ratio_meant_by(text: &str) -> Option<(u16, u16)> {
    let text = text.to_lowercase();
    let digits = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let numbers = digits.map(|digits| digits.parse::<u16>().ok()).collect::<Option<Vec<_>>>()?;
    let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !matches!(*word, "" | "x" | "by" | "px"));
    let is_in = |list: &str, word: &str| list.split(' ').any(|known| known == word);
    let is_upright = |word: &str| is_in(PORTRAIT, word).then_some(true).or(is_in(LANDSCAPE, word).then_some(false));
    // An unknown word may deny the shape.
    let upright: BTreeSet<bool> = words.map(is_upright).collect::<Option<_>>()?;
    let (wide, high) = match numbers[..] {
        [] if upright.len() == 1 => SHAPES[usize::from(upright.contains(&true))],
        [wide, high] | [wide, high, 0] => (wide, high),
        _ => return None,
    };
    let divides = |divisor: &u16| wide % divisor == 0 && high % divisor == 0;
    let divisor = (1..=wide.min(high)).rev().find(divides)?;
    // Decimals and thousands are no ratio, and words must agree with the numbers.
    let is_ratio = !text.contains(['.', ',']) && upright.iter().all(|upright| *upright == (wide < high));
    is_ratio.then_some((wide / divisor, high / divisor))
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
    /// True if its job waits for it, and is bought with another image only by a retake.
    pub waits: bool,
    /// True if the file is not there yet.
    pub is_missing: bool,
}

impl LocalImage {
    /// The maximum size, in bytes: many times a frame of 720p. The interface names no limit.
    pub const MAX_BYTES: u64 = 64 << 20;

    /// The image of these bytes.
    pub fn new(path: PathBuf, bytes: &[u8]) -> Self {
        Self { path, sha256: hex(&Sha256::digest(bytes)), waits: false, is_missing: false }
    }

    /// An image that a job waits for.
    pub(crate) fn missing(path: PathBuf) -> Self {
        let name = path.display().to_string();
        Self { waits: true, is_missing: true, ..Self::new(path, name.as_bytes()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bought_job_has_the_recorded_model() {
        let purchase = Purchase {
            job: JobId::new("a").expect("an ID"),
            request: Request::stored(r#"{"prompt":"x","duration":5}"#.into(), Fingerprint::stored("f".into())),
            model: "alpha-2".into(),
            price: Usd::ZERO,
            charging: Charging::AtSubmission,
            typical_s: (1, 2),
            labels: Labels::new(),
            output: None,
            local_images: None,
        };
        let job = Job::as_bought(&purchase, None);
        assert_eq!(
            (job.spec.model.as_str(), job.spec.prompt.as_deref(), job.spec.duration),
            ("alpha-2", Some("x"), Some(5))
        );
        assert_eq!(job.purchase, purchase);
    }

    #[test]
    fn cell_has_its_written_text_under_its_name() {
        let names = ["sku", "", "name", "empty"].map(str::to_owned).to_vec();
        let columns = Arc::new(Columns::new(names).expect("columns"));
        let cells = Cells::new(Arc::clone(&columns), ["A 1", "x", "Łódź, \"mug\"", ""]);
        assert_eq!(
            [cells.get("sku"), cells.get("name"), cells.get("empty")],
            [Some("A 1"), Some("Łódź, \"mug\""), Some("")]
        );
        assert_eq!((cells.get(""), cells.get("other")), (None, None));
        assert_eq!(serde_json::to_string(&cells).expect("JSON"), r#"{"sku":"A 1","name":"Łódź, \"mug\"","empty":""}"#);
        assert_eq!(Columns::new(vec!["a".into(), "a".into()]), Err("a".to_owned()));
    }
}
