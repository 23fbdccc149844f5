//! A connection, encrypted where it leaves this machine, to a database that keeps what it acknowledges.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio_postgres::Client;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::PostgresAddress;
use super::error::PostgresError;
use super::transaction::Value;
use crate::domain::with_causes;

/// The number of tries for a connection that breaks during its handshake, and the pause between two of them.
const HANDSHAKES: u32 = 10;
const BETWEEN_HANDSHAKES: Duration = Duration::from_millis(50);
/// The encoding that can hold every prompt.
const UTF8: &str = "UTF8";

/// Connects. The connection lives on the runtime that is current, for as long as the client does.
pub(super) async fn connect(address: &PostgresAddress) -> Result<Client, PostgresError> {
    let tls = MakeRustlsConnect::new(tls(address)?);
    let mut tries = 0;
    let connected = loop {
        match address.config.connect(tls.clone()).await {
            // The handshake was not refused, it broke.
            Err(error) if tries < HANDSHAKES && error.code().is_none() && error.is_closed() => {
                tries += 1;
                tokio::time::sleep(BETWEEN_HANDSHAKES).await;
            }
            connected => break connected,
        }
    };
    let address = address.to_string();
    let (client, connection) = connected.map_err(|source| match source.code() {
        Some(&SqlState::INVALID_CATALOG_NAME) => PostgresError::NoDatabase { source },
        Some(&SqlState::INVALID_PASSWORD) => PostgresError::Password { address, source },
        Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => PostgresError::Denied { address, source },
        Some(&SqlState::TOO_MANY_CONNECTIONS) => PostgresError::Full { address, source },
        // The client has no code for it.
        None if with_causes(&source).contains("password missing") => PostgresError::Password { address, source },
        None if with_causes(&source).contains("TLS") => PostgresError::Tls { address, source },
        _ => PostgresError::Connect { address, source },
    })?;
    tokio::spawn(async move {
        // The next caller gets the error, too.
        if let Err(error) = connection.await {
            tracing::debug!("a connection to the ledger has ended: {error}");
        }
    });
    Ok(client)
}

/// Refuses a database that may lose commits, or that is read-only.
pub(super) async fn check_durable(client: &Client) -> Result<(), PostgresError> {
    let sql = "SELECT current_setting('fsync') = 'on', pg_is_in_recovery(), current_setting('server_encoding')";
    let row = client.query_typed_one(sql, &[] as &[Value<'_>]).await?;
    let (is_synced, is_standby, encoding): (bool, bool, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if !is_synced {
        return Err(PostgresError::NoSync);
    }
    if is_standby {
        return Err(PostgresError::ReadOnly);
    }
    if encoding == UTF8 { Ok(()) } else { Err(PostgresError::Encoding(encoding)) }
}

fn tls(address: &PostgresAddress) -> Result<ClientConfig, PostgresError> {
    // Fails only if a provider is installed already, which is just as well.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let with_roots = |roots| ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    if address.config.get_ssl_mode() == SslMode::Disable {
        // Without encryption, no certificate is read from the disk.
        return Ok(with_roots(RootCertStore::empty()));
    }
    if let Some(path) = &address.root_cert {
        let fault =
            |why: &dyn ToString| PostgresError::Certificates(format!("{}: {}", path.display(), why.to_string()));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fault(&error))? {
            roots.add(certificate.map_err(|error| fault(&error))?).map_err(|error| fault(&error))?;
        }
        if roots.is_empty() {
            return Err(fault(&"the file contains no certificate"));
        }
        return Ok(with_roots(roots));
    }
    ClientConfig::with_platform_verifier().or_else(|_| {
        // A machine without a certificate store.
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        Ok(Arc::new(with_roots(roots)).as_ref().clone())
    })
}
