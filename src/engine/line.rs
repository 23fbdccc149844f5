//! The line to the service: what submissions and looks share.

use std::time::Duration;

use super::contact::Contact;
use super::echo::Echoes;
use super::event::RunEvent;
use super::pace::Pace;
use super::stop::{Stop, StopReason};
use crate::service::Echo;

/// The service, how fast it may be asked, whether it answers, and who hears of it.
pub struct Line<'e, S> {
    /// The service.
    pub service: &'e S,
    /// The shared wait.
    pub pace: Pace,
    /// Whether it answers.
    pub contact: Contact,
    /// Reasons to submit no more.
    pub stop: &'e Stop,
    /// What the service makes otherwise than it was asked to.
    pub echoes: Echoes,
    /// Where events go.
    pub tell: &'e (dyn Fn(RunEvent) + Sync),
}

impl<S> Line<'_, S> {
    /// A request got no answer that is of use.
    pub fn lost(&self, message: String) {
        self.contact.lost();
        (self.tell)(RunEvent::Trouble { message });
    }

    /// A request got an answer.
    pub fn heard(&self) {
        if let Some(after) = self.contact.heard() {
            (self.tell)(RunEvent::Back { after });
        }
    }

    /// The service is asked too fast, and said so in these words; how long nobody asks now.
    pub fn slow_down(&self, message: &str) -> Duration {
        let wait = self.pace.slow_down();
        let rate =
            self.pace.per_second().map_or_else(String::new, |rate| format!(": about {rate:.0} requests a second now"));
        (self.tell)(RunEvent::Waiting { wait, message: format!("{message}; it is asked less often{rate}") });
        wait
    }

    /// The service said what it makes of a request.
    pub fn compare(&self, request: &str, echo: &Echo) {
        if let Some(message) = self.echoes.news(request, echo) {
            (self.tell)(RunEvent::Warned { message });
        }
    }

    /// Submits no more, and says so once for each reason.
    pub fn stop_because(&self, reason: StopReason, message: String) {
        if self.stop.because(reason) {
            (self.tell)(RunEvent::Stopping { reason, message });
        }
    }
}
