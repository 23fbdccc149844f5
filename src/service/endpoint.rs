//! The base URL of the service, the URLs that may get the key, and the settings of all HTTP clients: trust, connection timeout, no redirects, and the
//! deadline of a submission.
//!
//! # When HTTP/2 sent nothing
//!
//! | signal of the server (RFC 9113) | meaning |
//! |---|---|
//! | GOAWAY with a last stream below the request's (§6.8), with any error code | not sent: never processed |
//! | GOAWAY with the request's stream or one above as the last | the response counts if it arrives; otherwise in doubt |
//! | `RST_STREAM` with `REFUSED_STREAM` (§8.7) | not sent: refused before any processing |
//! | `RST_STREAM` with any other code | in doubt: it may have been processed (§7) |
//! | a connection that breaks without GOAWAY | in doubt |
//! | a connection that ends before it gets a waiting request | not sent |
//!
//! The HTTP library reports a GOAWAY only for requests above the last stream and for unwritten ones. It cancels only requests that it returns complete.

use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use h2::Reason;
use reqwest::{Client, ClientBuilder, Url, redirect};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::ConfigVerifierExt as _;

use crate::domain::text::percent_encoded;
use crate::domain::{SendBy, displayed, explained};

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
            // The characters of a segment without an escape (RFC 3986 §3.3, `pchar`).
            whole.push_str(&percent_encoded(part, b"-._~!$&'()*+,;=:@"));
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

displayed!(Endpoint(it): it.0.as_str().trim_end_matches('/'));

/// The timeout of a connection. Nothing is sent before, so a timeout costs nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Protocols that a client offers, in this order (RFC 7301).
pub(super) const HTTP_1: &[&str] = &["http/1.1"];
pub(super) const HTTP_2: &[&str] = &["h2", "http/1.1"];

/// The reason why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("can't set up the HTTP client")]
pub struct ClientError(#[from] reqwest::Error);

explained!(ClientError => NoClient, "check the certificates of this machine, and the proxy in `HTTPS_PROXY`");

/// The trusted roots of all clients: those of this machine, or Mozilla's roots without a certificate store. Read once from the disk.
#[derive(Clone, Debug)]
pub(super) struct Trusted(Arc<ClientConfig>);

impl Trusted {
    /// Reads the certificates.
    pub(super) fn by_this_machine() -> Self {
        // Fails only if a provider is installed already.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let config = ClientConfig::with_platform_verifier().unwrap_or_else(|_| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
            ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
        });
        Self(Arc::new(config))
    }

    /// A builder for a client with these protocols. A client for this machine ignores the proxies of the environment.
    ///
    /// On Linux, reqwest sets `TCP_USER_TIMEOUT` to 30 s. Without it, the kernel retransmits for 15 minutes, also for a stopped process: a
    /// submission could arrive after its job in doubt was resolved as never created.
    pub(super) fn client(&self, is_near: bool, protocols: &[&str]) -> ClientBuilder {
        let mut tls = ClientConfig::clone(&self.0);
        tls.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let builder = Client::builder()
            .user_agent(concat!("shotlist/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none());
        if is_near { builder.no_proxy() } else { builder }
    }
}

/// The error of a client that refuses to send because the connection speaks HTTP/1.1. Another text would leave a doubt.
const OTHER_PROTOCOL: &str = "client error (UserUnsupportedVersion)";

/// Returns whether the client refused to send because the connection speaks HTTP/1.1.
pub(super) fn is_other_protocol(error: &(dyn Error + 'static)) -> bool {
    successors(Some(error), |error| (*error).source()).any(|error| error.to_string() == OTHER_PROTOCOL)
}

/// Returns true if no byte of a request was written, or if the server refused it unprocessed.
pub(super) fn is_unprocessed(error: &(dyn Error + 'static)) -> bool {
    is_other_protocol(error)
        || successors(Some(error), |error| (*error).source()).any(|error| {
            error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled)
                || error.downcast_ref::<h2::Error>().is_some_and(|said| {
                    said.is_remote() && (said.is_go_away() || said.reason() == Some(Reason::REFUSED_STREAM))
                })
        })
}

tokio::task_local! {
    /// The deadline of the submission of this task.
    static DEADLINE: SendBy;
}

/// Sends if there is a connection before the deadline.
pub(super) async fn before<T>(send_by: Option<SendBy>, send: impl Future<Output = T>) -> T {
    match send_by {
        Some(send_by) => DEADLINE.scope(send_by, send).await,
        None => send.await,
    }
}

/// Passes a connection before the deadline. There is no wait between this and the first byte.
pub(super) async fn in_time<C>(connection: C) -> Result<C, Box<dyn Error + Send + Sync>> {
    let is_late = DEADLINE.try_with(|send_by| send_by.is_over()).unwrap_or(false);
    let refusal = "connected too late to send; another runner may have taken over";
    if is_late { Err(refusal.into()) } else { Ok(connection) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;
    use hyper::client::conn::http2::{Connection, SendRequest, handshake};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::io::{DuplexStream, duplex};

    #[test]
    fn key_uses_plain_http_only_to_loopback() {
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
    fn task_id_stays_in_its_path_segment() {
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

    type Client = (SendRequest<String>, Connection<TokioIo<DuplexStream>, String, TokioExecutor>);

    async fn connected() -> (Client, DuplexStream) {
        let (near, far) = duplex(64 * 1024);
        (handshake(TokioExecutor::new(), TokioIo::new(near)).await.expect("a connection"), far)
    }

    fn post() -> Request<String> {
        Request::post("https://127.0.0.1/v1/videos").body(String::new()).expect("a request")
    }

    #[tokio::test]
    async fn request_refused_by_the_connection_was_not_sent() {
        let ((mut sender, connection), _far) = connected().await;
        let answer = sender.send_request(post());
        drop(connection);
        assert!(is_unprocessed(&answer.await.expect_err("no answer")));
    }

    #[tokio::test]
    async fn request_after_its_first_byte_is_in_doubt() {
        let ((mut sender, connection), far) = connected().await;
        let answer = sender.send_request(post());
        let serving = tokio::spawn(connection);
        let mut server = h2::server::handshake(far).await.expect("a connection");
        drop(server.accept().await.expect("a request"));
        drop(server);
        assert!(!is_unprocessed(&answer.await.expect_err("no answer")));
        serving.abort();
    }
}
