//! Credentials of every request to the service: the key, and headers for a gateway in front of it.
//!
//! All credentials are secret. Only the service's origin gets them, they print as `***`, and they are masked in responses. Masking works by field: a
//! task ID is never changed, also if it shares letters with the key. A URL with a secret is dropped. The content endpoint replaces it.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::wire::{Status, TaskReport};
use super::{Echo, PollAnswer, Submission, SubmitResult, TryAgain};
use crate::domain::text::percent_encoded;
use crate::domain::{ServiceError, hex};

/// The minimum length of a masked secret, in bytes.
const MIN_SECRET: usize = 8;
/// Headers about the request or its transfer: another value would change the request.
const OWN: &str = "accept accept-encoding authorization connection content-encoding content-length content-type expect host \
    if-range range te transfer-encoding upgrade";

/// A header for a gateway.
#[derive(Clone)]
pub struct GatewayHeader {
    name: HeaderName,
    value: SecretString,
}

/// The reason to refuse a header for a gateway. Its value is never shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidHeader(String);

impl GatewayHeader {
    /// Reads `NAME=VALUE`.
    pub fn parse(text: &str) -> Result<Self, InvalidHeader> {
        let no_value = "must be `NAME=VALUE`; in `SHOTLIST_HEADER`, one per line";
        let (shown, value) = text.split_once('=').ok_or_else(|| InvalidHeader(no_value.to_owned()))?;
        let (shown, value) = (shown.trim(), value.trim());
        let name = HeaderName::try_from(shown);
        let name = name.map_err(|_| InvalidHeader(format!("`{shown}` must be a header name")))?;
        if OWN.split(' ').any(|own| own == name.as_str()) {
            let source = "the key comes from `SHOTLIST_API_KEY` or `--api-key-file`";
            return Err(InvalidHeader(format!("`{shown}` is set by shotlist; {source}")));
        }
        let invalid = "contains a line break or another invalid character";
        HeaderValue::from_str(value).map_err(|_| InvalidHeader(format!("the value of `{shown}` {invalid}")))?;
        Ok(Self { name, value: value.into() })
    }

    fn is_secret(&self) -> bool {
        ["auth", "cookie", "key", "password", "secret", "session", "token"]
            .iter()
            .any(|word| self.name.as_str().contains(word))
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl fmt::Debug for GatewayHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ***", self.name)
    }
}

/// The key, and headers for a gateway.
#[derive(Clone, Debug)]
pub struct Credentials {
    key: ApiKey,
    headers: Vec<GatewayHeader>,
    /// The masked forms of secrets in lowercase, the longest first.
    forms: Arc<[SecretString]>,
}

impl Credentials {
    /// The fingerprint of the key. It does not reveal the key, which is long and random.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::digest(format!("shotlist key\0{}", self.key.0.expose_secret()));
        hex(&digest[..8])
    }

    /// The key, and headers for a gateway.
    pub fn new(key: ApiKey, headers: Vec<GatewayHeader>) -> Self {
        let forms = forms(&secrets(&key, &headers)).into_iter().map(SecretString::from).collect();
        Self { key, headers, forms }
    }

    /// The headers, hidden from logs.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        let bearer = (AUTHORIZATION, format!("Bearer {}", self.key.0.expose_secret()));
        let others = self.headers.iter().map(|header| (header.name.clone(), header.value.expose_secret().to_owned()));
        for (name, value) in std::iter::once(bearer).chain(others) {
            // Both are valid headers.
            if let Ok(mut value) = HeaderValue::from_str(&value) {
                value.set_sensitive(true);
                map.append(name, value);
            }
        }
        map
    }

    /// Returns whether a string contains a secret, in any [form](forms).
    pub fn are_in(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.forms.iter().any(|form| memmem::find(text.as_bytes(), form.expose_secret().as_bytes()).is_some())
    }

    /// Masks the secrets in a text. Must run before truncation: a part of a secret is not masked.
    pub(super) fn masked(&self, mut text: String) -> String {
        for form in &*self.forms {
            let form = form.expose_secret();
            // Of the same length, byte for byte.
            let lowercase = text.to_ascii_lowercase();
            let (mut masked, mut end) = (String::new(), 0);
            for at in memmem::find_iter(lowercase.as_bytes(), form) {
                masked.push_str(&text[end..at]);
                masked.push_str("***");
                end = at + form.len();
            }
            if end > 0 {
                masked.push_str(&text[end..]);
                text = masked;
            }
        }
        text
    }
}

/// The secrets to mask: the key, and headers that are secret by their names. Other headers, such as a tenant's name, occur in strings and
/// URLs.
fn secrets<'s>(key: &'s ApiKey, headers: &'s [GatewayHeader]) -> Vec<&'s str> {
    let others = headers.iter().filter(|header| header.is_secret()).map(|header| header.value.expose_secret());
    // A short string could be part of any text.
    std::iter::once(key.0.expose_secret()).chain(others).filter(|secret| secret.len() >= MIN_SECRET).collect()
}

/// The forms of a secret: plain, percent-encoded, and in Base64 at each offset.
fn forms(secrets: &[&str]) -> Vec<String> {
    let mut forms: Vec<String> = Vec::new();
    for secret in secrets {
        forms.extend([secret.to_ascii_lowercase(), percent_encoded(secret, b"-._~").to_ascii_lowercase()]);
        for offset in 0..3 {
            let padded = [&b"\0\0"[..offset], secret.as_bytes()].concat();
            for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let text = engine.encode(&padded);
                // The first and the last characters contain bits of the text around the secret.
                let whole = text.get((offset * 8).div_ceil(6)..padded.len() * 8 / 6).unwrap_or_default();
                forms.push(whole.to_ascii_lowercase());
            }
        }
    }
    forms.retain(|form| form.len() >= MIN_SECRET);
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms
}

/// The key of every request (interface §5).
#[derive(Clone)]
pub struct ApiKey(SecretString);

/// The reason to refuse a key. The key is never shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidKey(&'static str);

impl ApiKey {
    /// Parses a key, without the white space and the byte order mark of a file.
    pub fn new(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(InvalidKey("it is empty"));
        }
        if text.starts_with(['"', '\'']) && text.ends_with(['"', '\'']) {
            return Err(InvalidKey("it is quoted"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidKey("it contains a space, a line break, or another invalid character"));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The outcome of a submission, without the secrets.
pub(super) fn mask_submission(own: &Credentials, outcome: SubmitResult) -> SubmitResult {
    let again = |again| match again {
        TryAgain::NotSent(why) => TryAgain::NotSent(own.masked(why)),
        TryAgain::Wait(wait, why) => TryAgain::Wait(wait, own.masked(why)),
        TryAgain::ServerError(wait, why) => TryAgain::ServerError(wait, own.masked(why)),
    };
    Ok(match outcome.map_err(again)? {
        Submission::Accepted(names, made) => Submission::Accepted(names, echo(own, made)),
        Submission::Untrusted(why) => Submission::Untrusted(own.masked(why)),
        Submission::Moved(to) => Submission::Moved(own.masked(to)),
        Submission::KeyRefused(why) => Submission::KeyRefused(error(own, why)),
        Submission::Forbidden(why) => Submission::Forbidden(error(own, why)),
        Submission::Rejected(why) => Submission::Rejected(error(own, why)),
        Submission::Unpaid(why) => Submission::Unpaid(error(own, why)),
        Submission::WrongEndpoint(why) => Submission::WrongEndpoint(error(own, why)),
        Submission::Page(why) => Submission::Page(error(own, why)),
        Submission::InDoubt(why) => Submission::InDoubt(error(own, why)),
    })
}

/// The outcome of a poll, without the secrets.
pub(super) fn mask_poll(own: &Credentials, said: PollAnswer) -> PollAnswer {
    match said {
        PollAnswer::Report(report) => PollAnswer::Report(task(own, report)),
        PollAnswer::KeyRefused(why) => PollAnswer::KeyRefused(error(own, why)),
        PollAnswer::Wait(wait, why) => PollAnswer::Wait(wait, own.masked(why)),
        PollAnswer::Transient(why) => PollAnswer::Transient(own.masked(why)),
        PollAnswer::Missing(why) => PollAnswer::Missing(own.masked(why)),
    }
}

fn task(own: &Credentials, mut report: TaskReport) -> TaskReport {
    report.status = match report.status {
        Status::Unknown(word) => Status::Unknown(own.masked(word)),
        Status::Unproven(word) => Status::Unproven(own.masked(word)),
        known => known,
    };
    for url in [&mut report.video_url, &mut report.only_link] {
        url.take_if(|url| own.are_in(url));
    }
    report.echo = Box::new(echo(own, *report.echo));
    report.error = report.error.map(|why| error(own, why));
    report
}

fn echo(own: &Credentials, made: Echo) -> Echo {
    let masked = |text: Option<String>| text.map(|text| own.masked(text));
    let Echo { model, size, aspect_ratio, .. } = made;
    Echo { model: masked(model), size: masked(size), aspect_ratio: masked(aspect_ratio), ..made }
}

fn error(own: &Credentials, said: ServiceError) -> ServiceError {
    let ServiceError { message, code, raw } = said;
    ServiceError { message: own.masked(message), code: code.map(|code| own.masked(code)), raw: value(own, raw) }
}

fn value(own: &Credentials, said: Value) -> Value {
    match said {
        Value::String(text) => own.masked(text).into(),
        Value::Array(items) => items.into_iter().map(|item| value(own, item)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (own.masked(name), value(own, field))).collect()
        }
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_accepted_unless_shotlist_sets_it() {
        assert!(GatewayHeader::parse("x-litellm-num-retries=0").is_ok());
        let header = GatewayHeader::parse("CF-Access-Client-Secret = a=b ").expect("a header");
        assert_eq!((header.name.as_str(), header.value.expose_secret()), ("cf-access-client-secret", "a=b"));
        assert_eq!(format!("{header:?}"), "cf-access-client-secret: ***");
        let bad = |text: &str| GatewayHeader::parse(text).expect_err("no header").0;
        assert_eq!(bad("x"), "must be `NAME=VALUE`; in `SHOTLIST_HEADER`, one per line");
        assert_eq!(bad("a b=c"), "`a b` must be a header name");
        assert_eq!(bad("=c"), "`` must be a header name");
        assert_eq!(bad("x=a\nb"), "the value of `x` contains a line break or another invalid character");
        for own in OWN.split(' ') {
            let own = own.to_uppercase();
            assert!(bad(&format!("{own}=x")).starts_with(&format!("`{own}` is set by shotlist")), "{own}");
        }
    }

    #[test]
    fn echoed_secret_is_masked() {
        let key = |text: &str| ApiKey::new(text).expect("a key");
        let masked = |key: ApiKey, answer: &str| {
            Credentials::new(
                key,
                vec![
                    GatewayHeader::parse("x-token=another-secret").expect("a header"),
                    GatewayHeader::parse("x-tenant=acme-studio").expect("a header"),
                ],
            )
            .masked(answer.to_owned())
        };
        assert_eq!(masked(key("secret-key"), "Bearer secret-key, secret-key!"), "Bearer ***, ***!");
        assert_eq!(masked(key("secret-key"), "with another-secret"), "with ***");
        assert_eq!(masked(key("secret-key"), "another"), "another");
        assert_eq!(masked(key("secret-key"), "https://acme-studio.example/x"), "https://acme-studio.example/x");
        assert_eq!(masked(key("another-secret-and-more"), "another-secret-and-more"), "***", "the longest first");
        assert_eq!(masked(key("k"), "task"), "task");
        // The replacement of a secret is not searched again.
        assert_eq!(masked(key("********"), "a ******** b *********"), "a *** b ****");
        let odd = "Secret+key/with=signs";
        for form in [
            "SECRET+KEY/WITH=SIGNS".to_owned(),
            "Secret%2Bkey%2Fwith%3Dsigns".to_owned(),
            "secret%2bkey%2fwith%3dsigns".to_owned(),
        ] {
            assert_eq!(masked(key(odd), &format!("a {form} b")), "a *** b", "{form}");
        }
        for around in ["", "u", "us", "user:"] {
            let echoed = STANDARD_NO_PAD.encode(format!("{around}{odd}!"));
            let left = masked(key(odd), &echoed);
            assert!(left.contains("***") && left.len() <= around.len() * 2 + 10, "{echoed}: {left}");
        }
    }

    #[test]
    fn key_is_never_printed() {
        let key = ApiKey::new("secret-key\n").expect("a key");
        assert_eq!(format!("{key:?}"), "***");
        let headers = Credentials::new(key, Vec::new()).headers();
        assert_eq!(headers[AUTHORIZATION], "Bearer secret-key");
        assert!(!format!("{headers:?}").contains("secret-key"));
    }

    #[test]
    fn key_outside_of_header_characters_is_refused() {
        let bad_character = InvalidKey("it contains a space, a line break, or another invalid character");
        assert_eq!(ApiKey::new(" \n").map(drop), Err(InvalidKey("it is empty")));
        assert_eq!(ApiKey::new("a b").map(drop), Err(bad_character));
        assert_eq!(ApiKey::new("\"secret-key\"").map(drop), Err(InvalidKey("it is quoted")));
        assert_eq!(ApiKey::new("ключ").map(drop), Err(bad_character));
    }
}
