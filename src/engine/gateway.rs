//! The way to the service: what submissions and polls share.

use std::time::Duration;

use super::connectivity::Connectivity;
use super::echo::Echoes;
use super::event::RunEvent;
use super::rate_limit::RateLimit;
use super::stop::{Stop, StopReason};
use crate::domain::NoticeCode;
use crate::service::Echo;

/// The service, how fast it may be asked, whether it answers, and who hears of it.
pub(super) struct Gateway<'e, S> {
    /// The service.
    pub service: &'e S,
    /// The shared wait.
    pub rate_limit: RateLimit,
    /// Whether it answers.
    pub connectivity: Connectivity,
    /// Reasons to submit no more.
    pub stop: &'e Stop,
    /// What the service makes otherwise than it was asked to.
    pub echoes: Echoes,
    /// Where events go.
    pub emit: &'e (dyn Fn(RunEvent) + Sync),
}

impl<S> Gateway<'_, S> {
    /// A request got no answer that is of use.
    pub(super) fn failed_to_answer(&self, message: String) {
        self.connectivity.failed();
        (self.emit)(RunEvent::RequestFailed { message });
    }

    /// A request got an answer.
    pub(super) fn was_reached(&self) {
        if let Some(after) = self.connectivity.was_reached() {
            (self.emit)(RunEvent::ServiceRecovered { after });
        }
    }

    /// The service is asked too fast, and said so in these words; how long nobody asks now.
    pub(super) fn slow_down(&self, message: &str) -> Duration {
        let wait = self.rate_limit.slow_down();
        let rate =
            self.rate_limit.per_second().map_or_else(String::new, |rate| format!("; now about {rate:.0} requests/s"));
        (self.emit)(RunEvent::Waiting { wait, message: format!("{message}; sending fewer requests{rate}") });
        wait
    }

    /// The service said what it makes of a request.
    pub(super) fn compare(&self, request: &str, echo: &Echo) {
        if let Some(message) = self.echoes.news(request, echo) {
            (self.emit)(RunEvent::Warned { code: NoticeCode::EchoDiffers, message });
        }
    }

    /// Submits no more, and says so once for each reason.
    pub(super) fn stop_because(&self, reason: StopReason, message: String) {
        if self.stop.because(reason) {
            (self.emit)(RunEvent::Stopping { reason, message });
        }
    }
}
