//! A whole ledger, from one store into another: completely or not at all.

use std::path::Path;

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::error::CopyError;
use super::reader::Medium;
use super::row::Kind;
use super::views::Contents;
use super::{Ledger, SqliteLedger};

impl Ledger {
    /// Copies everything into another ledger, which must be empty. No runner may use this one meanwhile.
    ///
    /// Purchases are frozen here before anything is read, and stay frozen after the copy: two ledgers in use would buy twice. If the copy
    /// fails, this ledger is as it was.
    pub async fn copy_to(&self, to: &Self) -> Result<Contents, CopyError> {
        let before = self.controls().await?.freeze;
        let during = format!("it is being copied to {to}");
        let lock = match &self.0 {
            Medium::File(file) => Some(file.freeze_for_copy(&during).await?),
            Medium::Database(database) => database.freeze_for_copy(&during).await.map(|()| None)?,
        };
        let before = before.map(|freeze| freeze.why.to_string());
        // A copy lifts no freeze.
        let copied = self.fill(to, before.clone()).await;
        drop(lock);
        let after = match &copied {
            Ok(_) => Some(format!("it was copied to {to}")),
            // Both could buy.
            Err(CopyError::Unknown(_)) => Some(format!("it may have been copied to {to}")),
            Err(_) => before,
        };
        let restored = match self.database() {
            Some(database) => database.refreeze(after.as_deref()).await,
            None => self.set_freeze(after.as_deref()).await,
        };
        copied.and_then(|contents| Ok(restored.map(|()| contents)?))
    }

    /// Copies everything to a new file, as it is at one moment, also while runs use it. An existing file is never replaced.
    ///
    /// Purchases are frozen in the copy of a database: it lacks what runners buy from now on.
    pub async fn backup(&self, to: &Path) -> Result<Contents, CopyError> {
        if let Some(file) = self.file() {
            return file.backup(to).await;
        }
        if to.symlink_metadata().is_ok() {
            return Err(CopyError::NotEmpty(to.display().to_string()));
        }
        let file = SqliteLedger::new(to, if self.is_simulated() { Kind::Simulated } else { Kind::Real });
        let why = format!("it is a backup of {self}, made at {:.0}", Timestamp::now());
        self.fill(&Self(Medium::File(file)), Some(why)).await
    }

    /// Reads everything at one moment, and writes it into an empty ledger, whole or not at all, frozen for a reason or not. One batch at a time
    /// is in memory, and the next.
    async fn fill(&self, to: &Self, frozen: Option<String>) -> Result<Contents, CopyError> {
        let (parts, received) = mpsc::channel(1);
        let reads = async {
            match &self.0 {
                Medium::File(file) => file.send_all(parts).await,
                Medium::Database(database) => database.send_all(parts).await,
            }
        };
        let writes = async {
            match &to.0 {
                Medium::File(file) => file.fill(frozen, received).await,
                Medium::Database(database) => database.fill(frozen, received).await,
            }
        };
        let (read, written) = futures::join!(reads, writes);
        // A reader that stopped because of the writer has no error.
        read.and(written)
    }
}
