//! The access to the service that submissions and polls share, and the preflight.
//!
//! A wrong base URL, a dead upstream, or a login page would put as many jobs in doubt as the circuit breaker allows. So before the first
//! submission, one GET for a task that doesn't exist finds out for free.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::event::RunEvent;
use super::identity::{differences, other_model};
use super::pace::Pace;
use super::settings::{CircuitBreaker, Settings, Stop, StopReason};
use super::spend_guard::SpendGuard;
use crate::domain::{Account, Asked, AttemptId, Footage, JobId, NoticeCode, PriceList, Usd, counted_cost, with_causes};
use crate::ledger::{Event, LedgerError, LockedBatch};
use crate::service::{Echo, Readiness, VideoService};

/// The service, the pace of requests, whether it responds, and the receiver of events.
pub(super) struct Gateway<'e, S> {
    pub service: &'e S,
    /// The account that owns the tasks.
    pub account: &'e Account,
    pub ledger: &'e LockedBatch,
    pub settings: &'e Settings,
    pub pace: Pace,
    pub connectivity: Mutex<Connectivity>,
    pub stop: &'e Stop,
    pub circuit_breaker: CircuitBreaker,
    pub spend_guard: SpendGuard,
    /// The prices of the catalog.
    pub prices: &'e PriceList<'e>,
    pub clock_offset: SignedDuration,
    pub emit: &'e (dyn Fn(RunEvent) + Sync),
}

/// The state of the connection, by the last request.
#[derive(Debug, Default)]
pub(super) struct Connectivity {
    was_reached: bool,
    silent_since: Option<Instant>,
}

impl<S> Gateway<'_, S> {
    /// The time by the ledger's clock, which all runners share.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now().checked_add(self.clock_offset).unwrap_or(Timestamp::MAX)
    }

    /// Reports a request without a usable response.
    pub(super) fn record_unanswered(&self, message: String) {
        self.connectivity.lock().silent_since.get_or_insert_with(Instant::now);
        (self.emit)(RunEvent::RequestFailed { message });
    }

    /// Reports a response, and the time without one before it.
    pub(super) fn record_reached(&self) {
        let mut state = self.connectivity.lock();
        state.was_reached = true;
        let silent_since = state.silent_since.take();
        drop(state);
        if let Some(since) = silent_since {
            (self.emit)(RunEvent::ServiceRecovered { after: since.elapsed() });
        }
    }

    /// Returns whether the service responded in this run.
    pub(super) fn was_ever_reached(&self) -> bool {
        self.connectivity.lock().was_reached
    }

    /// Lowers the rate of requests after the service reported too many. Returns the length of the pause.
    pub(super) fn slow_down(&self, message: &str) -> Duration {
        let wait = self.pace.slow_down();
        let rate = self.pace.per_second().map_or_else(String::new, |rate| format!("; now about {rate:.0} requests/s"));
        (self.emit)(RunEvent::Waiting { wait, message: format!("{message}; sending fewer requests{rate}") });
        wait
    }

    /// Compares a task with its request. Stops submitting a model for which the service reports another model, a higher cost, or, in the first
    /// task that this run bought and that finished, another duration or shape. Warns once of each other difference.
    pub(super) fn compare(&self, request: &str, echo: &Echo, is_finished_purchase: bool) {
        let asked = Asked::from_request(request);
        let model = asked.model();
        if let Some(message) = other_model(&asked, echo, self.prices)
            && !self.circuit_breaker.is_stopped(model)
        {
            self.differs(NoticeCode::ModelMismatch, model, message, true);
        }
        let costs = echo.cost.zip(asked.price(model, self.prices)).filter(|(cost, price)| cost > price);
        if let Some((cost, price)) = costs
            && !self.circuit_breaker.is_stopped(model)
        {
            let message = format!("the service reports a cost of {cost:#} for a video by {model}, priced at {price:#}");
            self.differs(NoticeCode::PriceMismatch, model, message, true);
        }
        let differences = differences(&asked, echo);
        let is_first = is_finished_purchase && self.circuit_breaker.record(model, "task");
        let is_grave = is_first && differences.iter().any(|(_, difference)| difference.is_grave);
        let news = differences.into_iter().filter(|(field, _)| self.circuit_breaker.record(model, field) || is_grave);
        let news: Vec<String> = news.map(|(_, difference)| difference.text).collect();
        if !news.is_empty() {
            let news = news.join(" and ");
            let message = format!("the service reports for {model}: {news}");
            self.differs(NoticeCode::EchoMismatch, model, message, is_grave);
        }
    }

    /// Judges a downloaded video. One of another duration or shape counts, and stops the model if it is the first that this run bought.
    pub(super) fn judge(&self, job: &JobId, request: &str, footage: &Footage, is_new: bool) {
        let asked = Asked::from_request(request);
        let differences = footage.differences(request);
        let is_first = is_new && self.circuit_breaker.record(asked.model(), "video");
        if differences.is_empty() {
            return;
        }
        let is_grave = differences.iter().any(|difference| difference.is_grave);
        let is_accepted = !self.circuit_breaker.count_mismatch(is_grave);
        // A broken model may deliver hundreds: the summary has their number.
        if !is_first && (is_accepted || !self.circuit_breaker.record(asked.model(), "later video")) {
            return;
        }
        let texts: Vec<String> = differences.into_iter().map(|difference| difference.text).collect();
        let message = format!("the video of {job} has {}", texts.join(", and "));
        self.differs(NoticeCode::DeliveryMismatch, asked.model(), message, is_grave && is_first);
    }

    fn differs(&self, code: NoticeCode, model: &str, message: String, is_grave: bool) {
        let is_held = is_grave && self.circuit_breaker.stop(model);
        let effect = format!("; no further {model} jobs are submitted, unless `--accept-mismatch` is given");
        (self.emit)(RunEvent::Warned { code, message: if is_held { message + &effect } else { message } });
    }

    /// Records the cost that the service reports for a task. Limits count what is above the price.
    pub(super) async fn record_cost(&self, attempt: AttemptId, request: &str, usd: Usd) {
        let asked = Asked::from_request(request);
        let price = asked.price(asked.model(), self.prices).unwrap_or(usd);
        self.spend_guard.record_overrun(attempt, counted_cost(price, Some(usd)).saturating_sub(price));
        self.record(attempt, Event::Reported { usd }).await;
    }

    /// Records an event. If the ledger fails, submitting stops: a later run polls the task, or puts the job in doubt. Returns whether it is recorded.
    pub(super) async fn record(&self, attempt: AttemptId, event: Event) -> bool {
        self.ledger.record(attempt, event).await.inspect_err(|error| self.ledger_failed(error)).is_ok()
    }

    /// Stops submitting, because the ledger can't be written, or the batch may be another runner's.
    pub(super) fn ledger_failed(&self, error: &LedgerError) {
        let is_expired = matches!(error, LedgerError::LeaseExpired);
        self.stop_because(
            if is_expired { StopReason::LeaseExpired } else { StopReason::LedgerFailed },
            with_causes(error),
        );
    }

    /// Stops submitting. Reports each reason once.
    pub(super) fn stop_because(&self, reason: StopReason, message: String) {
        if self.stop.because(reason) {
            (self.emit)(RunEvent::Stopping { reason, message });
        }
    }
}

/// The tries before the run stops, and the pause between two of them.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// Sends the preflight. Returns whether it allows submissions; otherwise, it stops the run before a job is in doubt.
pub(super) async fn preflight<S: VideoService>(gateway: &Gateway<'_, S>) -> bool {
    for attempt in 1.. {
        if gateway.was_ever_reached() {
            break;
        }
        let (reason, message) = match gateway.stop.unless_stopping(gateway.service.preflight()).await {
            None => return false,
            // A submission that is refused or has to wait costs nothing.
            Some(Readiness::Usable | Readiness::Waits(_)) => break,
            Some(Readiness::Unusable(message)) if attempt < TRIES => {
                gateway.record_unanswered(message);
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Some(Readiness::Unusable(message) | Readiness::Untrusted(message)) => (StopReason::Unreachable, message),
            Some(Readiness::KeyRefused(error)) => (StopReason::KeyRefused, error.message),
        };
        gateway.stop_because(reason, message);
        return false;
    }
    true
}
