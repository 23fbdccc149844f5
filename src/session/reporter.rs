//! Writes the reports anew while a run goes on, so that one that is killed leaves true ones behind.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::domain::{BatchKey, Job, with_causes};
use crate::ledger::{Ledger, Unavailable};
use crate::report::{Report, ReportError, Writer};

/// The shortest pause between two writes.
const PAUSE: Duration = Duration::from_secs(5);
/// The most of the time that goes into writing: one part in this many.
const SHARE: u32 = 20;

/// What the reports of a batch are made of.
#[derive(Debug)]
pub(super) struct Reporter<L> {
    key: BatchKey,
    /// All jobs of the manifest.
    jobs: Arc<[Arc<Job>]>,
    ledger: L,
    /// The folder with the videos.
    out: PathBuf,
    writer: Writer,
    /// How many reports were made.
    made: AtomicU64,
}

/// Why reports could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReporterError {
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] Unavailable),
    /// A file could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl<L: Ledger> Reporter<L> {
    pub(super) fn new(key: BatchKey, jobs: Arc<[Arc<Job>]>, ledger: L, out: PathBuf, writer: Writer) -> Self {
        Self { key, jobs, ledger, out, writer, made: AtomicU64::new(1) }
    }

    /// Writes the reports as the ledger has them now, and returns what was written.
    pub(super) async fn write(&self) -> Result<Report, ReporterError> {
        let (report, written) = self.write_whatever_can_be().await;
        written?;
        Ok(report?)
    }

    /// The same, with what could not be written told apart: how the jobs stand is known all the same.
    pub(super) async fn write_whatever_can_be(&self) -> (Result<Report, Unavailable>, Result<(), ReporterError>) {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let history = match self.ledger.history(&self.key).await {
            Ok(history) => history,
            Err(error) => return (Err(error.clone()), Err(error.into())),
        };
        let (key, is_simulated, writer) = (self.key.clone(), self.ledger.is_simulated(), self.writer.clone());
        let (jobs, out) = (Arc::clone(&self.jobs), self.out.clone());
        // On a thread of its own: a run may go on beside it.
        let written = tokio::task::spawn_blocking(move || {
            let report = Report::new(&key, is_simulated, jobs, history, &out);
            let written = writer.write(number, &report);
            (report, written)
        });
        match written.await {
            Ok((report, written)) => (Ok(report), written.map_err(ReporterError::from)),
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// Goes on writing whenever something was told since the last time, beside the run. Never returns.
    pub(super) async fn keep_writing(&self, has_news: &AtomicBool) -> std::convert::Infallible {
        let mut pause = PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            if !has_news.swap(false, Ordering::Relaxed) {
                continue;
            }
            let start = Instant::now();
            if let Err(error) = self.write().await {
                // Tried again at the end of the run, where it decides the exit code.
                tracing::warn!("{}", with_causes(&error));
            }
            pause = PAUSE.max(start.elapsed() * SHARE);
        }
    }
}
