//! The line to the service: what submissions and looks share.

use super::contact::Contact;
use super::event::RunEvent;
use super::pace::Pace;
use super::stop::{Stop, StopReason};

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

    /// Submits no more, and says so once for each reason.
    pub fn stop_because(&self, reason: StopReason, message: String) {
        if self.stop.because(reason) {
            (self.tell)(RunEvent::Stopping { reason, message });
        }
    }
}
