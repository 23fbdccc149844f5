//! All of a ledger, from one store into another.

use super::either::AnyLedger;
use crate::ledger::{Contents, CopyError, Ledger as _, Unavailable};

impl AnyLedger {
    /// Carries everything into another ledger, which must be empty. Nobody may be at this one meanwhile, and nobody buys with it any more before a
    /// person says so.
    pub async fn copy_to(&self, to: &Self) -> Result<Contents, CopyError> {
        // Held until the copy is there.
        let (books, _locks) = match self {
            Self::File(file) => file.take_all().await?,
            Self::Server(server) => (server.take_all().await?, Vec::new()),
        };
        let contents = books.contents();
        let moved = format!("it was copied to {to}");
        match to {
            Self::File(file) => file.fill(books).await?,
            Self::Server(server) => server.fill(books).await?,
        }
        // A copy lifts no freeze.
        if let Some(freeze) = self.frozen().await? {
            to.set_stop(Some(&freeze.why)).await?;
        }
        // Two ledgers in use would buy twice.
        self.set_stop(Some(&moved)).await?;
        Ok(contents)
    }

    /// Freezes purchases for a reason, or unfreezes them.
    pub async fn set_stop(&self, why: Option<&str>) -> Result<(), Unavailable> {
        match self {
            Self::File(file) => file.set_stop(why).await,
            Self::Server(server) => server.set_stop(why).await,
        }
    }
}
