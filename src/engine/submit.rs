//! The submission of a job: reserve the price, record the intent, send once.
//!
//! # Guarantees
//!
//! - Nothing is sent before its intent is durable, and [`response`](super::response) records a task ID before the first poll.
//! - Another request follows only a response that certainly bought nothing, and has its own intent.
//! - No intent is open while a submission waits: a process that is killed while the service is busy leaves no job in doubt.
//! - Before each request, the run may stop the submission.
//!
//! # Design
//!
//! [`slow_start`](super::slow_start) bounds the submissions in flight, [`slots`](super::slots) the tasks. After a
//! rejection, submissions pause, and then go one at a time until one is accepted. A service that never responded ends the
//! run; later, an outage is waited for.
//!
//! URLs for local images are requested once in a run, before the first submission that needs them. A job without a URL for its image is not sent, has no intent, and costs nothing. The request's identity doesn't
//! depend on the URL ([`Request::with_images_at`](crate::domain::Request::with_images_at)).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore};

use super::event::RunEvent;
use super::gateway::{Gateway, preflight};
use super::settings::StopReason;
use super::slots::{Slot, Slots};
use super::slow_start::{Permit, SlowStart};
use crate::domain::{AttemptId, Job, LocalImage, NoticeCode, SendBy, TaskNames, with_causes};
use crate::hooks::Program;
use crate::ledger::{Approval, Event, Intent, LedgerError, SpendLimit};
use crate::service::{Submission, SubmitResult, TryAgain, VideoService};

/// The tries without a byte sent, after which a service that never responded in this run is unreachable.
const CONNECT_TRIES: u32 = 5;
/// The longest backoff after the first such try. It doubles with each further one; its jitter is full.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// The longest backoff of all.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The state that all submissions share.
pub(super) struct Submitter<'e, S> {
    pub gateway: &'e Gateway<'e, S>,
    pub slots: &'e Slots,
    pub slow_start: SlowStart,
    /// Spend limits over all batches of the ledger.
    pub limits: &'e [SpendLimit],
    /// The approval that covers all submissions.
    pub approval: Option<&'e Approval>,
    /// True once the run has reported that it waits for other runners.
    pub has_told_wait: AtomicBool,
    /// True if the preflight allows submissions. Empty before its response.
    pub is_allowed: OnceCell<bool>,
}

/// The attempts that the plan knew of a job. The ledger refuses an intent if it has more by now.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// The newest attempt of the batch.
    pub newest: Option<AttemptId>,
    /// The number of attempts in other batches that may have paid for the same request; `None` where they don't matter.
    pub paid_elsewhere: Option<u32>,
}

/// The outcome of a submission.
pub(super) enum Submitted {
    /// The service created a task.
    Task(AttemptId, TaskNames),
    /// The service rejected the job for good: nothing was bought.
    Rejected,
    /// The job was not sent: nothing was bought.
    NotSent,
    /// The outcome is unknown: something may have been bought.
    InDoubt,
}

/// The state of a submission over its tries.
#[derive(Default)]
struct Tries {
    /// The number of unsent tries in a row.
    unsent: u32,
    /// True if the price is reserved.
    is_reserved: bool,
}

/// The step after a try: another one, or the outcome.
type Next = ControlFlow<Submitted>;

const NOT_SENT: Next = ControlFlow::Break(Submitted::NotSent);
const TRY_AGAIN: Next = ControlFlow::Continue(());

impl<S: VideoService> Submitter<'_, S> {
    /// Submits a job at most once, in a slot that its task then occupies.
    pub(super) async fn submit<'s>(&self, job: &Job, known: Known, slot: Slot<'s>) -> (Submitted, Slot<'s>) {
        self.try_until_answered(job, known, slot, false).await
    }

    /// Submits a job again after its task failed, unless the run stops or the first submissions need the money.
    pub(super) async fn retry<'s>(&self, job: &Job, failed: AttemptId, slot: Slot<'s>) -> (Submitted, Slot<'s>) {
        if self.gateway.stop.is_stopping() || !self.gateway.spend_guard.reserve_retry(job) {
            return (Submitted::NotSent, slot);
        }
        (self.gateway.emit)(RunEvent::Retrying { job: job.id().clone(), price: job.purchase.price });
        let known = Known { newest: Some(failed), paid_elsewhere: None };
        self.try_until_answered(job, known, slot, true).await
    }

    /// Tries until a response is more than a request to wait, or the run stops. Releases the reservation if certainly nothing was bought.
    async fn try_until_answered<'s>(
        &self,
        job: &Job,
        known: Known,
        mut slot: Slot<'s>,
        is_retry: bool,
    ) -> (Submitted, Slot<'s>) {
        let mut tries = Tries { unsent: 0, is_reserved: is_retry };
        let submitted = loop {
            let is_allowed = self.is_allowed.get_or_init(|| preflight(self.gateway));
            if self.gateway.circuit_breaker.is_stopped(&job.spec.model) || !*is_allowed.await {
                break Submitted::NotSent;
            }
            if let ControlFlow::Break(submitted) = self.try_once(job, known, &mut slot, &mut tries).await {
                break submitted;
            }
        };
        if tries.is_reserved && matches!(submitted, Submitted::NotSent | Submitted::Rejected) {
            // A retry is not among the first submissions that wait for their money.
            self.gateway.spend_guard.release(job, matches!(submitted, Submitted::NotSent) && !is_retry);
        }
        (submitted, slot)
    }

    /// Reserves the price, records an intent, and sends the request once.
    async fn try_once(&self, job: &Job, known: Known, slot: &mut Slot<'_>, tries: &mut Tries) -> Next {
        // Held until the response is recorded, or on its way to the ledger ahead of later intents: a process that is killed leaves at most as
        // many jobs in doubt as there are permits.
        let Some(permit) = self.permit().await else { return NOT_SENT };
        // A video may have arrived meanwhile.
        if self.gateway.circuit_breaker.is_stopped(&job.spec.model) {
            return NOT_SENT;
        }
        // Not reserved earlier: the first job without money stops all that still wait.
        tries.is_reserved = tries.is_reserved || self.gateway.spend_guard.reserve(job);
        if !tries.is_reserved {
            self.gateway.stop_because(StopReason::SpendLimit, format!("`{}` would exceed a spend limit", job.id()));
            return NOT_SENT;
        }
        let attempt = match self.gateway.ledger.intend(self.intent(job, known)).await {
            Ok(attempt) => attempt,
            Err(error @ (LedgerError::Deferred(wait) | LedgerError::SlotsTaken(wait))) => {
                drop(permit);
                let is_new =
                    matches!(error, LedgerError::SlotsTaken(_)) && !self.has_told_wait.swap(true, Ordering::Relaxed);
                if is_new {
                    (self.gateway.emit)(RunEvent::WaitingForRunners { message: error.to_string() });
                }
                let waited = self.gateway.stop.unless_stopping(tokio::time::sleep(wait)).await;
                return if waited.is_some() { TRY_AGAIN } else { NOT_SENT };
            }
            Err(error) => {
                self.intent_refused(&error);
                return NOT_SENT;
            }
        };
        // The intent took time, and a signal may have arrived, or a response about this model.
        if self.gateway.stop.forbids_sending() || self.gateway.circuit_breaker.is_stopped(&job.spec.model) {
            self.gateway.record(attempt, Event::Withdrawn).await;
            return NOT_SENT;
        }
        let send_by = self.gateway.ledger.send_by(attempt);
        if send_by.is_some_and(SendBy::is_over) {
            drop(permit);
            self.gateway.record(attempt, Event::Withdrawn).await;
            let message = "the ledger answered too late to submit a job; the run tries again".to_owned();
            (self.gateway.emit)(RunEvent::Warned { code: NoticeCode::LedgerSlow, message });
            return TRY_AGAIN;
        }
        let _sending = self.gateway.stop.sending(job.id(), job.purchase.price);
        // Boxed: it is large, and each waiting job would otherwise have room for it.
        let response = Box::pin(self.gateway.service.submit(&job.purchase.request, send_by)).await;
        Box::pin(self.respond(job, attempt, response, permit, slot, tries)).await
    }

    /// Prepares another try after a response that certainly bought nothing and is not about the job. Otherwise, records the response.
    async fn respond(
        &self,
        job: &Job,
        attempt: AttemptId,
        response: SubmitResult,
        permit: Permit<'_>,
        slot: &mut Slot<'_>,
        tries: &mut Tries,
    ) -> Next {
        let reason = match response {
            Err(reason) => reason,
            // The service responded before, so another server is in the way for now, such as the login page of a hotel.
            Ok(Submission::Untrusted(message)) if self.gateway.was_ever_reached() => TryAgain::NotSent(message),
            Ok(response) => {
                if !matches!(response, Submission::InDoubt(_) | Submission::Page(_)) {
                    self.gateway.record_reached();
                    self.gateway.pace.record_accepted();
                }
                if matches!(response, Submission::Accepted(..)) {
                    self.gateway.pace.record_submission();
                    slot.occupy();
                }
                self.slots.restart_idle_time();
                return ControlFlow::Break(self.record(job, attempt, response, permit).await);
            }
        };
        let (wait, event) = match reason {
            TryAgain::NotSent(message) => {
                self.not_sent(tries, &message);
                (None, Event::Withdrawn)
            }
            TryAgain::Wait(wait, message) => {
                self.asked_to_wait(wait, message);
                (wait, Event::Withdrawn)
            }
            TryAgain::ServerError(wait, message) => {
                self.asked_to_wait(wait, message);
                (wait, Event::ServerError)
            }
        };
        self.gateway.record(attempt, event).await;
        self.share_wait(wait).await;
        TRY_AGAIN
    }

    /// No byte was sent. The first tries show whether the service is reachable at all; later, an outage may end.
    fn not_sent(&self, tries: &mut Tries, message: &str) {
        tries.unsent += 1;
        self.gateway.record_unanswered(message.to_owned());
        let is_unreachable = !self.gateway.was_ever_reached() && tries.unsent >= CONNECT_TRIES;
        if is_unreachable || self.slots.idle_time() > self.gateway.settings.deadline {
            self.gateway.stop_because(StopReason::Unreachable, message.to_owned());
        }
        let longest = FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(tries.unsent.min(16))).min(MAX_BACKOFF);
        self.slow_start.record_rejected_for_now();
        self.gateway.pace.hold_submissions(longest.mul_f64(fastrand::f64()));
    }

    fn asked_to_wait(&self, wait: Option<Duration>, message: String) {
        self.gateway.record_reached();
        if wait.is_some_and(|wait| wait > self.gateway.settings.deadline) {
            // The run still polls active tasks, so other runners need not wait.
            self.gateway.stop_because(StopReason::Unreachable, format!("{message}, for longer than the deadline"));
            return;
        }
        self.slow_start.record_rejected_for_now();
        let wait = self.gateway.pace.reject_submission(wait);
        (self.gateway.emit)(RunEvent::Waiting { wait, message });
    }

    /// Shares a wait with all runners of the account.
    async fn share_wait(&self, wait: Option<Duration>) {
        let Some(wait) = wait.filter(|wait| *wait <= self.gateway.settings.deadline) else { return };
        if let Err(error) = self.gateway.ledger.pause(self.gateway.account, wait).await {
            self.gateway.ledger_failed(&error);
        }
    }

    /// Waits for the end of a pause, a permit, and the gap between requests. `None` if the run stops, or if the service accepts nothing for
    /// the deadline.
    async fn permit(&self) -> Option<Permit<'_>> {
        let ready = async {
            loop {
                self.gateway.pace.submissions_resumed().await;
                let permit = self.slow_start.permit().await;
                // Last, so that requests keep their gap. Meanwhile, the service may have rejected a submission.
                if self.gateway.pace.turn_to_submit().await {
                    return permit;
                }
            }
        };
        let permit = tokio::select! {
            biased;
            () = self.gateway.stop.stopping() => return None,
            permit = ready => permit,
            () = self.given_up() => return None,
        };
        (!self.gateway.stop.is_stopping()).then_some(permit)
    }

    /// Stops the run once the service has accepted nothing for the deadline, then returns.
    async fn given_up(&self) {
        loop {
            let left = self.gateway.settings.deadline.saturating_sub(self.slots.idle_time());
            if left.is_zero() {
                let message = "no submission accepted within the deadline".to_owned();
                return self.gateway.stop_because(StopReason::Unreachable, message);
            }
            tokio::time::sleep(left).await;
        }
    }

    fn intent_refused(&self, error: &LedgerError) {
        match error {
            // Another run submits this job, or did; the ledger has the result.
            LedgerError::Claimed(_) | LedgerError::Approved(_) => {
                (self.gateway.emit)(RunEvent::Warned { code: NoticeCode::JobClaimed, message: error.to_string() });
            }
            error => self.gateway.stop_because(StopReason::of_intent(error), with_causes(error)),
        }
    }

    fn intent(&self, job: &Job, known: Known) -> Intent {
        Intent {
            known: known.newest,
            paid_elsewhere: known.paid_elsewhere,
            limits: self.limits.to_vec(),
            approval: self.approval.cloned(),
            ..Intent::new(job, self.gateway.account.clone())
        }
    }
}

/// The maximum number of concurrent asset commands.
const MAX_UPLOADS: usize = 4;
/// The failures in a row after which no asset command starts: each may run to its time limit.
const MAX_FAILED: usize = 3;

/// The URL of an image, or the reason that it has none.
type Answer = Result<String, String>;

/// The image URLs of a run.
pub(super) struct ImageUrls<'r> {
    command: Option<&'r Program>,
    /// By the digest of the image.
    asked: Mutex<HashMap<String, Arc<OnceCell<Answer>>>>,
    permits: Semaphore,
    /// The failures of the command in a row.
    failed: AtomicUsize,
}

impl<'r> ImageUrls<'r> {
    pub(super) fn new(command: Option<&'r Program>) -> Self {
        let (asked, permits, failed) = (Mutex::default(), Semaphore::new(MAX_UPLOADS), AtomicUsize::new(0));
        Self { command, asked, permits, failed }
    }

    /// Returns the job with a URL for each local image, or the reason that one has none.
    pub(super) async fn sendable(&self, job: &Arc<Job>) -> Result<Arc<Job>, String> {
        if job.spec.local_images.is_empty() {
            return Ok(Arc::clone(job));
        }
        let urls = job.spec.local_images.iter().map(|image| self.url(image));
        let urls = futures::future::try_join_all(urls).await?;
        let mut sent = Job::clone(job);
        sent.purchase.request = job.purchase.request.with_images_at(&job.spec, &urls);
        Ok(Arc::new(sent))
    }

    async fn url(&self, image: &LocalImage) -> Answer {
        let asked = {
            let mut asked = self.asked.lock();
            Arc::clone(asked.entry(image.sha256.clone()).or_default())
        };
        asked.get_or_init(|| self.ask(image)).await.clone()
    }

    async fn ask(&self, image: &LocalImage) -> Answer {
        let Some(command) = self.command else { return Err("`--asset-command` is not set".to_owned()) };
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        if self.failed.load(Ordering::Relaxed) >= MAX_FAILED {
            return Err(format!("it was not asked for: the asset command failed {MAX_FAILED} times in a row"));
        }
        match command.url_of(image).await {
            Ok(address) => {
                self.failed.store(0, Ordering::Relaxed);
                Ok(address)
            }
            Err(error) => {
                // The fault of one image does not affect others.
                self.failed.fetch_add(usize::from(error.is_about_the_command()), Ordering::Relaxed);
                Err(with_causes(&error))
            }
        }
    }
}
