//! Connections, encrypted where they leave this machine, to a database that keeps what it acknowledges; transactions with pipelined statements; and
//! the errors of a database with their help.
//!
//! With a distant database, the number of round trips decides the duration of a write and of its locks. Independent statements are joined: the first
//! poll of a statement sends it, so `join!` sends them in order, and awaits all responses. Errors are checked in that order, too, because later ones
//! only report the aborted transaction. All settings are part of the first statement: behind a pooler, each transaction may have another session.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio_postgres::Client;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::PostgresAddress;
use crate::domain::with_causes;
use crate::ledger::record::TIMES;
use crate::ledger::row::{Kind, Unreadable};
use crate::ledger::{CopyError, LedgerError, Unavailable};

/// The database's clock, in microseconds since 1970.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Blocks purchases until the end of the transaction.
pub(super) const LOCK: &str = "SELECT id FROM ledger WHERE id = 1 FOR UPDATE";

/// The condition of statements that must not write outside of a transaction whose beginning was canceled.
pub(super) const BEGUN: &str = "current_setting('shotlist.begun', true) = 'yes'";

/// A value of a statement with its type. The type saves a round trip.
pub(super) type Typed<'v> = (&'v (dyn ToSql + Sync), Type);

/// A transaction that writes. Independent of the server's default: each statement sees the commits before its lock.
pub(super) const WRITING: &str = "READ COMMITTED";

/// A transaction that reads one snapshot.
pub(super) const READING: &str = "REPEATABLE READ, READ ONLY";

/// A transaction. Drop rolls it back.
pub(in crate::ledger) struct Transaction {
    client: Arc<Client>,
    /// The first statements.
    beginning: String,
    /// Statements with one value each, sent with the commit.
    last: Mutex<Vec<(Cow<'static, str>, String)>>,
    is_over: bool,
}

impl Transaction {
    /// A transaction that has begun. Its commit is durable before the acknowledgment.
    pub(super) async fn begin(client: Arc<Client>, mode: &str, kind: Kind) -> Result<Self, PostgresError> {
        let transaction = Self::new(client, mode, kind);
        transaction.start().await?;
        Ok(transaction)
    }

    /// Sends the beginning. If it is canceled, each joined statement is a transaction of its own, and writes only if [`BEGUN`] allows it.
    pub(super) async fn start(&self) -> Result<(), PostgresError> {
        Ok(self.client.batch_execute(&self.beginning).await?)
    }

    /// A transaction whose start is joined with its first statements.
    pub(super) fn new(client: Arc<Client>, mode: &str, kind: Kind) -> Self {
        let [statement_ms, lock_ms, standstill_ms] =
            [TIMES.answer, TIMES.lock, TIMES.standstill].map(|time| time.as_millis());
        let beginning = format!(
            "BEGIN ISOLATION LEVEL {mode}; SET LOCAL search_path = {}, pg_catalog; SET LOCAL synchronous_commit = on; \
             SET LOCAL statement_timeout = {statement_ms}; SET LOCAL lock_timeout = {lock_ms}; \
             SET LOCAL idle_in_transaction_session_timeout = {standstill_ms}; SET LOCAL timezone = 'UTC'; SET LOCAL jit = off; SET LOCAL shotlist.begun = 'yes'",
            kind.schema()
        );
        Self { client, beginning, last: Mutex::default(), is_over: false }
    }

    /// Executes a statement with one text, at the latest with the commit.
    pub(super) fn execute_last(&self, sql: impl Into<Cow<'static, str>>, text: String) {
        self.last.lock().push((sql.into(), text));
    }

    /// Executes the queued statements and commits, in one round trip. If a statement fails, the server rolls back.
    pub(super) async fn commit(mut self) -> Result<(), PostgresError> {
        self.is_over = true;
        // The response to the commit is awaited in any case: until then, the connection is busy.
        let (executed, committed) = futures::join!(self.execute_queued(), self.client.batch_execute("COMMIT"));
        executed?;
        Ok(committed?)
    }

    /// Executes the queued statements in order. The first poll sends all of them.
    pub(super) async fn execute_queued(&self) -> Result<(), PostgresError> {
        let queued = std::mem::take(&mut *self.last.lock());
        let executed = queued.iter().map(async |(sql, text)| self.execute_typed(sql, &[(text, Type::TEXT)]).await);
        Ok(futures::future::join_all(executed).await.into_iter().try_for_each(|result| result.map(drop))?)
    }

    /// Rolls it back.
    pub(super) async fn rollback(mut self) -> Result<(), PostgresError> {
        self.is_over = true;
        Ok(self.client.batch_execute("ROLLBACK").await?)
    }
}

impl Deref for Transaction {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_over {
            // The first poll sends it. The next transaction does not wait for the response.
            drop(self.client.batch_execute("ROLLBACK").now_or_never());
        }
    }
}

/// The reason why the database can't be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::ledger) enum PostgresError {
    /// The database can't be reached now.
    #[error(transparent)]
    Unreachable(Unavailable),
    /// The wrong server, user, or ledger.
    #[error(transparent)]
    Refused(#[from] Unavailable),
    #[error("the schema `{schema}` of the database is not a ledger")]
    Foreign { schema: &'static str },
    #[error("can't write the ledger: the database is read-only, or a standby")]
    ReadOnly,
    #[error("the tables of the ledger are missing")]
    Gone,
    #[error("the ledger does not respond")]
    Silent,
    #[error("can't use the ledger")]
    Sql(#[from] tokio_postgres::Error),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("another process writes as this runner")]
    Impersonated,
    #[error(
        "the ledger's tables have other columns, unique indexes, triggers, rules, or row security than shotlist created"
    )]
    Altered,
    #[error("the database did not store what was written: a trigger or rule changes the ledger's tables")]
    NotStored,
    /// This live runner has the batch.
    #[error("the batch is locked by another run ({0})")]
    Locked(String),
    /// A lost lease or write. The writer handles it.
    #[error("this runner has unsettled writes")]
    Unsettled(LeaseStatus),
}

/// The error of a statement if a table skipped a row: a division by zero.
pub(super) const NOT_WRITTEN: SqlState = SqlState::DIVISION_BY_ZERO;

/// The help for a database that can't be reached.
pub(super) const NOTHING_IS_LOST: &str =
    "check the URL, the server, and the network; nothing is lost, and the next run continues";

impl PostgresError {
    /// The error with a message for the user, if there is one.
    pub(super) fn in_general(self) -> Self {
        match self {
            Self::Sql(error) => match error.code() {
                Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => Self::ReadOnly,
                Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Self::Refused(Unavailable::caused_by(
                    error,
                    "the user lacks a right in the database",
                    "grant the rights that `shotlist help machines` lists as SQL",
                )),
                Some(code) if *code == NOT_WRITTEN => Self::NotStored,
                _ => Self::Sql(error),
            },
            other => other,
        }
    }
}

/// Returns whether tables or columns are missing, as during a restore.
pub(super) fn is_without_tables(error: &PostgresError) -> bool {
    let missing = [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME, SqlState::UNDEFINED_COLUMN];
    match error {
        PostgresError::Gone | PostgresError::Foreign { .. } => true,
        PostgresError::Sql(error) => error.code().is_some_and(|code| missing.contains(code)),
        _ => false,
    }
}

/// Returns whether a statement was canceled, by an administrator, a shutdown, or its timeout: this one, or an earlier one whose response was not read,
/// such as a rollback.
pub(super) fn is_canceled(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(&SqlState::QUERY_CANCELED | &SqlState::IN_FAILED_SQL_TRANSACTION))
}

/// Returns whether the connection is lost, or the server is stopping, starting, or out of connections.
pub(super) fn is_lost(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        return error.is_closed()
            || std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
    };
    let is_over = *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT;
    is_over || matches!(&code.code()[..2], "08" | "57" | "53") && !is_canceled(error)
}

impl From<PostgresError> for Unavailable {
    fn from(error: PostgresError) -> Self {
        let error = error.in_general();
        let help = match &error {
            PostgresError::Unreachable(own) | PostgresError::Refused(own) => return own.clone(),
            PostgresError::Silent => NOTHING_IS_LOST,
            PostgresError::Gone => "restore the tables, then compare a bill with `shotlist reconcile`",
            PostgresError::Foreign { .. } => "use another database, or one without a schema of this name",
            PostgresError::ReadOnly => "name the primary server, and a user with write access to the schema",
            PostgresError::Sql(_) => "check the server's log",
            PostgresError::Altered | PostgresError::NotStored => {
                "undo the change, or move to a new database with `shotlist ledger copy`"
            }
            PostgresError::Locked(_) => "wait for the other run with `--lock-wait 2m`",
            PostgresError::Unreadable(_) | PostgresError::Impersonated | PostgresError::Unsettled(_) => {
                "freeze purchases with `shotlist limit set --freeze`, and find out what changed the ledger"
            }
        };
        Self::new(error, help)
    }
}

impl From<PostgresError> for CopyError {
    fn from(error: PostgresError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<PostgresError> for LedgerError {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::Locked(holder) => Self::Locked(holder),
            error => Self::Unavailable(error.into()),
        }
    }
}

/// The state of a runner's lease during a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ledger) enum LeaseStatus {
    /// The last write is the acknowledged one.
    Valid,
    /// The write without an acknowledgment was committed.
    Written,
    /// The database lost an acknowledged write.
    Forgotten,
    /// The lease expired. The runner records only responses to its submissions.
    Expired,
}

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
        Ok(with_roots(roots))
    })
}
