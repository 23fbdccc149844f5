//! Settings of all HTTP clients: trust, connection timeout, no redirects, and the deadline of a submission.
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
use reqwest::{Client, ClientBuilder, redirect};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::ConfigVerifierExt as _;

use crate::domain::{SendBy, explained};

/// The timeout of a connection. Nothing is sent before, so a timeout costs nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Protocols that a client offers, in this order (RFC 7301).
pub(super) const HTTP_1: &[&str] = &["http/1.1"];
pub(super) const HTTP_2: &[&str] = &["h2", "http/1.1"];

/// The reason why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("can't set up the HTTP client")]
pub struct ClientError(#[source] reqwest::Error);

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

/// Builds a client.
pub(super) fn build(builder: ClientBuilder) -> Result<Client, ClientError> {
    builder.build().map_err(ClientError)
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

/// The deadline passed before the connection.
#[derive(Debug, thiserror::Error)]
#[error("connected too late to send; another runner may have taken over")]
struct TooLate;

/// Passes a connection before the deadline. There is no wait between this and the first byte.
pub(super) async fn in_time<C>(connection: C) -> Result<C, Box<dyn Error + Send + Sync>> {
    if DEADLINE.try_with(|send_by| send_by.is_over()).unwrap_or(false) {
        Err(Box::new(TooLate))
    } else {
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::client::conn::http2::{Connection, SendRequest, handshake};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    type Client = (SendRequest<String>, Connection<TokioIo<DuplexStream>, String, TokioExecutor>);

    async fn connected() -> (Client, DuplexStream) {
        let (near, far) = duplex(64 * 1024);
        (handshake(TokioExecutor::new(), TokioIo::new(near)).await.expect("a connection"), far)
    }

    fn post() -> Request<String> {
        Request::post("https://127.0.0.1/v1/videos").body(String::new()).expect("a request")
    }

    #[tokio::test]
    async fn a_request_that_the_connection_never_took_was_not_sent() {
        let ((mut sender, connection), _far) = connected().await;
        let answer = sender.send_request(post());
        drop(connection);
        assert!(is_unprocessed(&answer.await.expect_err("no answer")));
    }

    #[tokio::test]
    async fn a_request_that_was_on_its_way_is_in_doubt() {
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
