//! Errors of a database, with their help.

use tokio_postgres::error::SqlState;

use crate::ledger::row::Unreadable;
use crate::ledger::{CopyError, LedgerError, Unavailable};

/// The reason why the database can't be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::ledger) enum PostgresError {
    /// No connection can be made now.
    #[error(transparent)]
    Unreachable(Unavailable),
    /// The server, its user, or its ledger is not the right one.
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
    /// The batch to lock has this live runner.
    #[error("the batch is locked by another run ({0})")]
    Locked(String),
    /// Never leaves the writer.
    #[error("this runner has unsettled writes")]
    Unsettled(LeaseStatus),
}

/// A statement that writes rows raises this error if a table did not take each of them: a division by zero.
pub(super) const NOT_WRITTEN: SqlState = SqlState::DIVISION_BY_ZERO;

/// The help for a database that can't be reached.
pub(super) const NOTHING_IS_LOST: &str =
    "check the URL, the server, and the network; nothing is lost, and the next run continues";

impl PostgresError {
    /// The meaning of a client's error during a transaction.
    pub(super) fn of_statement(error: tokio_postgres::Error) -> Self {
        Self::Sql(error).in_general()
    }

    /// The same in our own words, where there are some.
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

/// The state of a runner's lease when it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ledger) enum LeaseStatus {
    /// Its last write is the one that it knows.
    Valid,
    /// The write whose acknowledgment was lost was made.
    Written,
    /// The database lost a write that it acknowledged.
    Forgotten,
    /// It is over. The runner records only responses to its own submissions.
    Expired,
}
