//! One submission: reserve, write the intent, send, write the answer.
//!
//! The order is the promise. Nothing is sent before the intent is durable, and a task id is written before anybody polls
//! the task. Only an answer that certainly bought nothing is followed by another request. Each request has an intent
//! of its own, and none is open while the submission waits: a process that dies while the service is busy leaves no
//! doubt behind. Before each request the run is asked once more whether it is to stop.
//!
//! Few submissions are open at once, and fewer after a doubt ([`slow_start`](super::slow_start)).
//!
//! A service that is full is asked again when it may have a place ([`slots`](super::slots)). One that can't be reached
//! ends the run only if it never answered; if it did, the network is down, and the run goes on when it returns.

use std::time::Duration;

use super::event::RunEvent;
use super::first_look::FirstLook;
use super::gateway::Gateway;
use super::known::Known;
use super::slots::{Slot, Slots, Turn};
use super::slow_start::{Permit, SlowStart};
use super::spend_guard::SpendGuard;
use super::stop::StopReason;
use crate::domain::{Account, AttemptId, Job, JobId, NoticeCode, SendBy, ServiceError, TaskNames, with_causes};
use crate::ledger::{Approval, Event, Intent, LedgerError, LockedBatch, RunLimit, SpendLimit};
use crate::service::{Submission, VideoService};

/// How often a submission is tried of which not a byte was sent, before a service that never answered in this run counts
/// as out of reach.
const CONNECT_TRIES: u32 = 5;
/// The pause after such tries: at random up to this, doubled with each.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The pause where the service asked to wait and gave no time.
const UNSAID_WAIT: Duration = Duration::from_secs(5);

/// Everything that a submission needs.
pub(super) struct Submitter<'e, S> {
    /// What it shares with polls.
    pub gateway: &'e Gateway<'e, S>,
    /// The places at the service.
    pub slots: &'e Slots,
    /// How many submissions may be open.
    pub slow_start: SlowStart,
    /// Whose tasks they will be.
    pub account: &'e Account,
    /// Limits over all batches, which the ledger keeps.
    pub limits: &'e [SpendLimit],
    /// The limit on all that the runners of this batch buy.
    pub run_limit: Option<&'e RunLimit>,
    /// The approved plan that all of it is a part of.
    pub approval: Option<&'e Approval>,
    /// The ledger.
    pub ledger: &'e LockedBatch,
    /// What may be spent.
    pub spend_guard: SpendGuard,
    /// For how long the service may take nothing at all before it counts as out of reach.
    pub give_up_after: Duration,
    /// The harmless request before the first submission.
    pub first_look: FirstLook,
}

/// What came of a submission in the end.
pub(super) enum Submitted {
    /// There is a task.
    Task(AttemptId, TaskNames),
    /// The service refused it for good: nothing was bought.
    Rejected,
    /// Not submitted after all: nothing was bought.
    Nothing,
    /// Perhaps something was bought.
    Doubt,
}

impl<S: VideoService> Submitter<'_, S> {
    /// Submits a job at most once, in a slot that a task then occupies.
    pub(super) async fn submit(&self, job: &Job, known: Known, slot: &mut Slot<'_>) -> Submitted {
        self.try_until_answered(job, known, slot, false).await
    }

    /// Submits a job whose task failed once more; nothing if the run stops or there is no money left for retries.
    pub(super) async fn submit_again(&self, job: &Job, failed: AttemptId, slot: &mut Slot<'_>) -> Submitted {
        if self.gateway.stop.is_stopping() || !self.spend_guard.reserve_retry(job) {
            return Submitted::Nothing;
        }
        (self.gateway.emit)(RunEvent::Retrying { job: job.id.clone(), price: job.price });
        let known = Known { newest: Some(failed), paid_elsewhere: None };
        self.try_until_answered(job, known, slot, true).await
    }

    /// Tries until there is an answer that is more than "wait" or "no connection", or until the run stops. What was reserved
    /// and certainly not spent is given back.
    async fn try_until_answered(
        &self,
        job: &Job,
        known: Known,
        slot: &mut Slot<'_>,
        mut is_reserved: bool,
    ) -> Submitted {
        let submitted = self.try_until(job, known, slot, &mut is_reserved).await;
        if is_reserved && matches!(submitted, Submitted::Nothing | Submitted::Rejected) {
            self.spend_guard.release(job, matches!(submitted, Submitted::Nothing));
        }
        submitted
    }

    async fn try_until(&self, job: &Job, known: Known, slot: &mut Slot<'_>, is_reserved: &mut bool) -> Submitted {
        if !self.first_look.allows(self.gateway).await {
            return Submitted::Nothing;
        }
        let (mut turn, mut unsent) = (self.slots.turn(), 0);
        loop {
            // Held until the answer is in the ledger, or on its way there ahead of all that follow: a process that dies leaves no more
            // doubts than there are permits.
            let Some(permit) = self.may_send(&mut turn).await else { return Submitted::Nothing };
            // Reserved when it is its turn and not before: the first one without money ends all that still wait.
            *is_reserved = *is_reserved || self.spend_guard.reserve(job);
            if !*is_reserved {
                self.gateway.stop_because(StopReason::SpendLimit, format!("`{}` would exceed a spend limit", job.id));
                return Submitted::Nothing;
            }
            let attempt = match self.ledger.intend(self.intent(job, known)).await {
                Ok(attempt) => attempt,
                Err(LedgerError::Deferred(wait)) => {
                    drop(permit);
                    turn.is_over();
                    if self.gateway.stop.unless_stopping(tokio::time::sleep(wait)).await.is_none() {
                        return Submitted::Nothing;
                    }
                    continue;
                }
                Err(error) => {
                    self.not_intended(&error);
                    return Submitted::Nothing;
                }
            };
            // Writing took its time, and a signal may have come meanwhile.
            if self.gateway.stop.forbids_sending() {
                self.write(attempt, Event::Withdrawn).await;
                return Submitted::Nothing;
            }
            let send_by = self.ledger.sharing().map(|sharing| sharing.send_by(attempt));
            // That says nothing about the service.
            if send_by.is_some_and(SendBy::is_over) {
                drop(permit);
                turn.is_over();
                self.write(attempt, Event::Withdrawn).await;
                let message = "the ledger answered too late to submit a job; the run tries again".to_owned();
                (self.gateway.emit)(RunEvent::Warned { code: NoticeCode::LedgerSlow, message });
                continue;
            }
            // Boxed: it is large, and every job that waits would otherwise keep room for it.
            match Box::pin(self.gateway.service.submit(&job.request, send_by)).await {
                // A service that was reached before is behind somebody else for now, a hotel's login page for example.
                Submission::Untrusted(message) if self.gateway.connectivity.was_ever_reached() => {
                    unsent += 1;
                    self.was_not_sent(&mut turn, unsent, &message);
                    self.write(attempt, Event::Withdrawn).await;
                }
                Submission::NotSent(message) => {
                    unsent += 1;
                    self.was_not_sent(&mut turn, unsent, &message);
                    self.write(attempt, Event::Withdrawn).await;
                }
                Submission::Wait(wait, message) => {
                    self.was_refused(&mut turn, wait, message);
                    self.write(attempt, Event::Withdrawn).await;
                    self.let_others_wait(wait).await;
                }
                Submission::ServerError(wait, message) => {
                    self.was_refused(&mut turn, wait, message);
                    self.write(attempt, Event::ServerError).await;
                    self.let_others_wait(wait).await;
                }
                answer => {
                    if !matches!(answer, Submission::InDoubt(_) | Submission::Page(_)) {
                        self.gateway.was_reached();
                        self.gateway.rate_limit.was_taken();
                    }
                    if matches!(answer, Submission::Accepted(..)) && slot.occupy(&turn) {
                        self.gateway.slow_down("the service refused what it takes now");
                    }
                    turn.is_over();
                    return self.write_answer(job, attempt, answer, permit).await;
                }
            }
        }
    }

    /// Not a byte was written, this many times in a row. The first tries find out whether the service can be reached
    /// at all; later the network may be down for a while, and comes back.
    fn was_not_sent(&self, turn: &mut Turn<'_>, unsent: u32, message: &str) {
        self.gateway.failed_to_answer(message.to_owned());
        let out_of_reach = !self.gateway.connectivity.was_ever_reached() && unsent >= CONNECT_TRIES;
        if out_of_reach || self.slots.idle_for() > self.give_up_after {
            let message = format!("{message} (check the base URL and the network)");
            self.gateway.stop_because(StopReason::Unreachable, message);
        }
        let most = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(unsent.min(16))).min(LONGEST_PAUSE);
        turn.was_not_sent(most.mul_f64(fastrand::f64()));
    }

    fn was_refused(&self, turn: &mut Turn<'_>, wait: Option<Duration>, message: String) {
        self.gateway.was_reached();
        if wait.is_none() && turn.may_have_been_too_fast() {
            // What it was is known once it is asked again.
            return turn.was_perhaps_too_fast();
        }
        let wait = wait.unwrap_or(UNSAID_WAIT);
        if wait > self.give_up_after {
            // What is paid for is collected meanwhile, so nobody else waits.
            self.gateway.stop_because(StopReason::Unreachable, format!("{message}, for longer than the deadline"));
            return;
        }
        self.gateway.rate_limit.pause_submissions(wait);
        turn.was_refused(wait);
        (self.gateway.emit)(RunEvent::Waiting { wait, message });
    }

    /// What the service says of a wait is meant for all runners of the account.
    async fn let_others_wait(&self, wait: Option<Duration>) {
        let Some(wait) = wait.filter(|wait| *wait <= self.give_up_after) else { return };
        if let Some(sharing) = self.ledger.sharing()
            && let Err(error) = sharing.pause(self.account, wait).await
        {
            self.ledger_failed(&error);
        }
    }

    /// Waits for a place at the service, for the end of a pause and for a permit; nothing if the run stops, or if the
    /// service takes nothing for longer than `give_up_after`.
    async fn may_send(&self, turn: &mut Turn<'_>) -> Option<Permit<'_>> {
        let ready = async {
            loop {
                turn.ready().await;
                let permit = self.slow_start.permit().await;
                // Last, so that what is sent keeps the gap.
                self.gateway.rate_limit.turn().await;
                // The service may have said that it is full while this one waited.
                if turn.is_still_ready() && !self.gateway.rate_limit.holds_submissions() {
                    return permit;
                }
                turn.steps_back();
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

    /// Returns when the service has taken nothing for longer than `give_up_after`, and stops the run.
    async fn given_up(&self) {
        loop {
            let left = self.give_up_after.saturating_sub(self.slots.idle_for());
            if left.is_zero() {
                let message = "no submission accepted within the deadline".to_owned();
                return self.gateway.stop_because(StopReason::Unreachable, message);
            }
            tokio::time::sleep(left).await;
        }
    }

    fn not_intended(&self, error: &LedgerError) {
        match error {
            // Runners of one batch share its jobs.
            LedgerError::Claimed(_) if self.ledger.sharing().is_some() => {}
            // Another run is at this job, or was; what it does is in the ledger.
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
            run_limit: self.run_limit.cloned(),
            ..Intent::new(job, self.account.clone())
        }
    }

    async fn write_answer(&self, job: &Job, attempt: AttemptId, answer: Submission, permit: Permit<'_>) -> Submitted {
        let id = job.id.clone();
        match answer {
            Submission::Accepted(task, echo) => match self.write_task(job, attempt, &task, permit).await {
                Ok(task) => {
                    self.slow_start.record_accepted();
                    self.gateway.compare(job.request.body(), &echo);
                    (self.gateway.emit)(RunEvent::Submitted { job: id, task: task.clone(), price: job.price });
                    Submitted::Task(attempt, task)
                }
                Err(taken @ LedgerError::TaskTaken { .. }) => {
                    let error = ServiceError {
                        message: format!("{taken}; all of its IDs: {task}"),
                        code: None,
                        raw: task.to_string().into(),
                    };
                    self.doubt(job, attempt, error).await
                }
                Err(error) => {
                    self.ledger_failed(&error);
                    Submitted::Doubt
                }
            },
            Submission::Untrusted(message) | Submission::Moved(message) => {
                self.gateway.stop_because(StopReason::Unreachable, message);
                self.write(attempt, Event::Withdrawn).await;
                Submitted::Nothing
            }
            Submission::KeyRefused(error) => {
                self.gateway.stop_because(StopReason::KeyRefused, error.message);
                self.write(attempt, Event::Withdrawn).await;
                Submitted::Nothing
            }
            Submission::WrongEndpoint(error) if !self.slow_start.has_accepted() => {
                self.gateway.stop_because(StopReason::Unreachable, error.message);
                self.write(attempt, Event::Withdrawn).await;
                Submitted::Nothing
            }
            Submission::Rejected(error) | Submission::WrongEndpoint(error) => {
                let hopeless = self.slow_start.record_rejected().map(|rejected| {
                    let (service, said) = (&self.account.service, &error.message);
                    format!("{service} rejected the first {rejected} submissions; last error: {said}")
                });
                self.reject(id, attempt, error, hopeless).await
            }
            Submission::Unpaid(error) => {
                let hopeless = self.slow_start.record_unpaid().map(|_| {
                    let said = &error.message;
                    format!("{} reports insufficient funds: {said}", self.account.service)
                });
                self.reject(id, attempt, error, hopeless).await
            }
            Submission::Page(error) => {
                if !self.slow_start.has_accepted() {
                    self.gateway.stop_because(StopReason::TooManyDoubts, error.message.clone());
                }
                self.doubt(job, attempt, error).await
            }
            Submission::InDoubt(error) => self.doubt(job, attempt, error).await,
            // Answered where they are met: no request follows them under this intent.
            Submission::NotSent(_) | Submission::Wait(..) | Submission::ServerError(..) => Submitted::Nothing,
        }
    }

    /// The service refused it for good: nothing was bought. Where it will refuse the rest, too, for this reason, that is not even asked for.
    async fn reject(&self, job: JobId, attempt: AttemptId, error: ServiceError, hopeless: Option<String>) -> Submitted {
        let message = error.message.clone();
        self.write(attempt, Event::Refused(error)).await;
        (self.gateway.emit)(RunEvent::Rejected { job, message });
        if let Some(message) = hopeless {
            self.gateway.stop_because(StopReason::TooManyFailures, message);
        }
        Submitted::Rejected
    }

    /// Nobody knows what came of it. Too many of these in a row end submitting.
    async fn doubt(&self, job: &Job, attempt: AttemptId, error: ServiceError) -> Submitted {
        let (message, too_many) = (error.message.clone(), self.slow_start.record_in_doubt());
        self.write(attempt, Event::Doubted(error)).await;
        (self.gateway.emit)(RunEvent::InDoubt { job: job.id.clone(), message, price: job.price });
        if let Some(doubts) = too_many {
            let doubts = if doubts == 1 { "1 job".to_owned() } else { format!("{doubts} jobs in a row") };
            let message = format!(
                "{doubts} in doubt; active tasks are still polled; resolve the jobs in doubt before the next run"
            );
            self.gateway.stop_because(StopReason::TooManyDoubts, message);
        }
        Submitted::Doubt
    }

    /// An answer that can't be written leaves the intent behind, which the next start puts in doubt: never too little.
    async fn write(&self, attempt: AttemptId, event: Event) {
        if let Err(error) = self.ledger.record(attempt, event).await {
            self.ledger_failed(&error);
        }
    }

    fn ledger_failed(&self, error: &LedgerError) {
        self.gateway.stop_because(StopReason::LedgerFailed, with_causes(error));
    }
}
