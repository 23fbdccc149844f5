//! The life of one job in a run: from its intent or active task to its terminal state and its video.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::future::Either;
use futures::stream::StreamExt as _;
use tokio::sync::{SemaphorePermit, mpsc};

use super::cadence::Class;
use super::event::{LeaveReason, RunEvent};
use super::feed::Assignment;
use super::fetcher::Fetcher;
use super::gateway::Gateway;
use super::image_urls::ImageUrls;
use super::outcome::Tally;
use super::slots::{Slot, Slots};
use super::stop::StopReason;
use super::submit::{Known, Submitted, Submitter};
use super::watch::{TaskUpdate, Watch};
use crate::domain::{Attempt, AttemptId, Job, JobId, TaskNames, with_causes};
use crate::ledger::{Event, LockedBatch};
use crate::plan::{Destination, Download, DownloadPlan};
use crate::service::VideoService;

/// A piece of a plan's work.
pub(super) struct Work<'r> {
    pub(super) assignment: Arc<Assignment>,
    pub(super) task: Task<'r>,
}

/// A submission, an active task, or a download.
pub(super) enum Task<'r> {
    /// Submits a job, with the permit of its submission.
    Submit(Slot<'r>, Arc<Job>, Known, Option<SemaphorePermit<'r>>),
    /// Polls an active task.
    Resume(Slot<'r>, Box<Attempt>),
    /// Downloads a video of an earlier run.
    Fetch(Box<Download>),
}

/// The result of a final update for its job.
struct Ended {
    /// True if the service reported a failure. A task that it merely denies may still exist, so it is never submitted
    /// again by itself.
    has_failed: bool,
    /// True if no video is expected: the task failed, or the service denies it.
    has_no_video: bool,
    /// The service's message of a failure.
    why: Option<String>,
    video_url: Option<String>,
}

impl Ended {
    fn by(word: &TaskUpdate) -> Self {
        let has_failed = matches!(word, TaskUpdate::Final(Event::Failed { .. }));
        let why = match word {
            TaskUpdate::Final(Event::Failed { error, .. }) => Some(error.message.clone()),
            _ => None,
        };
        let is_disowned = matches!(word, TaskUpdate::Final(Event::Disowned { .. }));
        let video_url = match word {
            TaskUpdate::Final(Event::Completed { video_url, .. }) => Some(video_url.clone()),
            _ => None,
        };
        Self { has_failed, has_no_video: has_failed || is_disowned, why, video_url }
    }
}

/// The state that all jobs share.
pub(super) struct JobRunner<'r, S> {
    pub(super) gateway: &'r Gateway<'r, S>,
    pub(super) ledger: &'r LockedBatch,
    pub(super) submitter: &'r Submitter<'r, S>,
    pub(super) image_urls: &'r ImageUrls<'r, S>,
    pub(super) slots: &'r Slots,
    pub(super) fetcher: Option<Fetcher<'r, S>>,
    pub(super) watch: mpsc::UnboundedSender<Watch<'r>>,
    pub(super) max_failures: Option<usize>,
    pub(super) tally: &'r Tally,
}

impl<'r, S: VideoService> JobRunner<'r, S> {
    /// Runs a piece of work to its end.
    pub(super) fn run<'w>(&'w self, Work { assignment, task }: Work<'r>) -> impl Future<Output = ()> + use<'w, 'r, S> {
        match task {
            Task::Submit(slot, job, known, permit) => Either::Left(self.buy(assignment, slot, job, known, permit)),
            Task::Resume(slot, attempt) => Either::Right(Either::Left(self.resume(assignment, slot, attempt))),
            // Boxed: it is larger than the state of a waiting job.
            Task::Fetch(download) => Either::Right(Either::Right(Box::pin(self.fetch_earlier(assignment, download)))),
        }
    }

    /// Downloads a video of an earlier run.
    async fn fetch_earlier(&self, assignment: Arc<Assignment>, download: Box<Download>) {
        let (Some(fetcher), Some(wanted)) = (&self.fetcher, &assignment.plan.downloads) else { return };
        let is_here = fetcher.fetch_earlier(wanted, &download).await;
        // An expired URL of an old take or batch is reported in each run, and makes none fail.
        let is_old = download.destination.is_version || download.destination.directory.is_some();
        self.tally.note_fetch(is_here || is_old);
    }

    /// Polls an active task of an earlier run.
    async fn resume(&self, assignment: Arc<Assignment>, slot: Slot<'r>, attempt: Box<Attempt>) {
        let Some(mut task) = attempt.task.clone() else { return };
        let since = attempt.answered_at.unwrap_or(attempt.intended_at);
        let age = Duration::try_from(self.gateway.now().duration_since(since)).unwrap_or_default();
        let (job, request, class) = (&attempt.job, attempt.request.as_str(), class_of_attempt(&attempt));
        let bought = Bought { job, request, attempt: attempt.id, age, class };
        let (ended, writing) = {
            let word = self.await_task(slot, bought, &mut task).await;
            (Ended::by(&word), Box::pin(self.finish(job, attempt.id, &task, word)))
        };
        writing.await;
        let failed = ended.has_no_video;
        self.tally.note_end(failed && !assignment.superseded.contains(&attempt.id));
        // A failed task of another batch is no reason to stop this one.
        self.count_failure(failed && !assignment.plan.others.contains(&attempt.id));
        let download = |wanted: &DownloadPlan, video_url| Download {
            job: job.clone(),
            attempt: attempt.id,
            task,
            account: self.submitter.account.clone(),
            request: attempt.request.clone(),
            video_url,
            destination: wanted.destination_of(&attempt),
            known: None,
        };
        Box::pin(self.fetch_video(&assignment, ended.video_url, download)).await;
    }

    /// Submits a job, and again up to `retries` times if its task fails.
    async fn buy(
        &self,
        assignment: Arc<Assignment>,
        mut slot: Slot<'r>,
        job: Arc<Job>,
        known: Known,
        permit: Option<SemaphorePermit<'r>>,
    ) {
        let Some(job) = Box::pin(self.with_images(&job)).await else { return };
        let job = &*job;
        // Boxed, like everything shorter than a task: ten thousand jobs wait here.
        let mut submitted = Box::pin(self.submitter.submit(job, known, &mut slot)).await;
        drop(permit);
        let (mut retries, mut failed, mut last_why) = (assignment.plan.retries, false, None);
        let last = loop {
            let (attempt, mut task) = match submitted {
                Submitted::Task(attempt, task) => (attempt, task),
                last => break last,
            };
            let (id, request, class) = (&job.id, job.request.body(), class_of_job(job));
            let bought = Bought { job: id, request, attempt, age: Duration::ZERO, class };
            // Dropped before the wait: ten thousand jobs would keep it.
            let (ended, writing) = {
                let word = self.await_task(slot, bought, &mut task).await;
                (Ended::by(&word), Box::pin(self.finish(id, attempt, &task, word)))
            };
            writing.await;
            failed = ended.has_no_video;
            let download = |_: &DownloadPlan, video_url| Download {
                job: id.clone(),
                attempt,
                task,
                account: self.submitter.account.clone(),
                request: request.to_owned(),
                video_url,
                destination: Destination { directory: None, path: job.output(), is_version: false },
                known: None,
            };
            Box::pin(self.fetch_video(&assignment, ended.video_url, download)).await;
            // A failure in the same words would only be paid for again.
            let is_repeated = last_why.is_some() && last_why == ended.why;
            last_why = ended.why;
            let next = if ended.has_failed && retries > 0 && !is_repeated {
                Box::pin(self.gateway.stop.unless_stopping(self.slots.acquire())).await
            } else {
                None
            };
            let Some(next) = next else { break Submitted::NotSent };
            (retries, slot) = (retries - 1, next);
            submitted = Box::pin(self.submitter.retry(job, attempt, &mut slot)).await;
        };
        self.tally.note_end(failed || matches!(last, Submitted::Rejected));
        self.count_failure(failed || matches!(last, Submitted::Rejected | Submitted::InDoubt));
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
        if let Err(error) = self.ledger.note_unsent(&job.id, &reason).await {
            self.gateway.stop_because(StopReason::LedgerFailed, with_causes(&error));
        }
        (self.gateway.emit)(RunEvent::NotSent { job: job.id.clone(), reason });
        None
    }

    /// Downloads the video of a completed task, unless downloads are off.
    async fn fetch_video(
        &self,
        assignment: &Assignment,
        video_url: Option<String>,
        download: impl FnOnce(&DownloadPlan, String) -> Download,
    ) {
        let (Some(fetcher), Some(wanted), Some(video_url)) = (&self.fetcher, &assignment.plan.downloads, video_url)
        else {
            return;
        };
        self.tally.note_fetch(fetcher.fetch_new(wanted, &download(wanted, video_url)).await);
    }

    /// Stops submitting when too many jobs have failed or are in doubt.
    fn count_failure(&self, failed: bool) {
        if !failed {
            return;
        }
        let failures = self.tally.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if self.max_failures.is_some_and(|most| failures >= most) {
            let message = format!(
                "as many jobs as --max-failures says ({failures}) failed, were rejected or are in doubt; what is at the service is still collected"
            );
            self.gateway.stop_because(StopReason::TooManyFailures, message);
        }
    }

    /// Gives a task to the poller, with its slot. The future returns the final update.
    fn await_task<'t>(
        &'t self,
        slot: Slot<'r>,
        bought: Bought<'t>,
        task: &'t mut TaskNames,
    ) -> impl Future<Output = TaskUpdate> + use<'t, 'r, S> {
        let Bought { job, request, attempt, age, class } = bought;
        let (updates, heard) = unbounded();
        // The poller is gone if the run aborts. The rejected watch closes the channel, which tells the job.
        drop(self.watch.send(Watch { attempt, task: task.clone(), age, class, slot, updates }));
        self.follow(heard, job, request, attempt, task)
    }

    /// Records the progress and IDs of a task until its final update. Ten thousand jobs wait here, so this future keeps
    /// little.
    async fn follow(
        &self,
        mut heard: UnboundedReceiver<TaskUpdate>,
        job: &JobId,
        request: &str,
        attempt: AttemptId,
        task: &mut TaskNames,
    ) -> TaskUpdate {
        let mut started = false;
        loop {
            let percent = match heard.next().await {
                Some(TaskUpdate::Progress(percent)) => percent,
                Some(TaskUpdate::Made(echo)) => {
                    self.gateway.compare(request, &echo);
                    if let Some(usd) = echo.cost {
                        Box::pin(self.write(attempt, Event::Reported { usd })).await;
                    }
                    continue;
                }
                Some(TaskUpdate::Alias(names)) => {
                    task.clone_from(&names);
                    (self.gateway.emit)(RunEvent::TaskAlias { job: job.clone(), task: names });
                    continue;
                }
                Some(last) => return last,
                None => {
                    return TaskUpdate::Left { why: LeaveReason::Interrupted, polls: 0, said: None, is_endless: false };
                }
            };
            if !std::mem::replace(&mut started, true) {
                Box::pin(self.write(attempt, Event::Started { percent })).await;
            }
            (self.gateway.emit)(RunEvent::Progressed { job: job.clone(), percent });
        }
    }

    /// Records a final update.
    async fn finish(&self, job: &JobId, attempt: AttemptId, task: &TaskNames, word: TaskUpdate) {
        let (job, task) = (job.clone(), task.clone());
        match word {
            TaskUpdate::Progress(_) | TaskUpdate::Alias(_) | TaskUpdate::Made(_) => {}
            TaskUpdate::Final(event) => {
                let emitted = match &event {
                    Event::Failed { error, .. } | Event::Disowned { error, .. } => {
                        RunEvent::Failed { job, task, message: error.message.clone() }
                    }
                    _ => RunEvent::Completed { job, task },
                };
                self.write(attempt, event).await;
                (self.gateway.emit)(emitted);
            }
            TaskUpdate::Left { why, polls, said, is_endless } => {
                self.write(attempt, Event::Left { polls }).await;
                if why == LeaveReason::Deadline {
                    self.tally.past_deadline.fetch_add(1, Ordering::Relaxed);
                }
                (self.gateway.emit)(RunEvent::TaskLeft { job, task, why, said, is_endless });
            }
        }
    }

    /// Records an event. If the ledger fails, the next run polls the task again.
    async fn write(&self, attempt: AttemptId, event: Event) {
        if let Err(error) = self.ledger.record(attempt, event).await {
            self.gateway.stop_because(StopReason::LedgerFailed, with_causes(&error));
        }
    }
}

/// A task, as its job knows it.
struct Bought<'j> {
    job: &'j JobId,
    request: &'j str,
    attempt: AttemptId,
    /// The time since its submission.
    age: Duration,
    class: Class,
}

fn class_of_job(job: &Job) -> Class {
    Class { model: job.spec.model.clone(), duration_s: job.spec.duration, typical_s: job.typical_s }
}

/// The class by the sent request: the job may have changed since.
fn class_of_attempt(attempt: &Attempt) -> Class {
    let sent: serde_json::Value = serde_json::from_str(&attempt.request).unwrap_or_default();
    Class { model: attempt.model.clone(), duration_s: sent["duration"].as_i64(), typical_s: attempt.typical_s }
}
