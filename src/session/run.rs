//! The steps of a run: prepare, work, report.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::channel::mpsc::unbounded;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use super::connection::Connection;
use super::executor::{Executions, Executor};
use super::locked::{Confirmation, Locked, Ready};
use super::other_batches::{OtherBatch, OtherBatches};
use super::refusal::Refusal;
use super::reporter::{Reported, Reporter};
use super::start::Session;
use super::{choices, other_batches, start};
use crate::domain::{History, NoticeCode, with_causes};
use crate::download::{Downloader, Downloads};
use crate::engine::{self, Engine, RunEvent, Stop, StopReason};
use crate::files::sweep;
use crate::ledger::{Approval, LedgerError, LockedBatch, SpendLimit};
use crate::plan::Plan;

/// The receiver of events.
type Emit<'t> = dyn Fn(RunEvent) + Sync + 't;

/// The outcome of a run, and the state of each job.
#[derive(Debug)]
pub struct Outcome {
    /// The reasons for an early end, and the failures.
    pub run: engine::Outcome,
    /// The number of videos for which the program of `--exec` failed.
    pub unexecuted: usize,
    /// The other batches of the same name that the run finished.
    pub finished: Vec<Result<Reported, Refusal>>,
    /// The state of each job. After an error, the ledger still has what was paid for.
    pub reported: Result<Reported, Refusal>,
}

/// A run with written reports and claimed tasks. Nothing was submitted.
struct Prepared<'s> {
    session: &'s Session,
    batch: LockedBatch,
    plan: Plan,
    service: Option<(Connection, Option<Downloader>)>,
    limits: Vec<SpendLimit>,
    clock_offset: SignedDuration,
    others: Mutex<OtherBatches>,
    reporter: Reporter,
    has_retake: bool,
    /// True if a reviewer may keep an earlier take.
    has_reviews: bool,
}

impl<'s> Ready<'s> {
    /// Runs the plan, if the confirmation covers it. Returns when every task has its outcome, or `stop` ended the run. Reports are written before the
    /// first submission, during the run, and at the end.
    ///
    /// `emit` receives each event, and must not block. What fails after the first submission is part of the outcome, and no refusal.
    pub async fn run(
        mut self,
        confirmation: &Confirmation,
        stop: &Stop,
        emit: &(dyn Fn(RunEvent) + Sync),
    ) -> Result<Outcome, Refusal> {
        let executions = self.executions.take();
        // Boxed: its state is large for the future of a caller.
        let prepared = Box::pin(self.prepare(confirmation)).await?;
        let (run, unexecuted) = Box::pin(prepared.work(executions, stop, emit)).await;
        Ok(Box::pin(prepared.report(run, unexecuted, stop)).await)
    }

    async fn prepare(self, confirmation: &Confirmation) -> Result<Prepared<'s>, Refusal> {
        let Self { locked: Locked { session, batch, mut plan, history, others, .. }, service, .. } = self;
        if !session.ledger.is_simulated() {
            confirmation.check(&plan)?;
        }
        if !session.manifest.moves.is_empty() {
            batch.move_jobs(&session.manifest.moves).await?;
        }
        let reviews = &session.options.redo.reviews;
        if !reviews.is_empty() {
            choices::record(&batch, &session.recorded().await?, reviews).await?;
        }
        let has_reviews =
            !reviews.is_empty() || history.attempts().any(|attempt| !attempt.particulars.reviews.is_empty());
        let has_retake = begin_retake(session, &batch, &plan, &history).await?;
        drop(history);
        let reporter = session.reporter();
        // Removes temporary files of killed runs.
        session.options.reports.paths().filter_map(Path::parent).for_each(sweep);
        reporter.write().await?.written?;
        if let Some((connection, _)) = &service {
            prepare_tasks(connection, &batch, &others, &mut plan).await?;
        }
        // An offset that is too large by a round trip dates no end before its submission.
        let (asked_at, controls) = (Timestamp::now(), session.ledger.controls().await?);
        let (now, clock_offset) = (controls.now, controls.now.duration_since(asked_at));
        let limits = start::over_all_batches(&session.manifest, now);
        let others = Mutex::new(OtherBatches { locked: others, finished: Vec::new() });
        Ok(Prepared { session, batch, plan, service, limits, clock_offset, others, reporter, has_retake, has_reviews })
    }
}

impl Prepared<'_> {
    /// Runs the engine and the programs for videos, with periodic reports. Returns the number of videos whose program
    /// failed, too.
    async fn work(&self, executions: Option<Executions>, stop: &Stop, emit: &Emit<'_>) -> (engine::Outcome, usize) {
        let has_news = AtomicBool::new(false);
        let (fetched, coming) = unbounded();
        let emit = |event: RunEvent| {
            has_news.store(true, Ordering::Relaxed);
            if let RunEvent::Fetched(video) = &event {
                // Without `--exec`, there is no receiver.
                drop(fetched.unbounded_send((**video).clone()));
            }
            emit(event);
        };
        let runs = async {
            let run = self.run_engine(stop, &emit).await;
            fetched.close_channel();
            run
        };
        let executes = async {
            let (Some(program), Some(executions)) = (&self.session.options.exec, executions) else { return 0 };
            let is_simulated = self.session.ledger.is_simulated();
            Executor { program, is_simulated, ledger: &self.batch, stop, emit: &emit }.run(executions, coming).await
        };
        tokio::select! {
            ended = Box::pin(async { futures::join!(runs, executes) }) => ended,
            never = shut_down(stop, &self.batch) => match never {},
            never = yield_batch(stop, &self.batch, &emit) => match never {},
            never = self.reporter.keep_writing(&has_news) => match never {},
            never = other_batches::release_done(self.session, &self.others) => match never {},
        }
    }

    async fn run_engine(&self, stop: &Stop, emit: &Emit<'_>) -> engine::Outcome {
        let Self { session, batch, plan, service, limits, .. } = self;
        let Some((connection, downloader)) = service else { return engine::Outcome::default() };
        let approval = session.options.approved.is_some();
        let approval = approval.then(|| Approval { digest: plan.digest().clone(), most: 1 + plan.retries });
        let engine = Engine {
            service: connection.service(),
            account: connection.account(),
            limits,
            approval: approval.as_ref(),
            ledger: batch,
            clock_offset: self.clock_offset,
            settings: &session.options.settings,
            stop,
            downloads: downloader.as_ref().map(|downloader| downloader as &dyn Downloads),
            assets: session.options.assets.as_ref(),
            prices: &|model, seconds, size| connection.price(model, seconds, size),
            emit,
        };
        engine.run(plan).await
    }

    /// Gives the kept takes back their paths: a retake of a kept video has displaced it.
    async fn name_kept(&self) -> Result<(), Refusal> {
        let Session { manifest, options, .. } = self.session;
        choices::name_kept(&self.batch, &self.session.recorded().await?, &manifest.jobs, &options.out).await?;
        Ok(())
    }

    async fn report(self, mut run: engine::Outcome, unexecuted: usize, stop: &Stop) -> Outcome {
        // The same patterns continue a stopped run, like a killed one.
        if self.has_retake
            && !run.has_ended_early()
            && stop.reasons().is_empty()
            && let Err(error) = self.batch.keep_retake(None).await
        {
            // The run is over, and the same patterns would only continue it.
            let why = with_causes(&error);
            tracing::warn!(code = NoticeCode::RetakeNotEnded.code(), "can't record the end of the retake: {why}");
        }
        // The batch stays locked until its reports are written.
        let named = if self.has_reviews { self.name_kept().await } else { Ok(()) };
        let reported = named.and(self.reporter.write().await);
        let finished = other_batches::report(self.session, self.others).await;
        drop(self.batch);
        // A signal may arrive during the last report.
        run.stopped = stop.reasons();
        Outcome { run, unexecuted, finished, reported }
    }
}

/// Reassigns the tasks of all batches if their account is the same, and marks the reports of other batches as pending.
async fn prepare_tasks(
    connection: &Connection,
    batch: &LockedBatch,
    others: &[OtherBatch],
    plan: &mut Plan,
) -> Result<(), Refusal> {
    if connection.is_same_account() {
        batch.reassign(connection.account()).await?;
        for other in others {
            other.batch.reassign(connection.account()).await?;
        }
        plan.reassign(connection.account());
    }
    other_batches::mark(others)
}

/// Shortens the wait for an unreachable ledger once you end the run. Never returns.
async fn shut_down(stop: &Stop, batch: &LockedBatch) -> Infallible {
    stop.aborting().await;
    batch.shutdown();
    std::future::pending().await
}

/// Stops the run once its lease has expired: another runner may poll its tasks and download its videos. Never returns.
async fn yield_batch(stop: &Stop, batch: &LockedBatch, emit: &Emit<'_>) -> Infallible {
    batch.lease_expired().await;
    let reason = StopReason::LeaseExpired;
    if stop.because(reason) {
        emit(RunEvent::Stopping { reason, message: LedgerError::LeaseExpired.to_string() });
    }
    std::future::pending().await
}

/// Records a retake by patterns before its first submission, so that the same patterns continue it after a kill.
/// Returns whether a retake is open.
async fn begin_retake(session: &Session, batch: &LockedBatch, plan: &Plan, history: &History) -> Result<bool, Refusal> {
    let retakes = &session.options.redo.retake;
    if history.retake().is_some_and(|begun| retakes.continues(begun)) {
        return Ok(true);
    }
    let Some(begun) = retakes.begin(plan.newest) else { return Ok(false) };
    batch.keep_retake(Some(begun)).await?;
    Ok(true)
}
