//! Why a write was refused.

use crate::ledger::LedgerError;

/// Why a write was refused: by the store, or by the ledger's own rules.
#[derive(Debug)]
pub(super) enum Refused {
    Sql(rusqlite::Error),
    By(LedgerError),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<LedgerError> for Refused {
    fn from(error: LedgerError) -> Self {
        Self::By(error)
    }
}

impl From<Refused> for LedgerError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Sql(error) => Self::Store(std::sync::Arc::new(error)),
            Refused::By(error) => error,
        }
    }
}
