//! The pipeline of a run, from its plan to the outcome.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use futures::stream::{self, Stream, StreamExt as _};
use jiff::SignedDuration;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::event::RunEvent;
use super::fetcher::Fetcher;
use super::gateway::Gateway;
use super::job_runner::{JobRunner, Task, Turns};
use super::pace::Pace;
use super::poller::Poller;
use super::settings::{CircuitBreaker, Outcome, Settings, Stop};
use super::slots::Slots;
use super::slow_start::SlowStart;
use super::spend_guard::SpendGuard;
use super::submit::{ImageUrls, Known, Submitter};
use crate::domain::{Account, PriceList};
use crate::download::Downloads;
use crate::hooks::Program;
use crate::ledger::{Approval, LockedBatch, SpendLimit};
use crate::plan::{Plan, Planned};
use crate::service::VideoService;

/// The input of a run, except its plan.
pub struct Engine<'e, S> {
    /// The service.
    pub service: &'e S,
    /// The account that owns the tasks.
    pub account: &'e Account,
    /// Spend limits over all batches of the ledger.
    pub limits: &'e [SpendLimit],
    /// The approval that covers all submissions.
    pub approval: Option<&'e Approval>,
    /// The ledger.
    pub ledger: &'e LockedBatch,
    /// The lead of the ledger's clock over this machine's.
    pub clock_offset: SignedDuration,
    /// The settings of the run.
    pub settings: &'e Settings,
    /// The stop state, shared with signals.
    pub stop: &'e Stop,
    /// The downloader, or `None` if videos stay at their URLs.
    pub downloads: Option<&'e dyn Downloads>,
    /// The program that uploads local images.
    pub assets: Option<&'e Program>,
    /// The prices of the catalog.
    pub prices: &'e PriceList<'e>,
    /// The receiver of events.
    pub emit: &'e (dyn Fn(RunEvent) + Sync),
}

impl<S: VideoService> Engine<'_, S> {
    /// Runs a plan. Returns when every task has its outcome, or the run was stopped.
    pub async fn run(&self, plan: &Plan) -> Outcome {
        let gateway = Gateway {
            service: self.service,
            account: self.account,
            ledger: self.ledger,
            settings: self.settings,
            pace: Pace::new(self.settings.rps),
            connectivity: Mutex::default(),
            circuit_breaker: CircuitBreaker::new(
                self.settings.accepts_mismatch,
                plan.on_trial.iter().map(|(model, _)| &**model),
            ),
            spend_guard: SpendGuard::new(plan),
            prices: self.prices,
            stop: self.stop,
            clock_offset: self.clock_offset,
            emit: self.emit,
        };
        let (slots, outcome) = (Slots::new(self.settings.concurrency), Mutex::default());
        let submitter = Submitter {
            gateway: &gateway,
            slots: &slots,
            slow_start: SlowStart::new(self.settings.concurrency, self.settings.max_doubts),
            limits: self.limits,
            approval: self.approval,
            has_told_wait: AtomicBool::default(),
            is_allowed: OnceCell::new(),
        };
        let (submitter, image_urls) = (&submitter, &ImageUrls::new(self.assets));
        let runner = JobRunner {
            plan,
            superseded: plan.superseded(),
            gateway: &gateway,
            submitter,
            image_urls,
            fetcher: self.downloads.map(|downloads| Fetcher::new(&gateway, downloads)),
            poller: Poller::new(&gateway),
            outcome: &outcome,
            failures: AtomicUsize::new(0),
        };
        Box::pin(self.work_of(plan, submitter).for_each_concurrent(None, |task| runner.run(task))).await;
        let outcome = outcome.into_inner();
        Outcome {
            stopped: self.stop.reasons(),
            is_model_stopped: gateway.circuit_breaker.has_stopped(),
            mismatches: gateway.circuit_breaker.mismatches(),
            ..outcome
        }
    }

    /// The work of a plan: active tasks and downloads immediately, then due jobs in manifest order, each with a free slot. Of a model on trial, the
    /// jobs behind its first one come last, so that no other job waits for its judgment. Ends when the run stops.
    fn work_of<'r>(&'r self, plan: &'r Plan, submitter: &'r Submitter<'r, S>) -> impl Stream<Item = Task<'r>> {
        let totals = plan.totals();
        (self.emit)(RunEvent::Started {
            submit: totals.submit,
            resume: plan.active_tasks().count(),
            planned: totals.cost_usd,
            fetch: totals.fetch,
        });
        let resumed =
            plan.active_tasks().map(|attempt| Task::Resume(submitter.slots.for_resumed(), Box::new(attempt.clone())));
        let missing = plan.downloads.iter().flat_map(|wanted| &wanted.missing);
        let missing =
            missing.filter(|_| self.downloads.is_some()).map(|download| Task::Fetch(Box::new(download.clone())));
        let at_once: Vec<Task<'r>> = resumed.chain(missing).collect();
        let mut tried: HashSet<&str> = HashSet::new();
        let waits = |planned: &&'r Planned| {
            let model = planned.job.spec.model.as_str();
            plan.on_trial.iter().any(|(on_trial, _)| on_trial == model) && !tried.insert(model)
        };
        let (waiting, first): (Vec<&Planned>, Vec<_>) =
            plan.jobs.iter().filter(|planned| planned.action.buys()).partition(waits);
        let due = stream::iter(first.into_iter().chain(waiting))
            .then(|planned| self.due(plan, planned, submitter))
            .take_while(|next| std::future::ready(next.is_some()))
            .filter_map(std::future::ready);
        stream::iter(at_once).chain(due)
    }

    /// A due job with its slot, or `None` if the run stops first. It waits for the turn of a trial before it takes a slot: the job that has the turn
    /// may need one for a retry.
    async fn due<'r>(&'r self, plan: &Plan, planned: &'r Planned, submitter: &'r Submitter<'r, S>) -> Option<Task<'r>> {
        let trial = submitter.gateway.circuit_breaker.turn(&planned.job.spec.model);
        let trial = self.stop.unless_stopping(trial).await?;
        let slot = self.stop.unless_stopping(submitter.slots.acquire()).await?;
        let slow_start = self.stop.unless_stopping(submitter.slow_start.turn()).await?;
        let known = Known { newest: plan.newest, paid_elsewhere: planned.paid_elsewhere };
        Some(Task::Submit(slot, Arc::clone(&planned.job), known, Turns { slow_start, trial }))
    }
}
