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
use super::poller::{Poller, Watch, Word};
use super::settings::Settings;
use super::stop::{Stop, StopReason};
use super::submit::{Submitter, ledger_failed};
use crate::domain::{Attempt, AttemptId, Job, JobId, TaskId};
use crate::ledger::{Event, Ledger};
use crate::plan::Plan;
use crate::service::VideoService;

/// What a run needs besides its plan.
pub struct Engine<'e, S, L> {
    /// The service.
    pub service: &'e S,
    /// Its address, for the ledger.
    pub address: &'e str,
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

/// A place among the tasks that may be outstanding at once.
type Slot = Option<OwnedSemaphorePermit>;

impl<S: VideoService, L: Ledger> Engine<'_, S, L> {
    /// Does what the plan says, and returns when every task has had its final word or the run was stopped.
    pub async fn run(&self, plan: &Plan) -> Outcome {
        let totals = plan.totals();
        let outstanding = || plan.resume.iter().chain(&plan.collect);
        (self.tell)(RunEvent::Started { submit: totals.submit, resume: outstanding().count(), planned: totals.cost });
        let (pace, budget) = (Pace::default(), Budget::new(plan.limit.as_ref().map(|limit| limit.usd)));
        let slots = Arc::new(Semaphore::new(self.settings.concurrency));
        let past_deadline = AtomicUsize::new(0);
        let submitter = Submitter {
            service: self.service,
            address: self.address,
            ledger: self.ledger,
            batch: &plan.key,
            budget: &budget,
            pace: &pace,
            stop: self.stop,
            tell: self.tell,
        };
        let poller = Poller::new(self.service, self.settings, &pace, self.stop, self.tell);
        let (watch, watches) = mpsc::unbounded_channel();

        let jobs = async {
            let life = Life { engine: self, submitter: &submitter, watch, past_deadline: &past_deadline };
            // Tasks that are at the service already are looked after at once, each in a slot as far as there are any.
            let resumed = stream::iter(outstanding())
                .map(|attempt| (slots.clone().try_acquire_owned().ok(), Work::Resume(Box::new(attempt.clone()))));
            // Due jobs follow in manifest order, each when a slot is free; the stream ends when the run stops.
            let due = stream::iter(plan.jobs.iter().filter(|planned| planned.action.buys()))
                .then(|planned| async { (self.slot(&slots).await, Work::Submit(Arc::clone(&planned.job))) })
                .take_while(|(slot, _)| std::future::ready(slot.is_some()));
            resumed.chain(due).for_each_concurrent(None, |(slot, work)| life.live(slot, work)).await;
        };
        futures::join!(jobs, poller.run(watches));

        Outcome { stopped: self.stop.reasons(), past_deadline: past_deadline.into_inner() }
    }

    /// A slot, or nothing if the run stops first.
    async fn slot(&self, slots: &Arc<Semaphore>) -> Slot {
        tokio::select! {
            biased;
            () = self.stop.stopping() => None,
            slot = Arc::clone(slots).acquire_owned() => slot.ok(),
        }
    }
}

/// What each job's way needs.
struct Life<'r, 'e, S, L> {
    engine: &'r Engine<'e, S, L>,
    submitter: &'r Submitter<'r, S, L>,
    watch: mpsc::UnboundedSender<Watch>,
    past_deadline: &'r AtomicUsize,
}

impl<S: VideoService, L: Ledger> Life<'_, '_, S, L> {
    /// From the intent to the final word.
    async fn live(&self, slot: Slot, work: Work) {
        match work {
            Work::Submit(job) => {
                if let Some((attempt, task)) = self.submitter.submit(&job).await {
                    let typical = Duration::from_secs(job.typical_s.0.into());
                    self.attend(slot, &job.id, attempt, task, Duration::ZERO, typical).await;
                }
            }
            Work::Resume(attempt) => {
                let Some(task) = attempt.task else { return };
                let since = attempt.answered_at.unwrap_or(attempt.intended_at);
                let age = Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default();
                let typical = Duration::from_secs(attempt.typical_s.0.into());
                self.attend(slot, &attempt.job, attempt.id, task, age, typical).await;
            }
        }
    }

    /// Hands a task to the poller, and writes down what it says.
    async fn attend(
        &self,
        slot: Slot,
        job: &JobId,
        attempt: AttemptId,
        task: TaskId,
        age: Duration,
        typical_min: Duration,
    ) {
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
        self.finish(job, attempt, word).await;
    }

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
