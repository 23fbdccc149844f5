//! The pipeline of a run, from its plans to their outcome.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures::stream::{self, Stream, StreamExt as _};
use jiff::SignedDuration;
use parking_lot::Mutex;

use super::circuit_breaker::CircuitBreaker;
use super::event::RunEvent;
use super::feed::{Assignment, Feed};
use super::fetcher::Fetcher;
use super::gateway::{Connectivity, Gateway};
use super::image_urls::ImageUrls;
use super::job_runner::{JobRunner, Task, Work};
use super::pace::Pace;
use super::poller::Poller;
use super::preflight::Preflight;
use super::settings::Outcome;
use super::settings::Settings;
use super::slots::Slots;
use super::slow_start::SlowStart;
use super::spend_guard::SpendGuard;
use super::stop::Stop;
use super::submit::{Known, Submitter};
use crate::domain::{Account, PriceList};
use crate::download::Downloads;
use crate::hooks::AssetCommand;
use crate::ledger::{Approval, LockedBatch, RunLimit, Sharing, SpendLimit};
use crate::plan::Plan;
use crate::service::VideoService;

/// The input of a run, except its plan.
pub struct Engine<'e, S> {
    /// The service.
    pub service: &'e S,
    /// The account that owns the tasks.
    pub account: &'e Account,
    /// Spend limits over all batches of the ledger.
    pub limits: &'e [SpendLimit],
    /// The spend limit of all runners of this batch together.
    pub run_limit: Option<&'e RunLimit>,
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
    pub assets: Option<&'e AssetCommand>,
    /// The prices of the catalog.
    pub prices: &'e PriceList<'e>,
    /// The receiver of events.
    pub emit: &'e (dyn Fn(RunEvent) + Sync),
}

impl<S: VideoService> Engine<'_, S> {
    /// Runs a plan, and what `source` adds to it. Returns when no more work can come and every task has its outcome, or
    /// the run was stopped. All limits hold over all of that.
    pub async fn run(&self, plan: Arc<Plan>, source: impl AsyncFnOnce(&Feed)) -> Outcome {
        let gateway = Gateway {
            service: self.service,
            account: self.account,
            ledger: self.ledger,
            settings: self.settings,
            pace: Pace::new(self.settings.rps),
            connectivity: Connectivity::default(),
            circuit_breaker: CircuitBreaker::new(self.settings.accepts_mismatch),
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
            run_limit: self.run_limit,
            approval: self.approval,
            spend_guard: SpendGuard::new(&plan),
            preflight: Preflight::default(),
        };
        let (submitter, image_urls) = (&submitter, &ImageUrls::new(self.assets));
        let runner = JobRunner {
            gateway: &gateway,
            submitter,
            image_urls,
            fetcher: self.downloads.map(|downloads| Fetcher::new(&gateway, downloads)),
            poller: Poller::new(&gateway),
            outcome: &outcome,
            failures: AtomicUsize::new(0),
        };
        let (feed, assignments) = Feed::new();
        let source = async move {
            feed.add(plan).await;
            source(&feed).await;
        };
        let jobs = async move {
            let work = assignments.map(|assignment| {
                submitter.slots.restart_idle_time();
                image_urls.forget();
                Box::pin(self.work_of(assignment, submitter))
            });
            work.flatten_unordered(None).for_each_concurrent(None, |work| runner.run(work)).await;
        };
        Box::pin(async { futures::join!(source, jobs) }).await;
        let outcome = outcome.into_inner();
        Outcome {
            stopped: self.stop.reasons(),
            is_model_stopped: gateway.circuit_breaker.has_stopped(),
            mismatches: gateway.circuit_breaker.mismatches(),
            ..outcome
        }
    }

    /// The work of a plan: active tasks and downloads at once, then due jobs, in manifest order if no other runner submits them, each with a free slot.
    /// Ends when the run stops.
    fn work_of<'r>(
        &'r self,
        assignment: Arc<Assignment>,
        submitter: &'r Submitter<'r, S>,
    ) -> impl Stream<Item = Work<'r>> {
        let plan = Arc::clone(&assignment.plan);
        let totals = plan.totals();
        (self.emit)(RunEvent::Started {
            submit: totals.submit,
            resume: plan.active_tasks().count(),
            planned: totals.cost_usd,
            fetch: totals.fetch,
        });
        let of_plan = |task| Work { assignment: Arc::clone(&assignment), task };
        let resumed =
            plan.active_tasks().map(|attempt| Task::Resume(submitter.slots.for_resumed(), Box::new(attempt.clone())));
        let missing = plan.downloads.iter().flat_map(|wanted| &wanted.missing);
        let missing =
            missing.filter(|_| self.downloads.is_some()).map(|download| Task::Fetch(Box::new(download.clone())));
        let at_once: Vec<Work<'r>> = resumed.chain(missing).map(of_plan).collect();
        let mut due: Vec<usize> = (0..plan.jobs.len()).filter(|at| plan.jobs[*at].action.buys()).collect();
        if self.ledger.sharing().is_some_and(Sharing::had_others) {
            // Runners that walk the jobs in the same order compete for each.
            fastrand::shuffle(&mut due);
        }
        let due = stream::iter(due)
            .then(move |at| self.due(Arc::clone(&assignment), at, submitter))
            .take_while(|next| std::future::ready(next.is_some()))
            .filter_map(|next| std::future::ready(next.flatten()));
        stream::iter(at_once).chain(due)
    }

    /// A due job with its slot. `None` if the run stops first, `Some(None)` if another runner has the job.
    async fn due<'r>(
        &'r self,
        assignment: Arc<Assignment>,
        at: usize,
        submitter: &'r Submitter<'r, S>,
    ) -> Option<Option<Work<'r>>> {
        let Plan { newest, jobs, .. } = &*assignment.plan;
        let planned = &jobs[at];
        if self.ledger.sharing().is_some_and(|sharing| sharing.is_claimed(&planned.job.id, *newest)) {
            return Some(None);
        }
        let slot = self.stop.unless_stopping(submitter.slots.acquire()).await?;
        let permit = self.stop.unless_stopping(submitter.slow_start.turn()).await?;
        let known = Known { newest: *newest, paid_elsewhere: planned.paid_elsewhere };
        let task = Task::Submit(slot, Arc::clone(&planned.job), known, permit);
        Some(Some(Work { assignment, task }))
    }
}
