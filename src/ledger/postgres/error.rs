//! What can be wrong with a database, and how to mend it.

use tokio_postgres::error::SqlState;

use super::standing::Standing;
use crate::ledger::stored::Unreadable;
use crate::ledger::{LedgerError, Unavailable};

/// Why the database can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostgresError {
    #[error("there is no connection to the ledger {address}")]
    Connect { address: String, source: tokio_postgres::Error },
    #[error("the ledger {address} refuses the user or the password")]
    Password { address: String, source: tokio_postgres::Error },
    #[error("the database server refuses user or host for ledger {address}")]
    Denied { address: String, source: tokio_postgres::Error },
    #[error("the database server has no free connection for ledger {address}")]
    Full { address: String, source: tokio_postgres::Error },
    #[error("the user lacks a right in the database")]
    Rights(#[source] tokio_postgres::Error),
    #[error("there is no such database for the ledger")]
    NoDatabase { source: tokio_postgres::Error },
    #[error("there is no encrypted connection to the ledger {address}")]
    Tls { address: String, source: tokio_postgres::Error },
    #[error("the certificates for the connection to the ledger can't be read: {0}")]
    Certificates(String),
    #[error("the ledger is of version {found}, and this shotlist knows none after {known}")]
    Newer { found: i32, known: i32 },
    #[error("the database has a schema `{schema}` that is no ledger")]
    Foreign { schema: &'static str },
    #[error("the ledger can't be written: the database is read-only, or a standby")]
    ReadOnly,
    #[error("the database runs with fsync=off: what it has written may be gone after a loss of power")]
    NoSync,
    #[error("the database keeps its texts in {0}, and prompts need UTF8")]
    Encoding(String),
    #[error("the tables of the ledger are gone")]
    Gone,
    #[error("the ledger could not be reached for {0} s")]
    Outage(u64),
    #[error("the ledger does not answer")]
    Silent,
    #[error("the ledger can't be used")]
    Sql(#[from] tokio_postgres::Error),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("a thread for the ledger can't be started")]
    Thread(#[source] std::io::Error),
    #[error("another process writes under the name of this runner")]
    Impersonated,
    /// Never leaves the writer.
    #[error("this runner's own writes are unsettled")]
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
                "somebody else has changed the ledger: find out who, and let nobody buy until then (shotlist limit set --stop)"
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
