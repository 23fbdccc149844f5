//! A run that nothing hinders any more but that somebody has to agree to it.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures::channel::mpsc::unbounded;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::consent::Consent;
use super::elsewhere::{Elsewhere, Others};
use super::executor::{Executions, Executor};
use super::held::Held;
use super::outcome::Outcome;
use super::refusal::Refusal;
use super::start::Session;
use super::{elsewhere, limits, purchases, together};
use crate::domain::{Account, History, NoticeCode, with_causes};
use crate::download::{Downloader, Downloads};
use crate::engine::{self, Engine, RunEvent, Stop};
use crate::files::sweep;
use crate::ledger::{Approval, LockedBatch};
use crate::manifest::Manifest;
use crate::plan::Plan;

/// A batch that is held, with a plan within its limits and a service that can do it.
pub struct Ready<'s> {
    held: Held<'s>,
    service: Option<(Connection, Option<Downloader>)>,
    /// The videos for which a program is started, if one is named.
    executions: Option<Executions>,
}

impl<'s> Held<'s> {
    /// Refuses what passes a limit, another plan than was approved, and tasks that the service would not know. `connection` may be missing where the plan
    /// needs no service ([`Plan::needs_service`]).
    pub fn ready(mut self, connection: Option<Connection>) -> Result<Ready<'s>, Refusal> {
        self.check_limits()?;
        self.check_approval()?;
        self.check_pictures()?;
        match &connection {
            None if self.plan.needs_service() => return Err(Refusal::NoConnection),
            Some(connection) if connection.is_simulated() != self.session.ledger.is_simulated() => {
                return Err(Refusal::OtherKind { ledger_is_simulated: self.session.ledger.is_simulated() });
            }
            Some(connection) => {
                if let Some(job) = connection.with_secret(&self.plan) {
                    return Err(Refusal::KeyInRequest { job });
                }
                elsewhere::leave_foreign(&self.others, &mut self.plan, connection);
                connection.check_owner(self.plan.outstanding())?;
            }
            None => {}
        }
        Ready::new(self, connection)
    }
}

impl<'s> Ready<'s> {
    fn new(held: Held<'s>, connection: Option<Connection>) -> Result<Self, Refusal> {
        let options = &held.session.options;
        let service = connection.map(|connection| {
            let downloader =
                held.plan.downloads.is_some().then(|| connection.downloader(&options.out, &options.settings));
            Ok::<_, Refusal>((connection, downloader.transpose()?))
        });
        let service = service.transpose()?;
        let known = held.others.iter().map(Elsewhere::known);
        let executions = options.exec.as_ref().map(|_| Executions::new(&held.plan, &options.out, &held.history, known));
        Ok(Self { held, service, executions })
    }

    /// What the run will do.
    pub fn plan(&self) -> &Plan {
        &self.held.plan
    }

    /// Whose tasks will be bought, if there is anything to ask of the service: with its address.
    pub fn account(&self) -> Option<&Account> {
        self.service.as_ref().map(|(connection, _)| connection.account())
    }

    /// Whether there is anything to do that takes its time: something to ask of the service, or a program to start.
    pub fn has_work(&self) -> bool {
        self.service.is_some() || self.executions.as_ref().is_some_and(|executions| !executions.is_empty())
    }

    /// Does it, if the consent covers it, and returns when every task has had its final word or `stop` ended the run. Reports are
    /// written before the first submission, meanwhile, and at the end.
    ///
    /// `tell` is told of everything that happens; it must not wait. What goes wrong after the first submission is part of the outcome, and no refusal.
    pub async fn run(
        self,
        consent: &Consent,
        stop: &Stop,
        tell: &(dyn Fn(RunEvent) + Sync),
    ) -> Result<Outcome, Refusal> {
        // Boxed: its state would take room in the future of every caller.
        Box::pin(self.run_in_order(consent, stop, tell)).await
    }

    async fn run_in_order(
        self,
        consent: &Consent,
        stop: &Stop,
        tell: &(dyn Fn(RunEvent) + Sync),
    ) -> Result<Outcome, Refusal> {
        let Self { held: Held { session, batch, mut plan, history, others, .. }, service, executions } = self;
        if !session.ledger.is_simulated() {
            consent.check(&plan)?;
        }
        if let Some((connection, _)) = &service
            && let Some(sharing) = batch.sharing()
            && plan.jobs.iter().any(|planned| planned.action.buys())
        {
            sharing.join(together::joining(session, connection)).await?;
        }
        if !session.manifest.moves.is_empty() {
            batch.move_jobs(&session.manifest.moves).await?;
        }
        // Before the reports are written anew: the old one may be all that is left of what was bought.
        let Manifest { key, moves, .. } = &session.manifest;
        purchases::keep_what_only_the_report_knows(&session.ledger, &session.options.out, key, moves, &history)?;
        let retake = begin_retake(session, &batch, &plan, &history).await?;
        drop(history);
        let reporter = session.reporter();
        // What reports of killed runs left on their way.
        session.options.reports.paths().filter_map(Path::parent).for_each(sweep);
        reporter.write().await?.written.map_err(|error| Refusal::Files(Box::new(error)))?;
        if let Some((connection, _)) = &service {
            claim_tasks(connection, &batch, &others, &mut plan).await?;
        }
        let spend_limits = limits::over_all_batches(&limits::of_now(session).await?);
        let others = Others::new(others);
        let has_news = AtomicBool::new(false);
        let (fetched, coming) = unbounded();
        let tell = |event: RunEvent| {
            has_news.store(true, Ordering::Relaxed);
            if let RunEvent::Fetched(video) = &event {
                // Nobody takes it where no program is named.
                drop(fetched.unbounded_send((**video).clone()));
            }
            tell(event);
        };
        let began = Instant::now();
        let runs = async {
            let mut run = engine::Outcome::default();
            if let Some((connection, downloader)) = &service {
                let approval = session.options.approved.is_some();
                let approval = approval.then(|| Approval { digest: plan.digest().clone(), most: 1 + plan.retries });
                let run_limit = limits::of_all_runners(session);
                let engine = Engine {
                    service: connection.service(),
                    account: connection.account(),
                    limits: &spend_limits,
                    run_limit: run_limit.as_ref(),
                    approval: approval.as_ref(),
                    ledger: &batch,
                    settings: &session.options.settings,
                    stop,
                    downloads: downloader.as_ref().map(|downloader| downloader as &dyn Downloads),
                    assets: session.options.assets.as_ref(),
                    tell: &tell,
                };
                if let Some(sharing) = batch.sharing().filter(|_| !session.options.fetches_only) {
                    let is_over = CancellationToken::new();
                    let own = async {
                        let run = engine.run(&plan).await;
                        is_over.cancel();
                        run
                    };
                    let (own, adopted) = futures::join!(own, together::adopt(session, &engine, sharing, &is_over));
                    run = own;
                    run.add(adopted);
                    together::stay(session, &engine, sharing, &plan, began, &mut run).await;
                } else {
                    run = engine.run(&plan).await;
                }
            }
            fetched.close_channel();
            run
        };
        let executes = async {
            let (Some(program), Some(executions)) = (&session.options.exec, executions) else { return 0 };
            let is_simulated = session.ledger.is_simulated();
            Executor { program, is_simulated, ledger: &batch, stop, tell: &tell }.run(executions, coming).await
        };
        let (mut run, unexecuted) = tokio::select! {
            ended = Box::pin(async { futures::join!(runs, executes) }) => ended,
            never = hurry(stop, &batch) => match never {},
            never = reporter.keep_writing(&has_news) => match never {},
            never = elsewhere::give_back(session, &others) => match never {},
        };
        // A run that was stopped is continued by the same patterns, like one that was killed.
        if retake
            && stop.reasons().is_empty()
            && let Err(error) = batch.keep_retake(None).await
        {
            // The run itself is over: the same patterns would only continue it.
            tracing::warn!(
                code = NoticeCode::RetakeNotEnded.code(),
                "can't record the end of the retake: {}",
                with_causes(&error)
            );
        }
        // The batch stays held until its reports are written.
        let reported = reporter.write().await;
        let collected = elsewhere::report(session, others).await;
        drop(batch);
        // Somebody may have given up while the last report was written.
        run.stopped = stop.reasons();
        Ok(Outcome { run, unexecuted, collected, reported })
    }
}

/// Reassigns the tasks of all batches if their account is the same, and claims those that no other runner polls.
async fn claim_tasks(
    connection: &Connection,
    batch: &LockedBatch,
    others: &[Elsewhere],
    plan: &mut Plan,
) -> Result<(), Refusal> {
    if connection.is_same_account() {
        batch.reassign(connection.account()).await?;
        elsewhere::adopt(others, connection.account()).await?;
        plan.adopt(connection.account());
    }
    elsewhere::mark(others)?;
    together::leave_theirs(batch, plan).await?;
    Ok(())
}

/// Waits no longer for a ledger that can't be reached once you end the run. Never returns.
async fn hurry(stop: &Stop, batch: &LockedBatch) -> Infallible {
    stop.leaving().await;
    if let Some(sharing) = batch.sharing() {
        sharing.hurry();
    }
    std::future::pending().await
}

/// Remembers a retake by patterns before its first submission, so that the same patterns continue it after a kill; returns whether there is one.
async fn begin_retake(session: &Session, batch: &LockedBatch, plan: &Plan, history: &History) -> Result<bool, Refusal> {
    let retakes = &session.options.redo.retake;
    if history.retake().is_some_and(|begun| retakes.continues(begun)) {
        return Ok(true);
    }
    let Some(begun) = retakes.begin(plan.newest) else { return Ok(false) };
    batch.keep_retake(Some(begun)).await?;
    Ok(true)
}
