//! The pipeline: from a plan to final words, top to bottom.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::sync::mpsc;

use super::connectivity::Connectivity;
use super::echo::Echoes;
use super::event::RunEvent;
use super::fetcher::Fetcher;
use super::first_look::FirstLook;
use super::gateway::Gateway;
use super::job_runner::{JobRunner, Work};
use super::known::Known;
use super::outcome::{Outcome, Tally};
use super::pictures::Pictures;
use super::poller::Poller;
use super::rate_limit::RateLimit;
use super::settings::Settings;
use super::slots::Slots;
use super::spend_guard::SpendGuard;
use super::stop::{Stop, StopReason};
use super::submit::Submitter;
use super::trust::Trust;
use crate::domain::Account;
use crate::download::Downloads;
use crate::hooks::AssetCommand;
use crate::ledger::{Approval, LockedBatch, RunLimit, SpendLimit};
use crate::plan::{Download, Plan, Planned};
use crate::service::VideoService;

/// How often it is counted how many runners share the pace.
const BETWEEN_COUNTS: Duration = Duration::from_millis(500);

/// What a run needs besides its plan.
pub struct Engine<'e, S> {
    /// The service.
    pub service: &'e S,
    /// Whose tasks they will be.
    pub account: &'e Account,
    /// Limits over all batches, which the ledger keeps.
    pub limits: &'e [SpendLimit],
    /// The limit on all that the runners of this batch newly spend.
    pub run_limit: Option<&'e RunLimit>,
    /// The approved plan that all submissions are a part of.
    pub approval: Option<&'e Approval>,
    /// The ledger.
    pub ledger: &'e LockedBatch,
    /// The knobs.
    pub settings: &'e Settings,
    /// What ends the run early; signals come in here.
    pub stop: &'e Stop,
    /// Fetches videos, unless they stay at their addresses.
    pub downloads: Option<&'e dyn Downloads>,
    /// Gives local pictures an address.
    pub assets: Option<&'e AssetCommand>,
    /// Where events go.
    pub tell: &'e (dyn Fn(RunEvent) + Sync),
}

impl<S: VideoService> Engine<'_, S> {
    /// Does what the plan says, and returns when every task has had its final word or the run was stopped.
    pub async fn run(&self, plan: &Plan) -> Outcome {
        let totals = plan.totals();
        (self.tell)(RunEvent::Started {
            submit: totals.submit,
            resume: plan.outstanding().count(),
            planned: totals.cost,
            fetch: totals.fetch,
        });
        let spend_guard = SpendGuard::new(plan);
        let gateway = Gateway {
            service: self.service,
            rate_limit: RateLimit::new(self.settings.rps),
            connectivity: Connectivity::default(),
            echoes: Echoes::default(),
            stop: self.stop,
            tell: self.tell,
        };
        let slots = Slots::new(self.settings.concurrency, plan.outstanding().count(), self.settings.speed);
        let tally = Tally::default();
        let submitter = Submitter {
            gateway: &gateway,
            slots: &slots,
            trust: Trust::new(self.settings.concurrency, self.settings.max_doubts),
            account: self.account,
            limits: self.limits,
            run_limit: self.run_limit,
            approval: self.approval,
            ledger: self.ledger,
            spend_guard: &spend_guard,
            give_up_after: self.settings.deadline,
            first_look: FirstLook::default(),
        };
        let fetcher = self.downloads.zip(plan.downloads.as_ref());
        let fetcher =
            fetcher.map(|(downloads, wanted)| Fetcher::new(&gateway, self.ledger, self.account, downloads, wanted));
        let pictures = Pictures::new(&gateway, self.assets, self.ledger);
        let poller = Poller::new(&gateway, self.ledger, self.settings);
        let (watch, watches) = mpsc::unbounded_channel();

        let jobs = async {
            let runner = JobRunner {
                gateway: &gateway,
                ledger: self.ledger,
                submitter: &submitter,
                pictures: &pictures,
                slots: &slots,
                fetcher: fetcher.as_ref(),
                watch,
                retries: plan.retries,
                max_failures: self.settings.max_failures,
                superseded: plan.superseded(),
                others: &plan.others,
                tally: &tally,
            };
            // Tasks that are at the service already are looked after at once.
            let resumed = stream::iter(plan.outstanding())
                .map(|attempt| (slots.of_resumed(), Work::Resume(Box::new(attempt.clone()))));
            // Due jobs follow in manifest order, from where this runner begins; each when a slot is free; the stream ends when the run stops.
            let mut due: Vec<&Planned> = plan.jobs.iter().filter(|planned| planned.action.buys()).collect();
            let first = self.ledger.sharing().map_or(0, |sharing| sharing.starting_place(due.len()));
            due.rotate_left(first);
            let due = stream::iter(due)
                .then(|planned| async {
                    // What another runner has taken needs no slot.
                    let sharing = self.ledger.sharing();
                    if sharing.is_some_and(|sharing| sharing.is_taken(&planned.job.id, plan.newest)) {
                        return Some(None);
                    }
                    let slot = self.stop.unless_stopping(slots.take()).await?;
                    let permit = self.stop.unless_stopping(submitter.trust.turn()).await?;
                    let known = Known { newest: plan.newest, paid_elsewhere: planned.paid_elsewhere };
                    Some(Some((slot, Work::Submit(Arc::clone(&planned.job), known, permit))))
                })
                .take_while(|next| std::future::ready(next.is_some()))
                .filter_map(|next| std::future::ready(next.flatten()));
            resumed.chain(due).for_each_concurrent(None, |(slot, work)| runner.run(slot, work)).await;
        };
        // Videos that earlier runs could not fetch, or that are gone.
        let downloads = async {
            let Some(fetcher) = &fetcher else { return };
            let fetch = async |download: &Download| {
                let is_here = fetcher.fetch_earlier(download).await;
                // An old take, or a batch of long ago, whose link is dead is told each time, and is no reason to call every later
                // run a failure.
                let is_old = download.destination.is_version || download.destination.folder.is_some();
                tally.note_fetch(is_here || is_old);
            };
            stream::iter(&fetcher.plan().missing).for_each_concurrent(None, fetch).await;
        };
        let work = async { futures::join!(jobs, poller.run(watches), downloads) };
        tokio::select! {
            _ = work => {}
            never = self.watch_the_clock(&gateway) => match never {},
            never = self.share_the_pace(&gateway.rate_limit) => match never {},
        }

        tally.outcome(self.stop.reasons())
    }

    /// Shares the pace that the user gave with the other runners of the account. Never returns.
    async fn share_the_pace(&self, rate_limit: &RateLimit) -> std::convert::Infallible {
        let Some(sharing) = self.ledger.sharing().filter(|_| self.settings.rps.is_some()) else {
            return std::future::pending().await;
        };
        loop {
            rate_limit.share(sharing.runners());
            tokio::time::sleep(BETWEEN_COUNTS).await;
        }
    }

    /// Ends the run's time box. Never returns.
    async fn watch_the_clock(&self, gateway: &Gateway<'_, S>) -> std::convert::Infallible {
        if let Some(most) = self.settings.max_duration {
            tokio::time::sleep(most).await;
            let message = "what is not done is left for the next run".to_owned();
            gateway.stop_because(StopReason::TimeBox, message);
        }
        std::future::pending().await
    }
}
