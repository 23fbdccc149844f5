//! The reports of a batch, during a run and without one. A run that is killed leaves current reports behind.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::purchases;
use super::refusal::Refusal;
use super::start::Session;
use crate::domain::{BatchKey, Job, Move, NoticeCode, Usd, with_causes};
use crate::files::on_a_thread;
use crate::ledger::Ledger;
use crate::manifest::Manifest;
use crate::report::{Report, ReportError, Writer};

/// The shortest pause between two writes.
const PAUSE: Duration = Duration::from_secs(10);

/// The pause after a write, as a multiple of its time: writing takes at most this part of a run.
const SHARE: u32 = 20;

/// The writer of a batch's reports.
#[derive(Debug)]
pub(super) struct Reporter {
    pub key: BatchKey,
    /// The moves of jobs to new IDs.
    pub moves: Vec<Move>,
    /// The fees of approved face reviews.
    pub face_reviews_usd: Usd,
    /// All jobs of the manifest.
    pub jobs: Arc<[Arc<Job>]>,
    pub ledger: Ledger,
    /// The directory of the videos.
    pub out: PathBuf,
    pub writer: Writer,
}

/// A report, and whether it was written.
#[derive(Debug)]
pub struct Reported {
    /// The state of each job.
    pub report: Report,
    /// The result of writing. After an error, the next run writes the reports.
    pub written: Result<(), ReportError>,
}

impl Session {
    /// Returns the state of the batch, by the ledger. Sends no request and changes nothing.
    pub async fn current_report(&self) -> Result<Report, Refusal> {
        let history = self.history().await?;
        let (key, jobs) = (&self.manifest.key, self.manifest.jobs.clone().into());
        let report = Report::new(key, self.ledger.is_simulated(), jobs, history, &self.options.out);
        Ok(report.with_face_reviews(self.manifest.face_reviews.usd(None)))
    }

    /// Writes the reports from the ledger alone. Sends no request and changes nothing else.
    pub async fn report(&self) -> Result<Reported, Refusal> {
        self.options.reports.check()?;
        let history = self.history().await?;
        let Manifest { key, moves, .. } = &self.manifest;
        purchases::check_report(&self.ledger, &self.options.out, key, moves, &history).await?;
        drop(history);
        self.reporter().write().await
    }

    pub(super) fn reporter(&self) -> Reporter {
        Reporter {
            key: self.manifest.key.clone(),
            moves: self.manifest.moves.clone(),
            face_reviews_usd: self.manifest.face_reviews.usd(None),
            jobs: self.manifest.jobs.clone().into(),
            ledger: self.ledger.clone(),
            out: self.options.out.clone(),
            writer: self.options.reports.clone(),
        }
    }
}

impl Reporter {
    /// Writes the reports as the ledger has them now. Returns the report also if a file could not be written.
    pub(super) async fn write(&self) -> Result<Reported, Refusal> {
        let number = self.writer.number();
        let history = self.ledger.history(&self.key).await?.moved(&self.moves)?;
        let (key, is_simulated, writer) = (self.key.clone(), self.ledger.is_simulated(), self.writer.clone());
        let (jobs, out) = (Arc::clone(&self.jobs), self.out.clone());
        let face_reviews_usd = self.face_reviews_usd;
        let written = on_a_thread(move || {
            let report = Report::new(&key, is_simulated, jobs, history, &out).with_face_reviews(face_reviews_usd);
            let written = writer.write(number, &report);
            Reported { report, written }
        });
        written.await.map_err(Refusal::Thread)
    }

    /// Writes the reports during a run, whenever there is news. Never returns.
    pub(super) async fn keep_writing(&self, has_news: &AtomicBool) -> std::convert::Infallible {
        let mut pause = PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            if !has_news.swap(false, Ordering::Relaxed) {
                continue;
            }
            let start = Instant::now();
            // The last write of the run tries again, and decides the exit code.
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
