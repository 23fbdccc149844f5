//! Errors of a database, with their help.

use tokio_postgres::error::SqlState;

use super::lease_status::LeaseStatus;
use crate::ledger::row::Unreadable;
use crate::ledger::{CopyError, LedgerError, Unavailable};

/// The reason why the database can't be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::ledger) enum PostgresError {
    #[error("can't connect to ledger {address}")]
    Connect { address: String, source: tokio_postgres::Error },
    #[error("the ledger {address} refuses the user or the password")]
    Password { address: String, source: tokio_postgres::Error },
    #[error("the database server refuses user or host for ledger {address}")]
    Denied { address: String, source: tokio_postgres::Error },
    #[error("the database server has no free connection for ledger {address}")]
    Full { address: String, source: tokio_postgres::Error },
    #[error("the user lacks a right in the database")]
    Rights(#[source] tokio_postgres::Error),
    #[error("the database of the ledger does not exist")]
    NoDatabase { source: tokio_postgres::Error },
    #[error("can't encrypt the connection to ledger {address}")]
    Tls { address: String, source: tokio_postgres::Error },
    #[error("can't read the certificates for the ledger: {0}")]
    Certificates(String),
    #[error("the ledger must have version {known} or lower, found {found}")]
    Newer { found: i32, known: i32 },
    #[error("the schema `{schema}` of the database is not a ledger")]
    Foreign { schema: &'static str },
    #[error("can't write the ledger: the database is read-only, or a standby")]
    ReadOnly,
    #[error("the database runs with `fsync=off`, so commits may not survive power loss")]
    NoSync,
    #[error("the database must use UTF8, found {0}")]
    Encoding(String),
    #[error("the tables of the ledger are missing")]
    Gone,
    #[error("the ledger was unreachable for {0} s")]
    Outage(u64),
    #[error("the ledger does not respond")]
    Silent,
    #[error("can't use the ledger")]
    Sql(#[from] tokio_postgres::Error),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("can't start a thread for the ledger")]
    Thread(#[source] std::io::Error),
    #[error("another process writes as this runner")]
    Impersonated,
    /// Never leaves the writer.
    #[error("this runner has unsettled writes")]
    Unsettled(LeaseStatus),
}

impl PostgresError {
    fn help(&self) -> &'static str {
        match self {
            Self::Connect { .. } | Self::Outage(_) | Self::Silent => {
                "check the URL, the server, and the network; nothing is lost, and the next run continues"
            }
            Self::Password { .. } => "set the password in `PGPASSWORD` or `PGPASSFILE`, and the user in the URL",
            Self::Denied { .. } => {
                "correct the user in the URL, or allow this user and host in the server's `pg_hba.conf`"
            }
            Self::Full { .. } => "raise `max_connections`, or use a pooler; a run needs two connections",
            Self::Rights(_) => "grant the rights that `shotlist help machines` lists as SQL",
            Self::NoDatabase { .. } => "check the name, or create the database with `createdb NAME`",
            Self::Tls { .. } => {
                "name the certificate's authority with `?sslrootcert=FILE`, and the host as in the certificate; in a private network, `?sslmode=disable` skips TLS"
            }
            Self::Certificates(_) => "name the certificate's authority with `?sslrootcert=FILE`",
            Self::Newer { .. } => "use the same shotlist version on all machines",
            Self::Gone => "restore the tables, then compare a bill with `shotlist reconcile`",
            Self::Foreign { .. } => "use another database, or one without a schema of this name",
            Self::ReadOnly => "name the primary server, and a user with write access to the schema",
            Self::NoSync => "set `fsync=on`, because shotlist pays twice for a purchase that the ledger loses",
            Self::Encoding(_) => "create a database with `createdb --encoding=UTF8 --template=template0 NAME`",
            Self::Sql(_) => "check the server's log",
            Self::Unreadable(_) | Self::Impersonated | Self::Unsettled(_) => {
                "freeze purchases with `shotlist limit set --freeze`, and find out what changed the ledger"
            }
            Self::Thread(_) => "close other programs, and try again",
        }
    }

    /// The meaning of a client's error during a transaction.
    pub(super) fn of_statement(error: tokio_postgres::Error) -> Self {
        Self::Sql(error).in_general()
    }

    /// The same in our own words, where there are some.
    pub(super) fn in_general(self) -> Self {
        match self {
            Self::Sql(error) => match error.code() {
                Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => Self::ReadOnly,
                Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Self::Rights(error),
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

/// Returns whether a statement was canceled: by an administrator, a server that shuts down, or the time limit of a statement.
pub(super) fn is_canceled(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::QUERY_CANCELED)
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
        let help = error.help();
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
        Self::Unavailable(error.into())
    }
}
