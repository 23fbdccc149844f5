//! What can be wrong with a database, and how to mend it.

use tokio_postgres::error::SqlState;

use super::standing::Standing;
use crate::ledger::stored::Unreadable;
use crate::ledger::{LedgerError, Unavailable};

/// Why the database can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostgresError {
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
    Unsettled(Standing),
}

impl PostgresError {
    fn help(&self) -> &'static str {
        match self {
            Self::Connect { .. } | Self::Outage(_) | Self::Silent => {
                "is the address right, does the server run, and is there a network? nothing is lost: the next run goes on"
            }
            Self::Password { .. } => {
                "give the password in PGPASSWORD or in the file that PGPASSFILE names, and the user in the address"
            }
            Self::Denied { .. } => {
                "correct the user in the address, or allow this user and host in the server's `pg_hba.conf`"
            }
            Self::Full { .. } => {
                "raise `max_connections` of the server, or put a pooler in front: a run needs two connections"
            }
            Self::Rights(_) => "grant the rights that `shotlist help machines` lists as SQL",
            Self::NoDatabase { .. } => "is its name right? `createdb NAME` makes one",
            Self::Tls { .. } => {
                "?sslrootcert=FILE names the authority of the server's certificate, and the address must name the host as the certificate does; ?sslmode=disable goes without, for a network that is your own"
            }
            Self::Certificates(_) => "name the authority of the server's certificate: ?sslrootcert=FILE",
            Self::Newer { .. } => "use the version of shotlist that the others use",
            Self::Gone => "restore the tables, then compare a bill with `shotlist reconcile`",
            Self::Foreign { .. } => "name a database of its own for the ledger, or one without a schema of this name",
            Self::ReadOnly => {
                "name the primary server, and a user who may write: the owner of the schema, or one with all rights in it"
            }
            Self::NoSync => "set fsync=on: a purchase that the ledger forgets is paid for twice",
            Self::Encoding(_) => "make a database for it: createdb --encoding=UTF8 --template=template0 NAME",
            Self::Sql(_) => "look into the server's log",
            Self::Unreadable(_) | Self::Impersonated | Self::Unsettled(_) => {
                "somebody else has changed the ledger: find out who, and let nobody buy until then (shotlist limit set --freeze)"
            }
            Self::Thread(_) => "the system gives no thread: close other programs",
        }
    }

    /// What an error of the client means while a transaction was under way.
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

/// Whether the connection is gone, or the server is going down, comes up, or has no connection to give.
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

impl From<PostgresError> for LedgerError {
    fn from(error: PostgresError) -> Self {
        Self::Unavailable(error.into())
    }
}
