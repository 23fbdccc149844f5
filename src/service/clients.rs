//! Settings of every HTTP client: trust, the time for a connection, and no redirects.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, redirect};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::ConfigVerifierExt as _;

/// The longest wait for a connection. Nothing is written before, so a timeout costs nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Protocols that a client offers, in this order (RFC 7301).
pub(super) const HTTP_1: &[&str] = &["http/1.1"];
pub(super) const HTTP_2: &[&str] = &["h2", "http/1.1"];

/// The reason why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("can't set up the HTTP client")]
pub struct ClientError(#[source] reqwest::Error);

/// The trusted roots of clients: those of this machine, or Mozilla's roots where it has no certificate store. Read from the disk once for all that are made
/// of it.
#[derive(Clone, Debug)]
pub(super) struct Trusted(Arc<ClientConfig>);

impl Trusted {
    /// Reads the certificates.
    pub(super) fn by_this_machine() -> Self {
        // Fails only if a provider is installed already, which is just as well.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let config = ClientConfig::with_platform_verifier().unwrap_or_else(|_| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
            ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
        });
        Self(Arc::new(config))
    }

    /// Begins a client that offers these protocols. One for this machine itself goes past the proxies of the environment.
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
