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
            // As one sentence: what is under it says the same once more, by a number.
            Refused::Sql(error) => Self::Store(std::sync::Arc::new(std::io::Error::other(error.to_string()))),
            Refused::By(error) => error,
        }
    }
}
