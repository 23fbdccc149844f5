//! One job's way through a run: from the intent, or from a task that is at the service, to its final word and its video.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::future::Either;
use futures::stream::StreamExt as _;
use jiff::Timestamp;
use tokio::sync::{SemaphorePermit, mpsc};

use super::cadence::Class;
use super::event::{LeaveReason, RunEvent};
use super::feed::Assignment;
use super::fetcher::Fetcher;
use super::gateway::Gateway;
use super::known::Known;
use super::outcome::Tally;
use super::pictures::Pictures;
use super::slots::{Slot, Slots};
use super::stop::StopReason;
use super::submit::{Submitted, Submitter};
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

/// What a last word means for its job.
struct Ended {
    /// Whether the service itself said that generation failed. A task that it merely denies may be there all the same, and
    /// is not paid for again without a person.
    has_failed: bool,
    /// Whether no video comes of it, by the service's word or by its silence.
    has_no_video: bool,
    /// Where the video is, if there is one.
    video_url: Option<String>,
}

impl Ended {
    fn by(word: &TaskUpdate) -> Self {
        let has_failed = matches!(word, TaskUpdate::Final(Event::Failed { .. }));
        let is_disowned = matches!(word, TaskUpdate::Final(Event::Disowned { .. }));
        let video_url = match word {
            TaskUpdate::Final(Event::Completed { video_url, .. }) => Some(video_url.clone()),
            _ => None,
        };
        Self { has_failed, has_no_video: has_failed || is_disowned, video_url }
    }
}

/// What each job's way needs.
pub(super) struct JobRunner<'r, S> {
    pub(super) gateway: &'r Gateway<'r, S>,
    pub(super) ledger: &'r LockedBatch,
    pub(super) submitter: &'r Submitter<'r, S>,
    pub(super) pictures: &'r Pictures<'r, S>,
    pub(super) slots: &'r Slots,
    pub(super) fetcher: Option<Fetcher<'r, S>>,
    pub(super) watch: mpsc::UnboundedSender<Watch<'r>>,
    pub(super) max_failures: Option<usize>,
    pub(super) tally: &'r Tally,
}

impl<'r, S: VideoService> JobRunner<'r, S> {
    /// Does a piece of work to its end.
    pub(super) fn run<'w>(&'w self, Work { assignment, task }: Work<'r>) -> impl Future<Output = ()> + use<'w, 'r, S> {
        match task {
            Task::Submit(slot, job, known, permit) => Either::Left(self.buy(assignment, slot, job, known, permit)),
            Task::Resume(slot, attempt) => Either::Right(Either::Left(self.resume(assignment, slot, attempt))),
            // Boxed: it is larger than what jobs that wait keep.
            Task::Fetch(download) => Either::Right(Either::Right(Box::pin(self.fetch_earlier(assignment, download)))),
        }
    }

    /// Fetches a video of an earlier run.
    async fn fetch_earlier(&self, assignment: Arc<Assignment>, download: Box<Download>) {
        let (Some(fetcher), Some(wanted)) = (&self.fetcher, &assignment.plan.downloads) else { return };
        let is_here = fetcher.fetch_earlier(wanted, &download).await;
        // The dead link of an old take, or of a batch of long ago, is reported each time, and makes no later run a failure.
        let is_old = download.destination.is_version || download.destination.folder.is_some();
        self.tally.note_fetch(is_here || is_old);
    }

    /// A task that is at the service already.
    async fn resume(&self, assignment: Arc<Assignment>, slot: Slot<'r>, attempt: Box<Attempt>) {
        let Some(mut task) = attempt.task.clone() else { return };
        let since = attempt.answered_at.unwrap_or(attempt.intended_at);
        let age = Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default();
        let (job, request, class) = (&attempt.job, attempt.request.as_str(), class_of_attempt(&attempt));
        let bought = Bought { job, request, attempt: attempt.id, age, class };
        let (ended, writing) = {
            let word = self.await_task(slot, bought, &mut task).await;
            (Ended::by(&word), Box::pin(self.finish(job, attempt.id, word)))
        };
        writing.await;
        let failed = ended.has_no_video;
        self.tally.note_end(failed && !assignment.superseded.contains(&attempt.id));
        // A bad night of another batch is no reason to buy less today.
        self.count_failure(failed && !assignment.plan.others.contains(&attempt.id));
        let destination = |wanted: &DownloadPlan| wanted.destination_of(&attempt);
        Box::pin(self.fetch_video(&assignment, job, attempt.id, task, ended.video_url, destination)).await;
    }

    /// A submission, and as many more as were agreed to while its tasks fail.
    async fn buy(
        &self,
        assignment: Arc<Assignment>,
        mut slot: Slot<'r>,
        job: Arc<Job>,
        known: Known,
        permit: Option<SemaphorePermit<'r>>,
    ) {
        let Some(job) = Box::pin(self.with_picture(&job)).await else { return };
        let job = &*job;
        // Boxed, like all that is over sooner than a task: ten thousand jobs wait here, and each would keep room for it.
        let mut submitted = Box::pin(self.submitter.submit(job, known, &mut slot)).await;
        drop(permit);
        let (mut retries, mut failed) = (assignment.plan.retries, false);
        let last = loop {
            let (attempt, mut task) = match submitted {
                Submitted::Task(attempt, task) => (attempt, task),
                last => break last,
            };
            let (id, request, class) = (&job.id, job.request.body(), class_of_job(job));
            let bought = Bought { job: id, request, attempt, age: Duration::ZERO, class };
            // A word that lived on would take its room in each of ten thousand jobs that wait here.
            let (ended, writing) = {
                let word = self.await_task(slot, bought, &mut task).await;
                (Ended::by(&word), Box::pin(self.finish(id, attempt, word)))
            };
            writing.await;
            failed = ended.has_no_video;
            let own = |_: &DownloadPlan| Destination { folder: None, path: job.output(), is_version: false };
            Box::pin(self.fetch_video(&assignment, id, attempt, task, ended.video_url, own)).await;
            let next = if ended.has_failed && retries > 0 {
                Box::pin(self.gateway.stop.unless_stopping(self.slots.take())).await
            } else {
                None
            };
            let Some(next) = next else { break Submitted::Nothing };
            (retries, slot) = (retries - 1, next);
            submitted = Box::pin(self.submitter.submit_again(job, attempt, &mut slot)).await;
        };
        self.tally.note_end(failed || matches!(last, Submitted::Rejected));
        self.count_failure(failed || matches!(last, Submitted::Rejected | Submitted::Doubt));
    }

    /// The job as it can be sent; nothing if its picture has no address, which is told and written down, or if the run stops.
    async fn with_picture(&self, job: &Arc<Job>) -> Option<Arc<Job>> {
        let sendable = self.gateway.stop.unless_stopping(self.pictures.sendable(job)).await?;
        let why = match sendable {
            Ok(sendable) => return Some(sendable),
            Err(why) => why,
        };
        // Whoever looks tomorrow has nothing but the ledger.
        let reason = format!("its image has no URL: {why}");
        if let Err(error) = self.ledger.note_unsent(&job.id, &reason).await {
            self.gateway.stop_because(StopReason::LedgerFailed, with_causes(&error));
        }
        (self.gateway.emit)(RunEvent::NotSent { job: job.id.clone(), reason });
        None
    }

    /// Fetches the video of a task that is completed, if videos are kept.
    async fn fetch_video(
        &self,
        assignment: &Assignment,
        job: &JobId,
        attempt: AttemptId,
        task: TaskNames,
        video_url: Option<String>,
        destination: impl Fn(&DownloadPlan) -> Destination,
    ) {
        let (Some(fetcher), Some(wanted), Some(video_url)) = (&self.fetcher, &assignment.plan.downloads, video_url)
        else {
            return;
        };
        let (job, account, destination) = (job.clone(), self.submitter.account.clone(), destination(wanted));
        let download = Download { job, attempt, task, account, video_url, destination, known: None };
        self.tally.note_fetch(fetcher.fetch_new(wanted, &download).await);
    }

    /// Stops submitting when too many jobs have failed, or may have.
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

    /// Hands a task to the poller at once, which gives the slot back; the future is its last word.
    fn await_task<'t>(
        &'t self,
        slot: Slot<'r>,
        bought: Bought<'t>,
        task: &'t mut TaskNames,
    ) -> impl Future<Output = TaskUpdate> + use<'t, 'r, S> {
        let Bought { job, request, attempt, age, class } = bought;
        let (updates, heard) = unbounded();
        // If the poller is gone, the run is being left. The refused watch must go at once, with its end of the channel:
        // the closed channel is the word that the job hears.
        drop(self.watch.send(Watch { attempt, task: task.clone(), age, class, slot, updates }));
        self.hear(heard, job, request, attempt, task)
    }

    /// Notes what the poller says of a task, its progress and its names, up to its last word. Ten thousand jobs wait here:
    /// whatever is kept over this wait is kept so often.
    async fn hear(
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
                    continue;
                }
                Some(TaskUpdate::Named(names)) => {
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

    /// Writes a last word down.
    async fn finish(&self, job: &JobId, attempt: AttemptId, word: TaskUpdate) {
        let job = job.clone();
        match word {
            TaskUpdate::Progress(_) | TaskUpdate::Named(_) | TaskUpdate::Made(_) => {}
            TaskUpdate::Final(event) => {
                let emitted = match &event {
                    Event::Failed { error, .. } | Event::Disowned { error, .. } => {
                        RunEvent::Failed { job, message: error.message.clone() }
                    }
                    _ => RunEvent::Completed { job },
                };
                self.write(attempt, event).await;
                (self.gateway.emit)(emitted);
            }
            TaskUpdate::Left { why, polls, said, is_endless } => {
                self.write(attempt, Event::Left { polls }).await;
                if why == LeaveReason::Deadline {
                    self.tally.past_deadline.fetch_add(1, Ordering::Relaxed);
                }
                (self.gateway.emit)(RunEvent::TaskLeft { job, why, said, is_endless });
            }
        }
    }

    /// What can't be written is asked for again by the next run: the task is in the ledger, and its final word is at the
    /// service.
    async fn write(&self, attempt: AttemptId, event: Event) {
        if let Err(error) = self.ledger.record(attempt, event).await {
            self.gateway.stop_because(StopReason::LedgerFailed, with_causes(&error));
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
