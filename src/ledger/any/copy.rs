//! All of a ledger, from one store into another.

use super::either::AnyLedger;
use crate::ledger::{Contents, CopyError};

impl AnyLedger {
    /// Carries everything into another ledger, which must be empty. Nobody may be at this one meanwhile.
    pub async fn copy_to(&self, to: &Self) -> Result<Contents, CopyError> {
        // Held until the copy is there.
        let (books, _locks) = match self {
            Self::File(file) => file.take_all().await?,
            Self::Server(server) => (server.take_all().await?, Vec::new()),
        };
        let contents = books.contents();
        match to {
            Self::File(file) => file.fill(books).await?,
            Self::Server(server) => server.fill(books).await?,
        }
        Ok(contents)
    }
}
