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
use super::transaction::{NOTHING_IS_LOST, PostgresError, Typed};
use crate::domain::with_causes;
use crate::ledger::Unavailable;

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
    let (client, connection) = connected.map_err(|error| refusal(&address.to_string(), error))?;
    tokio::spawn(async move {
        // The next caller gets the error, too.
        if let Err(error) = connection.await {
            tracing::debug!("a connection to the ledger has ended: {error}");
        }
    });
    Ok(client)
}

/// The reason why a connection can't be made, in our own words.
fn refusal(address: &str, error: tokio_postgres::Error) -> PostgresError {
    // The client has no code for some.
    let is_about = |word| error.code().is_none() && with_causes(&error).contains(word);
    let (may_pass, what, help) = match error.code() {
        Some(&SqlState::INVALID_CATALOG_NAME) => (
            false,
            "the database of the ledger does not exist".to_owned(),
            "check the name, or create the database with `createdb NAME`",
        ),
        Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) if with_causes(&error).contains("no encryption") => (
            false,
            format!("the database server refuses a connection without TLS for ledger {address}"),
            "append `?sslmode=require` to the URL, with `&sslrootcert=FILE` for an authority of your own",
        ),
        Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => (
            false,
            format!("the database server refuses user or host for ledger {address}"),
            "correct the user in the URL, or allow this user and host in the server's `pg_hba.conf`",
        ),
        Some(&SqlState::TOO_MANY_CONNECTIONS) => (
            true,
            format!("the database server has no free connection for ledger {address}"),
            "raise `max_connections`, or use a pooler; a run needs two connections",
        ),
        code if code == Some(&SqlState::INVALID_PASSWORD) || is_about("password missing") => (
            false,
            format!("the ledger {address} refuses the user or the password"),
            "set the password in `PGPASSWORD` or `PGPASSFILE`, and the user in the URL",
        ),
        _ if is_about("TLS") => (
            true,
            format!("can't encrypt the connection to ledger {address}"),
            "name the certificate's authority with `?sslrootcert=FILE`, and the host as in the certificate; in a private network, `?sslmode=disable` skips TLS",
        ),
        _ => (true, format!("can't connect to ledger {address}"), NOTHING_IS_LOST),
    };
    let error = Unavailable::caused_by(error, what, help);
    if may_pass { PostgresError::Unreachable(error) } else { PostgresError::Refused(error) }
}

/// Refuses a database that may lose commits, or that is read-only.
pub(super) async fn check_durable(client: &Client) -> Result<(), PostgresError> {
    let sql = "SELECT current_setting('fsync') = 'on', pg_is_in_recovery(), current_setting('server_encoding')";
    let row = client.query_typed_one(sql, &[] as &[Typed<'_>]).await?;
    let (is_synced, is_standby, encoding): (bool, bool, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if !is_synced {
        return Err(Unavailable::new(
            "the database runs with `fsync=off`, so commits may not survive power loss",
            "set `fsync=on`, because shotlist pays twice for a purchase that the ledger loses",
        )
        .into());
    }
    if is_standby {
        return Err(PostgresError::ReadOnly);
    }
    if encoding == UTF8 {
        return Ok(());
    }
    let help = "create a database with `createdb --encoding=UTF8 --template=template0 NAME`";
    Err(Unavailable::new(format!("the database must use UTF8, found {encoding}"), help).into())
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
        let fault = |why: &dyn ToString| {
            let what = format!("can't read the certificates for the ledger: {}: {}", path.display(), why.to_string());
            Unavailable::new(what, "name the certificate's authority with `?sslrootcert=FILE`")
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fault(&error))? {
            roots.add(certificate.map_err(|error| fault(&error))?).map_err(|error| fault(&error))?;
        }
        if roots.is_empty() {
            return Err(fault(&"the file contains no certificate").into());
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
