//! The pipeline: from a plan to final words, top to bottom.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::channel::mpsc::unbounded;
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use tokio::sync::{SemaphorePermit, mpsc};

use super::budget::Budget;
use super::cadence::Class;
use super::contact::Contact;
use super::echo::Echoes;
use super::event::{Leaving, RunEvent};
use super::gather::{Gatherer, Keeping};
use super::line::Line;
use super::pace::Pace;
use super::poller::Poller;
use super::settings::Settings;
use super::shelf::{Errand, Place};
use super::slots::{Slot, Slots};
use super::stop::{Stop, StopReason};
use super::submit::{Submitted, Submitter, with_cause};
use super::trust::Trust;
use super::watched::{Watch, Word};
use crate::domain::{Account, Attempt, AttemptId, Job, JobId, TaskNames};
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
    /// What it takes to keep videos, unless they stay at their addresses.
    pub keeping: Option<Keeping<'e>>,
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
    /// Videos that could not be fetched.
    pub unfetched: usize,
}

/// One job's way through the run: with a new submission, or with a task that is at the service already.
enum Work<'r> {
    /// With its place in the line of submissions.
    Submit(Arc<Job>, Option<SemaphorePermit<'r>>),
    Resume(Box<Attempt>),
}

impl<S: VideoService, L: Ledger> Engine<'_, S, L> {
    /// Does what the plan says, and returns when every task has had its final word or the run was stopped.
    pub async fn run(&self, plan: &Plan) -> Outcome {
        let totals = plan.totals();
        let outstanding = || plan.resume.iter().chain(&plan.collect);
        (self.tell)(RunEvent::Started {
            submit: totals.submit,
            resume: outstanding().count(),
            planned: totals.cost,
            fetch: self.keeping.map_or(0, |keeping| keeping.shelf.errands.len()),
        });
        let left = plan.limits().map(Limit::left).min();
        let budget = Budget::new(left, totals.cost);
        let line = Line {
            service: self.service,
            pace: Pace::new(self.settings.rps),
            contact: Contact::default(),
            echoes: Echoes::default(),
            stop: self.stop,
            tell: self.tell,
        };
        let slots = Slots::new(self.settings.concurrency, outstanding().count(), self.settings.speed);
        let tally = Tally::default();
        let submitter = Submitter {
            line: &line,
            slots: &slots,
            trust: Trust::new(self.settings.concurrency, self.settings.max_doubts),
            account: self.account,
            caps: self.caps,
            ledger: self.ledger,
            batch: &plan.key,
            budget: &budget,
            patience: self.settings.deadline,
        };
        let gatherer = self.keeping.map(|keeping| Gatherer::new(&line, self.ledger, self.account, keeping));
        let poller = Poller::new(&line, self.ledger, self.settings);
        let (watch, watches) = mpsc::unbounded_channel();

        let jobs = async {
            let life = Life {
                engine: self,
                line: &line,
                submitter: &submitter,
                slots: &slots,
                gatherer: gatherer.as_ref(),
                watch,
                retries: plan.retries,
                known: plan.newest,
                tally: &tally,
            };
            // Tasks that are at the service already are looked after at once.
            let resumed = stream::iter(outstanding())
                .map(|attempt| (slots.of_resumed(), Work::Resume(Box::new(attempt.clone()))));
            // Due jobs follow in manifest order, each when a slot is free; the stream ends when the run stops.
            let due = stream::iter(plan.jobs.iter().filter(|planned| planned.action.buys()))
                .then(|planned| async {
                    let slot = self.unless_stopping(slots.take()).await?;
                    let place = self.unless_stopping(submitter.trust.place_in_line()).await?;
                    Some((slot, Work::Submit(Arc::clone(&planned.job), place)))
                })
                .take_while(|next| std::future::ready(next.is_some()))
                .filter_map(std::future::ready);
            resumed.chain(due).for_each_concurrent(None, |(slot, work)| life.live(slot, work)).await;
        };
        // Videos that earlier runs could not fetch, or that are gone.
        let errands = async {
            let Some(gatherer) = &gatherer else { return };
            let run = async |errand: &Errand| {
                let is_here = gatherer.run_errand(errand).await;
                // An old take whose link is dead is told each time, and is no reason to call every later run a failure.
                tally.note_fetch(is_here || errand.place.is_version);
            };
            stream::iter(&gatherer.shelf().errands).for_each_concurrent(None, run).await;
        };
        let work = async { futures::join!(jobs, poller.run(watches), errands) };
        tokio::select! {
            _ = work => {}
            never = self.watch_the_clock(&line) => match never {},
        }

        Outcome {
            stopped: self.stop.reasons(),
            past_deadline: tally.past_deadline.into_inner(),
            unfetched: tally.unfetched.into_inner(),
        }
    }

    /// What comes of waiting, or nothing if the run stops first.
    async fn unless_stopping<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stop.stopping() => None,
            value = wait => Some(value),
        }
    }

    /// Ends the run's time box. Never returns.
    async fn watch_the_clock(&self, line: &Line<'_, S>) -> std::convert::Infallible {
        if let Some(most) = self.settings.max_duration {
            tokio::time::sleep(most).await;
            let message = "what is not done is left for the next run".to_owned();
            line.stop_because(StopReason::TimeBox, message);
        }
        std::future::pending().await
    }
}

/// Whether the service itself said that generation failed. A task that it merely denies may be there all the same, and
/// is not paid for again without a person.
fn has_failed(word: &Word) -> bool {
    matches!(word, Word::Final(Event::Failed { .. }))
}

/// Where the video is, if this is the word that there is one.
fn video_url(word: &Word) -> Option<String> {
    match word {
        Word::Final(Event::Completed { video_url, .. }) => Some(video_url.clone()),
        _ => None,
    }
}

/// How many jobs ended in a way that the run has to count.
#[derive(Default)]
struct Tally {
    past_deadline: AtomicUsize,
    /// Failed, rejected for good, or in doubt.
    failures: AtomicUsize,
    /// Videos that could not be fetched.
    unfetched: AtomicUsize,
}

impl Tally {
    fn note_fetch(&self, is_here: bool) {
        if !is_here {
            self.unfetched.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What each job's way needs.
struct Life<'r, 'e, S, L> {
    engine: &'r Engine<'e, S, L>,
    line: &'r Line<'r, S>,
    submitter: &'r Submitter<'r, S, L>,
    slots: &'r Slots,
    gatherer: Option<&'r Gatherer<'r, S, L>>,
    watch: mpsc::UnboundedSender<Watch<'r>>,
    retries: u32,
    known: Option<AttemptId>,
    tally: &'r Tally,
}

impl<'r, S: VideoService, L: Ledger> Life<'r, '_, S, L> {
    /// From the intent to the final word.
    async fn live(&self, slot: Slot<'r>, work: Work<'_>) {
        match work {
            Work::Submit(job, place) => self.buy(slot, &job, place).await,
            Work::Resume(attempt) => {
                let Some(mut task) = attempt.task.clone() else { return };
                let since = attempt.answered_at.unwrap_or(attempt.intended_at);
                let age = Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default();
                let (job, request, class) = (&attempt.job, attempt.request.as_str(), class_of_attempt(&attempt));
                let bought = Bought { job, request, attempt: attempt.id, age, class };
                let word = self.attend(slot, bought, &mut task).await;
                let (failed, video_url) =
                    (matches!(word, Word::Final(Event::Failed { .. } | Event::Disowned { .. })), video_url(&word));
                Box::pin(self.finish(&attempt.job, attempt.id, word)).await;
                self.count_failure(failed);
                let place = || self.gatherer.map(|gatherer| gatherer.shelf().place_of(&attempt));
                Box::pin(self.bring_home(&attempt.job, attempt.id, task, video_url, place)).await;
            }
        }
    }

    /// A submission, and as many more as were agreed to while its tasks fail.
    async fn buy(&self, mut slot: Slot<'r>, job: &Job, place: Option<SemaphorePermit<'_>>) {
        // Boxed, like all that is over sooner than a task: ten thousand jobs wait here, and each would keep room for it.
        let mut submitted = Box::pin(self.submitter.submit(job, self.known, &mut slot)).await;
        drop(place);
        let (mut retries, mut failed) = (self.retries, false);
        while let Submitted::Task(attempt, mut task) = submitted {
            let (id, request, class) = (&job.id, job.request.body(), class_of_job(job));
            let bought = Bought { job: id, request, attempt, age: Duration::ZERO, class };
            let word = self.attend(slot, bought, &mut task).await;
            let video_url = video_url(&word);
            failed = matches!(word, Word::Final(Event::Failed { .. } | Event::Disowned { .. }));
            let pays_again = has_failed(&word) && retries > 0;
            Box::pin(self.finish(&job.id, attempt, word)).await;
            let own = || Some(Place { path: job.output(), is_version: false });
            Box::pin(self.bring_home(&job.id, attempt, task, video_url, own)).await;
            let place = if pays_again { self.engine.unless_stopping(self.slots.take()).await } else { None };
            let Some(place) = place else { return self.count_failure(failed) };
            (retries, slot) = (retries - 1, place);
            submitted = Box::pin(self.submitter.submit_again(job, attempt, &mut slot)).await;
        }
        self.count_failure(failed || matches!(submitted, Submitted::Rejected | Submitted::Doubt));
    }

    /// Fetches the video of a task that is completed, if videos are kept.
    async fn bring_home(
        &self,
        job: &JobId,
        attempt: AttemptId,
        task: TaskNames,
        video_url: Option<String>,
        place: impl Fn() -> Option<Place>,
    ) {
        let (Some(gatherer), Some(video_url)) = (self.gatherer, video_url) else { return };
        let Some(place) = place() else { return };
        self.tally.note_fetch(gatherer.bring(job, attempt, task, video_url, place).await);
    }

    /// Stops submitting when too many jobs have failed, or may have.
    fn count_failure(&self, failed: bool) {
        let Some(most) = self.engine.settings.max_failures.filter(|_| failed) else { return };
        let failures = self.tally.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if failures >= most {
            let message = format!(
                "as many jobs as --max-failures says ({failures}) failed, were rejected or are in doubt; what is at the service is still collected"
            );
            self.line.stop_because(StopReason::TooManyFailures, message);
        }
    }

    /// Hands a task to the poller, notes its progress and its names, and returns its last word. The poller gives the slot back.
    async fn attend(&self, slot: Slot<'r>, bought: Bought<'_>, task: &mut TaskNames) -> Word {
        let Bought { job, request, attempt, age, class } = bought;
        let (words, mut heard) = unbounded();
        let mut started = false;
        // If the poller is gone, the run is being left. The refused watch must go at once, with its end of the channel:
        // the closed channel is the word that the job hears below.
        drop(self.watch.send(Watch { attempt, task: task.clone(), age, class, slot, words }));
        loop {
            match heard.next().await {
                Some(Word::Progress(percent)) => {
                    if !std::mem::replace(&mut started, true) {
                        Box::pin(self.write(attempt, Event::Started { percent })).await;
                    }
                    (self.engine.tell)(RunEvent::Progressed { job: job.clone(), percent });
                }
                Some(Word::Made(echo)) => self.line.compare(request, &echo),
                Some(Word::Named(names)) => {
                    task.clone_from(&names);
                    (self.engine.tell)(RunEvent::Named { job: job.clone(), task: names });
                }
                Some(last) => return last,
                None => return Word::Left { why: Leaving::Interrupted, polls: 0, said: None, is_endless: false },
            }
        }
    }

    /// Writes a last word down.
    async fn finish(&self, job: &JobId, attempt: AttemptId, word: Word) {
        let job = job.clone();
        match word {
            Word::Progress(_) | Word::Named(_) | Word::Made(_) => {}
            Word::Final(event) => {
                let told = match &event {
                    Event::Failed { error, .. } | Event::Disowned { error, .. } => {
                        RunEvent::Failed { job, message: error.message.clone() }
                    }
                    _ => RunEvent::Completed { job },
                };
                self.write(attempt, event).await;
                (self.engine.tell)(told);
            }
            Word::Left { why, polls, said, is_endless } => {
                self.write(attempt, Event::Left { polls }).await;
                if why == Leaving::Deadline {
                    self.tally.past_deadline.fetch_add(1, Ordering::Relaxed);
                }
                (self.engine.tell)(RunEvent::Left { job, why, said, is_endless });
            }
        }
    }

    /// What can't be written is asked for again by the next run: the task is in the ledger, and its final word is at the
    /// service.
    async fn write(&self, attempt: AttemptId, event: Event) {
        if let Err(error) = self.engine.ledger.record(attempt, event).await {
            self.line.stop_because(StopReason::LedgerFailed, with_cause(&error));
        }
    }
}

/// A task to look after, as its job knows it.
struct Bought<'j> {
    job: &'j JobId,
    request: &'j str,
    attempt: AttemptId,
    /// How long ago it was submitted.
    age: Duration,
    class: Class,
}

fn class_of_job(job: &Job) -> Class {
    Class { model: job.spec.model.clone(), duration_s: job.spec.duration, typical_s: job.typical_s }
}

/// The class by what was sent: the job may have been edited since.
fn class_of_attempt(attempt: &Attempt) -> Class {
    let sent: serde_json::Value = serde_json::from_str(&attempt.request).unwrap_or_default();
    Class { model: attempt.model.clone(), duration_s: sent["duration"].as_i64(), typical_s: attempt.typical_s }
}
