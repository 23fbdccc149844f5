//! The pipeline: from a plan to final words, top to bottom.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::budget::Budget;
use super::event::{Leaving, RunEvent};
use super::pace::Pace;
use super::poller::{DENIED, Poller, Watch, Word};
use super::settings::Settings;
use super::stop::{Stop, StopReason};
use super::submit::{Submitter, ledger_failed};
use crate::domain::{Account, Attempt, AttemptId, Job, JobId, TaskId};
use crate::ledger::{Cap, Event, Ledger};
use crate::plan::{Limit, Plan};
use crate::service::VideoService;

/// What a run needs besides its plan.
pub struct Engine<'e, S, L> {
    /// The service.
    pub service: &'e S,
    /// Whose tasks they will be.
    pub account: &'e Account,
    /// Limits over all batches, which the ledger keeps.
    pub caps: &'e [Cap],
    /// The ledger.
    pub ledger: &'e L,
    /// The knobs.
    pub settings: &'e Settings,
    /// What ends the run early; signals come in here.
    pub stop: &'e Stop,
    /// Where events go.
    pub tell: &'e (dyn Fn(RunEvent) + Sync),
}

/// How a run ended. How each job stands is in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Why it ended early; empty if it did not.
    pub stopped: BTreeSet<StopReason>,
    /// Tasks that were left at the service because they took longer than `--deadline`.
    pub past_deadline: usize,
}

/// One job's way through the run: with a new submission, or with a task that is at the service already.
enum Work {
    Submit(Arc<Job>),
    Resume(Box<Attempt>),
}

/// A place among the tasks that may be outstanding at once, given back when it is dropped.
enum Slot<'r> {
    /// Of a task that this run submitted.
    New { _permit: OwnedSemaphorePermit },
    /// Of a task that was at the service when the run began.
    Resumed(&'r Slots),
}

/// The places of a run. Tasks that are at the service when it begins take theirs first. There may be more of them than
/// places, if the last run had more; then the surplus has to end before anything new is submitted.
struct Slots {
    free: Arc<Semaphore>,
    surplus: AtomicUsize,
}

impl Slots {
    fn new(places: usize, resumed: usize) -> Self {
        let free = Arc::new(Semaphore::new(places.saturating_sub(resumed)));
        Self { free, surplus: AtomicUsize::new(resumed.saturating_sub(places)) }
    }

    /// The next free place, or nothing if the run stops first.
    async fn take(&self, stop: &Stop) -> Option<Slot<'_>> {
        tokio::select! {
            biased;
            () = stop.stopping() => None,
            permit = Arc::clone(&self.free).acquire_owned() => Some(Slot::New { _permit: permit.ok()? }),
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if let Self::Resumed(slots) = self {
            let less = |surplus: usize| surplus.checked_sub(1);
            if slots.surplus.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
                slots.free.add_permits(1);
            }
        }
    }
}

impl<S: VideoService, L: Ledger> Engine<'_, S, L> {
    /// Does what the plan says, and returns when every task has had its final word or the run was stopped.
    pub async fn run(&self, plan: &Plan) -> Outcome {
        let totals = plan.totals();
        let outstanding = || plan.resume.iter().chain(&plan.collect);
        (self.tell)(RunEvent::Started { submit: totals.submit, resume: outstanding().count(), planned: totals.cost });
        let left = plan.limits().map(Limit::left).min();
        let (pace, budget) = (Pace::default(), Budget::new(left, totals.cost));
        let slots = Slots::new(self.settings.concurrency, outstanding().count());
        let past_deadline = AtomicUsize::new(0);
        let submitter = Submitter {
            service: self.service,
            account: self.account,
            caps: self.caps,
            ledger: self.ledger,
            batch: &plan.key,
            budget: &budget,
            pace: &pace,
            patience: self.settings.deadline,
            stop: self.stop,
            tell: self.tell,
        };
        let poller = Poller::new(self.service, self.settings, &pace, self.stop, self.tell);
        let (watch, watches) = mpsc::unbounded_channel();

        let jobs = async {
            let life = Life {
                engine: self,
                submitter: &submitter,
                slots: &slots,
                watch,
                retries: plan.retries,
                known: plan.newest,
                past_deadline: &past_deadline,
            };
            // Tasks that are at the service already are looked after at once.
            let resumed = stream::iter(outstanding())
                .map(|attempt| (Slot::Resumed(&slots), Work::Resume(Box::new(attempt.clone()))));
            // Due jobs follow in manifest order, each when a slot is free; the stream ends when the run stops.
            let due = stream::iter(plan.jobs.iter().filter(|planned| planned.action.buys()))
                .then(|planned| async { Some((slots.take(self.stop).await?, Work::Submit(Arc::clone(&planned.job)))) })
                .take_while(|next| std::future::ready(next.is_some()))
                .filter_map(std::future::ready);
            resumed.chain(due).for_each_concurrent(None, |(slot, work)| life.live(slot, work)).await;
        };
        futures::join!(jobs, poller.run(watches));

        Outcome { stopped: self.stop.reasons(), past_deadline: past_deadline.into_inner() }
    }
}

/// Whether the service itself said that generation failed. A task that it merely denies may be there all the same, and
/// is not paid for again without a person.
fn has_failed(word: &Word) -> bool {
    matches!(word, Word::Final(Event::Failed { error, .. }) if error.code.as_deref() != Some(DENIED))
}

/// What each job's way needs.
struct Life<'r, 'e, S, L> {
    engine: &'r Engine<'e, S, L>,
    submitter: &'r Submitter<'r, S, L>,
    slots: &'r Slots,
    watch: mpsc::UnboundedSender<Watch>,
    retries: u32,
    known: Option<AttemptId>,
    past_deadline: &'r AtomicUsize,
}

impl<S: VideoService, L: Ledger> Life<'_, '_, S, L> {
    /// From the intent to the final word.
    async fn live(&self, slot: Slot<'_>, work: Work) {
        match work {
            Work::Submit(job) => self.buy(slot, &job).await,
            Work::Resume(attempt) => {
                let Some(task) = attempt.task else { return };
                let since = attempt.answered_at.unwrap_or(attempt.intended_at);
                let age = Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default();
                let typical = Duration::from_secs(attempt.typical_s.0.into());
                let word = self.attend(slot, &attempt.job, attempt.id, task, age, typical).await;
                self.finish(&attempt.job, attempt.id, word).await;
            }
        }
    }

    /// A submission, and as many more as were agreed to while its tasks fail.
    async fn buy(&self, slot: Slot<'_>, job: &Job) {
        let typical = Duration::from_secs(job.typical_s.0.into());
        let mut submitted = self.submitter.submit(job, self.known).await;
        let (mut retries, mut slot) = (self.retries, Some(slot));
        while let (Some((attempt, task)), Some(place)) = (submitted, slot.take()) {
            let word = self.attend(place, &job.id, attempt, task, Duration::ZERO, typical).await;
            let failed = has_failed(&word);
            self.finish(&job.id, attempt, word).await;
            if !failed || retries == 0 {
                return;
            }
            retries -= 1;
            slot = self.slots.take(self.engine.stop).await;
            submitted = if slot.is_some() { self.submitter.submit_again(job, attempt).await } else { None };
        }
    }

    /// Hands a task to the poller, notes its progress, and returns its last word once the slot is given back.
    async fn attend(
        &self,
        slot: Slot<'_>,
        job: &JobId,
        attempt: AttemptId,
        task: TaskId,
        age: Duration,
        typical_min: Duration,
    ) -> Word {
        let (words, mut heard) = mpsc::unbounded_channel();
        let mut started = false;
        // If the poller is gone, the run is being left. The refused watch must go at once, with its end of the channel:
        // the closed channel is the word that the job hears below.
        drop(self.watch.send(Watch { task, age, typical_min, words }));
        let word = loop {
            match heard.recv().await {
                Some(Word::Progress(percent)) => {
                    if !std::mem::replace(&mut started, true) {
                        self.write(attempt, Event::Started).await;
                    }
                    (self.engine.tell)(RunEvent::Progressed { job: job.clone(), percent });
                }
                Some(last) => break last,
                None => break Word::Left { why: Leaving::Interrupted, polls: 0 },
            }
        };
        // The next job can go: what is left to do here needs nothing of the service.
        drop(slot);
        word
    }

    /// Writes a last word down.
    async fn finish(&self, job: &JobId, attempt: AttemptId, word: Word) {
        let job = job.clone();
        match word {
            Word::Progress(_) => {}
            Word::Final(event) => {
                let told = match &event {
                    Event::Failed { error, .. } => RunEvent::Failed { job, message: error.message.clone() },
                    _ => RunEvent::Completed { job },
                };
                self.write(attempt, event).await;
                (self.engine.tell)(told);
            }
            Word::Left { why, polls } => {
                self.write(attempt, Event::Left { polls }).await;
                if why == Leaving::Deadline {
                    self.past_deadline.fetch_add(1, Ordering::Relaxed);
                }
                (self.engine.tell)(RunEvent::Left { job, why });
            }
        }
    }

    /// What can't be written is asked for again by the next run: the task is in the ledger, and its final word is at the
    /// service.
    async fn write(&self, attempt: AttemptId, event: Event) {
        if let Err(error) = self.engine.ledger.record(attempt, event).await {
            ledger_failed(self.engine.stop, self.engine.tell, &error);
        }
    }
}
