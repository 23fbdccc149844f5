//! Writes the reports anew while a run goes on, so that one that is killed leaves true ones behind.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::domain::{BatchKey, Job};
use crate::ledger::{Kind, OpenError, read_history};
use crate::report::{Report, ReportError, Writer};

/// The shortest pause between two writes.
const PAUSE: Duration = Duration::from_secs(5);
/// The most of the time that goes into writing: one part in this many.
const SHARE: u32 = 20;

/// What the reports of a run are made of.
pub struct Reporter<'r> {
    /// The batch.
    pub key: &'r BatchKey,
    /// Whether the simulator plays the service.
    pub kind: Kind,
    /// All jobs of the manifest.
    pub jobs: Arc<[Arc<Job>]>,
    /// The ledger's file.
    pub ledger: &'r Path,
    /// The folder with the videos.
    pub out: &'r Path,
    /// The destinations.
    pub writer: &'r Writer,
    /// How many reports were made.
    pub made: AtomicU64,
}

/// Why reports could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] OpenError),
    /// A file could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The thread that wrote panicked.
    #[error("the reports can't be written: their thread ended")]
    Lost,
}

impl Reporter<'_> {
    /// Writes the reports as the ledger has them now, and returns what was written.
    ///
    /// Reads through a connection of its own: the ledger's writer has better things to do.
    pub fn write(&self) -> Result<Report, RefreshError> {
        let (report, written) = self.write_whatever_can_be()?;
        written?;
        Ok(report)
    }

    /// The same, with what could not be written told apart: how the jobs stand is known all the same.
    pub fn write_whatever_can_be(&self) -> Result<(Report, Result<(), ReportError>), OpenError> {
        self.order()()
    }

    /// What it takes to write the reports, with their number, to be done on any thread.
    fn order(&self) -> impl FnOnce() -> Result<(Report, Result<(), ReportError>), OpenError> + Send + 'static {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let (key, kind, path) = (self.key.clone(), self.kind, self.ledger.to_owned());
        let (jobs, out, writer) = (Arc::clone(&self.jobs), self.out.to_owned(), self.writer.clone());
        move || {
            let report = Report::new(&key, kind == Kind::Simulated, jobs, read_history(&path, kind, &key)?, &out);
            let written = writer.write(number, &report);
            Ok((report, written))
        }
    }

    /// Goes on writing whenever something was told since the last time, beside the run. Never returns.
    pub async fn keep_writing(&self, news: &AtomicBool) -> std::convert::Infallible {
        let mut pause = PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            if !news.swap(false, Ordering::Relaxed) {
                continue;
            }
            let start = Instant::now();
            let written = tokio::task::spawn_blocking(self.order()).await;
            let written = written.map_err(|_| RefreshError::Lost).and_then(|read| Ok(read?.1?));
            if let Err(error) = written {
                // Tried again at the end of the run, where it decides the exit code.
                tracing::warn!("{}", super::failure::chain(&error));
            }
            pause = PAUSE.max(start.elapsed() * SHARE);
        }
    }
}
