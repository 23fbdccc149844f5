//! The life of one job in a run: from its intent or active task to its terminal state and its video.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::Either;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit};

use super::event::{LeaveReason, RunEvent};
use super::fetcher::Fetcher;
use super::gateway::Gateway;
use super::poller::{Bought, Poller};
use super::settings::{Outcome, StopReason};
use super::slots::Slot;
use super::submit::{ImageUrls, Known, Submitted, Submitter};
use super::watched::{Ending, Moment, PolledTask};
use crate::domain::{Attempt, AttemptId, Charge, Job, TaskNames};
use crate::ledger::Event;
use crate::plan::{Destination, Download, DownloadPlan, Plan};
use crate::service::VideoService;

/// A piece of a plan's work: a submission, an active task, or a download.
pub(super) enum Task<'r> {
    /// Submits a job that has its turns.
    Submit(Slot<'r>, Arc<Job>, Known, Turns<'r>),
    /// Polls an active task.
    Resume(Slot<'r>, Box<Attempt>),
    /// Downloads a video of an earlier run.
    Fetch(Box<Download>),
}

/// The turns that a job waits for, in addition to its slot.
pub(super) struct Turns<'r> {
    /// Lasts until the response to the submission.
    pub(super) slow_start: Option<SemaphorePermit<'r>>,
    /// Lasts until the job ends, while its model is on trial.
    pub(super) trial: Option<OwnedSemaphorePermit>,
}

/// The end of a task for its job.
#[derive(Default)]
struct Ended {
    /// True if the service reported a failure. A denied task may still exist, so it is never retried automatically.
    has_failed: bool,
    /// True if no video is expected: the task failed, or the service denies it.
    has_no_video: bool,
    /// The service's message of a failure.
    why: Option<String>,
    video_url: Option<String>,
}

/// The state that all jobs share.
pub(super) struct JobRunner<'r, S> {
    pub(super) plan: &'r Plan,
    /// The attempts of jobs with another action in the plan. Only the outcome of that action counts.
    pub(super) superseded: HashSet<AttemptId>,
    pub(super) gateway: &'r Gateway<'r, S>,
    pub(super) submitter: &'r Submitter<'r, S>,
    pub(super) image_urls: &'r ImageUrls<'r>,
    pub(super) fetcher: Option<Fetcher<'r, S>>,
    pub(super) poller: Poller<'r, S>,
    pub(super) outcome: &'r Mutex<Outcome>,
    /// For `--max-failures`: failed tasks, rejected jobs, and jobs in doubt.
    pub(super) failures: AtomicUsize,
}

impl<'r, S: VideoService> JobRunner<'r, S> {
    /// Runs a piece of work to its end.
    pub(super) fn run(&self, task: Task<'r>) -> impl Future<Output = ()> {
        match task {
            Task::Submit(slot, job, known, turns) => Either::Left(self.buy(slot, job, known, turns)),
            Task::Resume(slot, attempt) => Either::Right(Either::Left(self.resume(slot, attempt))),
            // Boxed: it is larger than the state of a waiting job.
            Task::Fetch(download) => Either::Right(Either::Right(Box::pin(self.fetch_earlier(download)))),
        }
    }

    /// Downloads a video of an earlier run.
    async fn fetch_earlier(&self, download: Box<Download>) {
        let (Some(fetcher), Some(wanted)) = (&self.fetcher, &self.plan.downloads) else { return };
        let is_here = fetcher.fetch(wanted, &download, false).await;
        // An expired URL of an old take or batch is reported in each run, and makes none fail.
        let is_old = download.destination.is_version || download.destination.directory.is_some();
        self.outcome.lock().unfetched += usize::from(!is_here && !is_old);
    }

    /// Polls an active task of an earlier run.
    async fn resume(&self, slot: Slot<'r>, attempt: Box<Attempt>) {
        let Some(task) = attempt.task.clone() else { return };
        let since = attempt.answered_at.unwrap_or(attempt.intended_at);
        let age = Duration::try_from(self.gateway.now().duration_since(since)).unwrap_or_default();
        let bought = Bought { purchase: &attempt.purchase, attempt: attempt.id, age, is_new: false };
        let (task, ended) = self.settle(slot, &bought, task).await;
        let failed = ended.has_no_video;
        self.outcome.lock().failures += usize::from(failed && !self.superseded.contains(&attempt.id));
        // A failed task of another batch is no reason to stop this one.
        self.count_failure(failed && !self.plan.others.contains(&attempt.id));
        let destination = |wanted: &DownloadPlan| wanted.destination_of(&attempt);
        Box::pin(self.fetch_video(&bought, task, ended.video_url, destination)).await;
    }

    /// Submits a job, and again up to `retries` times if its task fails.
    fn buy(&self, slot: Slot<'r>, job: Arc<Job>, known: Known, turns: Turns<'r>) -> impl Future<Output = ()> {
        // Boxed, like everything shorter than a task: ten thousand jobs wait here.
        let first = Box::pin(self.submit(slot, job, known, turns));
        async move {
            let Some((job, mut submitted, mut slot, _trial)) = first.await else { return };
            let (mut retries, mut failed, mut last_why) = (self.plan.retries, false, None);
            let last = loop {
                if matches!(submitted, Submitted::Task(..) | Submitted::InDoubt) {
                    self.outcome.lock().reserved += job.purchase.price;
                }
                let (attempt, task) = match submitted {
                    Submitted::Task(attempt, task) => (attempt, task),
                    last => break last,
                };
                let bought = Bought { purchase: &job.purchase, attempt, age: Duration::ZERO, is_new: true };
                let (task, ended) = self.settle(slot, &bought, task).await;
                failed = ended.has_no_video;
                let destination =
                    |_: &DownloadPlan| Destination { directory: None, path: job.output(), is_version: false };
                let is_completed = ended.video_url.is_some();
                let is_judged = Box::pin(self.fetch_video(&bought, task, ended.video_url, destination)).await;
                let breaker = &self.gateway.circuit_breaker;
                if is_completed && is_judged && !breaker.is_stopped(&job.spec.model) {
                    breaker.end_trial(&job.spec.model);
                }
                // A failure in the same words would only be paid for again.
                let is_repeated = last_why.is_some() && last_why == ended.why;
                last_why = ended.why;
                let next = if ended.has_failed && retries > 0 && !is_repeated {
                    Box::pin(self.gateway.stop.unless_stopping(self.submitter.slots.acquire())).await
                } else {
                    None
                };
                let Some(next) = next else { break Submitted::NotSent };
                retries -= 1;
                (submitted, slot) = Box::pin(self.submitter.retry(&job, attempt, next)).await;
            };
            // One job ID can end twice: in two batches, or with a retake.
            self.outcome.lock().failures += usize::from(failed || matches!(last, Submitted::Rejected));
            self.count_failure(failed || matches!(last, Submitted::Rejected | Submitted::InDoubt));
        }
    }

    /// Submits a job for the first time. Returns it as it was sent, with its slot and its turn of a trial. `None` if its image has no URL.
    async fn submit(
        &self,
        slot: Slot<'r>,
        job: Arc<Job>,
        known: Known,
        turns: Turns<'r>,
    ) -> Option<(Arc<Job>, Submitted, Slot<'r>, Option<OwnedSemaphorePermit>)> {
        let Turns { slow_start: _until_the_response, trial } = turns;
        let job = self.with_images(&job).await?;
        let (submitted, slot) = self.submitter.submit(&job, known, slot).await;
        Some((job, submitted, slot, trial))
    }

    /// The job with a URL for its image. `None` if it has none, which is recorded and reported, or if the run stops.
    async fn with_images(&self, job: &Arc<Job>) -> Option<Arc<Job>> {
        let sendable = self.gateway.stop.unless_stopping(self.image_urls.sendable(job)).await?;
        let why = match sendable {
            Ok(sendable) => return Some(sendable),
            Err(why) => why,
        };
        // Recorded, because the next report has only the ledger.
        let reason = format!("its image has no URL: {why}");
        if let Err(error) = self.gateway.ledger.note_unsent(job.id(), &reason).await {
            self.gateway.ledger_failed(&error);
        }
        (self.gateway.emit)(RunEvent::NotSent { job: job.id().clone(), reason });
        None
    }

    /// Downloads the video of a completed task, unless downloads are off. Returns false if there is one, and it did not come.
    async fn fetch_video(
        &self,
        bought: &Bought<'_>,
        task: TaskNames,
        video_url: Option<String>,
        destination: impl FnOnce(&DownloadPlan) -> Destination,
    ) -> bool {
        let (Some(fetcher), Some(wanted), Some(video_url)) = (&self.fetcher, &self.plan.downloads, video_url) else {
            return true;
        };
        let download = Download {
            job: bought.purchase.job.clone(),
            attempt: bought.attempt,
            task,
            account: self.gateway.account.clone(),
            request: bought.purchase.request.body().to_owned(),
            video_url,
            destination: destination(wanted),
            known: None,
        };
        let is_here = fetcher.fetch(wanted, &download, bought.is_new).await;
        self.outcome.lock().unfetched += usize::from(!is_here);
        is_here
    }

    /// Stops submitting when too many jobs have failed or are in doubt.
    fn count_failure(&self, failed: bool) {
        if !failed {
            return;
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if self.gateway.settings.max_failures.is_some_and(|most| failures >= most) {
            let message = format!("{failures} jobs failed, were rejected, or are in doubt");
            self.gateway.stop_because(StopReason::TooManyFailures, message);
        }
    }

    /// Polls a task to its end, and records that. Its slot is free before: a download needs none.
    fn settle(&self, slot: Slot<'r>, bought: &Bought<'_>, task: TaskNames) -> impl Future<Output = (TaskNames, Ended)> {
        let mut watched = PolledTask::new(task, Moment { age: bought.age, at: self.gateway.now() });
        async move {
            let ending = self.poller.watch(bought, &mut watched).await;
            drop(slot);
            let ended = Box::pin(self.finish(bought, ending, &watched)).await;
            (watched.identity.names.clone(), ended)
        }
    }

    /// Records the end of polling.
    async fn finish(&self, bought: &Bought<'_>, ending: Ending, watched: &PolledTask) -> Ended {
        let (job, task, polls) = (bought.purchase.job.clone(), watched.identity.names.clone(), watched.polls);
        let mut ended = Ended::default();
        let (event, emitted) = match ending {
            Ending::Completed { video_url, ended_at } => {
                let content_url = || self.gateway.service.content_url(watched.identity.polled_id());
                // A response may repeat a video that the request refers to.
                let video_url = video_url
                    .filter(|url| !bought.purchase.request.body().contains(&**url))
                    .unwrap_or_else(content_url);
                ended.video_url = Some(video_url.clone());
                (Event::Completed { video_url, ended_at, polls }, RunEvent::Completed { job, task })
            }
            Ending::Failed { error, ended_at } => {
                let message = error.message.clone();
                (ended.has_failed, ended.has_no_video, ended.why) = (true, true, Some(message.clone()));
                let charge = Charge::of_failure(bought.purchase.charging, true);
                (Event::Failed { error, ended_at, polls }, RunEvent::Failed { job, task, message, charge })
            }
            Ending::NotFound { error, ended_at } => {
                ended.has_no_video = true;
                let message = error.message.clone();
                let charge = Charge::of_failure(bought.purchase.charging, false);
                (Event::Disowned { error, ended_at, polls }, RunEvent::Failed { job, task, message, charge })
            }
            Ending::Left(why) => {
                self.outcome.lock().past_deadline += usize::from(why == LeaveReason::Deadline);
                let (said, is_endless) = (watched.said.clone(), watched.is_endless);
                (Event::Left { polls }, RunEvent::TaskLeft { job, task, why, said, is_endless })
            }
        };
        self.gateway.record(bought.attempt, event).await;
        (self.gateway.emit)(emitted);
        ended
    }
}
