//! A ledger of any store: reads, backups, and copies into another store, which are complete or undone.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use futures::executor::block_on;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::error::CopyError;
use super::row::Kind;
use super::sql::{self, Sql as _};
use super::views::{BoughtElsewhere, Contents, Controls, Spending};
use super::{AddressError, HoldError, LedgerLimit, LockedBatch, SqliteLedger, Unavailable};
use super::{PostgresAddress, PostgresLedger};
use crate::domain::{Attempt, BatchKey, Fingerprint, History, JobId, Label, OpenElsewhere, TaskId, Usd};

/// A ledger of many batches. Reads need no lock, change nothing, and return a durable snapshot. A missing ledger is empty.
///
/// Displayed, it is its path or URL.
#[derive(Clone, Debug)]
pub struct Ledger(pub(super) Medium);

/// The store of a ledger.
#[derive(Clone, Debug)]
pub(super) enum Medium {
    File(SqliteLedger),
    Database(PostgresLedger),
}

/// Calls the store of a ledger.
macro_rules! ask {
    ($self:ident, $it:ident => $asked:expr) => {
        match &$self.0 {
            Medium::File($it) => $asked,
            Medium::Database($it) => $asked,
        }
    };
}

/// Queries one snapshot in SQL. Returns `$nothing` if there is no ledger.
macro_rules! question {
    ($self:ident, $nothing:expr, $sql:ident => $question:expr) => {
        match &$self.0 {
            Medium::File(file) => file.ask($nothing, move |$sql| block_on($question)).await,
            Medium::Database(database) => database.ask($nothing, async |$sql| $question.await).await,
        }
    };
}

impl Ledger {
    /// A ledger of real money in an SQLite file.
    pub fn in_file(path: impl Into<PathBuf>) -> Self {
        Self(Medium::File(SqliteLedger::new(path, Kind::Real)))
    }

    /// A ledger of real money in an SQLite file that executes commands in the call, and then calls `after`: for tests on Tokio's paused clock.
    pub fn in_place(path: impl Into<PathBuf>, after: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Medium::File(SqliteLedger::in_place(path, after)))
    }

    /// The file, if it is in one.
    pub fn file(&self) -> Option<&SqliteLedger> {
        match &self.0 {
            Medium::File(file) => Some(file),
            Medium::Database(_) => None,
        }
    }

    /// The path of its file, if it is in one.
    pub fn path(&self) -> Option<&Path> {
        self.file().map(SqliteLedger::path)
    }

    /// Returns whether it is the simulator's.
    pub fn is_simulated(&self) -> bool {
        self.kind() == Kind::Simulated
    }

    fn kind(&self) -> Kind {
        ask!(self, it => it.kind)
    }

    /// Returns whether runners on several machines can use it.
    pub fn is_shared(&self) -> bool {
        self.file().is_none()
    }

    /// Locks a batch for one runner, and creates the ledger if it does not exist. Never waits for another runner.
    ///
    /// Puts intents of the batch without a response in doubt: their run has ended.
    pub async fn lock(&self, batch: &BatchKey) -> Result<LockedBatch, HoldError> {
        ask!(self, it => it.lock(batch).await)
    }

    /// The record of a batch.
    pub async fn history(&self, batch: &BatchKey) -> Result<History, Unavailable> {
        let batch = batch.clone();
        question!(self, History::default(), sql => sql.history(&batch))
    }

    /// The sum spent or at risk of all batches since the quarter of an hour of a time, in total or for a label.
    pub async fn used_since(&self, since: Timestamp, label: Option<Label>) -> Result<Usd, Unavailable> {
        question!(self, Usd::ZERO, sql => async {
            sql.verify_sums().await?;
            sql::used(sql, since, label.as_ref()).await
        })
    }

    /// The purchases of all batches since a time, oldest first, summed up by quarters of an hour.
    pub async fn spending(&self, since: Timestamp) -> Result<Vec<Spending>, Unavailable> {
        question!(self, Vec::new(), sql => sql::spending(sql, since))
    }

    /// The attempts of jobs with a review of a purchase since a time, by batch and job, oldest first.
    pub async fn reviewed(&self, since: Timestamp) -> Result<Vec<(BatchKey, Attempt)>, Unavailable> {
        question!(self, Vec::new(), sql => sql::reviewed(sql, since))
    }

    /// The selected submissions of all batches and the first of each account, oldest first, without their request bodies.
    pub async fn submissions(
        &self,
        is_asked: impl Fn(&Attempt) -> bool + Send + Sync + 'static,
    ) -> Result<Vec<(BatchKey, Attempt)>, Unavailable> {
        question!(self, Vec::new(), sql => sql::submissions(sql, &is_asked))
    }

    /// The open work of other batches of the same name: batches with active tasks first, and of each kind the newest
    /// first.
    pub async fn open_elsewhere(&self, batch: &BatchKey) -> Result<Vec<OpenElsewhere>, Unavailable> {
        let batch = batch.clone();
        question!(self, Vec::new(), sql => sql::open_elsewhere(sql, &batch))
    }

    /// The newest attempt of a model that is completed, in any batch.
    pub async fn newest_delivery(&self, model: &str) -> Result<Option<Attempt>, Unavailable> {
        let model = model.to_owned();
        question!(self, None, sql => sql::newest_delivery(sql, &model))
    }

    /// Attempts for one of these normalized requests in batches that this batch [may repeat](BatchKey::may_repeat).
    /// Calls `requests` only if there is such a batch, because it takes time to normalize many requests.
    pub async fn bought_elsewhere(
        &self,
        batch: &BatchKey,
        requests: impl Fn() -> Vec<Fingerprint> + Send + Sync + 'static,
    ) -> Result<Vec<BoughtElsewhere>, Unavailable> {
        let batch = batch.clone();
        question!(self, Vec::new(), sql => sql::bought_elsewhere(sql, &batch, &requests))
    }

    /// Returns the limits and the freeze of the ledger, and the time by its clock.
    pub async fn controls(&self) -> Result<Controls, Unavailable> {
        // Of a missing ledger, by this machine's clock.
        let none = Controls { now: Timestamp::now(), limits: Vec::new(), freeze: None };
        question!(self, none, sql => sql.controls())
    }

    /// Freezes purchases for a reason, or unfreezes them.
    pub async fn set_freeze(&self, why: Option<&str>) -> Result<(), Unavailable> {
        ask!(self, it => it.set_freeze(why).await)
    }

    /// Sets a ledger limit in place of an earlier one, or removes it. Creates the ledger if it does not exist.
    pub async fn set_limit(&self, limit: LedgerLimit, is_kept: bool) -> Result<(), Unavailable> {
        ask!(self, it => it.set_limit(limit, is_kept).await)
    }

    /// The maximum number of active tasks of all runners, if it is set. A file has none.
    pub async fn slots(&self) -> Result<Option<i64>, Unavailable> {
        match &self.0 {
            Medium::File(_) => Ok(None),
            Medium::Database(database) => database.slots().await,
        }
    }

    /// Sets the maximum number of active tasks of all runners, or removes it. Returns false for a file, which has none.
    pub async fn set_slots(&self, slots: Option<u32>) -> Result<bool, Unavailable> {
        match &self.0 {
            Medium::File(_) => Ok(false),
            Medium::Database(database) => database.set_slots(slots).await.map(|()| true),
        }
    }

    /// Opens it as a run does, and changes nothing. Returns false if it does not exist.
    pub async fn check_usable(&self) -> Result<bool, Unavailable> {
        ask!(self, it => it.check_usable().await)
    }

    /// The job and the batch of a task.
    pub async fn find_task(&self, task: &TaskId) -> Result<Option<(JobId, BatchKey)>, Unavailable> {
        let task = task.clone();
        let named = question!(self, Vec::new(), sql => sql.named(&[&task]))?;
        Ok(named.into_iter().next().map(|(batch, attempt)| (attempt.purchase.job, batch)))
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ask!(self, it => it.fmt(f))
    }
}

/// The address of a ledger.
#[derive(Clone, Debug)]
pub enum LedgerAddress {
    /// The path of an SQLite file.
    File(PathBuf),
    /// The URL of a PostgreSQL database.
    Database(PostgresAddress),
}

impl LedgerAddress {
    /// Reads a path or URL, and finds the password of a database. `environment` returns the value of a variable.
    ///
    /// Refuses text that is almost a URL: a file of that name would be an empty ledger, and everything would be due again.
    pub fn new(text: &OsStr, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, AddressError> {
        let shown = text.to_string_lossy();
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if is_nearly_a_url(&shown) {
            return Err(AddressError::OtherUrl);
        }
        Ok(match text.to_str().filter(|text| is_a_url(text)) {
            Some(url) => Self::Database(PostgresAddress::new(url, environment)?),
            None => Self::File(text.into()),
        })
    }

    /// The ledger of real money at this address, or of the simulator. Neither opens as the other: a simulated task must not look like a purchase.
    pub fn ledger(&self, is_simulated: bool) -> Ledger {
        let kind = if is_simulated { Kind::Simulated } else { Kind::Real };
        Ledger(match self {
            Self::File(path) => Medium::File(SqliteLedger::new(path, kind)),
            Self::Database(address) => Medium::Database(PostgresLedger::new(address.clone(), kind)),
        })
    }
}

/// Returns whether a text is the URL of a database.
fn is_a_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| matches!(&*scheme, "postgres" | "postgresql"))
}

/// Returns whether a text is more like a URL than the name of a file.
fn is_nearly_a_url(text: &str) -> bool {
    let has_scheme = text.split_once(":/").is_some_and(|(scheme, _)| {
        // One letter is a disk of Windows.
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    let is_a_list = ["host=", "hostaddr=", "dbname=", "user=", "service="].iter().any(|key| text.contains(key));
    !is_a_url(text) && (has_scheme || is_a_list)
}

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
        let restored = match &self.0 {
            Medium::File(file) => file.set_freeze(after.as_deref()).await,
            Medium::Database(database) => database.refreeze(after.as_deref()).await,
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
        let file = SqliteLedger::new(to, self.kind());
        let why = format!("it is a backup of {self}, made at {:.0}", Timestamp::now());
        self.fill(&Self(Medium::File(file)), Some(why)).await
    }

    /// Reads everything at one moment, and writes it into an empty ledger, whole or not at all, frozen for a reason or not. One batch at a time
    /// is in memory, and the next.
    async fn fill(&self, to: &Self, frozen: Option<String>) -> Result<Contents, CopyError> {
        let (parts, received) = mpsc::channel(1);
        let reads = async { ask!(self, it => it.send_all(parts).await) };
        let writes = async { ask!(to, it => it.fill(frozen, received).await) };
        let (read, written) = futures::join!(reads, writes);
        // A reader that stopped because of the writer has no error.
        read.and(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_like_a_url_is_no_file() {
        for near in ["postgres:/typo", "postgress://x/y", "host=db dbname=books", "http://db/books"] {
            assert!(is_nearly_a_url(near), "{near}");
        }
        for file in [".shotlist/ledger.db", "C:/books/ledger.db", "/tmp/a:b", "postgres://db/books"] {
            assert!(!is_nearly_a_url(file), "{file}");
        }
    }
}
