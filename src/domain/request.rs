//! The exact body of a submission, and the fingerprint that says whether two jobs ask for the same video.
//!
//! The body is canonical JSON: keys sorted at every depth, no white space. It is made once, when the manifest is read;
//! the plan prints these bytes and the run sends these bytes. The order of keys must never depend on a crate's feature
//! flags, because another order is another fingerprint, and another fingerprint pays again. So it is written here.

use std::fmt;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Field, Spec};

/// The body of `POST /v1/videos` for one job, with its fingerprint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    body: String,
    fingerprint: Fingerprint,
}

/// SHA-256 of the canonical request body, as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Request {
    /// The request for a checked job. Every effective value is sent, also where it is the service's default: what a job
    /// costs must not depend on a default that the service may change.
    #[must_use]
    pub fn new(spec: &Spec) -> Self {
        let body = Self::body_of(spec, image_value(&spec.image));
        let fingerprint = match &spec.image_key {
            // No image is an object, so a key can't be taken for an address.
            Some(key) => Fingerprint::of(&Self::body_of(spec, Some(serde_json::json!({ "image_key": key })))),
            None => Fingerprint::of(&body),
        };
        Self { body, fingerprint }
    }

    fn body_of(spec: &Spec, image: Option<Value>) -> String {
        let mut fields = spec.extra.clone();
        let mut put = |field: Field, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(field.name().to_owned(), value);
            }
        };
        put(Field::Model, Some(spec.model.clone().into()));
        put(Field::Prompt, spec.prompt.clone().map(Value::from));
        put(Field::Duration, spec.duration.map(Value::from));
        put(Field::AspectRatio, spec.aspect_ratio.clone().map(Value::from));
        put(Field::Size, spec.size.clone().map(Value::from));
        put(Field::Image, image);
        canonical(&Value::Object(fields))
    }

    /// The bytes that are sent, as text.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// What identifies this request.
    #[must_use]
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

/// One URL is a string, several are an array (interface §2.1): a list of one means the same as the URL alone.
fn image_value(urls: &[String]) -> Option<Value> {
    match urls {
        [] => None,
        [url] => Some(url.clone().into()),
        urls => Some(urls.to_vec().into()),
    }
}

impl Fingerprint {
    fn of(body: &str) -> Self {
        let digest = Sha256::digest(body.as_bytes());
        Self(digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _infallible = write!(hex, "{byte:02x}");
            hex
        }))
    }

    /// A fingerprint that the ledger stored earlier.
    #[must_use]
    pub fn stored(hex: String) -> Self {
        Self(hex)
    }

    /// The 64 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// JSON with sorted keys at every depth and no white space.
fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut entries: Vec<_> = fields.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            write_list(out, '{', '}', entries, |(key, value), out| {
                out.push_str(&Value::from(key.as_str()).to_string());
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

    /// If this test fails, every ledger in the world would pay again. Do not mend the expectation.
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
    fn an_image_key_stands_in_for_an_address_that_differs_every_day() {
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
    fn a_list_of_one_image_is_the_same_request_as_the_image() {
        let several = Spec { image: vec!["https://a/1".into(), "https://a/2".into()], ..spec() };
        assert!(Request::new(&spec()).body().contains(r#""image":"https://example.com/a.png""#));
        assert!(Request::new(&several).body().contains(r#""image":["https://a/1","https://a/2"]"#));
    }
}
