//! `--ping`: tells a monitor that a run begins and how it ended, as healthchecks.io and its likes take it: `/start`, the address itself
//! for success, `/EXIT-CODE`, and `/log` for what is neither. All requests of a run share an id.
//!
//! The address is a secret: whoever has it can say that all is well. No error here has it in it.

use std::time::Duration;

use reqwest::{Client, Url};

use crate::service::anonymous_client;

/// Tells a monitor about one run.
#[derive(Debug)]
pub struct Ping {
    client: Client,
    url: Url,
}

/// The reason why a URL can't be pinged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidPing {
    /// It is none of the web.
    #[error("must be an http or https URL")]
    NotHttp,
    /// It has a part behind its path, where the words of a run go.
    #[error("the URL has a query or a fragment")]
    Decorated,
    /// No client can be had.
    #[error("can't set up requests on this machine")]
    NoClient,
}

impl Ping {
    /// The longest wait for a monitor, all requests together (spec §8).
    pub const LIMIT: Duration = Duration::from_secs(10);

    /// Pings an address.
    pub fn new(address: &str) -> Result<Self, InvalidPing> {
        let mut url = Url::parse(address.trim()).map_err(|_| InvalidPing::NotHttp)?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(InvalidPing::NotHttp);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidPing::Decorated);
        }
        url.query_pairs_mut().append_pair("rid", &run_id());
        let client = anonymous_client(&url, Self::LIMIT).map_err(|_| InvalidPing::NoClient)?;
        Ok(Self { client, url })
    }

    /// Reports an end (`start`, `log`, an exit code, or nothing for success) with a text for people, and waits so long for a yes. The error is the
    /// reason why the monitor was not reached.
    pub async fn say(&self, end: &str, text: String, limit: Duration) -> Result<(), String> {
        let post = self.client.post(self.address(end)).header("content-type", "text/plain; charset=utf-8").body(text);
        let answer = post.timeout(limit).send().await.map_err(|error| why(error, limit))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => {
                Err(format!("the monitor responded with HTTP {}, not 2xx; redirects are not followed", status.as_u16()))
            }
        }
    }

    fn address(&self, end: &str) -> Url {
        let mut url = self.url.clone();
        if !end.is_empty() {
            let path = format!("{}/{end}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        url
    }
}

/// The error, without the URL.
fn why(error: reqwest::Error, limit: Duration) -> String {
    if error.is_timeout() {
        return format!("it gave no answer within {} s", limit.as_secs());
    }
    crate::domain::with_causes(&error.without_url())
}

/// A UUID (RFC 9562 §5.4), by which a monitor tells runs apart that overlap. It is no secret.
fn run_id() -> String {
    let random = fastrand::u128(..);
    let versioned = random & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{versioned:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_monitors() {
        let ping = Ping::new("https://hc.example/ping/key/daily/").expect("an address");
        let shown = |end| {
            let url = ping.address(end);
            assert!(url.query().is_some_and(|query| query.starts_with("rid=")));
            url.path().to_owned()
        };
        assert_eq!(shown("start"), "/ping/key/daily/start");
        assert_eq!(shown(""), "/ping/key/daily/");
        assert_eq!(shown("log"), "/ping/key/daily/log");
        assert_eq!(shown("74"), "/ping/key/daily/74");
        let invalid = |address| Ping::new(address).map(drop);
        assert_eq!(invalid("hc.example/x"), Err(InvalidPing::NotHttp));
        assert_eq!(invalid("file:///etc/passwd"), Err(InvalidPing::NotHttp));
        assert_eq!(invalid("https://hc.example/x?rid=1"), Err(InvalidPing::Decorated));
    }

    #[test]
    fn a_run_has_an_id_of_its_own_in_the_form_of_a_uuid() {
        let id = run_id();
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
        assert!(&id[14..15] == "4" && "89ab".contains(&id[19..20]), "{id}");
        assert_ne!(id, run_id());
    }
}
