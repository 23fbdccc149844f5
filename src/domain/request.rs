//! The exact body of a submission, and its fingerprint. Two jobs with equal fingerprints buy the same video.
//!
//! The body is canonical JSON: keys sorted at every depth, no white space. It is serialized once, when the manifest is read. The plan prints
//! these bytes, and the run sends them. Our own serializer fixes the order of keys: with that of a crate, a feature flag could change it, and a
//! changed fingerprint buys every video again.
//!
//! [`SendBy`] is the moment after which a request must not leave. A process can halt between two instructions: a laptop is closed, a debugger or a hypervisor stops it. Meanwhile, other runners may take
//! over its work, so its request must not leave when it wakes up. The deadline is measured by a clock that counts the halt.

use std::sync::Arc;
use std::time::Duration;

use memchr::memchr2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::job::one_or_list;
use super::text::{displayed, normalized};
use super::{Field, LocalImage, Spec, hex};

/// The body of `POST /v1/videos` for one job, with its fingerprint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    body: String,
    fingerprint: Fingerprint,
}

/// SHA-256 of the canonical request body, as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Fingerprint(Arc<str>);

impl Request {
    /// The request for a checked job. Defaults of the service are sent, too: if the service changes one, the price must stay.
    pub fn new(spec: &Spec) -> Self {
        let image = LocalImage::stand_in(&spec.local_images).or_else(|| image_value(&spec.image));
        let body = Self::body_of(spec, image.as_ref());
        let fingerprint = match &spec.image_key {
            Some(key) => {
                // Images are strings, so an object is unambiguous.
                let key = serde_json::json!({ "image_key": key });
                let extra = spec.extra.iter().map(|(name, value)| (name.clone(), keyed(value, &key))).collect();
                // The contents of a local image count, whatever its key.
                let image = image.as_ref().map(|image| if spec.local_images.is_empty() { &key } else { image });
                Fingerprint::from_body(&Self::body_of(&Spec { extra, ..spec.clone() }, image))
            }
            None => Fingerprint::from_body(&body),
        };
        Self { body, fingerprint }
    }

    /// The fingerprint of the normalized request of a job: its prompt and the strings in `extra` normalized. Equal requests have equal
    /// ones.
    ///
    /// The guards against buying again compare it, because spreadsheet programs change whitespace, Unicode forms, quotes, and dashes.
    pub fn normalized(spec: &Spec) -> Fingerprint {
        let prompt = spec.prompt.as_deref().map(normalized);
        let extra = spec.extra.iter().map(|(name, value)| (name.clone(), normalized_value(value))).collect();
        Self::new(&Spec { prompt, extra, ..spec.clone() }).fingerprint
    }

    /// A request that the ledger stored earlier.
    pub fn stored(body: String, fingerprint: Fingerprint) -> Self {
        Self { body, fingerprint }
    }

    /// The same request, of the same fields, with the URLs of its local images. Its identity does not depend on them.
    #[must_use]
    pub fn with_images_at(&self, spec: &Spec, urls: &[String]) -> Self {
        Self { body: Self::body_of(spec, image_value(urls).as_ref()), fingerprint: self.fingerprint.clone() }
    }

    fn body_of(spec: &Spec, image: Option<&Value>) -> String {
        let said = |field: Field| spec.has(field).then(|| field.name());
        let name = |field: Field| match (field, &spec.image_sent_as) {
            (Field::Image, Some(name)) => name.as_str(),
            _ => field.name(),
        };
        let extra = spec.extra.iter().filter(|(name, _)| Field::named(name).and_then(said).is_none());
        let extra = extra.map(|(name, value)| (name.as_str(), Part::Value(value)));
        let mut fields: Vec<(&str, Part<'_>)> = extra.collect();
        // Exhaustive, so that no field is accepted, priced, and not sent.
        let part = |field: Field| match field {
            Field::Model => Some(Part::Text(&spec.model)),
            Field::Prompt => spec.prompt.as_deref().map(Part::Text),
            Field::Duration => spec.duration.map(Part::Whole),
            Field::AspectRatio => spec.aspect_ratio.as_deref().map(Part::Text),
            Field::Size => spec.size.as_deref().map(Part::Text),
            Field::Image => image.map(Part::Value),
            // A face is a statement of the user, not part of the request.
            Field::Face => None,
        };
        fields.extend(Field::ALL.into_iter().filter_map(|field| Some((name(field), part(field)?))));
        fields.sort_unstable_by_key(|(name, _)| *name);
        let mut body = String::with_capacity(128 + spec.prompt.as_ref().map_or(0, String::len));
        write_list(&mut body, '{', '}', fields, |(name, part), out| {
            write_text(name, out);
            out.push(':');
            match part {
                Part::Text(text) => write_text(text, out),
                Part::Whole(number) => out.push_str(&number.to_string()),
                Part::Value(value) => write_canonical(value, out),
            }
        });
        // 100,000 jobs keep their body: without spare capacity.
        body.as_str().to_owned()
    }

    /// The bytes that are sent, as text.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The identity of this request.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

/// A value of the body.
enum Part<'p> {
    Text(&'p str),
    Whole(i64),
    Value(&'p Value),
}

/// A value with a stand-in for each URL in it, at any depth.
fn keyed(value: &Value, key: &Value) -> Value {
    match value {
        value @ Value::String(_) if has_web_url(value) => key.clone(),
        Value::Array(items) => items.iter().map(|item| keyed(item, key)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), keyed(value, key))).collect(),
        scalar => scalar.clone(),
    }
}

/// Returns whether a value is or contains a web URL.
pub(crate) fn has_web_url(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with("https://") || text.starts_with("http://"),
        Value::Array(items) => items.iter().any(has_web_url),
        Value::Object(fields) => fields.values().any(has_web_url),
        _ => false,
    }
}

/// A value with all of its strings normalized.
fn normalized_value(value: &Value) -> Value {
    match value {
        Value::String(text) => normalized(text).into(),
        Value::Array(items) => items.iter().map(normalized_value).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), normalized_value(value))).collect(),
        scalar => scalar.clone(),
    }
}

/// A single URL is a string, several are an array (interface §2.1).
fn image_value(urls: &[String]) -> Option<Value> {
    one_or_list(urls.iter().map(|url| url.as_str().into()).collect())
}

impl Fingerprint {
    fn from_body(body: &str) -> Self {
        Self(hex(&Sha256::digest(body.as_bytes())).into())
    }

    /// A fingerprint that the ledger stored earlier.
    pub fn stored(hex: String) -> Self {
        Self(hex.into())
    }

    /// The 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

displayed!(Fingerprint(it): it.0);

/// A JSON string with its quotes.
fn write_text(text: &str, out: &mut String) {
    // Both searches go by vectors of bytes.
    let bytes = text.as_bytes();
    if memchr2(b'"', b'\\', bytes).is_none() && bytes.iter().min().is_none_or(|least| *least >= b' ') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// JSON with sorted keys at every depth and no white space.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut entries: Vec<_> = fields.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            write_list(out, '{', '}', entries, |(key, value), out| {
                write_text(key, out);
                out.push(':');
                write_canonical(value, out);
            });
        }
        Value::Array(items) => write_list(out, '[', ']', items, write_canonical),
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn write_list<T>(
    out: &mut String,
    open: char,
    close: char,
    items: impl IntoIterator<Item = T>,
    write_item: impl Fn(T, &mut String),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_item(item, out);
    }
    out.push(close);
}

/// A moment after which no byte may leave, by the time since the start of the machine, including sleep.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendBy(Duration);

#[cfg(any(target_os = "linux", target_os = "android"))]
impl SendBy {
    /// This long from now.
    pub fn within(span: Duration) -> Self {
        Self(now().saturating_add(span))
    }

    /// Returns whether the moment has passed.
    pub fn is_over(self) -> bool {
        now() >= self.0
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn now() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::Boottime).try_into().unwrap_or(Duration::MAX)
}

/// A moment after which no byte may leave. On a system without such a clock, either of two ends it: the first may stop while the machine sleeps,
/// and the second may be set.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendBy(std::time::Instant, std::time::SystemTime);

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl SendBy {
    /// This long from now.
    pub fn within(span: Duration) -> Self {
        Self(std::time::Instant::now() + span, std::time::SystemTime::now() + span)
    }

    /// Returns whether the moment has passed.
    pub fn is_over(self) -> bool {
        std::time::Instant::now() >= self.0 || std::time::SystemTime::now() >= self.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec {
            model: "alpha-2".into(),
            prompt: Some("Ein \"Kranich\" 🐦\n".into()),
            duration: Some(12),
            aspect_ratio: Some("9:16".into()),
            image: vec!["https://example.com/a.png".into()],
            ..Spec::default()
        }
    }

    /// Do not change the expectation: a changed body buys every video of every ledger again.
    #[test]
    fn body_and_fingerprint_never_change() {
        let request = Request::new(&spec());
        insta::assert_snapshot!(request.body(), @r#"{"aspect_ratio":"9:16","duration":12,"image":"https://example.com/a.png","model":"alpha-2","prompt":"Ein \"Kranich\" 🐦\n"}"#);
        // From Python: hashlib.sha256(body.encode()).hexdigest()
        insta::assert_snapshot!(request.fingerprint(), @"e11fbf885be021c5a87d311d60db35a07e9758ca39042d8e7bc7b9afba1e3e0f");
    }

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let mut spec = spec();
        spec.extra = serde_json::from_str(r#"{"z": {"b": 1, "a": [{"d": null, "c": true}]}, "a": 0.5}"#).expect("JSON");
        let body = Request::new(&spec).body().to_owned();
        assert!(body.starts_with(r#"{"a":0.5,"aspect_ratio":"#), "{body}");
        assert!(body.ends_with(r#""z":{"a":[{"c":true,"d":null}],"b":1}}"#), "{body}");
    }

    #[test]
    fn image_key_replaces_a_daily_changing_url_in_the_identity() {
        let signed = |day: &str, key: Option<&str>| {
            let image = vec![format!("https://cdn.example/a.png?signed={day}")];
            Request::new(&Spec { image, image_key: key.map(str::to_owned), ..spec() })
        };
        assert_eq!(signed("mon", Some("a")).fingerprint(), signed("tue", Some("a")).fingerprint());
        assert_ne!(signed("mon", Some("a")).body(), signed("tue", Some("a")).body());
        assert_ne!(signed("mon", Some("a")).fingerprint(), signed("mon", Some("b")).fingerprint());
        assert_ne!(signed("mon", None).fingerprint(), signed("tue", None).fingerprint());
    }

    #[test]
    fn identity_of_an_image_is_its_content_not_its_path() {
        let of = |path: &str, bytes: &[u8]| {
            let local_images = vec![LocalImage::new(path.into(), bytes)];
            Spec { local_images, image: Vec::new(), ..spec() }
        };
        let with = |path: &str, bytes: &[u8]| Request::new(&of(path, bytes));
        let request = with("a.png", b"one");
        assert_eq!(request, with("b/c.png", b"one"));
        assert_ne!(request.fingerprint(), with("a.png", b"two").fingerprint());
        let sent = request.with_images_at(&of("a.png", b"one"), &["https://example.com/a.png".into()]);
        assert_eq!(sent.fingerprint(), request.fingerprint());
        assert_eq!(sent.body(), Request::new(&spec()).body());
        assert_ne!(sent.fingerprint(), Request::new(&spec()).fingerprint());
    }

    #[test]
    fn order_of_local_images_counts() {
        let of = |images: &[&[u8]]| {
            let local_images = images.iter().map(|bytes| LocalImage::new("a.png".into(), bytes)).collect();
            Spec { local_images, image: Vec::new(), ..spec() }
        };
        let both = of(&[b"one", b"two"]);
        let request = Request::new(&both);
        assert_ne!(request.fingerprint(), Request::new(&of(&[b"two", b"one"])).fingerprint());
        assert_ne!(request.fingerprint(), Request::new(&of(&[b"one"])).fingerprint());
        let urls = ["https://a/1".to_owned(), "https://a/2".to_owned()];
        let sent = request.with_images_at(&both, &urls);
        assert_eq!(sent.body(), Request::new(&Spec { image: urls.to_vec(), ..spec() }).body());
        assert_eq!(sent.fingerprint(), request.fingerprint());
        let digests = LocalImage::digests(&both.local_images).expect("digests");
        assert_eq!(digests.split(' ').count(), 2);
        assert_eq!(LocalImage::digests(&[]), None);
    }

    #[test]
    fn key_replaces_urls_but_no_local_image() {
        let request = |bytes: &[u8], url: &str, key: &str| {
            let extra = serde_json::Map::from_iter([("frames".to_owned(), serde_json::json!([{ "url": url }, "x"]))]);
            let local_images = vec![LocalImage::new("a.png".into(), bytes)];
            let spec = Spec { local_images, image: Vec::new(), extra, image_key: Some(key.into()), ..spec() };
            Request::new(&spec).fingerprint().clone()
        };
        let first = request(b"one", "https://a/1?mon", "k");
        assert_eq!(request(b"one", "https://a/1?tue", "k"), first);
        for other in [
            request(b"two", "https://a/1?mon", "k"),
            request(b"one", "https://a/1?mon", "l"),
            request(b"one", "no URL", "k"),
        ] {
            assert_ne!(other, first);
        }
    }

    proptest::proptest! {
        /// The quick way to write a body is serde's own, for any text.
        #[test]
        fn body_equals_the_json_of_serde(prompt in ".*", key in "[a-z]{1,8}", seconds in proptest::prelude::any::<i64>(), number in -1e9..1e9_f64) {
            let mut spec = Spec { prompt: Some(prompt.clone()), duration: Some(seconds), ..spec() };
            spec.extra.insert(format!("x_{key}"), prompt.clone().into());
            let sorted: std::collections::BTreeMap<String, Value> = serde_json::from_str(Request::new(&spec).body()).expect("JSON");
            proptest::prop_assert_eq!(&sorted["prompt"], &Value::from(prompt));
            let body = serde_json::to_string(&sorted).expect("JSON");
            let request = Request::new(&spec);
            proptest::prop_assert_eq!(&body, request.body());
            // With the address of an image, it is the body that an address alone has.
            spec.extra.insert(format!("y_{key}"), number.into());
            let request = Request::new(&spec);
            let local_images = vec![LocalImage::new("a.png".into(), key.as_bytes())];
            let planned = Spec { local_images, image: Vec::new(), ..spec.clone() };
            let sent = Request::new(&planned).with_images_at(&planned, &spec.image);
            proptest::prop_assert_eq!(sent.body(), request.body());
        }
    }

    #[test]
    fn list_of_one_image_equals_the_image() {
        let several = Spec { image: vec!["https://a/1".into(), "https://a/2".into()], ..spec() };
        assert!(Request::new(&spec()).body().contains(r#""image":"https://example.com/a.png""#));
        assert!(Request::new(&several).body().contains(r#""image":["https://a/1","https://a/2"]"#));
    }
}
