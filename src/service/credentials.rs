//! What every request to the service carries besides what it asks for: the key, and headers for a gateway in front of it.
//!
//! All of it is secret. It goes to the service's own origin alone, is never logged, and is taken out of what the service
//! says ([`mask`](super::mask)).

use std::fmt;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use super::ApiKey;

/// The shortest secret that is looked for in answers, in bytes.
const SHORTEST_SECRET: usize = 8;
/// Headers that say what a request is, or how it travels: another value would make another request of it.
const OWN: [&str; 14] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "if-range",
    "range",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// A header that a gateway wants.
#[derive(Clone)]
pub struct GatewayHeader {
    name: HeaderName,
    value: SecretString,
}

/// Why a text is no header for a gateway. The value is never shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeader {
    /// There is no `=`.
    #[error("write NAME=VALUE, with an equals sign; in SHOTLIST_HEADER, one a line")]
    NoValue,
    /// The name has a character that no name of a header has.
    #[error("`{0}` is no name of a header")]
    BadName(String),
    /// The value has a character that no header carries.
    #[error("the value of `{0}` holds a line break or another character that no header carries")]
    BadValue(String),
    /// shotlist sets it itself.
    #[error("`{0}` is set by shotlist itself; the key comes from SHOTLIST_API_KEY or --api-key-file")]
    Own(String),
}

impl GatewayHeader {
    /// Reads `NAME=VALUE`.
    pub fn parse(text: &str) -> Result<Self, InvalidHeader> {
        let (name, value) = text.split_once('=').ok_or(InvalidHeader::NoValue)?;
        let shown = || name.trim().to_owned();
        let name = HeaderName::try_from(name.trim()).map_err(|_| InvalidHeader::BadName(shown()))?;
        if OWN.contains(&name.as_str()) {
            return Err(InvalidHeader::Own(shown()));
        }
        HeaderValue::from_str(value.trim()).map_err(|_| InvalidHeader::BadValue(shown()))?;
        Ok(Self { name, value: value.trim().into() })
    }
}

impl GatewayHeader {
    fn is_secret(&self) -> bool {
        ["auth", "cookie", "key", "password", "secret", "session", "token"]
            .iter()
            .any(|word| self.name.as_str().contains(word))
    }

    /// The name.
    #[must_use]
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
}

impl Credentials {
    /// What tells the key from others without telling it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.key.fingerprint()
    }

    /// The key, and what a gateway wants besides.
    #[must_use]
    pub fn new(key: ApiKey, headers: Vec<GatewayHeader>) -> Self {
        Self { key, headers }
    }

    /// Makes headers of it, which no log shows.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        let bearer = (AUTHORIZATION, self.key.bearer());
        let others = self.headers.iter().map(|header| (header.name.clone(), header.value.expose_secret().to_owned()));
        for (name, value) in std::iter::once(bearer).chain(others) {
            // Both were checked to be headers when they were made.
            if let Ok(mut value) = HeaderValue::from_str(&value) {
                value.set_sensitive(true);
                map.append(name, value);
            }
        }
        map
    }

    /// What is taken out of texts, the longest first: the key, and headers that are secrets by their names. The others, a
    /// tenant's name for example, stand in many a text and link.
    fn secrets(&self) -> Vec<&str> {
        let others = self.headers.iter().filter(|header| header.is_secret()).map(|header| header.value.expose_secret());
        // What is too short to be a secret is not looked for: its letters stand anywhere.
        let secrets = std::iter::once(self.key.secret()).chain(others).filter(|secret| secret.len() >= SHORTEST_SECRET);
        let mut secrets: Vec<&str> = secrets.collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets
    }

    /// Whether a link has a secret in it, which some services echo in what they say of it.
    pub(super) fn are_in(&self, link: &str) -> bool {
        self.secrets().iter().any(|secret| link.contains(secret))
    }

    /// A text without the secrets.
    pub(super) fn masked(&self, text: String) -> String {
        let secrets = self.secrets();
        secrets.iter().fold(text, |text, secret| if text.contains(secret) { text.replace(secret, "***") } else { text })
    }
}

impl From<ApiKey> for Credentials {
    fn from(key: ApiKey) -> Self {
        Self::new(key, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_taken_unless_shotlist_sets_it() {
        assert!(GatewayHeader::parse("x-litellm-num-retries=0").is_ok());
        let header = GatewayHeader::parse("CF-Access-Client-Secret = a=b ").expect("a header");
        assert_eq!((header.name.as_str(), header.value.expose_secret()), ("cf-access-client-secret", "a=b"));
        assert_eq!(format!("{header:?}"), "cf-access-client-secret: ***");
        let bad = |text: &str| GatewayHeader::parse(text).expect_err("no header");
        assert_eq!(bad("x"), InvalidHeader::NoValue);
        assert_eq!(bad("a b=c"), InvalidHeader::BadName("a b".into()));
        assert_eq!(bad("=c"), InvalidHeader::BadName(String::new()));
        assert_eq!(bad("x=a\nb"), InvalidHeader::BadValue("x".into()));
        for own in OWN {
            assert_eq!(bad(&format!("{}=x", own.to_uppercase())), InvalidHeader::Own(own.to_uppercase()));
        }
    }

    #[test]
    fn a_secret_that_is_echoed_is_taken_out() {
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
    }
}
