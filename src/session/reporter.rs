//! Writes the reports anew while a run goes on, so that one that is killed leaves true ones behind.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::domain::{BatchKey, Job, Move, MovedOnto, NoticeCode, with_causes};
use crate::files::on_a_thread;
use crate::ledger::{Ledger, Unavailable};
use crate::report::{Report, ReportError, Writer, write_sidecars};

/// The shortest pause between two writes.
const PAUSE: Duration = Duration::from_secs(5);
/// The most of the time that goes into writing: one part in this many.
const SHARE: u32 = 20;

/// What the reports of a batch are made of.
#[derive(Debug)]
pub(super) struct Reporter {
    pub key: BatchKey,
    /// Jobs that have a new id.
    pub moves: Vec<Move>,
    /// All jobs of the manifest.
    pub jobs: Arc<[Arc<Job>]>,
    pub ledger: Ledger,
    /// The folder with the videos.
    pub out: PathBuf,
    pub writer: Writer,
    /// Whether each video has a description beside it.
    pub sidecars: bool,
}

/// How the jobs stand, and whether every file says so.
#[derive(Debug)]
pub struct Reported {
    /// How each job stands.
    pub report: Report,
    /// Whether every report was written. If not, the next run writes them.
    pub written: Result<(), ReportError>,
}

/// Why reports could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReporterError {
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] Unavailable),
    /// The manifest moves one job onto another.
    #[error(transparent)]
    Moved(#[from] MovedOnto),
    /// The thread that writes can't be started, or panicked.
    #[error("can't start the report writer thread")]
    Thread(#[source] std::io::Error),
}

impl Reporter {
    /// Writes the reports as the ledger has them now. How the jobs stand is known also where a file could not be written.
    pub(super) async fn write(&self) -> Result<Reported, ReporterError> {
        let number = self.writer.number();
        let history = self.ledger.history(&self.key).await?.moved(&self.moves)?;
        let (key, is_simulated, writer) = (self.key.clone(), self.ledger.is_simulated(), self.writer.clone());
        let (jobs, out, sidecars) = (Arc::clone(&self.jobs), self.out.clone(), self.sidecars);
        let written = on_a_thread(move || {
            let report = Report::new(&key, is_simulated, jobs, history, &out);
            let written = writer.write(number, &report);
            if sidecars && let Err(error) = write_sidecars(&report) {
                tracing::warn!(code = NoticeCode::ReportNotWritten.code(), "can't write a sidecar file: {error}");
            }
            Reported { report, written }
        });
        written.await.map_err(ReporterError::Thread)
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
            // What goes wrong is tried again at the end of the run, where it decides the exit code.
            match self.write().await {
                Ok(Reported { written: Ok(()), .. }) => {}
                Ok(Reported { written: Err(error), .. }) => {
                    tracing::warn!(code = NoticeCode::ReportNotWritten.code(), "{}", with_causes(&error));
                }
                Err(error) => tracing::warn!(code = NoticeCode::ReportNotWritten.code(), "{}", with_causes(&error)),
            }
            pause = PAUSE.max(start.elapsed() * SHARE);
        }
    }
}
