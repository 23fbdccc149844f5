//! Writes the reports anew while a run goes on, so that one that is killed leaves true ones behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::domain::{BatchKey, Job};
use crate::ledger::{Ledger, LedgerError, SqliteLedger};
use crate::report::{Report, ReportError, Writer};

/// The shortest pause between two writes.
const PAUSE: Duration = Duration::from_secs(2);
/// The most of the time that goes into writing: one part in this many.
const SHARE: u32 = 20;

/// What the reports of a run are made of.
pub struct Reporter<'r> {
    /// The batch.
    pub key: &'r BatchKey,
    /// Whether the simulator plays the service.
    pub simulated: bool,
    /// All jobs of the manifest.
    pub jobs: &'r [Arc<Job>],
    /// The ledger.
    pub ledger: &'r SqliteLedger,
    /// The destinations.
    pub writer: &'r Writer,
}

/// Why reports could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A file could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl Reporter<'_> {
    /// The report as the ledger has it now.
    pub async fn report(&self) -> Result<Report, LedgerError> {
        let history = self.ledger.history(self.key).await?;
        Ok(Report::new(self.key, self.simulated, self.jobs.iter().map(AsRef::as_ref), &history))
    }

    /// Writes the reports as the ledger has them now, and returns what was written.
    pub async fn write(&self) -> Result<Report, RefreshError> {
        let report = self.report().await?;
        let writer = self.writer.clone();
        let written = tokio::task::spawn_blocking(move || writer.write(&report).map(|()| report)).await;
        Ok(written.map_err(|_| LedgerError::Closed)??)
    }

    /// Goes on writing whenever something was told since the last time. Never returns.
    pub async fn keep_writing(&self, news: &AtomicBool) -> std::convert::Infallible {
        let mut pause = PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            if !news.swap(false, Ordering::Relaxed) {
                continue;
            }
            let start = Instant::now();
            if let Err(error) = self.write().await {
                // Tried again at the end of the run, where it decides the exit code.
                tracing::warn!("{}", super::failure::chain(&error));
            }
            pause = PAUSE.max(start.elapsed() * SHARE);
        }
    }
}
