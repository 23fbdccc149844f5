//! The base URL of the service, and the URLs that may get the key.

use std::fmt;

use reqwest::Url;

/// A base URL that may get the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Url);

/// The reason why a URL is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpoint {
    /// It is not an HTTP or HTTPS URL with a host.
    #[error("`{0}` must be an http or https URL")]
    NotHttp(String),
    /// It has a part that a base URL can't have.
    #[error("`{0}` has a user name, a query, or a fragment, which a base URL can't have")]
    Decorated(String),
    /// It ends with a part of the service's paths.
    #[error("`{0}` ends with `/v1` or `/v1/videos`, which shotlist adds")]
    Versioned(String),
    /// It would send the key unencrypted.
    #[error("`{0}` uses plain HTTP, which exposes the key")]
    PlainHttp(String),
}

impl Endpoint {
    /// Parses a URL. Plain HTTP is allowed only for loopback, or with `allow_http`.
    pub fn parse(text: &str, allow_http: bool) -> Result<Self, InvalidEndpoint> {
        let shown = || text.to_owned();
        let url = Url::parse(text.trim()).map_err(|_| InvalidEndpoint::NotHttp(shown()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(InvalidEndpoint::NotHttp(shown()));
        }
        let decorated = !url.username().is_empty() || url.password().is_some();
        if decorated || url.query().is_some() || url.fragment().is_some() {
            // The URL may contain a password: only its host is shown.
            return Err(InvalidEndpoint::Decorated(url.host_str().unwrap_or_default().to_owned()));
        }
        let path = url.path().trim_end_matches('/');
        if path.ends_with("/v1") || path.ends_with("/v1/videos") {
            return Err(InvalidEndpoint::Versioned(shown()));
        }
        let endpoint = Self(url);
        if endpoint.0.scheme() == "http" && !endpoint.is_loopback() && !allow_http {
            return Err(InvalidEndpoint::PlainHttp(shown()));
        }
        Ok(endpoint)
    }

    /// Returns whether the URL leads to this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// The origin, for the user. The path may be a secret of a gateway.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// Returns whether a URL has the same scheme, host, and port.
    pub fn is_origin_of(&self, url: &Url) -> bool {
        self.0.origin() == url.origin()
    }

    /// Returns whether a URL is of a task or its content. Such a URL may get the key.
    pub fn is_task_url(&self, url: &Url) -> bool {
        let own = self.at(&["v1", "videos"]);
        let Some(rest) = url.path().strip_prefix(own.path()).and_then(|rest| rest.strip_prefix('/')) else {
            return false;
        };
        let id = rest.strip_suffix("/content").unwrap_or(rest);
        self.is_origin_of(url) && !id.is_empty() && !id.contains('/')
    }

    /// The URL of a path such as `v1/videos`. Each part is escaped, so a task ID can't change the path.
    pub fn at(&self, path: &[&str]) -> Url {
        let mut whole = self.0.path().trim_end_matches('/').to_owned();
        for part in path {
            whole.push('/');
            for byte in part.bytes() {
                // The characters of a segment without an escape (RFC 3986 §3.3, `pchar`).
                if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
                    whole.push(char::from(byte));
                } else {
                    whole.push_str(&format!("%{byte:02X}"));
                }
            }
        }
        let mut url = self.0.clone();
        url.set_path(&whole);
        url
    }
}

/// Returns whether a URL leads to this machine, by its host alone.
pub(super) fn is_loopback(url: &Url) -> bool {
    let bare = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_travels_in_the_clear_to_loopback_only() {
        for good in ["https://api.example.com", "http://127.0.0.1:8080", "http://localhost:1/x", "http://[::1]:9"] {
            assert!(Endpoint::parse(good, false).is_ok(), "{good}");
        }
        for bad in
            ["http://api.example.com", "http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.nip.io"]
        {
            assert!(matches!(Endpoint::parse(bad, false), Err(InvalidEndpoint::PlainHttp(_))), "{bad}");
            assert!(Endpoint::parse(bad, true).is_ok(), "{bad}");
        }
        for bad in [
            "",
            "api.example.com",
            "ftp://x",
            "file:///x",
            "https://u:p@x",
            "https://x?a=1",
            "https://x/v1/",
            "https://x/v1/videos",
        ] {
            assert!(Endpoint::parse(bad, true).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_the_same_scheme_host_and_port_are_the_same_origin() {
        let endpoint = Endpoint::parse("https://api.example.com/base", false).expect("an address");
        let is_origin = |url: &str| endpoint.is_origin_of(&Url::parse(url).expect("an address"));
        assert!(is_origin("https://api.example.com:443/v1/videos/t/content"));
        for other in [
            "http://api.example.com/base",
            "https://api.example.com:444/",
            "https://example.com/",
            "https://api.example.com.evil.example/",
            "https://api.example.com@evil.example/",
        ] {
            assert!(!is_origin(other), "{other}");
        }
    }

    #[test]
    fn a_task_id_stays_in_its_place() {
        let endpoint = Endpoint::parse("https://x/base/", false).expect("an address");
        assert_eq!(
            endpoint.at(&["v1", "videos", "../../a?b#c"]).as_str(),
            "https://x/base/v1/videos/..%2F..%2Fa%3Fb%23c"
        );
        assert_eq!(endpoint.at(&["v1", "videos"]).as_str(), "https://x/base/v1/videos");
        for (id, last) in [
            ("a\nb", "a%0Ab"),
            ("\t\r", "%09%0D"),
            ("a\\b", "a%5Cb"),
            ("100%", "100%25"),
            ("é+/=", "%C3%A9+%2F="),
            ("..%2e", "..%252e"),
            ("...", "..."),
        ] {
            assert_eq!(
                endpoint.at(&["v1", "videos", id]).as_str(),
                format!("https://x/base/v1/videos/{last}"),
                "{id:?}"
            );
        }
    }
}
